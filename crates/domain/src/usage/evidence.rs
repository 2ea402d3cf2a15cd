//! The evidence of an answer: the figures that statistics need, without any text of the request.

use std::borrow::Cow;
use std::sync::Arc;

use crate::json::{Json, JsonKind, ObjectWriter};
use crate::model::ModelId;
use crate::statistics::{Probability, complement};

named_enum! {
    /// The source of a distribution.
    #[derive(Debug, Clone, Copy, PartialEq, Eq)]
    pub enum AnswerMethod {
        /// A decision model.
        Native = "native",
        /// The probabilities of the labels that a chat model may write.
        LabelProbabilities = "label_probabilities",
        /// Probabilities that a chat model states.
        Stated = "stated",
    }
}

/// The evidence of one answer of a preset.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct AnswerEvidence {
    /// The index of the question in the version of the preset.
    pub position: u32,
    /// The name of the question.
    pub question: String,
    /// The model that answered.
    pub model: ModelId,
    /// The slug of its provider.
    pub provider: Arc<str>,
    /// The name of the wire.
    pub wire: Cow<'static, str>,
    /// The source of the distribution.
    pub method: AnswerMethod,
    /// The decision, see [`crate::statistics::Decision::to_label`].
    pub decision: Json,
    /// An object of the largest probabilities, at most [`Self::MAX_PROBABILITIES`], largest first; of a yes-or-no question
    /// that of `true`.
    pub probabilities: Option<Json>,
}

impl AnswerEvidence {
    /// The most probabilities.
    pub const MAX_PROBABILITIES: usize = 8;

    /// Returns the score of the answer: its largest probability. `None` without a distribution.
    pub fn score(&self) -> Option<Probability> {
        let (_, largest) = self.probabilities.as_ref()?.iter_members()?.next()??;
        let largest = largest.as_f64()?;
        let is_yes_or_no = self.decision.kind() == JsonKind::Bool;
        Probability::new(if is_yes_or_no { largest.max(complement(largest)) } else { largest }).ok()
    }

    /// Estimates the bytes that the evidence takes in a store.
    pub fn stored_bytes(&self) -> u64 {
        const ROW: usize = 256;
        let texts = [self.question.as_str(), self.model.as_str(), &self.provider, self.decision.text()];
        let probabilities = self.probabilities.as_ref().map_or(0, |json| json.text().len());
        u64::try_from(ROW + texts.map(str::len).iter().sum::<usize>() + probabilities).unwrap_or(u64::MAX)
    }
}

named_enum! {
    /// The verdict of the stages of a preset on a question.
    #[derive(Debug, Clone, Copy, PartialEq, Eq)]
    pub enum QuestionVerdict {
        /// A stage accepted its answer.
        Accepted = "accepted",
        /// No stage accepted an answer; the last one is the answer.
        Escalated = "escalated",
        /// No stage accepted an answer, and the preset wants none then.
        Abstained = "abstained",
    }
}

/// The outcome of a question of a preset with stages.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct QuestionOutcome {
    /// The name of the question.
    pub question: String,
    /// The verdict.
    pub verdict: QuestionVerdict,
    /// The number of the stage whose answer it is, from 1.
    pub stage: usize,
    /// The model that gave the answer.
    pub model: ModelId,
    /// The threshold that the answer was compared with; `None` if the stage has none for it.
    pub threshold: Option<Probability>,
}

/// The outcomes of the questions of a preset with stages, in their order, and their JSON, which is written once for the
/// record and the response.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct QuestionOutcomes {
    all: Vec<QuestionOutcome>,
    json: Option<Json>,
}

impl QuestionOutcomes {
    /// Creates the outcomes.
    pub fn new(all: Vec<QuestionOutcome>) -> Self {
        // Names of models and questions are short; longer ones make the text grow.
        const OUTCOME: usize = 128;
        let write = |object: ObjectWriter, one: &QuestionOutcome| {
            object.object(&one.question, |outcome| {
                outcome
                    .text("outcome", one.verdict.as_str())
                    .shown("stage", one.stage)
                    .text("model", one.model.as_str())
                    .shown_or_null("threshold", one.threshold.map(Probability::get))
            })
        };
        let empty = || ObjectWriter::with_capacity(all.len() * OUTCOME);
        let json = (!all.is_empty()).then(|| all.iter().fold(empty(), write).finish());
        Self { all, json }
    }

    /// Returns the outcomes.
    pub fn all(&self) -> &[QuestionOutcome] {
        &self.all
    }

    /// Returns an object by question; `None` without outcomes.
    pub fn json(&self) -> Option<&Json> {
        self.json.as_ref()
    }
}
