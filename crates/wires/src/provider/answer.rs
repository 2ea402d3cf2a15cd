//! The answer of a provider: its canonical form and errors, and parsers of its objects, token counts and typed answers.

use std::borrow::Cow;
use std::collections::HashMap;

use domain::json::{Json, JsonText, PrecheckError, precheck, read_object};
use domain::pricing::ReportedUsage;
use domain::question::{ChoiceOption, Question};
use serde_json::value::RawValue;

use crate::canonical::{Extras, choice, score};

/// The answer of a provider.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct WireAnswer {
    /// The object of answers in canonical form, not yet validated against the questions.
    pub answers: Json,
    /// The token counts, if reported.
    pub usage: Option<ReportedUsage>,
}

/// An unusable answer, with the usage that it reports.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error("{error}")]
pub struct BadAnswer {
    /// The error.
    pub error: MalformedAnswer,
    /// The token counts, if reported.
    pub usage: Option<ReportedUsage>,
}

impl From<MalformedAnswer> for BadAnswer {
    /// Converts without token counts.
    fn from(error: MalformedAnswer) -> Self {
        Self { error, usage: None }
    }
}

/// An answer that does not match the wire's format. The message contains none of its content.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum MalformedAnswer {
    /// The body is not UTF-8, no JSON object, or has duplicate members.
    #[error("the provider's answer is malformed")]
    NotOfItsForm,
    /// Nested deeper than 128 levels.
    #[error("the provider's answer is nested too deeply")]
    TooDeep,
    /// The answers are missing or malformed.
    #[error("the provider's answer holds no answers")]
    NoAnswers,
    /// The answers do not match the questions.
    #[error("the provider's answers do not match the questions")]
    NotAsked,
    /// An answer does not match the type of its question.
    #[error("an answer of the provider is malformed: {0}")]
    Answer(&'static str),
    /// The token counts are present but invalid.
    #[error("the provider's token counts are malformed")]
    Usage,
}

/// Returns the text of a body: valid UTF-8, not nested too deeply, and without lone surrogates, which many JSON parsers
/// reject.
pub fn as_text(body: &[u8]) -> Result<&str, MalformedAnswer> {
    let text = std::str::from_utf8(body).map_err(|_| MalformedAnswer::NotOfItsForm)?;
    precheck(text).map_err(|fault| match fault {
        PrecheckError::TooDeep => MalformedAnswer::TooDeep,
        PrecheckError::LoneSurrogate => MalformedAnswer::NotOfItsForm,
    })?;
    Ok(text)
}

/// The members of an object in order. Names without escapes are borrowed from the text.
#[derive(Debug)]
pub struct Object<'a>(Vec<(Cow<'a, str>, JsonText<'a>)>);

impl<'a> Object<'a> {
    /// Parses an object in a text that [`as_text`] has accepted; `None` for other values.
    pub fn parse(text: &'a str) -> Option<Self> {
        let mut members = Vec::new();
        read_object(text, |name, value| members.push((name, value)))?;
        Some(Self(members))
    }

    /// Parses the object in a value; `None` for other values.
    pub fn of(value: JsonText<'a>) -> Option<Self> {
        Self::parse(value.get())
    }

    /// Returns the member with this name; `None` if missing or null. A duplicate member is malformed, because it is
    /// ambiguous.
    pub fn get(&self, name: &str) -> Result<Option<JsonText<'a>>, MalformedAnswer> {
        let mut found = self.0.iter().filter(|(member, _)| member == name).map(|(_, value)| *value);
        let first = found.next();
        if found.next().is_some() {
            Err(MalformedAnswer::NotOfItsForm)
        } else {
            Ok(first.filter(|value| !is_null(*value)))
        }
    }

    /// Returns all members.
    pub fn members(&self) -> &[(Cow<'a, str>, JsonText<'a>)] {
        &self.0
    }
}

