//! The evidence of an answer: the figures that statistics need, without any text of the request.

use crate::json::Json;
use crate::model::ModelId;
use crate::statistics::Probability;

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
    pub provider: String,
    /// The name of the wire.
    pub wire: String,
    /// The source of the distribution.
    pub method: AnswerMethod,
    /// The decision, see [`crate::statistics::Decision::to_label`].
    pub decision: Json,
    /// The score; `None` without a distribution.
    pub score: Option<Probability>,
    /// An object of the largest probabilities, at most [`Self::MAX_PROBABILITIES`], largest first; of a yes-or-no question
    /// that of `true`.
    pub probabilities: Option<Json>,
}

impl AnswerEvidence {
    /// The most probabilities.
    pub const MAX_PROBABILITIES: usize = 8;

    /// Estimates the bytes that the evidence takes in a store.
    pub fn stored_bytes(&self) -> u64 {
        const ROW: usize = 256;
        let texts = [self.question.as_str(), self.model.as_str(), &self.provider, self.decision.text()];
        let probabilities = self.probabilities.as_ref().map_or(0, |json| json.text().len());
        u64::try_from(ROW + texts.map(str::len).iter().sum::<usize>() + probabilities).unwrap_or(u64::MAX)
    }
}
