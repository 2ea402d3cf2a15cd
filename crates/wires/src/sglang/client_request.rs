//! Requests of SGLang's own Decisions wire.

use std::collections::HashSet;

use domain::decision::{DecisionDraft, InvalidDecision};
use domain::json::{Json, JsonKind, JsonText};
use domain::question::{ChoiceOption, MAX_LEVELS, MAX_OPTIONS, Question, QuestionKind};
use domain::routing::Wire;

use super::{DESCRIPTION, ID, LEVELS, NAME, NO, OPTIONS, QUESTION, YES, YES_NO};
use crate::client::Body;
use crate::client::fields::Fields;
use crate::client::fields::element_path;

/// Parses a request into canonical form.
///
/// # Errors
/// The first violation, with its path in the wire's own body. Parameters of the wire's own server are rejected by name:
/// a `temperature` other than 1, `chat_template_kwargs`, a `prompt_format_version` other than 1,
/// `return_prompt_token_ids`.
pub fn read(body: &Body<'_>) -> Result<DecisionDraft, InvalidDecision> {
    only_defaults(body)?;
    let draft = body.draft();
    let input = body.input.map(Json::from).ok_or_else(|| InvalidDecision::new("input", "is required"))?;
    not_blank(&input, "input")?;
    Ok(DecisionDraft {
        typed: Some(questions(body.questions.map(Json::from))?),
        state: Some(input),
        images: body.images.map(Json::from),
        ..draft
    })
}

fn only_defaults(body: &Body<'_>) -> Result<(), InvalidDecision> {
    let one = |json: &Json| json.as_f64() == Some(1.0);
    let empty = |json: &Json| json.iter_members().is_some_and(|mut members| members.next().is_none());
    let off = |json: &Json| json.text() == "false";
    require_default("temperature", body.temperature, one, "1")?;
    require_default("chat_template_kwargs", body.chat_template_kwargs, empty, "an empty object")?;
    require_default("prompt_format_version", body.prompt_format_version, one, "1")?;
    require_default("return_prompt_token_ids", body.return_prompt_token_ids, off, "false")
}

fn require_default(
    name: &str,
    given: Option<JsonText<'_>>,
    is_default: impl Fn(&Json) -> bool,
    default: &str,
) -> Result<(), InvalidDecision> {
    match given.map(Json::from) {
        Some(json) if !is_default(&json) => {
            Err(InvalidDecision::new(name, format!("is not served here other than as {default}")))
        }
        _ => Ok(()),
    }
}

fn questions(json: Option<Json>) -> Result<Vec<Question>, InvalidDecision> {
    let json = json.ok_or_else(|| InvalidDecision::new("questions", "is required"))?;
    let elements = json.elements().ok_or_else(|| InvalidDecision::new("questions", "must be an array of questions"))?;
    let mut ids = HashSet::new();
    elements
        .iter()
        .enumerate()
        .map(|(index, element)| {
            let fields = Fields::new(element, element_path("questions", index))?;
            let id = fields.required_text(ID)?;
            if id.trim().is_empty() {
                return Err(fields.fault(ID, "must not be blank"));
            }
            let question = question(&fields, &id)?;
            if ids.insert(id) { Ok(question) } else { Err(fields.fault(ID, "is in more than one question")) }
        })
        .collect()
}

fn question(fields: &Fields, id: &str) -> Result<Question, InvalidDecision> {
    let kind = match fields.required_text("type")?.as_str() {
        YES_NO => QuestionKind::Noul { when_true: text(fields, YES)?, when_false: text(fields, NO)? },
        "choice" => QuestionKind::Choice { options: options(fields)? },
        "score" => QuestionKind::Score { levels: levels(fields)? },
        _ => return Err(fields.fault("type", "must be choice, score or yes_no")),
    };
    let asked = fields.required(QUESTION)?;
    not_blank(&asked, &fields.member_path(QUESTION))?;
    Question::canonical(id, Some(asked), kind, fields.path())
}

/// Reads the options: more than the wire's own server supports, because other providers can answer. Names that differ
/// only in case or white space are the same to that server, so they are rejected.
fn options(fields: &Fields) -> Result<Vec<ChoiceOption>, InvalidDecision> {
    let elements = fields.elements(OPTIONS, 2, MAX_OPTIONS, "options")?;
    let mut names = HashSet::new();
    elements
        .iter()
        .enumerate()
        .map(|(index, element)| {
            let option = Fields::new(element, element_path(&fields.member_path(OPTIONS), index))?;
            let name = option.required_text(NAME)?;
            if !Wire::SglangDecisions.allows_option_name(&name) {
                return Err(option.fault(NAME, "must be a name without control characters"));
            }
            if !names.insert(Wire::folded_option_name(&name)) {
                return Err(option.fault(NAME, "is in more than one option"));
            }
            Ok(ChoiceOption::new(name, text(&option, DESCRIPTION)?))
        })
        .collect()
}

fn levels(fields: &Fields) -> Result<Vec<Json>, InvalidDecision> {
    let levels = fields.elements(LEVELS, 2, MAX_LEVELS, "levels")?;
    for (index, level) in levels.iter().enumerate() {
        not_blank(level, &element_path(&fields.member_path(LEVELS), index))?;
    }
    Ok(levels)
}

/// Returns an optional string, object or array.
fn text(fields: &Fields, name: &str) -> Result<Option<Json>, InvalidDecision> {
    match fields.get(name)? {
        Some(json) if !is_text(&json) => Err(fields.fault(name, "must be a string, object or array")),
        other => Ok(other),
    }
}

fn is_text(json: &Json) -> bool {
    matches!(json.kind(), JsonKind::String | JsonKind::Object | JsonKind::Array)
}

fn not_blank(json: &Json, path: &str) -> Result<(), InvalidDecision> {
    if !is_text(json) {
        return Err(InvalidDecision::new(path, "must be a string, object or array"));
    }
    if json.is_blank() { Err(InvalidDecision::new(path, "must not be blank")) } else { Ok(()) }
}