/// Returns the elements of an array; `None` for other values.
pub fn elements(value: JsonText<'_>) -> Option<Vec<JsonText<'_>>> {
    let elements: Vec<&RawValue> = serde_json::from_str(value.get()).ok()?;
    Some(elements.into_iter().map(JsonText::from).collect())
}

/// Returns true for `null`.
pub fn is_null(value: JsonText<'_>) -> bool {
    value.get() == "null"
}

/// Returns the content of a string; `None` for other values.
pub fn string(value: JsonText<'_>) -> Option<String> {
    value.get().starts_with('"').then(|| serde_json::from_str(value.get()).ok()).flatten()
}

/// Returns a finite number and its text: `1e999` is none.
pub fn number(value: JsonText<'_>) -> Option<(&str, f64)> {
    let text = value.get();
    let is_number = text.as_bytes().first().is_some_and(|first| first.is_ascii_digit() || *first == b'-');
    let number: f64 = is_number.then(|| text.parse().ok()).flatten()?;
    number.is_finite().then_some((text, number))
}

/// Returns the text of a number from 0 to 1.
pub fn probability(value: JsonText<'_>) -> Option<&str> {
    number(value).filter(|(_, number)| (0.0..=1.0).contains(number)).map(|(text, _)| text)
}

/// Reads the answers and the token counts of a body. An unusable answer reports its token counts too.
pub(crate) fn read_answers(
    body: &[u8],
    names: UsageNames,
    answers: impl FnOnce(&Object<'_>) -> Result<Json, MalformedAnswer>,
) -> Result<WireAnswer, BadAnswer> {
    let members = Object::parse(as_text(body)?).ok_or(MalformedAnswer::NotOfItsForm)?;
    let usage = usage(members.get("usage")?, names)?;
    match answers(&members) {
        Ok(answers) => Ok(WireAnswer { answers, usage }),
        Err(error) => Err(BadAnswer { error, usage }),
    }
}

/// Reads the answer to a choice whose distribution is a map by option.
pub(crate) fn read_choice(
    options: &[ChoiceOption],
    answer: &Object<'_>,
    extras: Extras<'_>,
) -> Result<Json, MalformedAnswer> {
    let place = |name: &str| options.iter().position(|option| option.name == name);
    let chosen = answer.get("choice")?.and_then(string).filter(|chosen| place(chosen).is_some());
    let chosen = chosen.ok_or(MalformedAnswer::Answer("it is none of the options"))?;
    let probabilities = distribution_of_map(answer, options.len(), place)?;
    Ok(choice(options, &chosen, &probabilities, extras))
}

/// Reads the answer to a score whose distribution is a map by level.
pub(crate) fn read_score(levels: &[Json], answer: &Object<'_>, extras: Extras<'_>) -> Result<Json, MalformedAnswer> {
    let value = required_number(answer, "score")?;
    let probabilities = distribution_of_map(answer, levels.len(), level)?;
    Ok(score(levels, value, &probabilities, extras))
}

/// The largest plausible token count; a provider that reports more is wrong.
const MAX_TOKENS: u64 = 1_000_000_000;

/// The names of the token counts on a wire.
#[derive(Debug, Clone, Copy)]
pub(crate) struct UsageNames {
    pub(crate) input: &'static str,
    pub(crate) output: &'static str,
}

/// The names of the token counts on all wires: gateways between two wires keep those of the other one.
const ALL_NAMES: [UsageNames; 3] = [
    UsageNames { input: "input_tokens", output: "output_tokens" },
    UsageNames { input: "prompt_tokens", output: "completion_tokens" },
    UsageNames { input: "total_input_tokens", output: "total_output_tokens" },
];

/// Reads the token counts, under the names of the wire or of another one. `None` if the object or the input count is
/// missing or null. An input count of zero is no report: a call never has an empty input.
pub(crate) fn usage(usage: Option<JsonText<'_>>, names: UsageNames) -> Result<Option<ReportedUsage>, MalformedAnswer> {
    let Some(usage) = usage else { return Ok(None) };
    let members = Object::of(usage).ok_or(MalformedAnswer::Usage)?;
    if let Some(usage) = counts(&members, names)? {
        return Ok(Some(usage));
    }
    Ok(ALL_NAMES.iter().find_map(|names| counts(&members, *names).ok().flatten()))
}

/// Reads the token counts under these names.
fn counts(members: &Object<'_>, names: UsageNames) -> Result<Option<ReportedUsage>, MalformedAnswer> {
    let count = |name| match members.get(name) {
        Ok(None) => Ok(None),
        Ok(Some(value)) => tokens(value).map(Some).ok_or(MalformedAnswer::Usage),
        Err(_) => Err(MalformedAnswer::Usage),
    };
    let (input, output) = (count(names.input)?, count(names.output)?);
    let input = input.filter(|tokens| *tokens > 0);
    Ok(input.map(|input_tokens| ReportedUsage { input_tokens, output_tokens: output.unwrap_or(0) }))
}

/// Parses a whole number in any notation, also in a string: `12`, `12.0`, `1.2e1`, `"12"`.
fn tokens(value: JsonText<'_>) -> Option<u64> {
    match string(value) {
        Some(text) => whole_number(text.trim()),
        None => whole_number(value.get()),
    }
}

fn whole_number(text: &str) -> Option<u64> {
    let count = if let Ok(count) = text.parse::<u64>() {
        count
    } else {
        let is_number = text.as_bytes().first().is_some_and(|first| first.is_ascii_digit() || *first == b'-');
        let number: f64 = is_number.then(|| text.parse().ok()).flatten()?;
        if number.fract() != 0.0 || !(0.0..=1e9).contains(&number) {
            return None;
        }
        #[expect(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "checked in the lines above")]
        let count = number as u64;
        count
    };
    (count <= MAX_TOKENS).then_some(count)
}

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

#[cfg(test)]
mod tests {
    use domain::json::MAX_DEPTH;

    use super::*;

    #[test]
    fn as_text_limits_open_brackets() {
        let deep = |levels: usize| format!("{}{}", "[".repeat(levels), "]".repeat(levels));
        assert!(as_text(deep(MAX_DEPTH).as_bytes()).is_ok());
        assert_eq!(as_text(deep(MAX_DEPTH + 1).as_bytes()), Err(MalformedAnswer::TooDeep));
        let wide = format!("[{}]", vec!["{}"; 1000].join(","));
        assert_eq!(as_text(wide.as_bytes()), Ok(wide.as_str()));
        let text = format!("\"{}\"", "{[".repeat(1000));
        assert!(as_text(text.as_bytes()).is_ok(), "text is not nested");
        assert_eq!(as_text(br#"{"a":"\ud800"}"#), Err(MalformedAnswer::NotOfItsForm));
    }

    #[test]
    fn object_reads_escaped_names() {
        let object = Object::parse(r#"{"plain":1,"\u0061b":2,"":3}"#).unwrap();
        let value = |name: &str| object.get(name).unwrap().map(JsonText::get);
        assert_eq!((value("plain"), value("ab"), value(""), value("b")), (Some("1"), Some("2"), Some("3"), None));
        assert!(Object::parse(r#"{"a":1,"\u0061":2}"#).unwrap().get("a").is_err(), "one name, written in two ways");
        assert!(Object::parse("{1:2}").is_none());
    }
}
