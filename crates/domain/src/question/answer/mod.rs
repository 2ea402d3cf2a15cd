//! Answers, which are validated before use.

mod members;

use std::collections::HashMap;

use self::members::{Members, Outcomes, is_probability};
use super::{
    AnswerRules, ConfidenceSource, Question, QuestionKind, Questions, argmax, choice_confidence, score_confidence,
};
use crate::error::ErrorKind;
use crate::json::{Json, JsonPart, Member};

/// Answers that were validated against their questions.
#[derive(Debug, Clone, PartialEq)]
pub struct Answers {
    json: Json,
    typed: Option<Vec<Answer>>,
}

/// One validated answer.
#[derive(Debug, Clone, PartialEq)]
pub struct Answer {
    /// The question's name.
    pub name: String,
    /// The answer in canonical form: a JSON object.
    pub json: Json,
    /// The parsed value.
    pub value: AnswerValue,
}

/// The value of an answer. Options and levels are identified by their index in the question.
#[derive(Debug, Clone, PartialEq)]
pub enum AnswerValue {
    /// The answer to a yes-or-no question.
    Noul {
        /// The probability of yes, from 0 to 1.
        probability: f64,
    },
    /// The answer to a choice.
    Choice {
        /// The index of the option.
        chosen: usize,
        /// The probability of each option, if the provider reported them.
        probabilities: Option<Vec<f64>>,
        /// The confidence, from 0 to 1.
        confidence: Option<f64>,
    },
    /// The answer to a score.
    Score {
        /// The score, from 0 to the number of levels minus one.
        score: f64,
        /// The probability of each level, if the provider reported them.
        probabilities: Option<Vec<f64>>,
        /// The confidence, from 0 to 1.
        confidence: Option<f64>,
    },
    /// The answer to a box.
    Box,
    /// The model refused to answer this question.
    Refusal,
    /// The question has no answer, and the caller accepted partial results.
    Unanswered(ErrorKind),
}

impl Answers {
    /// Validates answers in canonical form against their questions.
    ///
    /// The answers are one object. For typed questions it has exactly their names, each once, with an object of the
    /// question's type or a refusal. Numbers are finite and in range. A distribution is complete and sums to 1 within
    /// the rounding error of its numbers. `choice` is one of its likeliest options, and `score` is its expectation.
    /// Answers are kept byte for byte, in the order of the questions.
    ///
    /// # Errors
    /// Returns a fixed message without any text of the provider.
    pub fn check(questions: &Questions, answers: &Json, rules: AnswerRules) -> Result<Self, &'static str> {
        const NO_OBJECT: &str = "the answers are not an object";
        let mut members = answers.as_part().iter_members().ok_or(NO_OBJECT)?;
        let Some(asked) = &questions.typed else {
            let is_object = members.all(|member| member.is_some());
            return is_object.then(|| Self { json: answers.clone(), typed: None }).ok_or(NO_OBJECT);
        };
        // The list ends behind the first surplus member: it takes many times the memory of small members.
        let members: Vec<Member<'_>> = members.take(asked.len() + 1).collect::<Option<_>>().ok_or(NO_OBJECT)?;
        if members.len() != asked.len() {
            return Err(NAMES_MISMATCH);
        }
        let in_order = asked.iter().zip(&members).all(|(question, member)| member.name == question.name);
        let mut places: HashMap<&str, JsonPart<'_>> = HashMap::new();
        if !in_order {
            places = members.iter().map(|member| (&*member.name, member.value)).collect();
        }
        let mut as_it_came = in_order;
        let mut typed = Vec::with_capacity(asked.len());
        for (place, question) in asked.iter().enumerate() {
            let answer = if in_order {
                members[place].value
            } else {
                places.remove(question.name.as_str()).ok_or(NAMES_MISMATCH)?
            };
            let (json, value, changed) = check_answer(question, answer, rules)?;
            as_it_came &= !changed;
            typed.push(Answer { name: question.name.clone(), json, value });
        }
        let json = if as_it_came { answers.clone() } else { Self::write_object(&typed) };
        Ok(Self { json, typed: Some(typed) })
    }

    /// Merges the answers of sub-requests, in the order of the questions. A question without an answer gets the error
    /// `missing`.
    pub fn merge(questions: &[Question], parts: Vec<Self>, missing: ErrorKind) -> Self {
        let answers = parts.into_iter().filter_map(|part| part.typed).flatten();
        let mut by_name: HashMap<String, Answer> = answers.map(|answer| (answer.name.clone(), answer)).collect();
        let typed: Vec<Answer> = questions
            .iter()
            .map(|question| {
                let found = by_name.remove(&question.name);
                found.unwrap_or_else(|| Answer::unanswered(&question.name, missing))
            })
            .collect();
        Self { json: Self::write_object(&typed), typed: Some(typed) }
    }

    /// Returns answers that report this error for all questions.
    pub(crate) fn unanswered(questions: &[Question], kind: ErrorKind) -> Self {
        let typed: Vec<Answer> = questions.iter().map(|question| Answer::unanswered(&question.name, kind)).collect();
        Self { json: Self::write_object(&typed), typed: Some(typed) }
    }

    /// Creates answers from validated ones.
    pub(crate) fn from_typed(typed: Vec<Answer>) -> Self {
        Self { json: Self::write_object(&typed), typed: Some(typed) }
    }

    /// Creates answers to opaque questions.
    pub(crate) fn from_opaque(json: Json) -> Self {
        Self { json, typed: None }
    }

    /// Returns the canonical form: an object with one answer per question.
    pub fn json(&self) -> &Json {
        &self.json
    }

    /// Returns the answers in the order of the questions; `None` for opaque questions.
    pub fn typed(&self) -> Option<&[Answer]> {
        self.typed.as_deref()
    }

    fn write_object(answers: &[Answer]) -> Json {
        Json::object_of(answers.iter().map(|answer| (answer.name.as_str(), &answer.json)))
    }
}

