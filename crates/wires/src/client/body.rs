//! The members of a Decisions body of any wire, found in one pass and kept as raw JSON.

use domain::decision::{DecisionDraft, InvalidDecision};
use domain::json::{Json, JsonText, PrecheckError, precheck, read_object as read_object_members, unknown_member};
use serde::de::IgnoredAny;

/// The members that a wire reads; `None` for one that is absent or null. Other members are skipped.
#[derive(Debug, Clone, Copy, Default)]
pub struct Body<'t> {
    pub(crate) model: Option<JsonText<'t>>,
    pub(crate) models: Option<JsonText<'t>>,
    /// The member `questions`.
    pub questions: Option<JsonText<'t>>,
    /// The member `state`.
    pub state: Option<JsonText<'t>>,
    /// The member `input`.
    pub input: Option<JsonText<'t>>,
    pub(crate) assets: Option<JsonText<'t>>,
    pub(crate) images: Option<JsonText<'t>>,
    provider: Option<JsonText<'t>>,
    session_id: Option<JsonText<'t>>,
    trace: Option<JsonText<'t>>,
    user: Option<JsonText<'t>>,
    partial: Option<JsonText<'t>>,
    pub(crate) safety_identifier: Option<JsonText<'t>>,
    pub(crate) temperature: Option<JsonText<'t>>,
    pub(crate) chat_template_kwargs: Option<JsonText<'t>>,
    pub(crate) prompt_format_version: Option<JsonText<'t>>,
    pub(crate) return_prompt_token_ids: Option<JsonText<'t>>,
}

/// The members of System One bodies.
pub const SYSTEM_ONE_MEMBERS: [&str; 11] =
    ["model", "questions", "state", "provider", "session_id", "trace", "user", "models", "assets", "images", "partial"];

/// The members of bodies of all formats.
pub const ALL_MEMBERS: [&str; 17] = [
    "model",
    "questions",
    "state",
    "provider",
    "session_id",
    "trace",
    "user",
    "models",
    "assets",
    "images",
    "partial",
    "input",
    "safety_identifier",
    "temperature",
    "chat_template_kwargs",
    "prompt_format_version",
    "return_prompt_token_ids",
];

/// Returns a body as text that is safe to parse: valid UTF-8, limited nesting, no lone surrogates.
///
/// # Errors
/// The first violated rule.
pub fn text(bytes: &[u8]) -> Result<&str, BodyError> {
    let text = std::str::from_utf8(bytes).map_err(|_| BodyError::NotText)?;
    precheck(text).map_err(|fault| match fault {
        PrecheckError::TooDeep => BodyError::TooDeep,
        PrecheckError::LoneSurrogate => BodyError::LoneSurrogate,
    })?;
    Ok(text)
}

impl<'t> Body<'t> {
    /// Reads a System One body; members of other wires are ignored.
    ///
    /// # Errors
    /// The body is not JSON, is not an object, or has a member twice.
    pub fn read_system_one(text: &'t str) -> Result<Self, BodyError> {
        Ok(Self::of_system_one(read_members(text, &SYSTEM_ONE_MEMBERS)?))
    }

    /// Creates a body of the values of [`SYSTEM_ONE_MEMBERS`].
    fn of_system_one(values: [Option<JsonText<'t>>; SYSTEM_ONE_MEMBERS.len()]) -> Self {
        let [model, questions, state, provider, session_id, trace, user, models, assets, images, partial] = values;
        Self {
            model,
            models,
            questions,
            state,
            assets,
            images,
            provider,
            session_id,
            trace,
            user,
            partial,
            ..Self::default()
        }
    }

    /// Reads a body of any wire.
    ///
    /// # Errors
    /// The body is not JSON, is not an object, or has a member twice.
    pub fn read_any(text: &'t str) -> Result<Self, BodyError> {
        // The members of System One come first.
        let [
            system_one @ ..,
            input,
            safety_identifier,
            temperature,
            chat_template_kwargs,
            prompt_format_version,
            return_prompt_token_ids,
        ] = read_members(text, &ALL_MEMBERS)?;
        Ok(Self {
            input,
            safety_identifier,
            temperature,
            chat_template_kwargs,
            prompt_format_version,
            return_prompt_token_ids,
            ..Self::of_system_one(system_one)
        })
    }

    /// Returns a draft with the members that all wires share.
    pub(crate) fn draft(&self) -> DecisionDraft {
        let own = |value: Option<JsonText<'_>>| value.map(Json::from);
        DecisionDraft {
            model: own(self.model),
            models: own(self.models),
            provider: own(self.provider),
            session_id: own(self.session_id),
            trace: own(self.trace),
            user: own(self.user),
            partial: own(self.partial),
            ..DecisionDraft::default()
        }
    }
}

/// The reason why a body is not a valid request. Messages quote nothing from the body except member names.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum BodyError {
    /// The body is not UTF-8.
    #[error("The body is not UTF-8")]
    NotText,
    /// The nesting of arrays and objects is too deep.
    #[error("The body nests arrays and objects deeper than 128 levels")]
    TooDeep,
    /// A `\u` escape of half a surrogate pair.
    #[error("The body has a \\u escape of an unpaired surrogate")]
    LoneSurrogate,
    /// The body is not JSON. Line and column count from 1.
    #[error("The body is not valid JSON: line {line}, column {column}")]
    NotJson {
        /// The line.
        line: usize,
        /// The column.
        column: usize,
    },
    /// The body is JSON but not an object.
    #[error("The body must be a JSON object")]
    NotAnObject,
    /// A duplicate member, which is ambiguous.
    #[error("{0} is in the body more than once")]
    Duplicate(&'static str),
    /// The body matches none of the known wires.
    #[error(
        "Unknown request format. Expected one of: state and questions, an object of noul, choice \
         or score questions; input and questions, an array of predicate, choice or score questions; input and \
         questions, an object of noul, choice or score questions; input and questions, an array of questions with id \
         and question"
    )]
    NoKnownForm,
    /// The body matches a wire but violates one of its rules.
    #[error(transparent)]
    Invalid(#[from] InvalidDecision),
}

impl From<&serde_json::Error> for BodyError {
    /// Keeps the position of the error and drops the quoted content.
    fn from(error: &serde_json::Error) -> Self {
        Self::NotJson { line: error.line(), column: error.column() }
    }
}

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
