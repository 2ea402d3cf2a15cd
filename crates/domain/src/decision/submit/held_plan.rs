//! The money of a plan, decided once: the bounds of its attempts, a cheaper plan if they exceed a limit, and the hold.

use std::sync::Arc;

use super::affordable::AffordablePlans;
use super::attempt_budget::AttemptBudget;
use super::bounds::{Bounds, total};
use super::hold::{HoldHandle, unknown_room};
use super::plan::SubRequest;
use super::route::RoutePlan;
use crate::budget::LimitExceeded;
use crate::decision::{ClientConnection, DecisionSettings, SingleFlightMode, SubmitDecisionError};
use crate::money::Usd;
use crate::usage::AttemptRecord;

/// Decides and places the hold of a plan.
pub(super) struct HoldPlanner {
    pub(super) bounds: Bounds,
    pub(super) settings: Arc<DecisionSettings>,
}

/// A plan whose money is held.
pub(super) struct HeldPlan {
    pub(super) plan: RoutePlan,
    pub(super) coverage: Coverage,
}

/// The attempts of a plan that the hold covers.
pub(super) enum Coverage {
    /// The bounds of all attempts that the plan allows: the request may share a call.
    AllAttempts { amount: Usd, mode: SingleFlightMode },
    /// The bounds of the first attempts. Each further attempt increases the hold.
    FirstAttempts(AttemptBudget),
}

impl HoldPlanner {
    /// Holds the money of a plan. A request that may share a call holds the ceiling of the call if it can. Any other
    /// holds the bounds of its first attempts.
    ///
    /// # Errors
    /// The hold was rejected. The request was not sent.
    pub(super) async fn hold(
        &self,
        hold: &Arc<HoldHandle>,
        mut plan: RoutePlan,
        client: &Arc<dyn ClientConnection>,
    ) -> Result<HeldPlan, SubmitDecisionError> {
        let mode = self.settings.options(&plan.model).single_flight;
        if mode != SingleFlightMode::Off {
            let attempts = self.bounds.all_attempts(&plan.sub_requests);
            let amount = total(&attempts);
            if hold.increase_to(amount, &attempts).await?.is_ok() {
                return Ok(HeldPlan { plan, coverage: Coverage::AllAttempts { amount, mode } });
            }
        }
        let planned = self.hold_first_attempts(hold, &mut plan.sub_requests, client).await?;
        let budget = AttemptBudget::of_hold(Arc::clone(hold), self.bounds.clone(), planned, &plan.sub_requests);
        Ok(HeldPlan { plan, coverage: Coverage::FirstAttempts(budget) })
    }

    /// Holds the bounds of the first attempts. If they exceed a limit, holds those of a cheaper plan and moves its
    /// candidates to the front of `sub_requests`. Waits if other holds cause the rejection. Returns the held attempts.
    async fn hold_first_attempts(
        &self,
        hold: &HoldHandle,
        sub_requests: &mut [SubRequest],
        client: &Arc<dyn ClientConnection>,
    ) -> Result<Vec<AttemptRecord>, SubmitDecisionError> {
        let preferred = self.bounds.first_attempts(sub_requests);
        let Err(mut rejected) = hold.increase_to(total(&preferred), &preferred).await? else { return Ok(preferred) };
        let bound = |candidate: &_, number, input: &_| self.bounds.attempt(candidate, number, input);
        let mut plans = AffordablePlans::new(sub_requests, &preferred, bound);
        let mut waits = hold.wait_budget();
        loop {
            let mut last = rejected;
            // Each further plan costs no more than the room that the last rejection reported.
            while plans.fit_into(last.room()) {
                let cheaper = plans.attempts();
                let Err(exceeded) = hold.increase_to(total(&cheaper), &cheaper).await? else {
                    plans.apply_to(sub_requests);
                    return Ok(cheaper);
                };
                last = exceeded;
            }
            let cheapest = LimitExceeded { wanted: plans.least(), ..last };
            if !cheapest.waits_for_others() || !waits.wait(hold.time(), client).await {
                if cheapest.waits_for_others() && cheapest.is_uncertain {
                    return Err(unknown_room().into());
                }
                hold.count_rejection();
                return Err(SubmitDecisionError::LimitExceeded(rejected));
            }
            plans.reset();
            match hold.increase_to(total(&preferred), &preferred).await? {
                Ok(()) => return Ok(preferred),
                Err(exceeded) => rejected = exceeded,
            }
        }
    }
}
