//! The deserialization of a table by serde, with errors that name the key and never repeat its value.

use std::borrow::Cow;
use std::fmt;
use std::vec::IntoIter;

use serde::de::value::{MapAccessDeserializer, SeqDeserializer, StrDeserializer};
use serde::de::{DeserializeOwned, DeserializeSeed, Deserializer, Error, Expected, MapAccess, Unexpected, Visitor};
use serde::forward_to_deserialize_any;

use super::values::unknown_name;

/// The value of a key before its type is checked.
#[derive(Clone, PartialEq, Eq)]
pub enum Value {
    /// A string.
    Text(String),
    /// A whole number, zero or more.
    Number(u64),
    /// `true` or `false`.
    Switch(bool),
    /// An array of strings.
    Texts(Vec<String>),
    /// A value of a type that no key has.
    Unsupported,
    /// The text of an environment variable; its type is that of the key.
    Variable(String),
}

/// The error of a table, before its location is known.
#[derive(Debug, thiserror::Error)]
pub enum TableError {
    /// A key that the section does not have.
    #[error("unknown key")]
    UnknownKey {
        /// The key.
        key: String,
        /// The keys of the section.
        known: &'static [&'static str],
    },
    /// A required key that is not set.
    #[error("missing key")]
    MissingKey(&'static str),
    /// A value that is invalid.
    #[error("{problem}")]
    InvalidValue {
        /// Its key.
        key: String,
        /// The expected value.
        problem: String,
    },
}

impl Error for TableError {
    fn custom<T: fmt::Display>(problem: T) -> Self {
        Self::InvalidValue { key: String::new(), problem: problem.to_string() }
    }

    fn invalid_type(_: Unexpected<'_>, expected: &dyn Expected) -> Self {
        Self::custom(format_args!("must be {}", type_name(&expected.to_string())))
    }

    fn invalid_value(unexpected: Unexpected<'_>, expected: &dyn Expected) -> Self {
        Self::invalid_type(unexpected, expected)
    }

    fn unknown_variant(name: &str, known: &'static [&'static str]) -> Self {
        Self::custom(unknown_name(name, known))
    }

    fn unknown_field(key: &str, known: &'static [&'static str]) -> Self {
        Self::UnknownKey { key: key.to_owned(), known }
    }

    fn missing_field(key: &'static str) -> Self {
        Self::MissingKey(key)
    }
}

/// Returns a type in the words of the documentation.
fn type_name(of_serde: &str) -> &str {
    match of_serde {
        "u64" => "a whole number, zero or more",
        "a boolean" => "true or false",
        "a sequence" => "an array of strings",
        other => other,
    }
}

/// Deserializes the keys of a table.
///
/// # Errors
/// An unknown, missing or invalid key.
pub fn deserialize<T: DeserializeOwned>(values: Vec<(&str, &Value)>) -> Result<T, TableError> {
    T::deserialize(MapAccessDeserializer::new(Keys { values: values.into_iter(), current: None }))
}

/// Returns the keys of a section: serde names them in the error of an unknown one.
pub fn keys<T: DeserializeOwned>() -> &'static [&'static str] {
    match deserialize::<T>(vec![("", &Value::Unsupported)]) {
        Err(TableError::UnknownKey { known, .. }) => known,
        _ => &[],
    }
}

/// The keys that are not deserialized yet.
struct Keys<'a> {
    values: IntoIter<(&'a str, &'a Value)>,
    current: Option<(&'a str, &'a Value)>,
}

impl<'de> MapAccess<'de> for Keys<'_> {
    type Error = TableError;

    fn next_key_seed<K: DeserializeSeed<'de>>(&mut self, seed: K) -> Result<Option<K::Value>, TableError> {
        self.current = self.values.next();
        self.current.map(|(key, _)| seed.deserialize(StrDeserializer::new(key))).transpose()
    }

    fn next_value_seed<V: DeserializeSeed<'de>>(&mut self, seed: V) -> Result<V::Value, TableError> {
        let (key, value) = self.current.take().ok_or_else(|| TableError::custom("has no value"))?;
        seed.deserialize(TypedValue(Cow::Borrowed(value))).map_err(|error| match error {
            TableError::InvalidValue { problem, .. } => TableError::InvalidValue { key: key.to_owned(), problem },
            other => other,
        })
    }
}