impl Answer {
    pub(crate) fn unanswered(name: &str, kind: ErrorKind) -> Self {
        let json = Json::object([("type", "\"error\""), ("error", Json::string(kind.as_str()).text())]);
        Self { name: name.to_owned(), json, value: AnswerValue::Unanswered(kind) }
    }
}

const NAMES_MISMATCH: &str = "the answers do not match the questions";

/// Returns the answer in canonical form, its value, and whether its JSON was changed.
fn check_answer(
    question: &Question,
    answer: JsonPart<'_>,
    rules: AnswerRules,
) -> Result<(Json, AnswerValue, bool), &'static str> {
    let read = Members::read(answer)?;
    let answered = read.string("type").ok_or("an answer is of no type")?;
    if answered == "refusal" {
        return Ok((answer.to_json(), AnswerValue::Refusal, false));
    }
    if answered != question.kind.as_str() {
        return Err("an answer is of another type than its question");
    }
    let native = read.confidence()?;
    let value = match &question.kind {
        QuestionKind::Noul { .. } => AnswerValue::Noul {
            probability: read.number("noul").filter(is_probability).ok_or("a noul answer is not a probability")?,
        },
        QuestionKind::Choice { options } => {
            let chosen = read.string("choice").ok_or("a choice answer names no option")?;
            let chosen = options.iter().position(|option| option.name == chosen);
            let chosen = chosen.ok_or("a choice answer is none of the options")?;
            let probabilities = read.distribution(Outcomes::Options(options), rules)?;
            if let Some(probabilities) = &probabilities
                && argmax(probabilities).is_none_or(|most| probabilities[most] > probabilities[chosen])
            {
                return Err("a choice answer is not the likeliest option");
            }
            AnswerValue::Choice { chosen, probabilities, confidence: native }
        }
        QuestionKind::Score { levels } => {
            let probabilities = read.distribution(Outcomes::Levels(levels.len()), rules)?;
            let score = read.score(levels.len(), probabilities.as_deref(), rules)?;
            AnswerValue::Score { score, probabilities, confidence: native }
        }
        QuestionKind::Box => {
            read.check_box()?;
            AnswerValue::Box
        }
    };
    if rules.confidence != ConfidenceSource::Computed || question.kind == QuestionKind::Box {
        return Ok((answer.to_json(), value, false));
    }
    let value = with_computed_confidence(value);
    let written = with_confidence(answer, &read, &value);
    let changed = written.text() != answer.text();
    Ok((written, value, changed))
}

fn with_computed_confidence(value: AnswerValue) -> AnswerValue {
    match value {
        AnswerValue::Choice { chosen, probabilities, .. } => {
            let confidence = probabilities.as_deref().map(choice_confidence).map(to_four_decimals);
            AnswerValue::Choice { chosen, probabilities, confidence }
        }
        AnswerValue::Score { score, probabilities, .. } => {
            let confidence = probabilities.as_deref().map(score_confidence).map(to_four_decimals);
            AnswerValue::Score { score, probabilities, confidence }
        }
        other => other,
    }
}

/// Returns the answer with the computed confidence, and the provider's as `native_confidence`. A `noul` has no
/// confidence.
fn with_confidence(answer: JsonPart<'_>, read: &Members<'_>, value: &AnswerValue) -> Json {
    let computed = match value {
        AnswerValue::Choice { confidence, .. } | AnswerValue::Score { confidence, .. } => confidence.map(rounded),
        _ => None,
    };
    let native = read.get("confidence").filter(|native| !native.is_null()).map(JsonPart::text);
    if computed.is_none() && native.is_none() {
        return answer.to_json();
    }
    let kept = read.all().iter().filter(|member| !matches!(&*member.name, "confidence" | "native_confidence"));
    let mut members: Vec<(&str, &str)> = kept.map(|member| (&*member.name, member.value.text())).collect();
    members.extend(computed.as_deref().map(|computed| ("confidence", computed)));
    members.extend(native.map(|native| ("native_confidence", native)));
    Json::object(members)
}

/// Rounds, so that every format of clients has the same number: 0.2 and not 0.19999999999999996.
fn to_four_decimals(number: f64) -> f64 {
    (number * 10_000.0).round() / 10_000.0
}

/// Formats with at most four decimals, which is finer than providers round distributions.
fn rounded(number: f64) -> String {
    let text = format!("{number:.4}");
    let text = text.trim_end_matches('0');
    text.strip_suffix('.').unwrap_or(text).to_owned()
}

#[cfg(test)]
mod tests;
