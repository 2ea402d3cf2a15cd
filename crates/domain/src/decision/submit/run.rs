//! Runs the sub-requests of a request concurrently.

use std::collections::VecDeque;
use std::sync::Arc;
use std::time::Duration;

use futures_util::StreamExt;
use futures_util::future::BoxFuture;
use futures_util::stream::FuturesUnordered;

use super::attempt_budget::AttemptBudget;
use super::attempts::AttemptLog;
use super::outcome::{CallOutcome, SubRequestOutcome};
use super::plan::{MAX_SUB_REQUESTS, SubRequest};
use super::sub_request::{CallContext, SubRequestRunner};
use crate::decision::ClientConnection;
use crate::ids::WorkspaceId;
use crate::routing::AttemptFailureKind;

/// Runs all sub-requests of a call.
pub(super) struct CallRunner {
    pub(super) sub_requests: SubRequestRunner,
}

/// A call to make.
pub(super) struct Call {
    pub(super) sub_requests: Vec<SubRequest>,
    /// True if a failed sub-request does not end the others.
    pub(super) is_partial: bool,
    pub(super) workspace: WorkspaceId,
    /// When the request began, on the monotonic clock.
    pub(super) began: Duration,
}

/// A sub-request under way, with its number.
type Running<'a> = BoxFuture<'a, (u32, SubRequest, Option<SubRequestOutcome>)>;

impl CallRunner {
    /// Runs the sub-requests, a bounded number at a time. A failed one is replaced by smaller ones for endpoints with
    /// lower limits. Without such endpoints it ends the others, unless the client accepts partial answers.
    pub(super) async fn run(
        self: Arc<Self>,
        call: Call,
        client: Arc<dyn ClientConnection>,
        budget: AttemptBudget,
    ) -> CallOutcome {
        let Call { sub_requests, is_partial, workspace, began } = call;
        let (runner, settings) = (&self.sub_requests, &self.sub_requests.settings);
        let log = AttemptLog::new(&runner.health, settings, workspace, began);
        let context = CallContext { log: &log, budget: &budget, client: &client, workspace, began };
        let max_running = settings.max_concurrent_subrequests.max(1);
        let mut planned = sub_requests.len();
        let mut waiting: VecDeque<(u32, SubRequest)> = (0..).zip(sub_requests).collect();
        // Most requests are one sub-request, which needs none.
        let mut running: Option<FuturesUnordered<Running<'_>>> = None;
        let mut outcomes: Vec<(u32, SubRequestOutcome)> = Vec::with_capacity(waiting.len());
        loop {
            let is_idle = running.as_ref().is_none_or(FuturesUnordered::is_empty);
            if is_idle && waiting.is_empty() {
                break;
            }
            let single = if is_idle && waiting.len() == 1 { waiting.pop_front() } else { None };
            let ended = if let Some((number, sub_request)) = single {
                Some(run_one(runner, number, sub_request, &context).await)
            } else {
                let running = running.get_or_insert_default();
                while running.len() < max_running
                    && let Some((number, sub_request)) = waiting.pop_front()
                {
                    running.push(Box::pin(run_one(runner, number, sub_request, &context)));
                }
                running.next().await
            };
            let Some((number, sub_request, outcome)) = ended else { break };
            budget.begun(number);
            let Some(outcome) = outcome else { continue };
            // Each sub-request sends the state again: their number is bounded.
            if let Some(smaller) = self.smaller(&sub_request, &outcome, began)
                && planned + smaller.len() <= 2 * MAX_SUB_REQUESTS
            {
                let next = u32::try_from(planned).unwrap_or(u32::MAX);
                planned += smaller.len();
                waiting.extend((next..).zip(smaller));
                continue;
            }
            let has_failed = matches!(outcome, SubRequestOutcome::Failed { .. });
            outcomes.push((number, outcome));
            if has_failed && !is_partial {
                break;
            }
        }
        drop(running);
        outcomes.sort_by_key(|(number, _)| *number);
        let (attempts, causes) = log.close(runner.time.monotonic());
        CallOutcome { outcomes: outcomes.into_iter().map(|(_, outcome)| outcome).collect(), attempts, causes }
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
        let left = self.sub_requests.time.time_left(began, self.sub_requests.settings.deadline);
        if is_final || left.is_zero() { None } else { sub_request.smaller(failures) }
    }
}

async fn run_one(
    runner: &SubRequestRunner,
    number: u32,
    sub_request: SubRequest,
    context: &CallContext<'_>,
) -> (u32, SubRequest, Option<SubRequestOutcome>) {
    let outcome = runner.run(&sub_request, number, context).await;
    (number, sub_request, outcome)
}
