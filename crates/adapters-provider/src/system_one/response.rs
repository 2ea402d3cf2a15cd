//! Answer body -> canonical form.

use std::fmt;

use domain::decision::ReportedUsage;
use domain::json::{Json, JsonKind};
use serde::de::{Deserialize, Deserializer, Error as _, IgnoredAny, MapAccess, Visitor};
use serde_json::value::RawValue;

/// Deepest nesting of an answer that is taken: what callers' parsers take as well.
const MAX_DEPTH: usize = 128;
/// No decision uses a thousand million tokens; a count beyond is a fault of the provider's.
const MAX_TOKENS: u64 = 1_000_000_000;

/// An answer body that is not of the wire's form. Says nothing of its content.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum MalformedAnswer {
    /// Not UTF-8, or not JSON to its end, or not an object, or with a member twice.
    #[error("the provider's answer is malformed")]
    NotOfItsForm,
    /// Nested deeper than 128 levels.
    #[error("the provider's answer is nested too deeply")]
    TooDeep,
    /// `answers` is missing or no object.
    #[error("the provider's answer holds no answers")]
    NoAnswers,
    /// `usage` is there and makes no sense.
    #[error("the provider's token counts are malformed")]
    Usage,
}

/// What the provider answered.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Answer {
    /// The answers, byte for byte: an object.
    pub answers: Json,
    /// The token counts, where it gave them.
    pub usage: Option<ReportedUsage>,
}

/// Reads an answer body.
///
/// # Errors
/// What is malformed.
pub fn read(body: &[u8]) -> Result<Answer, MalformedAnswer> {
    let text = std::str::from_utf8(body).map_err(|_| MalformedAnswer::NotOfItsForm)?;
    if depth(text) > MAX_DEPTH {
        return Err(MalformedAnswer::TooDeep);
    }
    let members: Members<'_> = serde_json::from_str(text).map_err(|_| MalformedAnswer::NotOfItsForm)?;
    let answers = members.answers.map(Json::from).filter(|answers| answers.kind() == JsonKind::Object);
    Ok(Answer {
        answers: answers.ok_or(MalformedAnswer::NoAnswers)?,
        usage: members.usage.map(|usage| read_usage(&Json::from(usage))).transpose()?.flatten(),
    })
}

/// The deepest nesting of objects and arrays, counted without recursion, of a text that may not even be JSON.
fn depth(text: &str) -> usize {
    let (mut depth, mut deepest, mut in_string) = (0_usize, 0, false);
    let mut bytes = text.bytes();
    while let Some(byte) = bytes.next() {
        match (in_string, byte) {
            (true, b'\\') => drop(bytes.next()),
            (_, b'"') => in_string = !in_string,
            (false, b'{' | b'[') => {
                depth += 1;
                deepest = deepest.max(depth);
            }
            (false, b'}' | b']') => depth = depth.saturating_sub(1),
            _ => {}
        }
    }
    deepest
}

/// Absent, null and without an input count mean that nothing was reported.
fn read_usage(usage: &Json) -> Result<Option<ReportedUsage>, MalformedAnswer> {
    if usage.kind() == JsonKind::Null {
        return Ok(None);
    }
    let members = usage.members().ok_or(MalformedAnswer::Usage)?;
    let count = |name: &str| {
        let mut found = members.iter().filter(|(member, _)| member == name).map(|(_, value)| value);
        match (found.next(), found.next()) {
            (None, _) => Ok(None),
            (Some(value), None) if value.kind() == JsonKind::Null => Ok(None),
            (Some(value), None) => tokens(value).map(Some).ok_or(MalformedAnswer::Usage),
            (Some(_), Some(_)) => Err(MalformedAnswer::Usage),
        }
    };
    let (input, output) = (count("input_tokens")?, count("output_tokens")?);
    Ok(input.map(|input_tokens| ReportedUsage { input_tokens, output_tokens: output.unwrap_or(0) }))
}

/// A whole number in any notation: `12`, `12.0`, `1.2e1`.
fn tokens(value: &Json) -> Option<u64> {
    let count = if let Ok(count) = value.text().parse::<u64>() {
        count
    } else {
        let number = value.as_f64().filter(|number| number.fract() == 0.0 && (0.0..=1e9).contains(number))?;
        #[expect(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "checked in the line above")]
        let count = number as u64;
        count
    };
    (count <= MAX_TOKENS).then_some(count)
}

/// The members that matter, each at most once.
#[derive(Default)]
struct Members<'a> {
    answers: Option<&'a RawValue>,
    usage: Option<&'a RawValue>,
}

impl<'de> Deserialize<'de> for Members<'de> {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        struct Once;
        impl<'de> Visitor<'de> for Once {
            type Value = Members<'de>;

            fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str("an object")
            }

            fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<Self::Value, A::Error> {
                let mut members = Members::default();
                while let Some(name) = map.next_key::<String>()? {
                    let place = match name.as_str() {
                        "answers" => &mut members.answers,
                        "usage" => &mut members.usage,
                        _ => {
                            map.next_value::<IgnoredAny>()?;
                            continue;
                        }
                    };
                    if place.replace(map.next_value()?).is_some() {
                        return Err(A::Error::custom("a member stands in the object more than once"));
                    }
                }
                Ok(members)
            }
        }
        deserializer.deserialize_map(Once)
    }
}

#[cfg(test)]
mod tests;
