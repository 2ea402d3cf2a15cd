//! System One answers.

use domain::json::{Json, JsonKind, ObjectWriter};
use domain::question::{Answer, AnswerValue, Question, QuestionKind};

use crate::client::DecisionResponse;
use crate::client::response::confidence;

/// Writes the contract's body: answers byte for byte, the cost as a plain decimal.
pub fn write(response: &DecisionResponse<'_>) -> String {
    write_body(response, response.decision.answers.json().text())
}

/// Writes the same body with the members that client packages require: the legend, and the confidence computed from the
/// distribution. Both are added only if the provider left them out. Null members are removed, because the packages
/// cannot decode them.
pub fn write_complete(response: &DecisionResponse<'_>) -> String {
    let completed: Vec<Option<String>> =
        response.pairs().map(|(question, answer)| complete(question, answer)).collect();
    if completed.iter().all(Option::is_none) {
        return write(response);
    }
    let answers = response.pairs().zip(&completed).fold(ObjectWriter::new(), |object, ((_, answer), completed)| {
        object.json(&answer.name, completed.as_deref().unwrap_or(answer.json.text()))
    });
    write_body(response, &answers.end())
}

fn write_body(response: &DecisionResponse<'_>, answers: &str) -> String {
    let decision = response.decision;
    let usage = ObjectWriter::with_capacity(96)
        .shown("input_tokens", decision.input_tokens)
        .shown("output_tokens", decision.output_tokens)
        .shown("cost", decision.cost)
        .end();
    let body = ObjectWriter::with_capacity(answers.len() + 320)
        .json("answers", answers)
        .text("model", decision.model.as_str())
        .json("usage", &usage);
    response.end(body)
}

/// Returns the answer with its missing members; `None` if it is complete.
fn complete(question: &Question, answer: &Answer) -> Option<String> {
    let confidence = match &answer.value {
        AnswerValue::Choice { confidence: None, .. } | AnswerValue::Score { confidence: None, .. } => {
            confidence(&answer.value)
        }
        AnswerValue::Choice { .. } | AnswerValue::Score { .. } | AnswerValue::Box => None,
        AnswerValue::Noul { .. } | AnswerValue::Refusal | AnswerValue::Unanswered(_) => return None,
    };
    let members = answer.json.members()?;
    let has = |name: &str| members.iter().any(|(member, json)| member == name && json.kind() != JsonKind::Null);
    let legend = match &question.kind {
        QuestionKind::Score { levels } if !has("legend") => Some(legend(levels)),
        _ => None,
    };
    // A box must have a confidence, which may be null.
    let is_box = answer.value == AnswerValue::Box;
    let null = |(name, json): &&(String, Json)| json.kind() == JsonKind::Null && !(is_box && name == "confidence");
    let lacks_null = is_box && !members.iter().any(|(name, _)| name == "confidence");
    if confidence.is_none() && legend.is_none() && !lacks_null && !members.iter().any(|member| null(&member)) {
        return None;
    }
    let kept = members.iter().filter(|member| !null(member));
    let object = kept.fold(ObjectWriter::new(), |object, (name, json)| object.json(name, json.text()));
    let object = object.maybe("confidence", confidence.as_deref()).maybe("legend", legend.as_deref());
    Some(if lacks_null { object.json("confidence", "null") } else { object }.end())
}

/// Maps each level number to its description.
fn legend(levels: &[Json]) -> String {
    levels
        .iter()
        .enumerate()
        .fold(ObjectWriter::new(), |object, (level, text)| object.json(&level.to_string(), text.text()))
        .end()
}
