//! Parsing of answers to typed questions, common to all wires.

use std::collections::HashMap;

use domain::question::Question;

use super::{MalformedAnswer, Object, number, probability, string};
use domain::json::JsonText;

const NO_TYPE: MalformedAnswer = MalformedAnswer::Answer("it has no type");
const INCOMPLETE: MalformedAnswer = MalformedAnswer::Answer("its distribution is not over what was asked");

/// Returns the answers of a map in the order of the questions. Each question must have exactly one answer.
pub(crate) fn by_question<'a>(
    questions: &[Question],
    answers: JsonText<'a>,
) -> Result<Vec<Object<'a>>, MalformedAnswer> {
    let answers = Object::of(answers).ok_or(MalformedAnswer::NoAnswers)?;
    let members = answers.members();
    if members.len() != questions.len() {
        return Err(MalformedAnswer::NotAsked);
    }
    let mut by_name: HashMap<&str, JsonText<'a>> = members.iter().map(|(name, answer)| (&**name, *answer)).collect();
    let mut found = Vec::with_capacity(questions.len());
    for question in questions {
        let answer = by_name.remove(question.name.as_str()).ok_or(MalformedAnswer::NotAsked)?;
        found.push(Object::of(answer).ok_or(MalformedAnswer::Answer("it is no object"))?);
    }
    Ok(found)
}

/// Returns the type that an answer states.
pub(crate) fn type_of(answer: &Object<'_>) -> Result<String, MalformedAnswer> {
    answer.get("type")?.and_then(string).ok_or(NO_TYPE)
}

/// Returns the text of a required number.
pub(crate) fn required_number<'a>(answer: &Object<'a>, name: &str) -> Result<&'a str, MalformedAnswer> {
    let value = answer.get(name)?.and_then(number).map(|(text, _)| text);
    value.ok_or(MalformedAnswer::Answer("its value is no number"))
}

/// Returns the text of a required probability.
pub(crate) fn required_probability<'a>(answer: &Object<'a>, name: &str) -> Result<&'a str, MalformedAnswer> {
    let value = answer.get(name)?.and_then(probability);
    value.ok_or(MalformedAnswer::Answer("its value is no probability"))
}

/// Returns the text of the provider's own confidence, if given.
pub(crate) fn confidence<'a>(answer: &Object<'a>) -> Result<Option<&'a str>, MalformedAnswer> {
    let read = |value| probability(value).ok_or(MalformedAnswer::Answer("its confidence is not a number from 0 to 1"));
    answer.get("confidence")?.map(read).transpose()
}

/// Reads the probability of each outcome from a map by name.
pub(crate) fn distribution_of_map<'a>(
    answer: &Object<'a>,
    outcomes: usize,
    place: impl Fn(&str) -> Option<usize>,
) -> Result<Vec<&'a str>, MalformedAnswer> {
    let map = answer.get("probabilities")?.and_then(Object::of).ok_or(INCOMPLETE)?;
    let entries = map.members().iter().map(|(name, value)| (place(name), Some(*value)));
    distribution(outcomes, entries)
}

/// Reads the probability of each outcome, each given exactly once.
pub(crate) fn distribution<'a>(
    outcomes: usize,
    entries: impl IntoIterator<Item = (Option<usize>, Option<JsonText<'a>>)>,
) -> Result<Vec<&'a str>, MalformedAnswer> {
    let mut probabilities: Vec<Option<&str>> = vec![None; outcomes];
    for (place, value) in entries {
        let slot = place.and_then(|place| probabilities.get_mut(place)).ok_or(INCOMPLETE)?;
        let value = value.and_then(probability);
        let value = value.ok_or(MalformedAnswer::Answer("its distribution has a value that is not a probability"))?;
        if slot.replace(value).is_some() {
            return Err(MalformedAnswer::Answer("its distribution names an outcome twice"));
        }
    }
    probabilities.into_iter().collect::<Option<_>>().ok_or(INCOMPLETE)
}

/// Parses the number of a level: `0`, `1` and so on, without leading zeros.
pub(crate) fn level(name: &str) -> Option<usize> {
    let plain = name == "0" || !name.starts_with('0') && name.bytes().all(|byte| byte.is_ascii_digit());
    plain.then(|| name.parse().ok()).flatten()
}
