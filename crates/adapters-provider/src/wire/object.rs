//! Parser of answers, one level at a time and without copies.

use std::borrow::Cow;
use std::fmt;

use domain::json::{JsonText, read_object};
use serde::de::{Deserialize, Deserializer, MapAccess, Visitor};
use serde_json::value::RawValue;

use super::MalformedAnswer;

/// Deepest accepted nesting of an answer, the same as common JSON parsers.
const MAX_DEPTH: usize = 128;

/// Returns the text of a body: valid UTF-8, not nested too deeply, and without lone surrogates, which many JSON parsers
/// reject.
pub(crate) fn as_text(body: &[u8]) -> Result<&str, MalformedAnswer> {
    let text = std::str::from_utf8(body).map_err(|_| MalformedAnswer::NotOfItsForm)?;
    // Two cheap counts exclude both problems for nearly every answer.
    if body.contains(&b'\\') || openings(body) > MAX_DEPTH {
        scan(body)?;
    }
    Ok(text)
}

/// Counts opening brackets and braces, also within strings. It is an upper bound of the nesting.
fn openings(bytes: &[u8]) -> usize {
    // `u8` counters up to 255 let the compiler vectorise.
    let some = |piece: &[u8]| piece.iter().map(|byte| u8::from(matches!(byte, b'{' | b'['))).sum::<u8>();
    bytes.chunks(usize::from(u8::MAX)).map(|piece| usize::from(some(piece))).sum()
}

/// Checks nesting and escapes of a text that may be invalid JSON, without recursion.
fn scan(bytes: &[u8]) -> Result<(), MalformedAnswer> {
    let (mut depth, mut in_string, mut at) = (0_usize, false, 0);
    while let Some(byte) = bytes.get(at) {
        at += 1;
        match (in_string, byte) {
            (true, b'\\') => at += escape(&bytes[at..]).ok_or(MalformedAnswer::NotOfItsForm)?,
            (_, b'"') => in_string = !in_string,
            (false, b'{' | b'[') => {
                depth += 1;
                if depth > MAX_DEPTH {
                    return Err(MalformedAnswer::TooDeep);
                }
            }
            (false, b'}' | b']') => depth = depth.saturating_sub(1),
            _ => {}
        }
    }
    Ok(())
}

/// Returns the length of an escape behind its backslash; `None` for a lone surrogate.
fn escape(rest: &[u8]) -> Option<usize> {
    let unit = |at: usize| {
        let digits = rest.get(at..at + 5).and_then(|escape| escape.strip_prefix(b"u"));
        digits.and_then(|digits| u16::from_str_radix(std::str::from_utf8(digits).ok()?, 16).ok())
    };
    match unit(0) {
        Some(0xd800..=0xdbff) => {
            let paired = rest.get(5) == Some(&b'\\') && matches!(unit(6), Some(0xdc00..=0xdfff));
            paired.then_some(11)
        }
        Some(0xdc00..=0xdfff) => None,
        Some(_) => Some(5),
        None => Some(1),
    }
}

/// The members of an object in order. Names without escapes are borrowed from the text.
#[derive(Debug)]
pub(crate) struct Object<'a>(Vec<(Cow<'a, str>, JsonText<'a>)>);

impl<'a> Object<'a> {
    /// Parses an object; `None` for other values.
    pub(crate) fn parse(text: &'a str) -> Option<Self> {
        let mut members = Vec::new();
        match read_object(text, |name, value| members.push((name, value))) {
            Some(()) => Some(Self(members)),
            // The scanner leaves the rest to the full parser.
            None => serde_json::from_str(text).ok(),
        }
    }

    /// Parses the object in a value; `None` for other values.
    pub(crate) fn of(value: JsonText<'a>) -> Option<Self> {
        Self::parse(value.get())
    }

    /// Returns the member with this name; `None` if missing or null. A duplicate member is malformed, because it is
    /// ambiguous.
    pub(crate) fn get(&self, name: &str) -> Result<Option<JsonText<'a>>, MalformedAnswer> {
        let mut found = self.0.iter().filter(|(member, _)| member == name).map(|(_, value)| *value);
        let first = found.next();
        if found.next().is_some() {
            Err(MalformedAnswer::NotOfItsForm)
        } else {
            Ok(first.filter(|value| !is_null(*value)))
        }
    }

    /// Returns all members.
    pub(crate) fn members(&self) -> &[(Cow<'a, str>, JsonText<'a>)] {
        &self.0
    }
}

