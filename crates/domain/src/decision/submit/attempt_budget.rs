//! Checks that a hold covers each attempt of a call.

use std::sync::{Mutex, MutexGuard, PoisonError};

use super::bounds::{charge, round_up};
use super::hold::{HoldPlanner, WaitBudget, unknown_room};
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
    Increasing(IncreasingHold<'a>),
}

pub(super) struct IncreasingHold<'a> {
    hold_planner: &'a HoldPlanner,
    request: &'a Request,
    /// The bound of the first attempt of each sub-request that has not begun.
    planned: Mutex<Vec<AttemptRecord>>,
    /// Admits one increase at a time.
    gate: futures_util::lock::Mutex<()>,
}

/// The next attempt of a sub-request.
pub(super) struct NextAttempt<'a> {
    pub(super) candidate: &'a Candidate,
    pub(super) input: &'a ProviderInput,
    /// The number of its sub-request.
    pub(super) number: u32,
    /// True for the first candidate of the sub-request.
    pub(super) is_first: bool,
    /// True for an attempt that the request does not need, such as a hedge: it does not wait for a hold.
    pub(super) is_optional: bool,
}

impl<'a> AttemptBudget<'a> {
    /// Begins with a hold of `planned`, the first attempt of each sub-request.
    pub(super) fn of_hold(hold_planner: &'a HoldPlanner, request: &'a Request, planned: Vec<AttemptRecord>) -> Self {
        let (planned, gate) = (Mutex::new(planned), futures_util::lock::Mutex::default());
        Self::Increasing(IncreasingHold { hold_planner, request, planned, gate })
    }

    /// Increases the hold to cover an attempt, the earlier attempts, which cost `so_far` at most, and the planned ones.
    /// Waits if other holds cause a rejection. Returns the bound in tokens, and true if time may have passed. The caller
    /// must begin the attempt before the next await.
    pub(super) async fn cover(
        &self,
        next: &NextAttempt<'_>,
        waits: &mut Option<WaitBudget>,
        so_far: impl Fn() -> Option<Charge> + Send + Sync,
    ) -> Result<(u64, bool), HoldRejection> {
        match self {
            // Without increases, the log needs no bounds.
            Self::Ceiling => Ok((0, false)),
            Self::Increasing(own) => match own.held_tokens(next, so_far()) {
                Some(tokens) => Ok((tokens, false)),
                None => Ok((own.increase(next, waits, so_far).await?, true)),
            },
        }
    }

    /// Returns the highest cost of an attempt; `None` if the hold covers every attempt.
    pub(super) fn cost(&self, next: &NextAttempt<'_>) -> Option<Usd> {
        match self {
            Self::Ceiling => None,
            Self::Increasing(own) => Some(round_up(charge(&own.bound(next)))),
        }
    }

    /// Records that a later stage begins with these sub-requests. Returns false if it cannot begin.
    pub(super) async fn begin_stage(&self, sub_requests: impl IntoIterator<Item = u32>) -> bool {
        let Self::Increasing(own) = self else { return true };
        let attempts: Vec<AttemptRecord> = {
            let planned = own.planned();
            let planned_for = |part| planned.iter().find(|planned| planned.part == part).cloned();
            sub_requests.into_iter().filter_map(planned_for).collect()
        };
        match own.hold_planner.begin_stage(own.request, &attempts).await {
            Ok(()) => true,
            Err(error) => {
                store_rejection(own.request, &error);
                false
            }
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
    /// Returns the bound of a planned attempt that the hold covers. Computing it again would serialize the whole body
    /// again.
    fn held_tokens(&self, next: &NextAttempt<'_>, so_far: Option<Charge>) -> Option<u64> {
        let planned = self.planned();
        let bound = planned.iter().find(|planned| next.is_first && planned.part == next.number)?;
        (self.request.lock_hold().amount >= cost_with(so_far, &*planned)).then(|| tokens(bound))
    }

    async fn increase(
        &self,
        next: &NextAttempt<'_>,
        waits: &mut Option<WaitBudget>,
        so_far: impl Fn() -> Option<Charge> + Send + Sync,
    ) -> Result<u64, HoldRejection> {
        let bound = self.bound(next);
        loop {
            let held = self.request.lock_hold().amount;
            if held >= self.needed(so_far(), &bound) {
                return Ok(tokens(&bound));
            }
            let gate = self.gate.lock().await;
            // Another sub-request may have increased the hold meanwhile.
            let needed = self.needed(so_far(), &bound);
            let attempt = (std::slice::from_ref(&bound), 1);
            let increased = self.hold_planner.increase_to(self.request, needed, attempt).await;
            drop(gate);
            let exceeded = match increased {
                Ok(Ok(())) => continue,
                Ok(Err(exceeded)) => exceeded,
                Err(error) => return Err(store_rejection(self.request, &error)),
            };
            if next.is_optional {
                return Err(HoldRejection::LimitExceeded);
            }
            let waits = waits.get_or_insert_with(|| self.hold_planner.wait_budget(self.request));
            if !exceeded.waits_for_others() || !waits.wait(&self.hold_planner.time, &self.request.client).await {
                if exceeded.waits_for_others() && exceeded.is_uncertain {
                    return Err(store_rejection(self.request, &unknown_room()));
                }
                self.hold_planner.report_rejection(self.request);
                return Err(HoldRejection::LimitExceeded);
            }
        }
    }

    fn bound(&self, next: &NextAttempt<'_>) -> AttemptRecord {
        let HoldPlanner { bounds, time, .. } = self.hold_planner;
        bounds.attempt(next.candidate, next.number, next.input, time.monotonic())
    }

    /// Returns the hold that an attempt needs.
    fn needed(&self, so_far: Option<Charge>, bound: &AttemptRecord) -> Usd {
        let planned = self.planned();
        cost_with(so_far, planned.iter().filter(|planned| planned.part != bound.part).chain([bound]))
    }

    fn planned(&self) -> MutexGuard<'_, Vec<AttemptRecord>> {
        self.planned.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// Returns the cost of earlier attempts, `so_far`, and of further ones.
fn cost_with<'a>(so_far: Option<Charge>, further: impl IntoIterator<Item = &'a AttemptRecord>) -> Usd {
    round_up(further.into_iter().try_fold(so_far, |sum, record| Some(sum?.checked_add(charge(record)?))).flatten())
}

fn store_rejection(request: &Request, error: &(dyn std::error::Error + 'static)) -> HoldRejection {
    tracing::warn!(decision.id = %request.id, error, "hold not changed; attempt not made");
    HoldRejection::Store
}

fn tokens(bound: &AttemptRecord) -> u64 {
    bound.input_tokens.saturating_add(bound.output_tokens)
}
