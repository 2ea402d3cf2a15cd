//! The types of values.

use std::time::Duration;

use serde::de::{Deserialize, Deserializer, Error};

use super::nearest::similar;

/// A whole number from `MIN` to `MAX`.
#[derive(Clone, Copy)]
pub struct Within<T, const MIN: u64, const MAX: u64>(T);

/// A whole number above zero.
pub type Positive<T> = Within<T, 1, { u64::MAX }>;

impl<T, const MIN: u64, const MAX: u64> Within<T, MIN, MAX> {
    /// Returns the number.
    pub fn get(self) -> T {
        self.0
    }
}

impl<'de, T: TryFrom<u64>, const MIN: u64, const MAX: u64> Deserialize<'de> for Within<T, MIN, MAX> {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let number = u64::deserialize(deserializer)?;
        if (MIN..=MAX).contains(&number) {
            return T::try_from(number).map(Self).map_err(|_| D::Error::custom("is too large"));
        }
        Err(match MAX {
            u64::MAX => D::Error::custom(format_args!("must be more than {}", MIN.saturating_sub(1))),
            _ => D::Error::custom(format_args!("must be {MIN} to {MAX}")),
        })
    }
}

/// A duration from `MIN` to `MAX` milliseconds.
#[derive(Clone, Copy)]
pub struct Millis<const MIN: u64, const MAX: u64>(Within<u64, MIN, MAX>);

/// A duration above zero, in milliseconds.
pub type PositiveMillis = Millis<1, { u64::MAX }>;

impl<const MIN: u64, const MAX: u64> Millis<MIN, MAX> {
    /// Returns the duration.
    pub fn get(self) -> Duration {
        Duration::from_millis(self.0.get())
    }
}

impl<'de, const MIN: u64, const MAX: u64> Deserialize<'de> for Millis<MIN, MAX> {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        Within::deserialize(deserializer).map(Self)
    }
}

/// A string that is required and not empty.
pub struct RequiredText(String);

impl RequiredText {
    /// Returns the string.
    pub fn as_str(&self) -> &str {
        &self.0
    }
}

impl<'de> Deserialize<'de> for RequiredText {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let text = String::deserialize(deserializer)?;
        if text.is_empty() { Err(D::Error::custom("is required and must not be empty")) } else { Ok(Self(text)) }
    }
}

/// A value with a name in the configuration.
pub trait Named: Copy {
    /// Returns all names, with the values.
    fn names() -> Vec<(&'static str, Self)>;
}

/// The name of a value of another crate. The enums of this crate derive `Deserialize`.
#[derive(Clone, Copy)]
pub struct Name<T>(T);

impl<T> Name<T> {
    /// Returns the value.
    pub fn get(self) -> T {
        self.0
    }
}

impl<'de, T: Named> Deserialize<'de> for Name<T> {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let (given, names) = (String::deserialize(deserializer)?, T::names());
        let found = names.iter().find(|(name, _)| *name == given);
        found.map(|(_, value)| Self(*value)).ok_or_else(|| {
            let known: Vec<&str> = names.iter().map(|(name, _)| *name).collect();
            D::Error::custom(unknown_name(&given, &known))
        })
    }
}

/// Describes an unknown name, which is not repeated, by the known names.
pub fn unknown_name(given: &str, known: &[&str]) -> String {
    format!("must be {}{}", alternatives(known), nearest_hint(given, known))
}

/// `; the nearest is a`, or an empty string if no known name is similar.
pub fn nearest_hint(given: &str, known: &[&str]) -> String {
    similar(given, known.iter().copied()).map(|name| format!("; the nearest is {name}")).unwrap_or_default()
}

/// `a, b or c`.
pub fn alternatives(words: &[&str]) -> String {
    match words {
        [before @ .., last] if !before.is_empty() => format!("{} or {last}", before.join(", ")),
        _ => words.concat(),
    }
}
