//! Opaque JSON: validated JSON text that is forwarded byte for byte, numbers included.

mod checker;
mod lexer;
mod part;
mod precheck;
mod unknown_member;

use std::borrow::Cow;
use std::fmt;
use std::sync::Arc;

use serde_json::value::RawValue;

pub use checker::{JsonText, read_object};
pub(crate) use lexer::string_content;
pub use lexer::{Token, Tokens};
pub(crate) use part::{JsonPart, Member, first_duplicate};
pub use precheck::{MAX_DEPTH, PrecheckError, precheck};
pub use unknown_member::unknown_member;

/// A JSON value in its original text. Cheap to clone. Its `Debug` output hides the content, which may be private.
///
/// Values taken out of it share its text. If a part lives longer than the whole, [`Json::detached`] copies the part.
#[derive(Clone)]
pub struct Json {
    whole: Arc<str>,
    /// The range of the value in the whole text: one complete JSON value without surrounding whitespace.
    start: usize,
    end: usize,
}

/// The type of a JSON value.
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
    /// Returns the type with its article, for messages.
    pub fn with_article(self) -> &'static str {
        match self {
            Self::Null => "null",
            Self::Bool => "a boolean",
            Self::Number => "a number",
            Self::String => "a string",
            Self::Array => "an array",
            Self::Object => "an object",
        }
    }

    /// Returns the type by the first byte of the text.
    fn from_first_byte(first: Option<&u8>) -> Self {
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

/// The error of a text that is not JSON.
#[derive(Debug, thiserror::Error)]
#[error("not valid JSON")]
pub struct InvalidJson;

impl Json {
    /// Parses a text that is one JSON value.
    pub fn parse(text: &str) -> Result<Self, InvalidJson> {
        let text = text.trim_matches([' ', '\t', '\n', '\r']);
        if checker::is_json(text) {
            return Ok(Self::from_checked(text));
        }
        serde_json::from_str::<&RawValue>(text).map(Self::from).map_err(|_| InvalidJson)
    }

    /// Creates a string.
    pub fn string(text: &str) -> Self {
        let mut json = String::with_capacity(text.len() + 2);
        push_string(&mut json, text);
        Self::from_checked(&json)
    }

    /// Creates an object of members in this order. The values must be JSON texts.
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
        Self::assemble(&text)
    }

    /// Creates an array of elements, which must be JSON texts.
    pub fn array<'a>(elements: impl IntoIterator<Item = &'a str>) -> Self {
        let mut text = String::from("[");
        for element in elements {
            if text.len() > 1 {
                text.push(',');
            }
            text.push_str(element);
        }
        text.push(']');
        Self::assemble(&text)
    }

    /// Creates a value from assembled JSON. Invalid JSON becomes null, which every reader rejects.
    fn assemble(text: &str) -> Self {
        if checker::is_json(text) {
            return Self::from_checked(text);
        }
        Self::from(serde_json::from_str(text).unwrap_or(RawValue::NULL))
    }

    /// Creates a value from a text that is one JSON value without surrounding whitespace.
    fn from_checked(text: &str) -> Self {
        Self { whole: Arc::from(text), start: 0, end: text.len() }
    }

    /// Returns the JSON text, byte for byte as received.
    pub fn text(&self) -> &str {
        self.as_part().text()
    }

    /// Returns the type of the value.
    pub fn kind(&self) -> JsonKind {
        self.as_part().kind()
    }

    /// Returns the content of a string; `None` for other types.
    pub fn as_string(&self) -> Option<String> {
        self.as_part().as_str().map(Cow::into_owned)
    }

    /// Returns a number as a float, for comparisons only. Amounts of money never use it.
    pub fn as_f64(&self) -> Option<f64> {
        self.as_part().as_f64()
    }

    /// Returns the members of an object in order, with duplicates; `None` for other types.
    pub fn members(&self) -> Option<Vec<(String, Json)>> {
        let owned = |member: Member<'_>| (member.name.into_owned(), member.value.to_json());
        self.as_part().members().map(|members| members.into_iter().map(owned).collect())
    }

    /// Returns the elements of an array; `None` for other types.
    pub fn elements(&self) -> Option<Vec<Json>> {
        self.as_part().elements().map(|elements| elements.into_iter().map(JsonPart::to_json).collect())
    }

    /// Returns a copy of the value that does not keep the whole text in memory.
    #[must_use]
    pub fn detached(&self) -> Self {
        Self::from_checked(self.text())
    }

    /// Borrows the value.
    pub(crate) fn as_part(&self) -> JsonPart<'_> {
        JsonPart { whole: &self.whole, start: self.start, end: self.end }
    }
}

/// Appends a text as a JSON string. Most texts need no escape and are copied directly.
pub fn push_string(json: &mut String, text: &str) {
    if lexer::find_special::<true>(text.as_bytes(), 0) == text.len() {
        json.push('"');
        json.push_str(text);
        json.push('"');
    } else {
        // Every string has a JSON text; the fallback is unreachable and harmless.
        json.push_str(&serde_json::to_string(text).unwrap_or_else(|_| "\"\"".to_owned()));
    }
}

impl From<Box<RawValue>> for Json {
    fn from(raw: Box<RawValue>) -> Self {
        Self::from_checked(raw.get())
    }
}

impl From<&RawValue> for Json {
    fn from(raw: &RawValue) -> Self {
        Self::from_checked(raw.get())
    }
}

impl From<JsonText<'_>> for Json {
    fn from(text: JsonText<'_>) -> Self {
        Self::from_checked(text.get())
    }
}

impl From<serde_json::Value> for Json {
    fn from(value: serde_json::Value) -> Self {
        // Every `Value` has a JSON text; the fallback is unreachable and harmless.
        serde_json::to_string(&value).map_or_else(|_| Self::from(RawValue::NULL), |text| Self::from_checked(&text))
    }
}

impl PartialEq for Json {
    /// Compares byte for byte.
    fn eq(&self, other: &Self) -> bool {
        self.text() == other.text()
    }
}

impl Eq for Json {}

impl fmt::Debug for Json {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Json({}, {} bytes)", self.kind().with_article(), self.text().len())
    }
}

#[cfg(test)]
mod tests;
