//! Runs the stages of a cascade: each is asked the questions whose answers no stage before it accepted.

use std::collections::VecDeque;
use std::sync::Arc;

use super::call::{CallContext, CallRunner};
use super::outcome::SubRequestOutcome;
use super::plan::SubRequest;
use super::route::PlannedStage;
use crate::preset::{Cascade, Otherwise};
use crate::question::{Answer, ProviderInput, Question};
use crate::routing::{AttemptFailureKind, Candidate};
use crate::statistics::Probability;
use crate::usage::{QuestionOutcome, QuestionVerdict};

/// The stages of a call.
pub(super) struct CallStages {
    pub(super) cascade: Arc<Cascade>,
    pub(super) planned: Vec<PlannedStage>,
    /// What the request asks.
    pub(super) input: Arc<ProviderInput>,
}

/// The last answer to a question, or the one that a stage accepted.
#[derive(Debug)]
pub(super) struct StagedAnswer {
    pub(super) answer: Answer,
    pub(super) candidate: Candidate,
    /// The index of the stage.
    stage: usize,
    is_accepted: bool,
    threshold: Option<Probability>,
}

/// The answers of a cascade, in the order of the questions; `None` for a question that no stage answered.
pub(super) type StagedAnswers = Vec<Option<StagedAnswer>>;

impl CallRunner {
    /// Runs the stages until every answer is accepted, the stages end or the client disconnects. A stage that fails
    /// leaves the answers of the stages before it.
    pub(super) async fn run_stages(
        &self,
        CallStages { cascade, planned: stages, input }: CallStages,
        mut waiting: VecDeque<(u32, SubRequest)>,
        mut planned: usize,
        context: &CallContext<'_>,
    ) -> (Vec<SubRequestOutcome>, StagedAnswers) {
        let questions = input.questions.typed.as_deref().unwrap_or_default();
        let position = |name: &str| questions.iter().position(|question| question.name == name);
        let mut answered: StagedAnswers = questions.iter().map(|_| None).collect();
        let mut outcomes = Vec::new();
        for PlannedStage { index, sub_requests } in stages {
            let Some(stage) = cascade.stages.get(index) else { continue };
            let mut own: VecDeque<(u32, SubRequest)> = waiting.drain(..sub_requests.min(waiting.len())).collect();
            let is_open = |question: &Question| {
                let place = position(&question.name);
                !place.is_some_and(|place| answered[place].as_ref().is_some_and(|answer| answer.is_accepted))
            };
            own.retain_mut(|(number, part)| {
                let is_asked = part.keep_open(is_open);
                if !is_asked {
                    context.budget.begun(*number);
                }
                is_asked
            });
            if own.is_empty() {
                continue;
            }
            for (_, outcome) in self.run_sub_requests(own, &mut planned, true, context).await {
                if let SubRequestOutcome::Answered { answers, candidate } = &outcome {
                    for answer in answers.typed().unwrap_or_default() {
                        let Some(place) = position(&answer.name) else { continue };
                        if answered[place].as_ref().is_some_and(|before| before.is_accepted) {
                            continue;
                        }
                        let (is_accepted, threshold) = stage.judge(place, &answer.value);
                        let (answer, candidate) = (answer.clone(), candidate.clone());
                        answered[place] =
                            Some(StagedAnswer { answer, candidate, stage: index, is_accepted, threshold });
                    }
                }
                outcomes.push(outcome);
            }
            let is_left =
                |outcome: &SubRequestOutcome| outcome.last_failure() == Some(AttemptFailureKind::ClientDisconnected);
            if outcomes.iter().any(is_left) {
                break;
            }
        }
        (outcomes, answered)
    }
}

/// Returns the outcome of each answered question, by the names of the client's questions.
pub(super) fn question_outcomes(
    answered: &StagedAnswers,
    original: &[Question],
    otherwise: Otherwise,
) -> Vec<QuestionOutcome> {
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
    original.iter().zip(answered).filter_map(outcome).collect()
}
