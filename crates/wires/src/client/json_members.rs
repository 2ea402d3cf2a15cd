//! Extraction of selected members of a JSON object, unchanged; each may occur once.

use domain::json::{Json, JsonText, read_object as read_object_members, unknown_member};
use serde::de::IgnoredAny;

use super::body_error::BodyError;

/// Returns the members `names` of the object in `text`, in the order of `names`; `None` for one that is absent or null.
/// Other members are skipped. `text` has passed [`domain::json::precheck`], so the reader can decide every object.
///
/// # Errors
/// `text` is not JSON, is not an object, or has one of `names` twice.
pub fn read_members<'t, const N: usize>(
    text: &'t str,
    names: &'static [&'static str; N],
) -> Result<[Option<JsonText<'t>>; N], BodyError> {
    let mut values = [None; N];
    let mut duplicate = None;
    let read = read_object_members(text, |name, value| {
        if let Some(index) = names.iter().position(|wanted| *wanted == name)
            && values[index].replace(value).is_some()
        {
            duplicate = Some(names[index]);
        }
    });
    match (read, duplicate) {
        (None, _) => Err(describe(text)),
        (Some(()), Some(name)) => Err(BodyError::Duplicate(name)),
        (Some(()), None) => Ok(values.map(|value| value.filter(|value: &JsonText<'_>| value.get() != "null"))),
    }
}

/// Explains why `text` is not an object: `serde_json` locates syntax errors.
fn describe(text: &str) -> BodyError {
    match serde_json::from_str::<IgnoredAny>(text) {
        Ok(_) => BodyError::NotAnObject,
        Err(error) => BodyError::from(&error),
    }
}

/// Checks that the object in `text` has no members except `names` and `others`.
///
/// # Errors
/// Returns the first unknown member with the nearest known name.
pub fn check_names(text: &str, names: &[&str], others: &[&str]) -> Result<(), String> {
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
pub fn read_object(text: &str) -> Result<Json, BodyError> {
    let [] = read_members(text, &[])?;
    Json::parse(text).map_err(|_| BodyError::NotAnObject)
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
