//! Runs the stages of a cascade: each is asked the questions whose answers no stage before it accepted.

use std::collections::{HashMap, VecDeque};

use super::call::{CallContext, CallRunner};
use super::outcome::SubRequestOutcome;
use super::plan::SubRequest;
use super::route::PlannedStage;
use super::staged::{CallStages, StagedAnswer, StagedAnswers};
use crate::question::Question;
use crate::routing::AttemptFailureKind;
use crate::statistics::Decision;

impl CallRunner {
    /// Runs the stages until every answer is accepted, the stages end or a failure ends the request. A stage that fails
    /// or answers without a decision leaves the answers of the stages before it.
    pub(super) async fn run_stages(
        &self,
        CallStages { cascade, planned: stages, input }: CallStages,
        mut waiting: VecDeque<SubRequest>,
        mut planned: usize,
        context: &CallContext<'_>,
    ) -> (Vec<SubRequestOutcome>, StagedAnswers) {
        let questions = input.questions.typed.as_deref().unwrap_or_default();
        let places: HashMap<&str, usize> = questions.iter().map(|question| question.name.as_str()).zip(0..).collect();
        let mut answered: StagedAnswers = questions.iter().map(|_| None).collect();
        let mut outcomes = Vec::new();
        for (begun, PlannedStage { index, sub_requests }) in stages.into_iter().enumerate() {
            let Some(stage) = cascade.stages.get(index) else { continue };
            let mut own: VecDeque<SubRequest> = waiting.drain(..sub_requests.min(waiting.len())).collect();
            let is_open = |question: &Question| {
                let place = places.get(question.name.as_str());
                !place.is_some_and(|place| answered[*place].as_ref().is_some_and(|answer| answer.is_accepted))
            };
            // The money of a sub-request that is not asked stays held: a call that used it without a journal entry would
            // not be charged after a crash.
            own.retain_mut(|part| part.keep_open(is_open));
            if own.is_empty() {
                continue;
            }
            // The first stage has begun with the hold.
            let is_late = || self.time.time_left(context.log.began, self.settings.deadline).is_zero();
            if begun > 0 && (is_late() || !context.budget.begin_stage(own.iter().map(|part| part.number)).await) {
                break;
            }
            for (_, outcome) in self.run_sub_requests(own, &mut planned, true, context).await {
                if let SubRequestOutcome::Answered { answers, candidate } = &outcome {
                    for answer in answers.typed().unwrap_or_default() {
                        let Some(&place) = places.get(answer.name.as_str()) else { continue };
                        let is_decision = Decision::from_answer(&answer.value).is_some();
                        if answered[place].as_ref().is_some_and(|before| before.is_kept_beside(is_decision)) {
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
            let ends =
                |outcome: &SubRequestOutcome| outcome.last_failure().is_some_and(AttemptFailureKind::ends_request);
            if outcomes.iter().any(ends) {
                break;
            }
        }
        (outcomes, answered)
    }
}
