//! SGLang responses, and flat errors for its clients.

use domain::json::{Json, JsonKind, ObjectWriter};
use domain::question::{Answer, AnswerValue, Question, QuestionKind};
use domain::statistics::complement;

use super::{LABEL_MASS, NO, USAGE, YES, YES_NO, is_label_mass};
use crate::client::response::{append_provider_members, by_level, by_option, unanswered};
use crate::client::string;
use crate::client::{DecisionResponse, ErrorResponse};

/// Writes the body: a map in question order. This wire has no confidence; `label_mass` is present if the provider
/// returned one.
pub fn write(response: &DecisionResponse<'_>) -> String {
    let decision = response.decision;
    let answers = response.pairs().fold(ObjectWriter::new(), |object, (question, answer)| {
        object.json(&question.name, &write_answer(question, answer))
    });
    let usage = ObjectWriter::new()
        .shown(USAGE.input, decision.input_tokens)
        .shown(USAGE.output, decision.output_tokens)
        .shown("total_tokens", response.total_tokens())
        .json("cost", &decision.cost.to_string());
    let body = ObjectWriter::new()
        .text("object", "decisions")
        .text("model", decision.model.as_str())
        .shown("prompt_format_version", 1)
        .json("answers", &answers.end())
        .json("usage", &usage.end());
    response.end(body)
}

fn write_answer(question: &Question, answer: &Answer) -> String {
    let object = match (&answer.value, &question.kind) {
        (AnswerValue::Noul { probability }, _) => {
            let both = ObjectWriter::new().number(YES, *probability).number(NO, complement(*probability));
            ObjectWriter::with_type(YES_NO).json("probabilities", &both.end())
        }
        (AnswerValue::Choice { chosen, probabilities, .. }, QuestionKind::Choice { options }) => {
            let name = options.get(*chosen).map_or("null".to_owned(), |option| string(&option.name));
            let probabilities = probabilities.as_deref().map(|given| by_option(options, given));
            ObjectWriter::with_type("choice").json("choice", &name).maybe("probabilities", probabilities.as_deref())
        }
        (AnswerValue::Score { score, probabilities, .. }, QuestionKind::Score { .. }) => {
            let probabilities = probabilities.as_deref().map(by_level);
            ObjectWriter::with_type("score").number("score", *score).maybe("probabilities", probabilities.as_deref())
        }
        (AnswerValue::Refusal, _) => ObjectWriter::with_type("refusal"),
        (AnswerValue::Unanswered(kind), _) => unanswered(*kind),
        // These answers do not exist for the question types of this wire.
        (AnswerValue::Box | AnswerValue::Choice { .. } | AnswerValue::Score { .. }, _) => {
            return answer.json.text().to_owned();
        }
    };
    let mass = label_mass(answer);
    append_provider_members(object.maybe(LABEL_MASS, mass.as_ref().map(Json::text)), answer)
}

/// Returns the provider's `label_mass`, from the answer or its details. Other wires may use the name differently, so
/// only a valid sum of probabilities is passed on.
fn label_mass(answer: &Answer) -> Option<Json> {
    let member = |json: &Json, wanted: &str| {
        json.members().into_iter().flatten().find(|(name, _)| name == wanted).map(|(_, value)| value)
    };
    let is_mass = |json: &Json| {
        let number = (json.kind() == JsonKind::Number).then(|| json.text().parse::<f64>().ok()).flatten();
        number.is_some_and(is_label_mass)
    };
    let beside = member(&answer.json, LABEL_MASS).filter(is_mass);
    beside.or_else(|| member(&member(&answer.json, "metadata")?, LABEL_MASS).filter(is_mass))
}

/// Writes the body of an error.
pub fn write_error(error_response: &ErrorResponse<'_>) -> String {
    let body = ObjectWriter::new()
        .text("object", "error")
        .text("message", error_response.message)
        .text("type", error_type(error_response.status))
        .json("param", "null")
        .shown("code", error_response.status)
        .json("metadata", &error_response.metadata_json());
    body.member(error_response.service_metadata).end()
}

fn error_type(status: u16) -> &'static str {
    match status {
        401 => "AuthenticationError",
        402 => "PaymentRequiredError",
        403 => "PermissionDeniedError",
        404 => "NotFoundError",
        413 => "RequestEntityTooLargeError",
        429 => "RateLimitError",
        400..500 => "BadRequestError",
        502 => "ProviderError",
        503 => "ServiceUnavailableError",
        524 => "TimeoutError",
        529 => "ProviderOverloadedError",
        _ => "InternalServerError",
    }
}
