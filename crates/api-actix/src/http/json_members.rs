//! Extraction of selected members of a JSON object, unchanged; each may occur once.

use std::fmt;

use domain::json::{Json, JsonText, read_object as read_object_members, unknown_member};
use serde::de::{DeserializeSeed, Deserializer, IgnoredAny, MapAccess, Visitor};
use serde_json::value::RawValue;

use crate::wires::BodyError;

/// Returns the members `names` of the object in `text`, in the order of `names`; `None` for one that is absent or null.
/// Other members are skipped.
///
/// # Errors
/// `text` is not JSON, is not an object, or has one of `names` twice.
pub(crate) fn read_members<'t, const N: usize>(
    text: &'t str,
    names: &'static [&'static str; N],
) -> Result<[Option<JsonText<'t>>; N], BodyError> {
    let mut found = FoundMembers { values: [None; N], duplicate: None };
    let read = read_object_members(text, |name, value| {
        if let Some(index) = names.iter().position(|wanted| *wanted == name) {
            found.insert(names, index, value);
        }
    });
    let members = match read {
        Some(()) => found,
        None => read_with_serde(text, names)?,
    };
    match members.duplicate {
        Some(name) => Err(BodyError::Duplicate(name)),
        None => Ok(members.values.map(|value| value.filter(|value| value.get() != "null"))),
    }
}

/// Reads the members with `serde_json`, which locates syntax errors.
fn read_with_serde<'t, const N: usize>(
    text: &'t str,
    names: &'static [&'static str; N],
) -> Result<FoundMembers<'t, N>, BodyError> {
    let mut parser = serde_json::Deserializer::from_str(text);
    if !text.trim_ascii_start().starts_with('{') {
        return Err(match serde_json::from_str::<IgnoredAny>(text) {
            Ok(_) => BodyError::NotAnObject,
            Err(error) => BodyError::from(&error),
        });
    }
    Members { names }
        .deserialize(&mut parser)
        .and_then(|members| parser.end().map(|()| members))
        .map_err(|error| BodyError::from(&error))
}

/// Checks that the object in `text` has no members except `names` and `others`.
///
/// # Errors
/// Returns the first unknown member with the nearest known name.
pub(crate) fn check_names(text: &str, names: &[&str], others: &[&str]) -> Result<(), String> {
    let mut unknown = None;
    read_object_members(text, |name, _| {
        if unknown.is_none() && !names.contains(&&*name) && !others.contains(&&*name) {
            unknown = Some(unknown_member(&name, names.iter().copied()));
        }
    });
    unknown.map_or(Ok(()), Err)
}

/// Returns the whole object in `text`, byte for byte.
///
/// # Errors
/// `text` is not JSON or not an object.
pub(crate) fn read_object(text: &str) -> Result<Json, BodyError> {
    let [] = read_members(text, &[])?;
    Json::parse(text).map_err(|_| BodyError::NotAnObject)
}

struct Members<const N: usize> {
    names: &'static [&'static str; N],
}

struct FoundMembers<'t, const N: usize> {
    values: [Option<JsonText<'t>>; N],
    duplicate: Option<&'static str>,
}

impl<'t, const N: usize> FoundMembers<'t, N> {
    fn insert(&mut self, names: &[&'static str; N], index: usize, value: JsonText<'t>) {
        if self.values[index].replace(value).is_some() {
            self.duplicate = Some(names[index]);
        }
    }
}

impl<'t, const N: usize> DeserializeSeed<'t> for Members<N> {
    type Value = FoundMembers<'t, N>;

    fn deserialize<D: Deserializer<'t>>(self, deserializer: D) -> Result<Self::Value, D::Error> {
        deserializer.deserialize_map(self)
    }
}

impl<'t, const N: usize> Visitor<'t> for Members<N> {
    type Value = FoundMembers<'t, N>;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("an object")
    }

    fn visit_map<A: MapAccess<'t>>(self, mut map: A) -> Result<Self::Value, A::Error> {
        let mut found = FoundMembers { values: [None; N], duplicate: None };
        while let Some(index) = map.next_key_seed(NameIndex(self.names))? {
            match index {
                None => {
                    map.next_value::<IgnoredAny>()?;
                }
                Some(index) => {
                    let value = map.next_value::<&RawValue>()?;
                    found.insert(self.names, index, value.into());
                }
            }
        }
        Ok(found)
    }
}

/// Deserialises a member name to its index among the wanted names, without a copy.
struct NameIndex(&'static [&'static str]);

impl<'t> DeserializeSeed<'t> for NameIndex {
    type Value = Option<usize>;

    fn deserialize<D: Deserializer<'t>>(self, deserializer: D) -> Result<Self::Value, D::Error> {
        deserializer.deserialize_str(self)
    }
}

impl Visitor<'_> for NameIndex {
    type Value = Option<usize>;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("a member's name")
    }

    fn visit_str<E>(self, name: &str) -> Result<Self::Value, E> {
        Ok(self.0.iter().position(|wanted| *wanted == name))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const NAMES: [&str; 2] = ["model", "state"];

    fn read(text: &str) -> Result<[Option<String>; 2], String> {
        read_members(text, &NAMES)
            .map(|values| values.map(|value| value.map(|value| value.get().to_owned())))
            .map_err(|fault| fault.to_string())
    }

    #[test]
    fn read_members_keeps_bytes_and_skips_others() {
        let values = read(r#" {"x":[1,{"model":2}], "state":{ "a": 1.50 },"mod\u0065l":"m"} "#).unwrap();
        assert_eq!(values, [Some("\"m\"".to_owned()), Some("{ \"a\": 1.50 }".to_owned())]);
    }

    #[test]
    fn read_members_treats_null_as_absent() {
        assert_eq!(read(r#"{"model":null}"#).unwrap(), [None, None]);
    }

    #[test]
    fn read_members_rejects_duplicates() {
        assert_eq!(read(r#"{"model":1,"mod\u0065l":null}"#).unwrap_err(), "model is in the body more than once");
        assert!(read(r#"{"x":1,"x":2}"#).is_ok());
    }

    #[test]
    fn read_members_distinguishes_non_objects_from_invalid_json() {
        for other in ["[]", "[{\"model\":1}]", "\"x\"", "1", "null", " true "] {
            assert_eq!(read(other).unwrap_err(), "The body must be a JSON object", "{other}");
        }
        for broken in ["{", "[", "{\"model\":}", "{'model':1}", "{} {}", "nope", "{\"model\":NaN}", "\u{feff}{}"] {
            let message = read(broken).unwrap_err();
            assert!(message.starts_with("The body is not valid JSON: line 1, column "), "{broken}: {message}");
        }
    }

    #[test]
    fn read_object_keeps_all_bytes() {
        assert_eq!(read_object(" {\"a\": 1.50} ").unwrap().text(), "{\"a\": 1.50}");
        assert!(matches!(read_object("[]"), Err(BodyError::NotAnObject)));
        assert!(matches!(read_object("{"), Err(BodyError::NotJson { .. })));
    }

    #[test]
    fn syntax_error_names_position_only() {
        assert_eq!(read("{\n  \"secret\" 1}").unwrap_err(), "The body is not valid JSON: line 2, column 12");
    }
}
