//! The money of a plan, decided once: the bounds of its attempts, a cheaper plan if they exceed a limit, and the hold.

use std::time::Duration;

use super::affordable::AffordablePlans;
use super::attempt_budget::AttemptBudget;
use super::bounds::total;
use super::hold::{HoldPlanner, unknown_room};
use super::plan::SubRequest;
use super::request::Request;
use super::route::RoutePlan;
use crate::budget::LimitExceeded;
use crate::decision::{SingleFlightMode, SubmitDecisionError};
use crate::money::Usd;
use crate::usage::AttemptRecord;

/// The attempts of a plan that the hold covers.
pub(super) enum Coverage<'a> {
    /// The bounds of all attempts that the plan allows: the request may share a call.
    AllAttempts { amount: Usd, mode: SingleFlightMode },
    /// The bounds of the first attempts. Each further attempt increases the hold.
    FirstAttempts(AttemptBudget<'a>),
}

impl HoldPlanner {
    /// Holds the money of a plan, whose candidates it may reorder. A request that may share a call holds the ceiling of
    /// the call if it can. Any other holds the bounds of its first attempts.
    ///
    /// # Errors
    /// The hold was rejected. The request was not sent.
    pub(super) async fn hold_plan<'a>(
        &'a self,
        request: &'a Request,
        plan: &mut RoutePlan,
        now: Duration,
    ) -> Result<Coverage<'a>, SubmitDecisionError> {
        // Requests of a cascade do not share calls: what the next stage is asked depends on the answers.
        let is_alone = request.body.cascade.is_some();
        let mode = if is_alone { SingleFlightMode::Off } else { self.settings.options(&plan.model).single_flight };
        if mode != SingleFlightMode::Off {
            let attempts = self.bounds.all_attempts(&plan.sub_requests, now);
            let amount = total(&attempts);
            if self.increase_to(request, amount, (&attempts, attempts.len())).await?.is_ok() {
                return Ok(Coverage::AllAttempts { amount, mode });
            }
        }
        let of_first_stage = plan.stages.first().map_or(plan.sub_requests.len(), |stage| stage.sub_requests);
        let planned = self.hold_first_attempts(request, (&mut plan.sub_requests, of_first_stage), now).await?;
        Ok(Coverage::FirstAttempts(AttemptBudget::of_hold(self, request, planned)))
    }

    /// Returns the cost of each plan, from the preferred one to the cheapest.
    pub(in crate::decision) fn costs(&self, sub_requests: &[SubRequest], now: Duration) -> Vec<Usd> {
        let preferred = self.bounds.first_attempts(sub_requests, now);
        AffordablePlans::new(sub_requests, &preferred, (&self.bounds, now)).totals()
    }

    /// Holds the bounds of the first attempts, of which those of the first stage begin now. If they exceed a limit, holds
    /// those of a cheaper plan and moves its candidates to the front of `sub_requests`. Waits if other holds cause the
    /// rejection. Returns the held attempts.
    async fn hold_first_attempts(
        &self,
        request: &Request,
        (sub_requests, of_first_stage): (&mut [SubRequest], usize),
        now: Duration,
    ) -> Result<Vec<AttemptRecord>, SubmitDecisionError> {
        let preferred = self.bounds.first_attempts(sub_requests, now);
        let hold = async |attempts: &[AttemptRecord]| {
            let begun = attempts.partition_point(|attempt| (attempt.part as usize) < of_first_stage);
            self.increase_to(request, total(attempts), (attempts, begun)).await
        };
        let Err(mut rejected) = hold(&preferred).await? else { return Ok(preferred) };
        let mut plans = AffordablePlans::new(sub_requests, &preferred, (&self.bounds, now));
        let mut waits = self.wait_budget(request);
        loop {
            let mut last = rejected;
            // Each further plan costs no more than the room that the last rejection reported.
            while plans.fit_into(last.room()) {
                let cheaper = plans.attempts();
                let Err(exceeded) = hold(&cheaper).await? else {
                    plans.apply_to(sub_requests);
                    return Ok(cheaper);
                };
                last = exceeded;
            }
            let cheapest = LimitExceeded { wanted: plans.least(), ..last };
            if !cheapest.waits_for_others() || !waits.wait(&self.time, &request.client).await {
                if cheapest.waits_for_others() && cheapest.is_uncertain {
                    return Err(unknown_room().into());
                }
                self.count_rejection(request);
                return Err(SubmitDecisionError::LimitExceeded(rejected));
            }
            plans.reset();
            match hold(&preferred).await? {
                Ok(()) => return Ok(preferred),
                Err(exceeded) => rejected = exceeded,
            }
        }
    }
}
