//! Opaque JSON: text that is known to be JSON and is passed on byte for byte, numbers included.

mod checker;
mod part;
mod scan;
mod unknown_member;

use std::borrow::Cow;
use std::fmt;
use std::sync::Arc;

use serde_json::value::RawValue;

pub use checker::{JsonText, read_object};
pub(crate) use part::{JsonPart, Member, first_repeated};
pub use unknown_member::unknown_member;

/// One JSON value as the text it was written in. Cheap to clone. Its `Debug` does not show the content, which may
/// be a caller's private text.
///
/// What is taken out of one shares its text. Where such a part is kept for long and the rest is not,
/// [`Json::detached`] gives it a text of its own.
#[derive(Clone)]
pub struct Json {
    whole: Arc<str>,
    /// Where the value is in the whole text: always all of one JSON value, without space around it.
    start: usize,
    end: usize,
}

/// What kind of value a [`Json`] is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum JsonKind {
    /// `null`
    Null,
    /// `true` or `false`
    Bool,
    /// Any number.
    Number,
    /// A string.
    String,
    /// An array.
    Array,
    /// An object.
    Object,
}

impl JsonKind {
    /// With its article, for a sentence.
    pub fn described(self) -> &'static str {
        match self {
            Self::Null => "null",
            Self::Bool => "a boolean",
            Self::Number => "a number",
            Self::String => "a string",
            Self::Array => "an array",
            Self::Object => "an object",
        }
    }

    /// By the first byte of the text.
    fn of(first: Option<&u8>) -> Self {
        match first {
            Some(b'{') => Self::Object,
            Some(b'[') => Self::Array,
            Some(b'"') => Self::String,
            Some(b't' | b'f') => Self::Bool,
            Some(b'n') => Self::Null,
            _ => Self::Number,
        }
    }
}

/// A text that is not JSON.
#[derive(Debug, thiserror::Error)]
#[error("not valid JSON")]
pub struct InvalidJson;

impl Json {
    /// Checks that `text` is one JSON value.
    pub fn parse(text: &str) -> Result<Self, InvalidJson> {
        let text = text.trim_matches([' ', '\t', '\n', '\r']);
        if checker::is_json(text) {
            return Ok(Self::checked(text));
        }
        serde_json::from_str::<&RawValue>(text).map(Self::from).map_err(|_| InvalidJson)
    }

    /// A string.
    pub fn string(text: &str) -> Self {
        let mut json = String::with_capacity(text.len() + 2);
        push_string(&mut json, text);
        Self::checked(&json)
    }

    /// An object of members whose values are JSON texts already, in this order.
    pub fn object<'a>(members: impl IntoIterator<Item = (&'a str, &'a str)>) -> Self {
        let mut text = String::from("{");
        for (name, value) in members {
            if text.len() > 1 {
                text.push(',');
            }
            push_string(&mut text, name);
            text.push(':');
            text.push_str(value);
        }
        text.push('}');
        Self::put_together(&text)
    }

    /// An array of elements that are JSON texts already.
    pub fn array<'a>(elements: impl IntoIterator<Item = &'a str>) -> Self {
        let mut text = String::from("[");
        for element in elements {
            if text.len() > 1 {
                text.push(',');
            }
            text.push_str(element);
        }
        text.push(']');
        Self::put_together(&text)
    }

    /// A text that was put together from JSON; what is none after all becomes null, which no reader takes for it.
    fn put_together(text: &str) -> Self {
        if checker::is_json(text) {
            return Self::checked(text);
        }
        Self::from(serde_json::from_str(text).unwrap_or(RawValue::NULL))
    }

    /// A text that is known to be one JSON value without space around it.
    fn checked(text: &str) -> Self {
        Self { whole: Arc::from(text), start: 0, end: text.len() }
    }

    /// The JSON text, byte for byte as it came in.
    pub fn text(&self) -> &str {
        self.as_part().text()
    }

    /// What kind of value this is.
    pub fn kind(&self) -> JsonKind {
        self.as_part().kind()
    }

    /// The string inside, where this is a string.
    pub fn as_string(&self) -> Option<String> {
        self.as_part().as_str().map(Cow::into_owned)
    }

    /// The number inside as a float, for comparing only; money never goes through here.
    pub fn as_f64(&self) -> Option<f64> {
        self.as_part().as_f64()
    }

    /// The members of an object in their order, duplicates included; `None` where this is no object.
    pub fn members(&self) -> Option<Vec<(String, Json)>> {
        let owned = |member: Member<'_>| (member.name.into_owned(), member.value.to_json());
        self.as_part().members().map(|members| members.into_iter().map(owned).collect())
    }

    /// The elements of an array; `None` where this is no array.
    pub fn elements(&self) -> Option<Vec<Json>> {
        self.as_part().elements().map(|elements| elements.into_iter().map(JsonPart::to_json).collect())
    }

    /// The same value with a text of its own, so that nothing else is kept for its sake.
    #[must_use]
    pub fn detached(&self) -> Self {
        Self::checked(self.text())
    }

    /// The same value, borrowed.
    pub(crate) fn as_part(&self) -> JsonPart<'_> {
        JsonPart { whole: &self.whole, start: self.start, end: self.end }
    }
}

/// Writes a string with its quotes.
fn push_string(json: &mut String, text: &str) {
    let is_plain = !text.bytes().any(|byte| byte < b' ' || matches!(byte, b'"' | b'\\'));
    if is_plain {
        json.push('"');
        json.push_str(text);
        json.push('"');
    } else {
        // A string always has a text; the fallback is unreachable and harmless.
        json.push_str(&serde_json::to_string(text).unwrap_or_else(|_| "\"\"".to_owned()));
    }
}

impl From<Box<RawValue>> for Json {
    fn from(raw: Box<RawValue>) -> Self {
        Self::checked(raw.get())
    }
}

impl From<&RawValue> for Json {
    fn from(raw: &RawValue) -> Self {
        Self::checked(raw.get())
    }
}

impl From<JsonText<'_>> for Json {
    fn from(text: JsonText<'_>) -> Self {
        Self::checked(text.get())
    }
}

impl From<serde_json::Value> for Json {
    fn from(value: serde_json::Value) -> Self {
        // A `Value` always has a text; the fallback is unreachable and harmless.
        serde_json::to_string(&value).map_or_else(|_| Self::from(RawValue::NULL), |text| Self::checked(&text))
    }
}

impl PartialEq for Json {
    /// Byte for byte.
    fn eq(&self, other: &Self) -> bool {
        self.text() == other.text()
    }
}

impl Eq for Json {}

impl fmt::Debug for Json {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Json({}, {} bytes)", self.kind().described(), self.text().len())
    }
}

#[cfg(test)]
mod tests;
