//! Opaque JSON: text that is known to be JSON and is passed on byte for byte, numbers included.

use std::fmt;
use std::sync::Arc;

use serde_json::value::RawValue;

/// One JSON value as the text it was written in. Cheap to clone. Its `Debug` does not show the content, which may
/// be a caller's private text.
#[derive(Clone)]
pub struct Json(Arc<RawValue>);

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
}

/// A text that is not JSON.
#[derive(Debug, thiserror::Error)]
#[error("not valid JSON")]
pub struct InvalidJson;

impl Json {
    /// Checks that `text` is one JSON value.
    pub fn parse(text: &str) -> Result<Self, InvalidJson> {
        RawValue::from_string(text.trim_matches([' ', '\t', '\n', '\r']).to_owned())
            .map(Self::from)
            .map_err(|_| InvalidJson)
    }

    /// A string.
    pub fn string(text: &str) -> Self {
        Self::from(serde_json::Value::from(text))
    }

    /// An object of members whose values are JSON texts already, in this order.
    pub fn object<'a>(members: impl IntoIterator<Item = (&'a str, &'a str)>) -> Self {
        let mut text = String::from("{");
        for (name, value) in members {
            if text.len() > 1 {
                text.push(',');
            }
            text.push_str(Self::string(name).text());
            text.push(':');
            text.push_str(value);
        }
        text.push('}');
        Self::trusted(text)
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
        Self::trusted(text)
    }

    /// A text that was put together from JSON; what is none after all becomes null, which no reader takes for it.
    fn trusted(text: String) -> Self {
        RawValue::from_string(text).map_or_else(|_| Self::from(RawValue::NULL), Self::from)
    }

    /// The JSON text, byte for byte as it came in.
    pub fn text(&self) -> &str {
        self.0.get()
    }

    /// What kind of value this is.
    pub fn kind(&self) -> JsonKind {
        kind_of(self.text())
    }

    /// The string inside, where this is a string.
    pub fn as_string(&self) -> Option<String> {
        (self.kind() == JsonKind::String).then(|| serde_json::from_str(self.text()).ok()).flatten()
    }

    /// The number inside as a float, for comparing only; money never goes through here.
    pub fn as_f64(&self) -> Option<f64> {
        (self.kind() == JsonKind::Number).then(|| self.text().parse().ok()).flatten()
    }

    /// The members of an object in their order, duplicates included; `None` where this is no object.
    pub fn members(&self) -> Option<Vec<(String, Json)>> {
        members(self.text())
            .map(|members| members.into_iter().map(|(name, value)| (name, Self::from(value.to_owned()))).collect())
    }

    /// As [`Self::members`], without copying the values.
    pub(crate) fn raw_members(&self) -> Option<Vec<(String, &RawValue)>> {
        members(self.text())
    }

    /// The elements of an array; `None` where this is no array.
    pub fn elements(&self) -> Option<Vec<Json>> {
        (self.kind() == JsonKind::Array)
            .then(|| serde_json::from_str::<Vec<Box<RawValue>>>(self.text()).ok())
            .flatten()
            .map(|elements| elements.into_iter().map(Self::from).collect())
    }
}

impl From<Box<RawValue>> for Json {
    fn from(raw: Box<RawValue>) -> Self {
        Self(Arc::from(raw))
    }
}

impl From<&RawValue> for Json {
    fn from(raw: &RawValue) -> Self {
        Self::from(raw.to_owned())
    }
}

impl From<serde_json::Value> for Json {
    fn from(value: serde_json::Value) -> Self {
        // A `Value` always has a text; the fallback is unreachable and harmless.
        serde_json::value::to_raw_value(&value).map_or_else(|_| Self::from(RawValue::NULL), Self::from)
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

fn kind_of(text: &str) -> JsonKind {
    match text.as_bytes().first() {
        Some(b'{') => JsonKind::Object,
        Some(b'[') => JsonKind::Array,
        Some(b'"') => JsonKind::String,
        Some(b't' | b'f') => JsonKind::Bool,
        Some(b'n') => JsonKind::Null,
        _ => JsonKind::Number,
    }
}

fn members(text: &str) -> Option<Vec<(String, &RawValue)>> {
    (kind_of(text) == JsonKind::Object)
        .then(|| serde_json::from_str::<reader::Members<'_>>(text).ok())
        .flatten()
        .map(|m| m.0)
}

/// Reads one level of an object and keeps order and duplicates, which a map would lose.
mod reader {
    use std::fmt;

    use serde::de::{Deserialize, Deserializer, MapAccess, Visitor};
    use serde_json::value::RawValue;

    pub(super) struct Members<'a>(pub(super) Vec<(String, &'a RawValue)>);

    impl<'de> Deserialize<'de> for Members<'de> {
        fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
            struct InOrder;
            impl<'de> Visitor<'de> for InOrder {
                type Value = Members<'de>;

                fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                    f.write_str("an object")
                }

                fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<Self::Value, A::Error> {
                    let mut members = Vec::new();
                    while let Some((name, value)) = map.next_entry::<String, &RawValue>()? {
                        members.push((name, value));
                    }
                    Ok(Members(members))
                }
            }
            deserializer.deserialize_map(InOrder)
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn text_is_kept_byte_for_byte() {
        let text = r#"{"a": 1.50, "b":[1e400 ,"\u00e9"]}"#;
        assert_eq!(Json::parse(text).unwrap().text(), text);
    }

    #[test]
    fn members_keep_order_and_duplicates() {
        let json = Json::parse(r#"{"b":1,"a":{"x":[]},"b":2}"#).unwrap();
        let names: Vec<_> =
            json.members().unwrap().into_iter().map(|(name, value)| (name, value.text().to_owned())).collect();
        assert_eq!(names, [("b".into(), "1".into()), ("a".into(), r#"{"x":[]}"#.into()), ("b".into(), "2".into())]);
        assert!(Json::parse("[1]").unwrap().members().is_none());
    }

    #[test]
    fn debug_does_not_show_content() {
        assert!(!format!("{:?}", Json::parse(r#""private""#).unwrap()).contains("private"));
    }

    #[test]
    fn what_is_no_json_is_refused() {
        for bad in ["", "{", "NaN", "1 2", "{'a':1}"] {
            assert!(Json::parse(bad).is_err(), "{bad}");
        }
    }
}
