//! Conversion of a response body to canonical form.

use domain::json::Json;
use domain::question::{Question, QuestionKind, Questions};

use super::{BLOCK_REASON, PROMPT_FEEDBACK, USAGE};
use crate::canonical::{Extras, in_order, noul, refusal};
use crate::provider::{
    BadAnswer, MalformedAnswer, Object, WireAnswer, by_question, confidence, read_answers, read_choice, read_score,
    required_probability, string, type_of,
};

/// Reads the answers to these questions. Numbers and confidences keep their spelling. Blocked input is a refusal of
/// every question.
///
/// # Errors
/// The malformed element.
pub fn read(questions: &Questions, body: &[u8]) -> Result<WireAnswer, BadAnswer> {
    read_answers(body, USAGE, |members| answers(questions.typed.as_deref().unwrap_or_default(), members))
}

fn answers(questions: &[Question], members: &Object<'_>) -> Result<Json, MalformedAnswer> {
    let given = members.get("answers")?;
    let blocked = blocked(members)?;
    let parsed: Vec<Json> = match given {
        None if blocked => questions.iter().map(|_| refusal()).collect(),
        Some(empty) if blocked && Object::of(empty).is_some_and(|answers| answers.members().is_empty()) => {
            questions.iter().map(|_| refusal()).collect()
        }
        None => return Err(MalformedAnswer::NoAnswers),
        Some(given) => {
            let answers = by_question(questions, given)?;
            let pairs = questions.iter().zip(&answers);
            pairs.map(|(question, answer)| read_answer(question, answer)).collect::<Result<_, _>>()?
        }
    };
    Ok(in_order(questions.iter().map(|question| question.name.as_str()).zip(&parsed)))
}

/// Returns true if the whole input was blocked.
fn blocked(members: &Object<'_>) -> Result<bool, MalformedAnswer> {
    let Some(feedback) = members.get(PROMPT_FEEDBACK)? else { return Ok(false) };
    let feedback = Object::of(feedback).ok_or(MalformedAnswer::NotOfItsForm)?;
    Ok(feedback.get(BLOCK_REASON)?.and_then(string).is_some_and(|reason| !reason.is_empty()))
}

fn read_answer(question: &Question, answer: &Object<'_>) -> Result<Json, MalformedAnswer> {
    let type_name = type_of(answer)?;
    // The vendor refuses whole requests; a gateway with this wire may refuse single questions.
    if type_name == "refusal" {
        return Ok(refusal());
    }
    if type_name != question.kind.as_str() {
        return Err(MalformedAnswer::Answer("it is of another type than its question"));
    }
    let extras = Extras { confidence: confidence(answer)?, metadata: None };
    match &question.kind {
        QuestionKind::Noul { .. } => Ok(noul(required_probability(answer, "noul")?, extras)),
        QuestionKind::Choice { options } => read_choice(options, answer, extras),
        QuestionKind::Score { levels } => read_score(levels, answer, extras),
        QuestionKind::Box => Err(MalformedAnswer::NotAsked),
    }
}
