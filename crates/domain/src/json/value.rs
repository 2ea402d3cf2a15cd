//! A JSON value, and the values inside it.

use std::borrow::Cow;
use std::collections::HashSet;
use std::fmt;
use std::ops::Range;
use std::sync::Arc;

use serde_json::value::RawValue;

use super::checker::{JsonText, is_json};
use super::lexer::{Scanner, WrittenName, find_special};

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
        if is_json(text) {
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
        Self::assemble(&write_object(members))
    }

    /// Creates an object of members in this order.
    pub(crate) fn object_of<'a>(members: impl IntoIterator<Item = (&'a str, &'a Self)>) -> Self {
        Self::from_checked(&write_object(members.into_iter().map(|(name, value)| (name, value.text()))))
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
        if is_json(text) {
            return Self::from_checked(text);
        }
        Self::from(serde_json::from_str(text).unwrap_or(RawValue::NULL))
    }

    /// Creates a value from a text that is one JSON value without surrounding whitespace.
    pub(crate) fn from_checked(text: &str) -> Self {
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

    /// Returns true for a value without content: a blank string, an empty object or array, null.
    pub fn is_blank(&self) -> bool {
        match self.kind() {
            JsonKind::Null => true,
            JsonKind::String => self.as_string().is_some_and(|content| content.trim().is_empty()),
            JsonKind::Array => self.iter_elements().is_some_and(|mut elements| elements.next().is_none()),
            JsonKind::Object => self.iter_members().is_some_and(|mut members| members.next().is_none()),
            JsonKind::Bool | JsonKind::Number => false,
        }
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

    /// Iterates over the members of an object in order, with duplicates, without a list of them. `None` for other types;
    /// an element is `None` for a name with a lone surrogate.
    pub fn iter_members(&self) -> Option<impl Iterator<Item = Option<(Cow<'_, str>, Json)>>> {
        let members = self.as_part().iter_members()?;
        Some(members.map(|member| member.map(|Member { name, value }| (name, value.to_json()))))
    }

    /// Iterates over the elements of an array, without a list of them; `None` for other types.
    pub fn iter_elements(&self) -> Option<impl Iterator<Item = Json>> {
        let elements = self.as_part().iter_elements().map(JsonPart::to_json);
        (self.kind() == JsonKind::Array).then_some(elements)
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
    if find_special::<true>(text.as_bytes(), 0) == text.len() {
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

fn write_object<'a>(members: impl IntoIterator<Item = (&'a str, &'a str)>) -> String {
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
    text
}

/// One value of a [`Json`]: the value itself, or one inside it.
#[derive(Clone, Copy)]
pub(crate) struct JsonPart<'a> {
    pub(super) whole: &'a Arc<str>,
    pub(super) start: usize,
    pub(super) end: usize,
}

/// A member of an object.
#[derive(Clone)]
pub(crate) struct Member<'a> {
    pub(crate) name: Cow<'a, str>,
    pub(crate) value: JsonPart<'a>,
}

impl<'a> JsonPart<'a> {
    /// Returns the JSON text, byte for byte.
    pub(crate) fn text(self) -> &'a str {
        &self.whole[self.start..self.end]
    }

    /// Returns the type of the value.
    pub(crate) fn kind(self) -> JsonKind {
        JsonKind::from_first_byte(self.whole.as_bytes().get(self.start))
    }

    /// Returns true if the value is `null`.
    pub(crate) fn is_null(self) -> bool {
        self.kind() == JsonKind::Null
    }

    /// Returns the content of a string; `None` for other types and for strings with a lone surrogate.
    pub(crate) fn as_str(self) -> Option<Cow<'a, str>> {
        if self.kind() != JsonKind::String {
            return None;
        }
        let text = self.text();
        match text.get(1..text.len() - 1) {
            Some(content) if !content.contains('\\') => Some(Cow::Borrowed(content)),
            _ => serde_json::from_str(text).ok().map(Cow::Owned),
        }
    }

    /// Returns a number as a float, for comparisons only. Amounts of money never use it. A number out of range is
    /// infinite.
    pub(crate) fn as_f64(self) -> Option<f64> {
        (self.kind() == JsonKind::Number).then(|| self.text().parse().ok()).flatten()
    }

    /// Returns this value as a [`Json`], which keeps the whole text in memory.
    pub(crate) fn to_json(self) -> Json {
        Json { whole: Arc::clone(self.whole), start: self.start, end: self.end }
    }

    /// Returns the members of an object in order, with duplicates; `None` for other types and for a name with a lone
    /// surrogate.
    pub(crate) fn members(self) -> Option<Vec<Member<'a>>> {
        let mut members = Vec::new();
        for member in self.iter_members()? {
            members.push(member?);
        }
        Some(members)
    }

    /// Iterates over the members of an object in order, with duplicates, without a list of them: a list takes many times
    /// the memory of small members. `None` for other types; an element is `None` for a name with a lone surrogate.
    pub(crate) fn iter_members(self) -> Option<impl Iterator<Item = Option<Member<'a>>>> {
        let text = self.text();
        let mut scanner = Scanner::inside(text);
        let next = move || {
            let name = scanner.next_name()?;
            let value = scanner.next_value()?;
            Some(name_of(text, name).map(|name| Member { name, value: self.part(value) }))
        };
        (self.kind() == JsonKind::Object).then(|| std::iter::from_fn(next))
    }

    /// Returns true if the value is an object with a member of one of these names. Needs no memory, unlike a list of the
    /// members.
    pub(crate) fn has_member(self, names: &[&str]) -> bool {
        let text = self.text();
        let mut scanner = Scanner::inside(text);
        self.kind() == JsonKind::Object
            && std::iter::from_fn(|| {
                let name = scanner.next_name()?;
                scanner.next_value()?;
                name_of(text, name)
            })
            .any(|name| names.contains(&&*name))
    }

    /// Iterates over the elements of an array, without a list of them; there are none in other types.
    pub(crate) fn iter_elements(self) -> impl Iterator<Item = Self> {
        let mut scanner = Scanner::inside(self.text());
        let is_array = self.kind() == JsonKind::Array;
        std::iter::from_fn(move || scanner.next_value().filter(|_| is_array).map(|element| self.part(element)))
    }

    /// Returns the elements of an array; `None` for other types.
    pub(crate) fn elements(self) -> Option<Vec<Self>> {
        if self.kind() != JsonKind::Array {
            return None;
        }
        let mut scanner = Scanner::inside(self.text());
        let mut elements = Vec::new();
        while let Some(element) = scanner.next_value() {
            elements.push(self.part(element));
        }
        Some(elements)
    }

    fn part(self, range: Range<usize>) -> Self {
        Self { whole: self.whole, start: self.start + range.start, end: self.start + range.end }
    }
}

fn name_of(text: &str, WrittenName { content, is_escaped }: WrittenName) -> Option<Cow<'_, str>> {
    if is_escaped {
        serde_json::from_str(&text[content.start - 1..=content.end]).ok().map(Cow::Owned)
    } else {
        Some(Cow::Borrowed(&text[content]))
    }
}

/// Up to this number of members, comparing all names is faster than a set.
const MAX_PAIRWISE: usize = 16;

/// Returns the index of the first member whose name an earlier member has.
pub(crate) fn first_duplicate(members: &[Member<'_>]) -> Option<usize> {
    if members.len() > MAX_PAIRWISE {
        let mut names = HashSet::with_capacity(members.len());
        return members.iter().position(|member| !names.insert(&*member.name));
    }
    (1..members.len()).find(|&place| members[..place].iter().any(|before| before.name == members[place].name))
}

#[cfg(test)]
mod tests;
