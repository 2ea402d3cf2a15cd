//! The stages of a call, and the answers that they gave.

use std::sync::Arc;

use super::route::PlannedStage;
use crate::preset::{Cascade, Otherwise};
use crate::question::{Answer, ProviderInput, Question};
use crate::routing::Candidate;
use crate::statistics::{Decision, Probability};
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

impl StagedAnswer {
    /// Returns true if this answer stays when a later stage answers: it is accepted, or only this one is a decision.
    pub(super) fn is_kept_beside(&self, later_is_decision: bool) -> bool {
        self.is_accepted || (!later_is_decision && Decision::from_answer(&self.answer.value).is_some())
    }
}

/// The answers of a cascade, in the order of the questions; `None` for a question that no stage answered.
pub(super) type StagedAnswers = Vec<Option<StagedAnswer>>;

/// Returns the outcome of each answered question, by the names of the given questions.
pub(super) fn question_outcomes(
    answered: &StagedAnswers,
    named: &[Question],
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
    QuestionOutcomes::new(named.iter().zip(answered).filter_map(outcome).collect())
}