/// A value that becomes the type of its key.
struct TypedValue<'a>(Cow<'a, Value>);

impl TypedValue<'_> {
    /// Parses the text of a variable.
    fn parsed(self, parse: fn(&str) -> Option<Value>) -> Self {
        let Value::Variable(text) = &*self.0 else { return self };
        Self(Cow::Owned(parse(text).unwrap_or(Value::Unsupported)))
    }
}

impl<'de> Deserializer<'de> for TypedValue<'_> {
    type Error = TableError;

    fn deserialize_any<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, TableError> {
        match &*self.0 {
            Value::Text(text) | Value::Variable(text) => visitor.visit_str(text),
            Value::Number(number) => visitor.visit_u64(*number),
            Value::Switch(on) => visitor.visit_bool(*on),
            Value::Texts(texts) => visitor.visit_seq(SeqDeserializer::new(texts.iter().map(String::as_str))),
            Value::Unsupported => Err(TableError::invalid_type(Unexpected::Other("value"), &visitor)),
        }
    }

    fn deserialize_option<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, TableError> {
        visitor.visit_some(self)
    }

    fn deserialize_string<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, TableError> {
        self.parsed(|text| Some(parse_text(text))).deserialize_any(visitor)
    }

    fn deserialize_u64<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, TableError> {
        self.parsed(|text| text.trim().replace('_', "").parse().ok().map(Value::Number)).deserialize_any(visitor)
    }

    fn deserialize_bool<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, TableError> {
        self.parsed(|text| text.trim().parse().ok().map(Value::Switch)).deserialize_any(visitor)
    }

    fn deserialize_seq<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, TableError> {
        self.parsed(parse_texts).deserialize_any(visitor)
    }

    fn deserialize_enum<V: Visitor<'de>>(
        self,
        _: &'static str,
        _: &'static [&'static str],
        visitor: V,
    ) -> Result<V::Value, TableError> {
        match &*self.parsed(|text| Some(parse_text(text))).0 {
            Value::Text(name) => visitor.visit_enum(StrDeserializer::new(name)),
            _ => Err(TableError::custom("must be a string")),
        }
    }

    forward_to_deserialize_any! {
        i8 i16 i32 i64 i128 u8 u16 u32 u128 f32 f64 char str bytes byte_buf unit unit_struct newtype_struct tuple
        tuple_struct map struct identifier ignored_any
    }
}

/// Parses a string, which may be quoted as in TOML.
fn parse_text(text: &str) -> Value {
    let quoted = text.starts_with(['"', '\'']).then(|| parse_toml(text)).flatten();
    quoted.filter(|value| matches!(value, Value::Text(_))).unwrap_or_else(|| Value::Text(text.to_owned()))
}

/// Parses a TOML array of strings, or a comma-separated list.
fn parse_texts(text: &str) -> Option<Value> {
    if text.trim_start().starts_with('[') {
        return parse_toml(text.trim());
    }
    let texts = text.split(',').map(str::trim).filter(|text| !text.is_empty());
    Some(Value::Texts(texts.map(str::to_owned).collect()))
}

fn parse_toml(text: &str) -> Option<Value> {
    toml::de::DeValue::parse(text).ok().map(|value| Value::from(value.get_ref()))
}

impl From<&toml::de::DeValue<'_>> for Value {
    fn from(value: &toml::de::DeValue<'_>) -> Self {
        use toml::de::DeValue;

        let text = |element: &toml::Spanned<DeValue<'_>>| match element.get_ref() {
            DeValue::String(text) => Some(text.to_string()),
            _ => None,
        };
        let known = match value {
            DeValue::String(text) => Some(Self::Text(text.to_string())),
            DeValue::Integer(number) => u64::from_str_radix(number.as_str(), number.radix()).ok().map(Self::Number),
            DeValue::Boolean(on) => Some(Self::Switch(*on)),
            DeValue::Array(array) => array.iter().map(text).collect::<Option<_>>().map(Self::Texts),
            _ => None,
        };
        known.unwrap_or(Self::Unsupported)
    }
}
