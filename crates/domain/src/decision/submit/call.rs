//! The call of a request: its own, or one that it shares with identical requests. A call runs its sub-requests
//! concurrently.

use std::collections::VecDeque;
use std::sync::{Arc, Mutex};
use std::time::Duration;

use async_trait::async_trait;
use futures_util::StreamExt;
use futures_util::future::BoxFuture;
use futures_util::stream::FuturesUnordered;

use super::attempt_budget::AttemptBudget;
use super::attempts::AttemptLog;
use super::call_key::CallKey;
use super::failure_log::FailureLog;
use super::held_plan::Coverage;
use super::outcome::{CallOutcome, SubRequestOutcome};
use super::plan::{MAX_SUB_REQUESTS, SubRequest};
use super::request::Request;
use super::route::RoutePlan;
use super::shared_call::{Participants, SingleFlight};
use super::staged::CallStages;
use crate::decision::{ClientConnection, DecisionProvider, DecisionSettings, SingleFlightMode};
use crate::ids::WorkspaceId;
use crate::routing::{AttemptFailureKind, HealthBoard};
use crate::system::TimeSource;
use crate::usage::UsageShare;

/// Makes the calls of requests. Identical requests share one.
pub(super) struct SharedCalls {
    pub(super) runner: Arc<CallRunner>,
    pub(super) in_flight: SingleFlight<CallKey, CallOutcome>,
}

/// Runs the sub-requests of a call.
pub(super) struct CallRunner {
    pub(super) provider: Arc<dyn DecisionProvider>,
    pub(super) health: Arc<HealthBoard>,
    pub(super) time: TimeSource,
    pub(super) settings: Arc<DecisionSettings>,
    pub(super) failures: FailureLog,
}

/// A call to make.
struct Call {
    sub_requests: Vec<SubRequest>,
    /// The stages that it goes through; `None` without a cascade.
    stages: Option<CallStages>,
    /// True if a failed sub-request does not end the others.
    is_partial: bool,
    workspace: WorkspaceId,
    /// When the request began, on the monotonic clock.
    began: Duration,
}

/// The parts of a call that all its sub-requests share.
pub(super) struct CallContext<'a> {
    pub(super) log: &'a AttemptLog<'a>,
    pub(super) budget: &'a AttemptBudget<'a>,
    pub(super) client: &'a Arc<dyn ClientConnection>,
}

/// An ended call, and the request's share of its cost.
pub(super) struct EndedCall {
    pub(super) outcome: Arc<CallOutcome>,
    pub(super) share: UsageShare,
}

/// A sub-request under way.
type Running<'a> = BoxFuture<'a, (SubRequest, Option<SubRequestOutcome>)>;

impl SharedCalls {
    /// Makes the call of a held plan. A request that holds the ceiling shares the call with identical ones.
    pub(super) async fn call(&self, request: &Request, plan: &mut RoutePlan, coverage: &Coverage<'_>) -> EndedCall {
        let (workspace, client) = (request.payer.workspace_id, &request.client);
        let (is_partial, began) = (request.body.partial, request.began);
        let stages = request.body.cascade.as_ref().map(|cascade| CallStages {
            cascade: Arc::clone(cascade),
            planned: std::mem::take(&mut plan.stages),
            input: Arc::clone(&request.body.provider_input),
        });
        let call = Call { sub_requests: std::mem::take(&mut plan.sub_requests), stages, is_partial, workspace, began };
        match coverage {
            Coverage::FirstAttempts(budget) => {
                let outcome = self.runner.run(call, client, budget).await;
                EndedCall { outcome: Arc::new(outcome), share: UsageShare::WHOLE }
            }
            Coverage::AllAttempts { amount, mode } => {
                let route = (&plan.model, plan.prices_differ);
                let key = CallKey::new(workspace, request.filtered.policy(), route, *amount, &request.body);
                self.share(key, *mode, call, Arc::clone(client)).await
            }
        }
    }

    async fn share(
        &self,
        key: CallKey,
        mode: SingleFlightMode,
        call: Call,
        client: Arc<dyn ClientConnection>,
    ) -> EndedCall {
        let (runner, first) = (Arc::clone(&self.runner), Arc::clone(&client));
        let run = move |participants| async move {
            let client: Arc<dyn ClientConnection> = Arc::new(SharedClient { participants, first });
            runner.run(call, &client, &AttemptBudget::Ceiling).await
        };
        let result = self.in_flight.join(key, client.disconnected(), run).await;
        let count = |count: usize| u32::try_from(count).unwrap_or(u32::MAX);
        let share = match mode {
            SingleFlightMode::SplitCost => UsageShare { index: count(result.index), of: count(result.participants) },
            SingleFlightMode::ChargeEach | SingleFlightMode::Off => UsageShare::WHOLE,
        };
        EndedCall { outcome: result.value, share }
    }
}

