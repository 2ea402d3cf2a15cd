//! The stages of a call, and the answers that they gave.

use std::sync::Arc;

use super::route::PlannedStage;
use crate::preset::{Cascade, Otherwise};
use crate::question::{Answer, ProviderInput, Question};
use crate::routing::Candidate;
use crate::statistics::Probability;
use crate::usage::{QuestionOutcome, QuestionOutcomes, QuestionVerdict};

/// The stages of a call.
pub(super) struct CallStages {
    pub(super) cascade: Arc<Cascade>,
    pub(super) planned: Vec<PlannedStage>,
    /// The whole input of the request.
    pub(super) input: Arc<ProviderInput>,
}

/// The last answer to a question, or the one that a stage accepted.
#[derive(Debug)]
pub(super) struct StagedAnswer {
    pub(super) answer: Answer,
    pub(super) candidate: Candidate,
    /// The index of the stage.
    pub(super) stage: usize,
    pub(super) is_accepted: bool,
    pub(super) threshold: Option<Probability>,
}

/// The answers of a cascade, in the order of the questions; `None` for a question that no stage answered.
pub(super) type StagedAnswers = Vec<Option<StagedAnswer>>;

/// Returns the outcome of each answered question, by the names of the client's questions.
pub(super) fn question_outcomes(
    answered: &StagedAnswers,
    original: &[Question],
    otherwise: Otherwise,
) -> QuestionOutcomes {
    let outcome = |(question, staged): (&Question, &Option<StagedAnswer>)| {
        let StagedAnswer { candidate, stage, is_accepted, threshold, .. } = staged.as_ref()?;
        Some(QuestionOutcome {
            question: question.name.clone(),
            verdict: match (is_accepted, otherwise) {
                (true, _) => QuestionVerdict::Accepted,
                (false, Otherwise::Answer) => QuestionVerdict::Escalated,
                (false, Otherwise::Abstain) => QuestionVerdict::Abstained,
            },
            stage: stage + 1,
            model: candidate.model.clone(),
            threshold: *threshold,
        })
    };
    QuestionOutcomes::new(original.iter().zip(answered).filter_map(outcome).collect())
}
