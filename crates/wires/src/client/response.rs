//! The content of a response, of an answer or an error, independent of the wire format.

use std::collections::BTreeMap;
use std::time::Duration;

use domain::decision::Decision;
use domain::error::ErrorKind;
use domain::json::ObjectWriter;
use domain::money::Usd;
use domain::question::{Answer, AnswerValue, ChoiceOption, Question, choice_confidence, score_confidence};
use serde_json::{Map, Value};

/// The content of a successful response, from which each wire writes its body.
#[derive(Debug, Clone, Copy)]
pub struct DecisionResponse<'a> {
    /// The decision.
    pub decision: &'a Decision,
    /// The questions in request order, with the names, options and levels of the client.
    pub questions: &'a [Question],
    /// The name and value of the service metadata member, if the client asked for it.
    pub service_metadata: Option<(&'static str, &'a Value)>,
}

impl<'a> DecisionResponse<'a> {
    /// Pairs each question with its answer.
    pub(crate) fn pairs(&self) -> impl Iterator<Item = (&'a Question, &'a Answer)> + use<'a> {
        self.questions.iter().zip(self.decision.answers.typed().unwrap_or_default())
    }

    /// Returns the total of input and output tokens.
    pub(crate) fn total_tokens(&self) -> u64 {
        self.decision.input_tokens.saturating_add(self.decision.output_tokens)
    }

    /// Completes a body with the answer id, the outcomes of stages, and the service metadata.
    pub(crate) fn end(&self, body: ObjectWriter) -> String {
        let body = body.text("id", self.decision.id.as_str()).text("provider", &self.decision.provider);
        let outcomes = self.decision.outcomes.json();
        let body = outcomes.into_iter().fold(body, |body, outcomes| body.json("outcomes", outcomes.text()));
        body.member(self.service_metadata).end()
    }
}

/// Appends the members that every wire passes through unchanged: the provider's own confidence and details.
pub(crate) fn append_provider_members(object: ObjectWriter, answer: &Answer) -> String {
    let members = answer.json.members().unwrap_or_default();
    let passed_through = members.iter().filter(|(name, _)| matches!(name.as_str(), "native_confidence" | "metadata"));
    passed_through.fold(object, |object, (name, json)| object.json(name, json.text())).end()
}

/// Writes the error of an unanswered question in a partial response.
pub(crate) fn unanswered(kind: ErrorKind) -> ObjectWriter {
    ObjectWriter::with_type("error").text("error", kind.as_str())
}

/// Returns the confidence of a choice or score: the answer's own, or the one computed from its distribution.
pub(crate) fn confidence(value: &AnswerValue) -> Option<String> {
    let confidence = match value {
        AnswerValue::Choice { confidence, probabilities, .. } => {
            confidence.or_else(|| probabilities.as_deref().map(|given| decimals(choice_confidence(given), 4)))
        }
        AnswerValue::Score { confidence, probabilities, .. } => {
            confidence.or_else(|| probabilities.as_deref().map(|given| decimals(score_confidence(given), 4)))
        }
        _ => None,
    };
    confidence.and_then(serde_json::Number::from_f64).map(|number| number.to_string())
}

/// Writes a distribution over options, by name.
pub(crate) fn by_option(options: &[ChoiceOption], given: &[f64]) -> String {
    options.iter().zip(given).fold(ObjectWriter::new(), |object, (option, p)| object.number(&option.name, *p)).end()
}

/// Writes a distribution over levels, by number.
pub(crate) fn by_level(given: &[f64]) -> String {
    given.iter().enumerate().fold(ObjectWriter::new(), |object, (level, p)| object.number(&level.to_string(), *p)).end()
}

fn decimals(number: f64, decimals: i32) -> f64 {
    let scale = 10_f64.powi(decimals);
    (number * scale).round() / scale
}

/// The location of an error in a request.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum ErrorLocation {
    /// The body as a whole.
    Body,
    /// A path in the body, such as `questions.tone.criteria`.
    Member(String),
    /// A header.
    Header(&'static str),
}

/// The content of an error response, from which each wire writes its body.
#[derive(Debug, Clone)]
pub struct ErrorResponse<'a> {
    /// The HTTP status.
    pub status: u16,
    /// The public message.
    pub message: &'a str,
    /// The location of the error, if it lies in the request.
    pub location: Option<&'a ErrorLocation>,
    /// Machine-readable details.
    pub metadata: &'a Map<String, Value>,
    /// The USD amounts of the metadata, written without a float.
    pub amounts: &'a [(&'static str, Usd)],
    /// The owner of the caller's workspace, if set.
    pub user_id: Option<&'a str>,
    /// The name and value of the service metadata member, if the client asked for it.
    pub service_metadata: Option<(&'static str, &'a Value)>,
    /// The delay before a retry.
    pub retry_after: Option<Duration>,
}

impl ErrorResponse<'_> {
    /// Returns the message without its leading path, for formats with a separate path member.
    pub(crate) fn fault(&self) -> &str {
        match self.location {
            Some(ErrorLocation::Member(path)) => self
                .message
                .strip_prefix(path.as_str())
                .and_then(|rest| rest.strip_prefix(": "))
                .unwrap_or(self.message),
            _ => self.message,
        }
    }

    /// Returns the path of the error in the body, if it has one.
    pub(crate) fn member(&self) -> Option<&str> {
        match self.location {
            Some(ErrorLocation::Member(path)) => Some(path),
            _ => None,
        }
    }

    /// Returns the metadata members by name, as JSON.
    pub(crate) fn metadata_members(&self) -> BTreeMap<&str, String> {
        let members = self.metadata.iter().map(|(name, value)| (name.as_str(), value.to_string()));
        members.chain(self.amounts.iter().map(|(name, amount)| (*name, amount.to_string()))).collect()
    }

    /// Returns the metadata as JSON.
    pub fn metadata_json(&self) -> String {
        let members = self.metadata_members();
        members.iter().fold(ObjectWriter::new(), |object, (name, json)| object.json(name, json)).end()
    }
}