impl<'de> Deserialize<'de> for Object<'de> {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        struct InOrder;
        impl<'de> Visitor<'de> for InOrder {
            type Value = Object<'de>;

            fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str("an object")
            }

            fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<Self::Value, A::Error> {
                let mut members = Vec::new();
                while let Some((Name(name), value)) = map.next_entry::<Name<'de>, &RawValue>()? {
                    members.push((name, value.into()));
                }
                Ok(Object(members))
            }
        }
        deserializer.deserialize_map(InOrder)
    }
}

/// A member's name.
struct Name<'a>(Cow<'a, str>);

impl<'de> Deserialize<'de> for Name<'de> {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        struct AsItStands;
        impl<'de> Visitor<'de> for AsItStands {
            type Value = Name<'de>;

            fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str("a name")
            }

            fn visit_borrowed_str<E>(self, name: &'de str) -> Result<Self::Value, E> {
                Ok(Name(Cow::Borrowed(name)))
            }

            fn visit_str<E>(self, name: &str) -> Result<Self::Value, E> {
                Ok(Name(Cow::Owned(name.to_owned())))
            }
        }
        deserializer.deserialize_str(AsItStands)
    }
}

/// Returns the elements of an array; `None` for other values.
pub(crate) fn elements(value: JsonText<'_>) -> Option<Vec<JsonText<'_>>> {
    let elements: Vec<&RawValue> = serde_json::from_str(value.get()).ok()?;
    Some(elements.into_iter().map(JsonText::from).collect())
}

/// Returns true for `null`.
pub(crate) fn is_null(value: JsonText<'_>) -> bool {
    value.get() == "null"
}

/// Returns the content of a string; `None` for other values.
pub(crate) fn string(value: JsonText<'_>) -> Option<String> {
    value.get().starts_with('"').then(|| serde_json::from_str(value.get()).ok()).flatten()
}

/// Returns a finite number and its text: `1e999` is none.
pub(crate) fn number(value: JsonText<'_>) -> Option<(&str, f64)> {
    let text = value.get();
    let is_number = text.as_bytes().first().is_some_and(|first| first.is_ascii_digit() || *first == b'-');
    let number: f64 = is_number.then(|| text.parse().ok()).flatten()?;
    number.is_finite().then_some((text, number))
}

/// Returns the text of a number from 0 to 1.
pub(crate) fn probability(value: JsonText<'_>) -> Option<&str> {
    number(value).filter(|(_, number)| (0.0..=1.0).contains(number)).map(|(text, _)| text)
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn as_text_limits_open_brackets() {
        let deep = |levels: usize| format!("{}{}", "[".repeat(levels), "]".repeat(levels));
        assert!(as_text(deep(MAX_DEPTH).as_bytes()).is_ok());
        assert_eq!(as_text(deep(MAX_DEPTH + 1).as_bytes()), Err(MalformedAnswer::TooDeep));
        let wide = format!("[{}]", vec!["{}"; 1000].join(","));
        assert_eq!((as_text(wide.as_bytes()), openings(wide.as_bytes())), (Ok(wide.as_str()), 1001));
        let text = format!("\"{}\"", "{[".repeat(1000));
        assert!(as_text(text.as_bytes()).is_ok(), "text is not nested");
    }

    #[test]
    fn object_reads_escaped_names() {
        let object = Object::parse(r#"{"plain":1,"\u0061b":2,"":3}"#).unwrap();
        let value = |name: &str| object.get(name).unwrap().map(JsonText::get);
        assert_eq!((value("plain"), value("ab"), value(""), value("b")), (Some("1"), Some("2"), Some("3"), None));
        assert!(Object::parse(r#"{"a":1,"\u0061":2}"#).unwrap().get("a").is_err(), "one name, written in two ways");
        assert!(Object::parse("{1:2}").is_none());
    }

    proptest! {
        #[test]
        fn as_text_agrees_with_scan_for_any_text(
            text in r#"([\[\]{}"a]|\\["\\]|\\u(d83d|de00|0061|d8)){0,80}"#,
            levels in prop_oneof![Just(0), 100_usize..140],
        ) {
            let text = format!("{}{text}", "[".repeat(levels));
            prop_assert_eq!(as_text(text.as_bytes()), scan(text.as_bytes()).map(|()| text.as_str()));
        }
    }
}
