//! An answer on its way to a client, before it has the form that the client reads.

use domain::decision::{Answer, AnswerValue, ChoiceOption, Decision, Question, choice_confidence, score_confidence};
use domain::error::ErrorKind;
use serde_json::Value;

use super::object::{Object, number};

/// What every form of answer is written from.
#[derive(Debug, Clone, Copy)]
pub struct Answered<'a> {
    /// The answer.
    pub decision: &'a Decision,
    /// The questions as they were asked, in their order: whose names, options and levels the client knows.
    pub questions: &'a [Question],
    /// What is told of the handling to those who ask for it, and the member that it is told in.
    pub told: Option<(&'static str, &'a Value)>,
}

impl<'a> Answered<'a> {
    /// Each question with its answer.
    pub(super) fn pairs(&self) -> impl Iterator<Item = (&'a Question, &'a Answer)> + use<'a> {
        self.questions.iter().zip(self.decision.answers.typed().unwrap_or_default())
    }

    /// All tokens, in and out.
    pub(super) fn total_tokens(&self) -> u64 {
        self.decision.input_tokens.saturating_add(self.decision.output_tokens)
    }

    /// Ends a body: what names the answer, and what is told on request.
    pub(super) fn end(&self, body: Object) -> String {
        let body = body.text("id", self.decision.id.as_str()).text("provider", &self.decision.provider);
        let told = self.told.map(|(name, value)| (name, value.to_string()));
        match &told {
            Some((name, value)) => body.json(name, value),
            None => body,
        }
        .end()
    }
}

/// The members of an answer that ride along on every wire, as they came: the provider's own confidence, and how the
/// answer was made.
pub(super) fn riders(object: Object, answer: &Answer) -> String {
    let members = answer.json.members().unwrap_or_default();
    let riding = members.iter().filter(|(name, _)| matches!(name.as_str(), "native_confidence" | "metadata"));
    riding.fold(object, |object, (name, json)| object.json(name, json.text())).end()
}

/// A question that nobody could answer, where the caller takes the rest without it.
pub(super) fn unanswered(kind: ErrorKind) -> Object {
    Object::of_type("error").text("error", kind.as_str())
}

/// The confidence of a choice or score: the one that the answer has, else the one that its distribution tells.
pub(super) fn confidence(value: &AnswerValue) -> Option<String> {
    let confidence = match value {
        AnswerValue::Choice { confidence, probabilities, .. } => {
            confidence.or_else(|| probabilities.as_deref().map(|given| decimals(choice_confidence(given), 4)))
        }
        AnswerValue::Score { confidence, probabilities, .. } => {
            confidence.or_else(|| probabilities.as_deref().map(|given| decimals(score_confidence(given), 4)))
        }
        _ => None,
    };
    confidence.map(number)
}

/// A distribution over options, by their names.
pub(super) fn by_option(options: &[ChoiceOption], given: &[f64]) -> String {
    options.iter().zip(given).fold(Object::new(), |object, (option, p)| object.number(&option.name, *p)).end()
}

/// A distribution over levels, by their numbers.
pub(super) fn by_level(given: &[f64]) -> String {
    given.iter().enumerate().fold(Object::new(), |object, (level, p)| object.number(&level.to_string(), *p)).end()
}

/// What is left to 1, without the last digits that subtraction leaves in a float.
pub(super) fn complement(probability: f64) -> f64 {
    decimals(1.0 - probability, 12)
}

fn decimals(number: f64, decimals: i32) -> f64 {
    let scale = 10_f64.powi(decimals);
    (number * scale).round() / scale
}
