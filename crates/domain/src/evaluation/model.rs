//! Answers with their labels, and the groups that they form.

use std::collections::BTreeMap;

use super::{MissingDecision, TalliedAnswer};
use crate::evidence::LabelSource;
use crate::money::Usd;
use crate::question::AnswerValue;
use crate::statistics::{Decision, EscalatedQuestions, LabelledAnswer, Probability};

/// The origin of an answer.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub struct AnswerOrigin {
    /// The resolved model.
    pub model: String,
    /// The provider.
    pub provider: String,
    /// The wire of the provider.
    pub wire: String,
    /// The method: `native`, or that of a chat model.
    pub method: String,
}

/// The answers whose figures belong together.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub struct Group {
    /// The version of the preset.
    pub preset_version: u32,
    /// The question.
    pub question: String,
    /// The origin.
    pub origin: AnswerOrigin,
}

/// The bytes of the parts of a request. Tokens are assumed to be proportional to them.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct RequestSize {
    /// The bytes of the state.
    pub state: u64,
    /// The bytes of this question.
    pub question: u64,
}

/// Returns the decision of an answer.
///
/// # Errors
/// The answer has none.
pub fn decide(answer: &AnswerValue) -> Result<Decision, MissingDecision> {
    Decision::from_answer(answer).ok_or(match answer {
        AnswerValue::Refusal => MissingDecision::Refusal,
        _ => MissingDecision::Unanswered,
    })
}

/// An answer to one question about one item.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct EvaluatedAnswer {
    /// The item. Answers to the same item are compared.
    pub item: String,
    /// The group.
    pub group: Group,
    /// The decision, see [`decide`].
    pub decision: Result<Decision, MissingDecision>,
    /// The score.
    pub score: Option<Probability>,
    /// The label with its source.
    pub label: Option<(Decision, LabelSource)>,
    /// True if the score is used for the candidates of thresholds, and the label for nothing.
    pub is_for_candidates: bool,
    /// The cost of its request.
    pub cost: Usd,
    /// The latency of its request, in milliseconds.
    pub latency_ms: u64,
    /// The questions that its provider receives of an escalated request.
    pub escalated_questions: EscalatedQuestions,
    /// The size of its request, if it is known.
    pub size: Option<RequestSize>,
}

impl EvaluatedAnswer {
    /// Returns the answer as far as the figures of its group need it.
    pub(super) fn tallied(&self, tolerance: usize) -> TalliedAnswer {
        TalliedAnswer {
            score: self.score,
            label: self.label.map(|(label, source)| (self.is_error(label, tolerance), source)),
            missing: self.decision.err(),
            cost: Some(self.cost),
            latency_ms: Some(self.latency_ms),
        }
    }

    fn is_error(&self, label: Decision, tolerance: usize) -> bool {
        self.decision.map_or(true, |decision| decision.is_error(label, tolerance))
    }

    /// Returns the answer with its label; `None` without a label, or if the label is used for nothing.
    pub(super) fn labelled(&self, tolerance: usize) -> Option<LabelledAnswer> {
        let (label, _) = self.label.filter(|_| !self.is_for_candidates)?;
        Some(LabelledAnswer { score: self.score, is_error: self.is_error(label, tolerance) })
    }
}

/// The answers of a group by their items.
pub(super) type Items<'a> = BTreeMap<&'a str, &'a EvaluatedAnswer>;

/// Answers by their group.
pub(super) type Groups<'a> = BTreeMap<&'a Group, Items<'a>>;
