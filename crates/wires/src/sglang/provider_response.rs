//! Conversion of a response body to canonical form.

use domain::json::{Json, JsonText};
use domain::question::{Question, QuestionKind, Questions};

use super::{LABEL_MASS, NO, USAGE, YES, YES_NO, is_label_mass};
use crate::canonical::{Extras, in_order, noul, refusal};
use crate::provider::{
    BadAnswer, MalformedAnswer, Object, WireAnswer, by_question, distribution_of_map, number, read_answers,
    read_choice, read_score, type_of,
};

/// Tolerance for the sum of two probabilities: two decimals each, and float errors.
const SLACK: f64 = 0.01 + 1e-6;

/// Reads the answers to these questions. Numbers keep their spelling. The wire has no confidence; the probability of
/// all labels is returned as `metadata.label_mass`.
///
/// # Errors
/// The malformed element.
pub fn read(questions: &Questions, body: &[u8]) -> Result<WireAnswer, BadAnswer> {
    read_answers(body, USAGE, |members| answers(questions.typed.as_deref().unwrap_or_default(), members))
}

fn answers(questions: &[Question], members: &Object<'_>) -> Result<Json, MalformedAnswer> {
    let given = members.get("answers")?.ok_or(MalformedAnswer::NoAnswers)?;
    let answers = by_question(questions, given)?;
    let pairs = questions.iter().zip(&answers);
    let parsed: Vec<Json> = pairs.map(|(question, answer)| read_answer(question, answer)).collect::<Result<_, _>>()?;
    Ok(in_order(questions.iter().map(|question| question.name.as_str()).zip(&parsed)))
}

fn read_answer(question: &Question, answer: &Object<'_>) -> Result<Json, MalformedAnswer> {
    let type_name = type_of(answer)?;
    // The vendor never refuses; a gateway with this wire may.
    if type_name == "refusal" {
        return Ok(refusal());
    }
    let mass = answer.get(LABEL_MASS)?.map(label_mass).transpose()?;
    let metadata = mass.map(|mass| Json::object([(LABEL_MASS, mass)]));
    let extras = Extras { confidence: None, metadata: metadata.as_ref().map(Json::text) };
    match (&question.kind, type_name.as_str()) {
        (QuestionKind::Noul { .. }, YES_NO) => {
            let sides = distribution_of_map(answer, 2, |name| [YES, NO].iter().position(|side| *side == name))?;
            let sum: f64 = sides.iter().filter_map(|side| side.parse::<f64>().ok()).sum();
            if (sum - 1.0).abs() > SLACK {
                return Err(MalformedAnswer::Answer("its distribution does not sum to 1"));
            }
            Ok(noul(sides[0], extras))
        }
        (QuestionKind::Choice { options }, "choice") => read_choice(options, answer, extras),
        (QuestionKind::Score { levels }, "score") => read_score(levels, answer, extras),
        _ => Err(MalformedAnswer::Answer("it is of another type than its question")),
    }
}

/// Returns the text of a sum of probabilities.
fn label_mass(value: JsonText<'_>) -> Result<&str, MalformedAnswer> {
    let mass = number(value).filter(|(_, mass)| is_label_mass(*mass));
    mass.map(|(text, _)| text).ok_or(MalformedAnswer::Answer("its label mass is no number from 0 to 1"))
}
