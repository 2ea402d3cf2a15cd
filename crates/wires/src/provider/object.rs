//! Parser of answers, one level at a time and without copies.

use std::borrow::Cow;

use domain::json::{JsonText, PrecheckError, precheck, read_object};
use serde_json::value::RawValue;

use super::MalformedAnswer;

/// Returns the text of a body: valid UTF-8, not nested too deeply, and without lone surrogates, which many JSON parsers
/// reject.
pub fn as_text(body: &[u8]) -> Result<&str, MalformedAnswer> {
    let text = std::str::from_utf8(body).map_err(|_| MalformedAnswer::NotOfItsForm)?;
    precheck(text).map_err(|fault| match fault {
        PrecheckError::TooDeep => MalformedAnswer::TooDeep,
        PrecheckError::LoneSurrogate => MalformedAnswer::NotOfItsForm,
    })?;
    Ok(text)
}

/// The members of an object in order. Names without escapes are borrowed from the text.
#[derive(Debug)]
pub struct Object<'a>(Vec<(Cow<'a, str>, JsonText<'a>)>);

impl<'a> Object<'a> {
    /// Parses an object in a text that [`as_text`] has accepted; `None` for other values.
    pub fn parse(text: &'a str) -> Option<Self> {
        let mut members = Vec::new();
        read_object(text, |name, value| members.push((name, value)))?;
        Some(Self(members))
    }

    /// Parses the object in a value; `None` for other values.
    pub fn of(value: JsonText<'a>) -> Option<Self> {
        Self::parse(value.get())
    }

    /// Returns the member with this name; `None` if missing or null. A duplicate member is malformed, because it is
    /// ambiguous.
    pub fn get(&self, name: &str) -> Result<Option<JsonText<'a>>, MalformedAnswer> {
        let mut found = self.0.iter().filter(|(member, _)| member == name).map(|(_, value)| *value);
        let first = found.next();
        if found.next().is_some() {
            Err(MalformedAnswer::NotOfItsForm)
        } else {
            Ok(first.filter(|value| !is_null(*value)))
        }
    }

    /// Returns all members.
    pub fn members(&self) -> &[(Cow<'a, str>, JsonText<'a>)] {
        &self.0
    }
}

/// Returns the elements of an array; `None` for other values.
pub fn elements(value: JsonText<'_>) -> Option<Vec<JsonText<'_>>> {
    let elements: Vec<&RawValue> = serde_json::from_str(value.get()).ok()?;
    Some(elements.into_iter().map(JsonText::from).collect())
}

/// Returns true for `null`.
pub fn is_null(value: JsonText<'_>) -> bool {
    value.get() == "null"
}

/// Returns the content of a string; `None` for other values.
pub fn string(value: JsonText<'_>) -> Option<String> {
    value.get().starts_with('"').then(|| serde_json::from_str(value.get()).ok()).flatten()
}

/// Returns a finite number and its text: `1e999` is none.
pub fn number(value: JsonText<'_>) -> Option<(&str, f64)> {
    let text = value.get();
    let is_number = text.as_bytes().first().is_some_and(|first| first.is_ascii_digit() || *first == b'-');
    let number: f64 = is_number.then(|| text.parse().ok()).flatten()?;
    number.is_finite().then_some((text, number))
}

/// Returns the text of a number from 0 to 1.
pub fn probability(value: JsonText<'_>) -> Option<&str> {
    number(value).filter(|(_, number)| (0.0..=1.0).contains(number)).map(|(text, _)| text)
}

#[cfg(test)]
mod tests {
    use super::*;
    use domain::json::MAX_DEPTH;

    #[test]
    fn as_text_limits_open_brackets() {
        let deep = |levels: usize| format!("{}{}", "[".repeat(levels), "]".repeat(levels));
        assert!(as_text(deep(MAX_DEPTH).as_bytes()).is_ok());
        assert_eq!(as_text(deep(MAX_DEPTH + 1).as_bytes()), Err(MalformedAnswer::TooDeep));
        let wide = format!("[{}]", vec!["{}"; 1000].join(","));
        assert_eq!(as_text(wide.as_bytes()), Ok(wide.as_str()));
        let text = format!("\"{}\"", "{[".repeat(1000));
        assert!(as_text(text.as_bytes()).is_ok(), "text is not nested");
        assert_eq!(as_text(br#"{"a":"\ud800"}"#), Err(MalformedAnswer::NotOfItsForm));
    }

    #[test]
    fn object_reads_escaped_names() {
        let object = Object::parse(r#"{"plain":1,"\u0061b":2,"":3}"#).unwrap();
        let value = |name: &str| object.get(name).unwrap().map(JsonText::get);
        assert_eq!((value("plain"), value("ab"), value(""), value("b")), (Some("1"), Some("2"), Some("3"), None));
        assert!(Object::parse(r#"{"a":1,"\u0061":2}"#).unwrap().get("a").is_err(), "one name, written in two ways");
        assert!(Object::parse("{1:2}").is_none());
    }
}
