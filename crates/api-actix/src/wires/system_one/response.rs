//! System One answers.

use domain::decision::{Answer, AnswerValue, Question, QuestionKind};
use domain::json::{Json, JsonKind};

use crate::wires::Answered;
use crate::wires::answered::confidence;
use crate::wires::object::Object;

/// The body of the contract: answers byte for byte as they are, the cost in plain decimals and never a float.
pub fn write(answered: &Answered<'_>) -> String {
    with(answered, answered.decision.answers.json().text())
}

/// The same with what client packages cannot do without where the provider left it out and it can be told without
/// inventing anything: the legend, and the confidence where there is a distribution. A member that is null, which they
/// do not decode either, is left out.
pub fn write_complete(answered: &Answered<'_>) -> String {
    let completed: Vec<Option<String>> =
        answered.pairs().map(|(question, answer)| complete(question, answer)).collect();
    if completed.iter().all(Option::is_none) {
        return write(answered);
    }
    let answers = answered.pairs().zip(&completed).fold(Object::new(), |object, ((_, answer), completed)| {
        object.json(&answer.name, completed.as_deref().unwrap_or(answer.json.text()))
    });
    with(answered, &answers.end())
}

fn with(answered: &Answered<'_>, answers: &str) -> String {
    let decision = answered.decision;
    let usage = Object::with_capacity(96)
        .count("input_tokens", decision.input_tokens)
        .count("output_tokens", decision.output_tokens)
        .shown("cost", decision.cost)
        .end();
    let body = Object::with_capacity(answers.len() + 320)
        .json("answers", answers)
        .text("model", decision.model.as_str())
        .json("usage", &usage);
    answered.end(body)
}

/// The answer with what it lacks; `None` where it lacks nothing.
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
    // A box's confidence may be null and may not be absent.
    let is_box = answer.value == AnswerValue::Box;
    let null = |(name, json): &&(String, Json)| json.kind() == JsonKind::Null && !(is_box && name == "confidence");
    let lacks_null = is_box && !members.iter().any(|(name, _)| name == "confidence");
    if confidence.is_none() && legend.is_none() && !lacks_null && !members.iter().any(|member| null(&member)) {
        return None;
    }
    let kept = members.iter().filter(|member| !null(member));
    let object = kept.fold(Object::new(), |object, (name, json)| object.json(name, json.text()));
    let object = object.maybe("confidence", confidence.as_deref()).maybe("legend", legend.as_deref());
    Some(if lacks_null { object.json("confidence", "null") } else { object }.end())
}

/// What each level means, by its number.
fn legend(levels: &[Json]) -> String {
    levels
        .iter()
        .enumerate()
        .fold(Object::new(), |object, (level, text)| object.json(&level.to_string(), text.text()))
        .end()
}
