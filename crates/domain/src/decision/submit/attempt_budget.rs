//! Checks that a hold covers each attempt of a call.

use std::sync::{Mutex, MutexGuard, PoisonError};

use super::bounds::{charge, round_up};
use super::hold::{HoldPlanner, WaitBudget, unknown_room};
use super::plan::SubRequest;
use super::request::{HoldRejection, Request};
use crate::money::{Charge, Usd};
use crate::question::ProviderInput;
use crate::routing::Candidate;
use crate::usage::AttemptRecord;

/// The hold that covers the attempts of a call.
pub(super) enum AttemptBudget<'a> {
    /// Each participant holds the bounds of all attempts that the plan allows.
    Ceiling,
    /// The request holds the bounds of running and planned attempts, and increases the hold for each further one.
    Increasing(Box<IncreasingHold<'a>>),
}

pub(super) struct IncreasingHold<'a> {
    hold_planner: &'a HoldPlanner,
    request: &'a Request,
    /// The bound of the first attempt of each sub-request that has not begun.
    planned: Mutex<Vec<AttemptRecord>>,
    /// The endpoints of the first attempts, in the order of the sub-requests.
    first_endpoints: Vec<usize>,
    /// Admits one increase at a time.
    gate: futures_util::lock::Mutex<()>,
}

/// The next attempt of a sub-request.
pub(super) struct NextAttempt<'a> {
    pub(super) candidate: &'a Candidate,
    pub(super) input: &'a ProviderInput,
    /// The number of its sub-request.
    pub(super) number: u32,
    /// True for an attempt that the request does not need, such as a hedge: it does not wait for a hold.
    pub(super) is_optional: bool,
}

impl<'a> AttemptBudget<'a> {
    /// Begins with a hold of `planned`, the first attempt of each sub-request.
    pub(super) fn of_hold(
        (hold_planner, request): (&'a HoldPlanner, &'a Request),
        planned: Vec<AttemptRecord>,
        sub_requests: &[SubRequest],
    ) -> Self {
        let first = |part: &SubRequest| part.candidates.first().map_or(usize::MAX, |first| first.endpoint.index);
        Self::Increasing(Box::new(IncreasingHold {
            hold_planner,
            request,
            planned: Mutex::new(planned),
            first_endpoints: sub_requests.iter().map(first).collect(),
            gate: futures_util::lock::Mutex::default(),
        }))
    }

    /// Increases the hold to cover an attempt, the earlier attempts, which cost `so_far` at most, and the planned ones.
    /// Waits if other holds cause a rejection. Returns the bound in tokens. The caller must begin the attempt before
    /// the next await.
    pub(super) async fn cover(
        &self,
        next: &NextAttempt<'_>,
        waits: &mut Option<WaitBudget>,
        so_far: impl Fn() -> Option<Charge> + Send + Sync,
    ) -> Result<u64, HoldRejection> {
        match self {
            // Without increases, the log needs no bounds.
            Self::Ceiling => Ok(0),
            Self::Increasing(own) => own.cover(next, waits, so_far).await,
        }
    }

    /// Returns the highest cost of an attempt; `None` if the hold covers every attempt.
    pub(super) fn cost(&self, candidate: &Candidate, number: u32, input: &ProviderInput) -> Option<Usd> {
        match self {
            Self::Ceiling => None,
            Self::Increasing(own) => Some(round_up(charge(&own.hold_planner.bounds.attempt(candidate, number, input)))),
        }
    }

    /// Removes the planned attempt of a sub-request, because its attempt begins or the sub-request ended.
    pub(super) fn begun(&self, number: u32) {
        if let Self::Increasing(own) = self {
            own.planned().retain(|planned| planned.part != number);
        }
    }
}

impl IncreasingHold<'_> {
    async fn cover(
        &self,
        next: &NextAttempt<'_>,
        waits: &mut Option<WaitBudget>,
        so_far: impl Fn() -> Option<Charge> + Send + Sync,
    ) -> Result<u64, HoldRejection> {
        let known = self.known_bound(next.number, next.candidate);
        let bound = known.unwrap_or_else(|| self.hold_planner.bounds.attempt(next.candidate, next.number, next.input));
        let tokens = bound.input_tokens.saturating_add(bound.output_tokens);
        loop {
            let held = self.request.lock_hold().amount;
            if held >= self.needed(so_far(), &bound) {
                return Ok(tokens);
            }
            let gate = self.gate.lock().await;
            // Another sub-request may have increased the hold meanwhile.
            let needed = self.needed(so_far(), &bound);
            let increased = self.hold_planner.increase_to(self.request, needed, std::slice::from_ref(&bound)).await;
            drop(gate);
            let exceeded = match increased {
                Ok(Ok(())) => continue,
                Ok(Err(exceeded)) => exceeded,
                Err(error) => {
                    let error: &dyn std::error::Error = &error;
                    tracing::warn!(error, "hold increase failed; attempt not made");
                    return Err(HoldRejection::Store);
                }
            };
            if next.is_optional {
                return Err(HoldRejection::LimitExceeded);
            }
            let waits = waits.get_or_insert_with(|| self.hold_planner.wait_budget(self.request));
            if !exceeded.waits_for_others() || !waits.wait(&self.hold_planner.time, &self.request.client).await {
                if exceeded.waits_for_others() && exceeded.is_uncertain {
                    let error = unknown_room();
                    let error: &dyn std::error::Error = &error;
                    tracing::warn!(error, "hold increase failed; attempt not made");
                    return Err(HoldRejection::Store);
                }
                self.hold_planner.report_rejection(self.request);
                return Err(HoldRejection::LimitExceeded);
            }
        }
    }

    /// Returns the known bound of a planned attempt. Computing it again would serialize the whole body again.
    fn known_bound(&self, number: u32, candidate: &Candidate) -> Option<AttemptRecord> {
        let first = self.first_endpoints.get(usize::try_from(number).ok()?)?;
        let planned = self.planned();
        let known = planned.iter().find(|planned| planned.part == number)?;
        let is_same =
            *first == candidate.endpoint.index && known.model == candidate.model && known.prices == candidate.prices;
        is_same.then(|| known.clone())
    }

    /// Returns the hold that an attempt needs.
    fn needed(&self, so_far: Option<Charge>, bound: &AttemptRecord) -> Usd {
        let planned = self.planned();
        let others = planned.iter().filter(|planned| planned.part != bound.part);
        let sum = others.chain([bound]).try_fold(so_far, |sum, record| Some(sum?.checked_add(charge(record)?)));
        round_up(sum.flatten())
    }

    fn planned(&self) -> MutexGuard<'_, Vec<AttemptRecord>> {
        self.planned.lock().unwrap_or_else(PoisonError::into_inner)
    }
}