impl CallRunner {
    async fn run(&self, call: Call, client: &Arc<dyn ClientConnection>, budget: &AttemptBudget<'_>) -> CallOutcome {
        let Call { mut sub_requests, stages, is_partial, workspace, began } = call;
        let Self { health, time, settings, .. } = self;
        let log = AttemptLog { health, time, settings, workspace, began, entries: Mutex::new(Vec::with_capacity(1)) };
        let context = CallContext { log: &log, budget, client };
        let mut planned = sub_requests.len();
        (0..).zip(&mut sub_requests).for_each(|(number, part)| part.number = number);
        let waiting = VecDeque::from(sub_requests);
        let Some(stages) = stages else {
            let outcomes = self.run_sub_requests(waiting, &mut planned, is_partial, &context).await;
            return log.close(outcomes.into_iter().map(|(_, outcome)| outcome).collect());
        };
        // Boxed to keep the future of other requests small.
        let (outcomes, answered) = Box::pin(self.run_stages(stages, waiting, planned, &context)).await;
        CallOutcome { staged: Some(answered), ..log.close(outcomes) }
    }

    /// Runs sub-requests, a bounded number at a time. A failed one is replaced by smaller ones for endpoints with lower
    /// limits. Without such endpoints it ends the others, unless partial answers are accepted. `planned` counts the
    /// sub-requests of the call. Returns the outcomes in the order of the sub-requests.
    pub(super) async fn run_sub_requests(
        &self,
        mut waiting: VecDeque<SubRequest>,
        planned: &mut usize,
        is_partial: bool,
        context: &CallContext<'_>,
    ) -> Vec<(u32, SubRequestOutcome)> {
        let max_running = self.settings.max_concurrent_subrequests.max(1);
        // Most requests are one sub-request, which needs none.
        let mut running: Option<FuturesUnordered<Running<'_>>> = None;
        let mut outcomes: Vec<(u32, SubRequestOutcome)> = Vec::with_capacity(waiting.len());
        let mut of_stage = waiting.len();
        loop {
            let is_idle = running.as_ref().is_none_or(FuturesUnordered::is_empty);
            if is_idle && waiting.is_empty() {
                break;
            }
            let single = if is_idle && waiting.len() == 1 { waiting.pop_front() } else { None };
            let ended = if let Some(sub_request) = single {
                Some(self.run_one(sub_request, context).await)
            } else {
                let running = running.get_or_insert_default();
                while running.len() < max_running
                    && let Some(sub_request) = waiting.pop_front()
                {
                    running.push(Box::pin(self.run_one(sub_request, context)));
                }
                running.next().await
            };
            let Some((sub_request, outcome)) = ended else { break };
            context.budget.begun(sub_request.number);
            let Some(outcome) = outcome else { continue };
            // Each sub-request sends the state again: their number is bounded in each stage.
            if let Some(mut smaller) = self.smaller(&sub_request, &outcome, context.log.began)
                && of_stage + smaller.len() <= 2 * MAX_SUB_REQUESTS
            {
                let next = u32::try_from(*planned).unwrap_or(u32::MAX);
                *planned += smaller.len();
                of_stage += smaller.len();
                (next..).zip(&mut smaller).for_each(|(number, part)| part.number = number);
                waiting.extend(smaller);
                continue;
            }
            let has_failed = matches!(outcome, SubRequestOutcome::Failed { .. });
            outcomes.push((sub_request.number, outcome));
            if has_failed && !is_partial {
                break;
            }
        }
        drop(running);
        outcomes.sort_by_key(|(number, _)| *number);
        outcomes
    }

    /// Returns the replacements of a failed sub-request. `None` if the client disconnected, the failure is simulated, a
    /// hold was rejected, or the deadline has passed.
    fn smaller(
        &self,
        sub_request: &SubRequest,
        outcome: &SubRequestOutcome,
        began: Duration,
    ) -> Option<Vec<SubRequest>> {
        let SubRequestOutcome::Failed { failures, rejection: None, .. } = outcome else { return None };
        let last = failures.last().map(|(_, failure)| failure.kind);
        let is_final = last.is_some_and(AttemptFailureKind::ends_request);
        let left = self.time.time_left(began, self.settings.deadline);
        if is_final || left.is_zero() { None } else { sub_request.smaller(failures) }
    }

    async fn run_one(
        &self,
        sub_request: SubRequest,
        context: &CallContext<'_>,
    ) -> (SubRequest, Option<SubRequestOutcome>) {
        let outcome = self.run_sub_request(&sub_request, context).await;
        (sub_request, outcome)
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
