//! Selects the format of a body by its path and, if the path serves several wires, by its shape.

use domain::decision::{AssetPart, DecisionDraft};
use domain::json::{Json, JsonKind, JsonText};
use wires::client::{self, Body, BodyError};
use wires::formats::{self, ParsedRequest, ResponseFormat, Shape};

/// The kind of path that a Decisions body arrives on.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Entry {
    /// The contract's paths: System One bodies and the service's own error envelope.
    Contract,
    /// The paths for System One clients.
    SystemOne,
    /// The paths that accept several wires.
    AnyShape,
    /// The paths for Gemini clients.
    Gemini,
}

impl Entry {
    /// Returns the wire of this entry; `None` if the body decides.
    pub const fn shape(self) -> Option<Shape> {
        match self {
            Self::Contract | Self::SystemOne => Some(Shape::SystemOne),
            Self::Gemini => Some(Shape::Gemini),
            Self::AnyShape => None,
        }
    }

    /// Returns true if a body may have parts in addition to its JSON.
    pub fn takes_parts(self) -> bool {
        matches!(self, Self::Contract | Self::SystemOne)
    }
}

/// The maximum size of a body whose parsed form takes little memory in any case, in bytes.
const UNCOUNTED_BODY_MAX_BYTES: usize = 64 << 10;

/// Parses the text of a body and its further parts. The text must have passed the body scan. Small questions take many
/// times the memory of their text, so those of a large body are parsed after `hold` has admitted their bytes.
///
/// # Errors
/// The detected wire, if any, and the first violation.
pub(crate) fn read<E: From<BodyError>>(
    entry: Entry,
    text: &str,
    parts: Vec<AssetPart>,
    hold: impl FnOnce(usize) -> Result<(), E>,
) -> Result<ParsedRequest, (Option<Shape>, E)> {
    let shape = entry.shape();
    let body = match shape {
        Some(Shape::SystemOne) => Body::read_system_one(text),
        _ => Body::read_any(text),
    };
    let body = body.map_err(|fault| (shape, fault.into()))?;
    if let Some(questions) = body.questions.filter(|_| text.len() > UNCOUNTED_BODY_MAX_BYTES) {
        hold(DecisionDraft::question_bytes(questions.get())).map_err(|error| (shape, error))?;
    }
    let shape = shape.or_else(|| detect_shape(&body)).ok_or_else(|| (None, BodyError::NoKnownForm.into()))?;
    let parsed = formats::read(shape, &body, parts);
    let mut parsed = parsed.map_err(|fault| (Some(shape), BodyError::Invalid(fault).into()))?;
    if entry == Entry::Contract {
        parsed.response_format = ResponseFormat::Contract;
    }
    Ok(parsed)
}

/// Parses a complete body like the service does.
///
/// # Errors
/// The detected wire, if any, and the first violation.
pub fn read_bytes(entry: Entry, bytes: &[u8]) -> Result<ParsedRequest, (Option<Shape>, BodyError)> {
    let text = client::text(bytes).map_err(|fault| (entry.shape(), fault))?;
    read(entry, text, Vec::new(), |_| Ok(()))
}

/// Detects the wire by the present members. A body with both a state and an input matches none.
fn detect_shape(body: &Body<'_>) -> Option<Shape> {
    match (body.state, body.input, body.questions) {
        (Some(_), None, None) => Some(Shape::SystemOne),
        (Some(_), None, Some(questions)) => is_object(questions).then_some(Shape::SystemOne),
        (None, Some(_), Some(questions)) if is_object(questions) => Some(Shape::Gemini),
        (None, Some(_), Some(questions)) => detect_array_shape(questions),
        _ => None,
    }
}

fn is_object(json: JsonText<'_>) -> bool {
    json.get().starts_with('{')
}

/// Detects the wire by the members of the first question that only one wire has. An ambiguous question of a known type
/// belongs to the most common wire.
fn detect_array_shape(questions: JsonText<'_>) -> Option<Shape> {
    if !questions.get().starts_with('[') {
        return None;
    }
    let questions = Json::from(questions);
    let Some(first) = questions.iter_elements()?.next() else { return Some(Shape::OpenAi) };
    if first.kind() != JsonKind::Object {
        return None;
    }
    let members = || first.iter_members().into_iter().flatten().flatten();
    let has = |names: &[&str]| members().any(|(name, _)| names.contains(&&*name));
    let of_openai = has(&["instructions", "choices", "name"]);
    let of_sglang = has(&["id", "question", "options"]);
    let known = members().any(|(name, json)| {
        let known = ["predicate", "choice", "score"];
        name == "type" && json.kind() == JsonKind::String && json.as_string().is_some_and(|t| known.contains(&&*t))
    });
    match (of_openai, of_sglang) {
        (false, true) => Some(Shape::Sglang),
        (true, _) => Some(Shape::OpenAi),
        (false, false) => (known || has(&["levels"])).then_some(Shape::OpenAi),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn shape(body: &str) -> Option<Shape> {
        detect_shape(&Body::read_any(body).unwrap())
    }

    #[test]
    fn shape_is_detected_by_members() {
        let cases = [
            (r#"{"state":{},"questions":{"q":{"type":"noul"}}}"#, Some(Shape::SystemOne)),
            (r#"{"state":"s"}"#, Some(Shape::SystemOne)),
            (r#"{"input":"s","questions":{"q":{"type":"noul"}}}"#, Some(Shape::Gemini)),
            (r#"{"input":"s","questions":[{"type":"predicate","instructions":"?"}]}"#, Some(Shape::OpenAi)),
            (r#"{"input":"s","questions":[{"type":"choice","choices":[]}]}"#, Some(Shape::OpenAi)),
            (r#"{"input":"s","questions":[{"type":"score","levels":[]}]}"#, Some(Shape::OpenAi)),
            (r#"{"input":"s","questions":[{"levels":[]}]}"#, Some(Shape::OpenAi)),
            (r#"{"input":"s","questions":[]}"#, Some(Shape::OpenAi)),
            (
                r#"{"input":"s","questions":[{"id":"q","type":"score","question":"?","levels":[]}]}"#,
                Some(Shape::Sglang),
            ),
            (r#"{"input":"s","questions":[{"id":"q","type":"yes_no"}]}"#, Some(Shape::Sglang)),
            (r#"{"input":["s"],"questions":[{"question":"?","type":"choice"}]}"#, Some(Shape::Sglang)),
            (r#"{"input":"s","questions":[{"id":"q","name":"q","instructions":"?"}]}"#, Some(Shape::OpenAi)),
        ];
        for (body, expected) in cases {
            assert_eq!(shape(body), expected, "{body}");
        }
    }

    #[test]
    fn unknown_shape_is_not_detected() {
        for body in [
            "{}",
            r#"{"input":"s"}"#,
            r#"{"questions":{"q":{"type":"noul"}}}"#,
            r#"{"state":"s","questions":[]}"#,
            r#"{"state":"s","input":"s","questions":{}}"#,
            r#"{"input":"s","questions":"?"}"#,
            r#"{"input":"s","questions":["?"]}"#,
            r#"{"input":"s","questions":[{"type":"noul"}]}"#,
            r#"{"state":null,"input":null,"questions":{}}"#,
        ] {
            assert_eq!(shape(body), None, "{body}");
        }
    }
}
