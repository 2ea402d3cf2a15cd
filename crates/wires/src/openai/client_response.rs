//! OpenAI responses, and errors for its clients.

use domain::json::{Json, JsonKind, ObjectWriter};
use domain::question::{Answer, AnswerValue, ChoiceOption, Question, QuestionKind};

use super::client_request::GeneratedNames;
use super::{LABEL, PREDICATE, PROBABILITY, USAGE, VALUE};
use crate::client::response::{append_provider_members, confidence, unanswered};
use crate::client::{DecisionResponse, ErrorResponse};
use crate::client::{array, string};

/// Writes the body: an array in question order. Generated names are written as null.
///
/// `confidence` is the service's own; without one it is computed from the distribution. A distribution that the
/// provider did not return is left out.
pub fn write(response: &DecisionResponse<'_>, generated_names: &GeneratedNames) -> String {
    let decision = response.decision;
    let answers = response
        .pairs()
        .map(|(question, answer)| write_answer(question, answer, generated_names.contains(&question.name)));
    let usage = ObjectWriter::new()
        .shown(USAGE.input, decision.input_tokens)
        .json("input_tokens_details", r#"{"cached_tokens":0,"cache_write_tokens":0}"#)
        .shown(USAGE.output, decision.output_tokens)
        .json("output_tokens_details", r#"{"reasoning_tokens":0}"#)
        .shown("total_tokens", response.total_tokens())
        .json("cost", &decision.cost.to_string());
    let body = ObjectWriter::new()
        .text("model", decision.model.as_str())
        .json("answers", &array(answers))
        .json("usage", &usage.end());
    response.end(body)
}

fn write_answer(question: &Question, answer: &Answer, is_unnamed: bool) -> String {
    let name = if is_unnamed { "null".to_owned() } else { string(&question.name) };
    let with_type = |name_of: &str| ObjectWriter::with_type(name_of).json("name", &name);
    let object = match (&answer.value, &question.kind) {
        (AnswerValue::Noul { probability }, _) => with_type(PREDICATE).number(PROBABILITY, *probability),
        (AnswerValue::Choice { chosen, probabilities, .. }, QuestionKind::Choice { options }) => {
            let probabilities = probabilities.as_deref().map(|given| choice_distribution(options, given));
            with_type("choice")
                .json("choice", &options.get(*chosen).map_or("null".to_owned(), value))
                .maybe("confidence", confidence(&answer.value).as_deref())
                .maybe("probabilities", probabilities.as_deref())
        }
        (AnswerValue::Score { score, probabilities, .. }, QuestionKind::Score { levels }) => {
            let probabilities = probabilities.as_deref().map(|given| level_distribution(levels, given));
            with_type("score")
                .number("score", *score)
                .maybe("confidence", confidence(&answer.value).as_deref())
                .maybe("probabilities", probabilities.as_deref())
        }
        (AnswerValue::Refusal, _) => with_type("refusal"),
        (AnswerValue::Unanswered(kind), _) => unanswered(*kind).json("name", &name),
        // These answers do not exist for the question types of this wire.
        (AnswerValue::Box | AnswerValue::Choice { .. } | AnswerValue::Score { .. }, _) => {
            return answer.json.text().to_owned();
        }
    };
    append_provider_members(object, answer)
}

/// Writes the value of an option, as a boolean if it was sent as one.
fn value(option: &ChoiceOption) -> String {
    option.boolean.map_or_else(|| string(&option.name), |boolean| boolean.to_string())
}

fn choice_distribution(options: &[ChoiceOption], given: &[f64]) -> String {
    let one =
        |(option, p): (&ChoiceOption, &f64)| ObjectWriter::new().json(VALUE, &value(option)).number(PROBABILITY, *p);
    array(options.iter().zip(given).map(|pair| one(pair).end()))
}

fn level_distribution(levels: &[Json], given: &[f64]) -> String {
    let one = |(index, (level, p)): (usize, (&Json, &f64))| {
        ObjectWriter::new().json(VALUE, &index.to_string()).json(LABEL, &label(level)).number(PROBABILITY, *p).end()
    };
    array(levels.iter().zip(given).enumerate().map(one))
}

/// Returns a level's label: its text, its label member, or its JSON.
fn label(level: &Json) -> String {
    if level.kind() == JsonKind::String {
        return level.text().to_owned();
    }
    let named =
        level.members().into_iter().flatten().find(|(name, json)| name == LABEL && json.kind() == JsonKind::String);
    named.map_or_else(|| string(level.text()), |(_, label)| label.text().to_owned())
}

/// Writes the body of an error.
pub fn write_error(error_response: &ErrorResponse<'_>) -> String {
    let (kind, code) = error_type_and_code(error_response);
    let error = ObjectWriter::new()
        .text("message", error_response.message)
        .text("type", kind)
        .json("param", &error_response.member().map_or("null".to_owned(), string))
        .text("code", code)
        .json("metadata", &error_response.metadata_json());
    let body = ObjectWriter::new().json("error", &error.end());
    body.member(error_response.service_metadata).end()
}

/// Returns `type` and `code`.
fn error_type_and_code(error_response: &ErrorResponse<'_>) -> (&'static str, &'static str) {
    match error_response.status {
        401 => ("invalid_request_error", "invalid_api_key"),
        402 => ("insufficient_quota", "insufficient_quota"),
        403 => ("permission_error", "permission_denied"),
        404 if error_response.member() == Some("model") => ("invalid_request_error", "model_not_found"),
        404 => ("invalid_request_error", "not_found"),
        405 => ("invalid_request_error", "method_not_allowed"),
        413 => ("invalid_request_error", "request_too_large"),
        415 => ("invalid_request_error", "unsupported_media_type"),
        429 => ("rate_limit_error", "rate_limit_exceeded"),
        400..500 => ("invalid_request_error", "invalid_request"),
        502 => ("server_error", "provider_error"),
        503 => ("server_error", "service_unavailable"),
        524 => ("server_error", "timeout"),
        529 => ("server_error", "provider_overloaded"),
        _ => ("server_error", "internal_error"),
    }
}
