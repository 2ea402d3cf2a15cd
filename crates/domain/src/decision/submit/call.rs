//! The call of a request: its own, or one that it shares with identical requests.

use std::sync::Arc;
use std::time::Duration;

use async_trait::async_trait;

use super::attempt_budget::AttemptBudget;
use super::call_key::CallKey;
use super::cost::CostShare;
use super::filter::FilteredRequest;
use super::held_plan::{Coverage, HeldPlan};
use super::outcome::CallOutcome;
use super::run::{Call, CallRunner};
use super::shared_call::{Participants, SingleFlight};
use crate::decision::{ClientConnection, SingleFlightMode};
use crate::ids::WorkspaceId;

/// Makes calls.
pub(super) struct CallCoordinator {
    pub(super) runner: Arc<CallRunner>,
    pub(super) in_flight: SingleFlight<CallKey, CallOutcome>,
}

/// An ended call, and the request's share of its cost.
pub(super) struct EndedCall {
    pub(super) outcome: Arc<CallOutcome>,
    pub(super) share: CostShare,
}

impl CallCoordinator {
    /// Makes the call of a held plan. A request that holds the ceiling shares the call with identical ones.
    pub(super) async fn call(
        &self,
        request: &FilteredRequest,
        workspace: WorkspaceId,
        HeldPlan { plan, coverage }: HeldPlan,
        client: Arc<dyn ClientConnection>,
        began: Duration,
    ) -> EndedCall {
        let is_partial = request.request.partial;
        let budget = match coverage {
            Coverage::FirstAttempts(budget) => budget,
            Coverage::AllAttempts { amount, mode } => {
                let route = (&plan.model, plan.prices_differ);
                let key = CallKey::new(workspace, request.policy(), route, amount, &request.request);
                let call = Call { sub_requests: plan.sub_requests, is_partial, workspace, began };
                return self.share(key, mode, call, client).await;
            }
        };
        let call = Call { sub_requests: plan.sub_requests, is_partial, workspace, began };
        let outcome = Arc::clone(&self.runner).run(call, client, budget).await;
        EndedCall { outcome: Arc::new(outcome), share: CostShare::WHOLE }
    }

    async fn share(
        &self,
        key: CallKey,
        mode: SingleFlightMode,
        call: Call,
        client: Arc<dyn ClientConnection>,
    ) -> EndedCall {
        let runner = Arc::clone(&self.runner);
        let first = Arc::clone(&client);
        let run = move |participants| {
            runner.run(call, Arc::new(SharedClient { participants, first }), AttemptBudget::Ceiling)
        };
        let result = self.in_flight.join(key, client.disconnected(), run).await;
        let share = match mode {
            SingleFlightMode::SplitCost => CostShare::new(result.index, result.participants),
            SingleFlightMode::ChargeEach | SingleFlightMode::Off => CostShare::WHOLE,
        };
        EndedCall { outcome: result.value, share }
    }
}

/// The clients of a shared call as one connection, which disconnects when the last client does.
struct SharedClient {
    participants: Arc<Participants>,
    /// The client that began the call. The answer takes memory of its request.
    first: Arc<dyn ClientConnection>,
}

#[async_trait]
impl ClientConnection for SharedClient {
    async fn disconnected(&self) {
        self.participants.disconnected().await;
    }

    fn take_answer_memory(&self, bytes: usize) -> bool {
        self.first.take_answer_memory(bytes)
    }

    fn return_answer_memory(&self, bytes: usize) {
        self.first.return_answer_memory(bytes);
    }
}
