//! The call of a request: its own, or one that it shares with identical requests.

use std::sync::Arc;
use std::time::Duration;

use async_trait::async_trait;

use super::attempt_budget::AttemptBudget;
use super::bounds::{Bounds, total};
use super::call_key::CallKey;
use super::cost::CostShare;
use super::filter::FilteredRequest;
use super::hold::HoldHandle;
use super::outcome::CallOutcome;
use super::route::RoutePlan;
use super::run::{Call, CallRunner};
use super::shared_call::{Participants, SingleFlight};
use crate::decision::{ClientConnection, DecisionSettings, SingleFlightMode, SubmitDecisionError};

/// Makes calls.
pub(super) struct CallCoordinator {
    pub(super) runner: Arc<CallRunner>,
    pub(super) in_flight: SingleFlight<CallKey, CallOutcome>,
    pub(super) bounds: Bounds,
    pub(super) settings: Arc<DecisionSettings>,
}

/// An ended call, and the request's share of its cost.
pub(super) struct EndedCall {
    pub(super) outcome: Arc<CallOutcome>,
    pub(super) share: CostShare,
}

impl CallCoordinator {
    /// Acquires the hold of a call and makes it. For a shared call, the request holds the ceiling: the bounds of all
    /// attempts that the plan allows. A request that cannot hold the ceiling makes its own call.
    ///
    /// # Errors
    /// The hold was rejected. The request was not sent.
    pub(super) async fn call(
        &self,
        request: &FilteredRequest,
        hold: &Arc<HoldHandle>,
        mut plan: RoutePlan,
        client: Arc<dyn ClientConnection>,
        began: Duration,
    ) -> Result<EndedCall, SubmitDecisionError> {
        let mode = self.settings.options(&plan.model).single_flight;
        if mode != SingleFlightMode::Off {
            let attempts = self.bounds.all_attempts(&plan.sub_requests);
            let ceiling = total(&attempts);
            if hold.increase_to(ceiling, &attempts).await?.is_ok() {
                let workspace = hold.payer().workspace_id;
                let route = (&plan.model, plan.prices_differ);
                let key = CallKey::new(workspace, request.policy(), route, ceiling, &request.request);
                return Ok(self.share(key, mode, new_call(request, hold, plan, began), client).await);
            }
        }
        let planned = hold.acquire(&self.bounds, &mut plan.sub_requests, &client).await?;
        let bounds = self.bounds.clone();
        let budget = AttemptBudget::of_hold(Arc::clone(hold), bounds, planned, &plan.sub_requests);
        let outcome = Arc::clone(&self.runner).run(new_call(request, hold, plan, began), client, budget).await;
        Ok(EndedCall { outcome: Arc::new(outcome), share: CostShare::WHOLE })
    }

    async fn share(
        &self,
        key: CallKey,
        mode: SingleFlightMode,
        call: Call,
        client: Arc<dyn ClientConnection>,
    ) -> EndedCall {
        let runner = Arc::clone(&self.runner);
        let run = move |participants| runner.run(call, Arc::new(SharedClient(participants)), AttemptBudget::Ceiling);
        let result = self.in_flight.join(key, client.disconnected(), run).await;
        let share = match mode {
            SingleFlightMode::SplitCost => CostShare::new(result.index, result.participants),
            SingleFlightMode::ChargeEach | SingleFlightMode::Off => CostShare::WHOLE,
        };
        EndedCall { outcome: result.value, share }
    }
}

fn new_call(request: &FilteredRequest, hold: &HoldHandle, plan: RoutePlan, began: Duration) -> Call {
    let (is_partial, workspace) = (request.request.partial, hold.payer().workspace_id);
    Call { sub_requests: plan.sub_requests, is_partial, workspace, began }
}

/// The clients of a shared call as one connection, which disconnects when the last client does.
struct SharedClient(Arc<Participants>);

#[async_trait]
impl ClientConnection for SharedClient {
    async fn disconnected(&self) {
        self.0.disconnected().await;
    }
}
