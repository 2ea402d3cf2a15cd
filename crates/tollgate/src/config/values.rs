//! The types of values, and their deserialization with errors that name the key and never repeat its value.

use std::time::Duration;

use serde::de::{Deserialize, DeserializeOwned, Deserializer, Error};
use serde_path_to_error::Segment;
use toml::Value;
use toml::de::DeValue;

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

/// Parses a decimal number with at most three digits after the point into thousandths: `1.05` is 1050. Returns `None`
/// for anything else, including signs and exponents.
pub fn parse_thousandths(text: &str) -> Option<u32> {
    let (whole, fraction) = text.split_once('.').unwrap_or((text, "0"));
    let digits = |part: &str| !part.is_empty() && part.bytes().all(|byte| byte.is_ascii_digit());
    if !digits(whole) || !digits(fraction) || fraction.len() > 3 {
        return None;
    }
    let whole: u32 = whole.parse().ok()?;
    let fraction: u32 = format!("{fraction:0<3}").parse().ok()?;
    whole.checked_mul(1000)?.checked_add(fraction)
}

/// Returns the known name that is most similar to `name`; `None` only if there are no known names.
pub fn nearest<'a>(name: &str, known: impl IntoIterator<Item = &'a str>) -> Option<&'a str> {
    known.into_iter().min_by_key(|candidate| (strsim::damerau_levenshtein(name, candidate), *candidate))
}

/// Returns the known name that `name` probably means; `None` if no known name is similar.
pub fn similar<'a>(name: &str, known: impl IntoIterator<Item = &'a str>) -> Option<&'a str> {
    let name = name.to_lowercase();
    let is_similar = |candidate: &&str| {
        let is_prefix = name.len() > 2 && candidate.starts_with(&name);
        is_prefix || 2 * strsim::damerau_levenshtein(&name, candidate) <= name.len().max(candidate.len())
    };
    nearest(&name, known.into_iter().filter(is_similar))
}

/// The error of a table, before its location is known.
pub enum TableError {
    /// A key that the section does not have.
    UnknownKey(String),
    /// A required key that is not set.
    MissingKey(String),
    /// A value of another type than its key.
    WrongType(String, String),
    /// A value that is invalid.
    InvalidValue(String, String),
}

impl TableError {
    /// Translates an error of serde, whose text may repeat a value.
    fn new(error: &serde_path_to_error::Error<toml::de::Error>) -> Self {
        let mut path = error.path().iter();
        let key = if let Some(Segment::Map { key }) = path.next() { key.clone() } else { String::new() };
        let message = error.inner().message();
        if message.starts_with("unknown field ") {
            return Self::UnknownKey(key);
        }
        if let Some(name) = message.strip_prefix("missing field `") {
            return Self::MissingKey(name.trim_end_matches('`').to_owned());
        }
        let (found, expected) = message.rsplit_once(", expected ").unwrap_or((message, ""));
        if let Some(given) = found.strip_prefix("unknown variant `") {
            return Self::InvalidValue(key, unknown_name(given.trim_end_matches('`'), &names(expected)));
        }
        if !found.starts_with("invalid ") && !found.starts_with("wanted ") {
            return Self::InvalidValue(key, message.to_owned());
        }
        let expected = match expected {
            _ if path.next().is_some() => "an array of strings",
            "a sequence" => "an array of strings",
            "u64" => "a whole number, zero or more",
            "a boolean" => "true or false",
            _ => "a string",
        };
        Self::WrongType(key, format!("must be {expected}"))
    }
}

/// Returns the names in backquotes.
fn names(text: &str) -> Vec<&str> {
    text.split('`').skip(1).step_by(2).collect()
}

/// Returns a parsed value. No key is a float; one replaces a table, a date and a number above 64 bits, which serde
/// would accept as a name or a string.
pub fn value(parsed: &DeValue) -> Value {
    match parsed {
        DeValue::String(text) => Value::String(text.to_string()),
        DeValue::Integer(number) => {
            i64::from_str_radix(number.as_str(), number.radix()).map_or(Value::Float(f64::INFINITY), Value::Integer)
        }
        DeValue::Boolean(on) => Value::Boolean(*on),
        DeValue::Array(elements) => Value::Array(elements.iter().map(|element| value(element.get_ref())).collect()),
        DeValue::Float(_) | DeValue::Datetime(_) | DeValue::Table(_) => Value::Float(f64::INFINITY),
    }
}

/// Deserializes the keys of a table.
pub fn deserialize<T: DeserializeOwned>(table: toml::Table) -> Result<T, TableError> {
    serde_path_to_error::deserialize(Value::Table(table)).map_err(|error| TableError::new(&error))
}

/// Returns the keys of a section: serde names them in the error of an unknown one.
pub fn keys<T: DeserializeOwned>() -> Vec<String> {
    let unknown = toml::Table::from_iter([(String::new(), Value::Boolean(true))]);
    let message = unknown.try_into::<T>().err().map(|error| error.message().to_owned()).unwrap_or_default();
    let (_, known) = message.rsplit_once(", expected ").unwrap_or_default();
    names(known).into_iter().map(str::to_owned).collect()
}

/// Returns the text of a variable as the type of its key: a string, a TOML value, a number with leading zeros, or a
/// list separated by commas.
pub fn typed<T: DeserializeOwned>(key: &str, text: &str) -> Value {
    let parsed = DeValue::parse(text.trim()).ok().map(|parsed| value(parsed.get_ref()));
    let number = text.trim().replace('_', "").parse().ok().map(Value::Integer);
    let quoted = parsed.clone().filter(Value::is_str);
    let string = quoted.unwrap_or_else(|| Value::String(text.to_owned()));
    let elements = text.split(',').map(str::trim).filter(|element| !element.is_empty());
    let list = Some(Value::Array(elements.map(Value::from).collect())).filter(|_| !text.trim().starts_with('['));
    let fits = |value: &Value| {
        let table = toml::Table::from_iter([(key.to_owned(), value.clone())]);
        !matches!(deserialize::<T>(table), Err(TableError::WrongType(..)))
    };
    [Some(string.clone()), parsed, number, list].into_iter().flatten().find(fits).unwrap_or(string)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn decimals_are_parsed_as_thousandths() {
        for (text, expected) in [("1", 1000), ("1.0", 1000), ("0.05", 50), ("20.125", 20_125), ("007.5", 7500)] {
            assert_eq!(parse_thousandths(text), Some(expected), "{text}");
        }
    }

    #[test]
    fn other_formats_are_rejected() {
        for text in ["", ".", "1.", ".5", "-1", "+1", "1e3", "1,5", "0.0005", "1.0000", " 1", "4294968", "x"] {
            assert_eq!(parse_thousandths(text), None, "{text}");
        }
    }

    #[test]
    fn nearest_returns_most_similar_name() {
        assert_eq!(nearest("server.lisen", ["server.listen", "storage.url"]), Some("server.listen"));
        assert_eq!(nearest("x", []), None);
    }

    #[test]
    fn similar_returns_only_probable_names() {
        let wires = ["chat-completions", "openai-decisions", "system-one"];
        for (name, expected) in [
            ("sytem-one", Some("system-one")),
            ("System_One", Some("system-one")),
            ("openai", Some("openai-decisions")),
            ("chat-completion", Some("chat-completions")),
            ("sandbox", None),
            ("", None),
        ] {
            assert_eq!(similar(name, wires), expected, "{name}");
        }
    }
}
