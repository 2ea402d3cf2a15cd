//! Conversion of a response body to canonical form.

use domain::json::{Json, JsonText};
use domain::question::{ChoiceOption, Question, QuestionKind, Questions};

use super::{PREDICATE, PROBABILITY, USAGE, VALUE};
use crate::canonical::{Extras, choice, in_order, noul, refusal, score};
use crate::provider::{
    BadAnswer, MalformedAnswer, Object, WireAnswer, confidence, distribution, elements, level, number, read_answers,
    required_number, required_probability, string, type_of,
};

const OTHER_TYPE: MalformedAnswer = MalformedAnswer::Answer("it is of another type than its question");
const NO_DISTRIBUTION: MalformedAnswer = MalformedAnswer::Answer("it has no distribution");

/// Reads the answers to these questions. Numbers keep their spelling.
///
/// # Errors
/// The malformed element.
pub fn read(questions: &Questions, body: &[u8]) -> Result<WireAnswer, BadAnswer> {
    read_answers(body, USAGE, |members| answers(questions.typed.as_deref().unwrap_or_default(), members))
}

fn answers(questions: &[Question], members: &Object<'_>) -> Result<Json, MalformedAnswer> {
    let given = members.get("answers")?.and_then(elements).ok_or(MalformedAnswer::NoAnswers)?;
    if given.len() != questions.len() {
        return Err(MalformedAnswer::NotAsked);
    }
    let mut answers: Vec<Option<Json>> = vec![None; questions.len()];
    for (place, answer) in given.into_iter().enumerate() {
        let answer = Object::of(answer).ok_or(MalformedAnswer::Answer("it is no object"))?;
        let place = place_of(questions, &answer, place)?;
        if answers[place].replace(read_answer(&questions[place], &answer)?).is_some() {
            return Err(MalformedAnswer::NotAsked);
        }
    }
    let answers = answers.into_iter().collect::<Option<Vec<_>>>().ok_or(MalformedAnswer::NotAsked)?;
    Ok(in_order(questions.iter().map(|question| question.name.as_str()).zip(&answers)))
}

/// Returns the index of an answer's question: by name, or by position if the name is missing.
fn place_of(questions: &[Question], answer: &Object<'_>, place: usize) -> Result<usize, MalformedAnswer> {
    let Some(name) = answer.get("name")? else { return Ok(place) };
    let name = string(name).ok_or(MalformedAnswer::NotAsked)?;
    // Answers come in the order of the questions.
    if questions[place].name == name {
        return Ok(place);
    }
    questions.iter().position(|question| question.name == name).ok_or(MalformedAnswer::NotAsked)
}

fn read_answer(question: &Question, answer: &Object<'_>) -> Result<Json, MalformedAnswer> {
    let type_name = type_of(answer)?;
    if type_name == "refusal" {
        return Ok(refusal());
    }
    let extras = Extras { confidence: confidence(answer)?, metadata: None };
    match (&question.kind, type_name.as_str()) {
        (QuestionKind::Noul { .. }, PREDICATE) => Ok(noul(required_probability(answer, PROBABILITY)?, extras)),
        (QuestionKind::Choice { options }, "choice") => {
            let chosen = answer.get("choice")?.and_then(|value| option(options, value));
            let chosen = chosen.ok_or(MalformedAnswer::Answer("it is none of the options"))?;
            let probabilities = of_array(answer, options.len(), |value| option(options, value))?;
            Ok(choice(options, &options[chosen].name, &probabilities, extras))
        }
        (QuestionKind::Score { levels }, "score") => {
            let value = required_number(answer, "score")?;
            let probabilities = of_array(answer, levels.len(), |value| level(number(value)?.0))?;
            Ok(score(levels, value, &probabilities, extras))
        }
        _ => Err(OTHER_TYPE),
    }
}

/// Returns the index of the option with this value: `true` differs from `"true"`.
fn option(options: &[ChoiceOption], value: JsonText<'_>) -> Option<usize> {
    let boolean = match value.get() {
        "true" => Some(true),
        "false" => Some(false),
        _ => None,
    };
    if boolean.is_some() {
        return options.iter().position(|option| option.boolean == boolean);
    }
    let name = string(value)?;
    options.iter().position(|option| option.boolean.is_none() && option.name == name)
}

/// Reads a distribution from an array of values with probabilities.
fn of_array<'a>(
    answer: &Object<'a>,
    outcomes: usize,
    place: impl Fn(JsonText<'_>) -> Option<usize>,
) -> Result<Vec<&'a str>, MalformedAnswer> {
    let entries = answer.get("probabilities")?.and_then(elements).ok_or(NO_DISTRIBUTION)?;
    let mut read = Vec::with_capacity(entries.len());
    for entry in entries {
        let entry = Object::of(entry).ok_or(NO_DISTRIBUTION)?;
        read.push((entry.get(VALUE)?.and_then(&place), entry.get(PROBABILITY)?));
    }
    distribution(outcomes, read)
}
