//! Submits Decisions requests: filter, resolve, plan, hold, run, settle.

pub(in crate::decision) mod affordable;
mod attempt;
mod attempt_budget;
mod attempts;
pub(in crate::decision) mod bounds;
mod call;
mod call_key;
mod cost;
mod failure_log;
pub(in crate::decision) mod filter;
mod held_plan;
mod hold;
mod labels;
mod outcome;
mod plan;
mod ports;
mod record_quota;
mod resolve;
pub(in crate::decision) mod route;
mod run;
mod settle;
mod shared_call;
mod sub_request;
mod wait_budget;

use std::sync::Arc;

use self::attempt::AttemptRunner;
use self::bounds::Bounds;
use self::call::CallCoordinator;
use self::failure_log::FailureLog;
use self::filter::InputFilter;
use self::held_plan::HoldPlanner;
use self::hold::HoldPorts;
use self::labels::LabelFilter;
pub use self::ports::*;
use self::record_quota::RecordQuota;
pub use self::record_quota::RecordQuotaStatus;
use self::route::RoutePlanner;
use self::run::CallRunner;
use self::settle::{Settlement, Submission};
use self::shared_call::SingleFlight;
use self::sub_request::SubRequestRunner;
use super::preview::RequestPreview;
use super::{ClientConnection, Decision, DecisionRequest, DecisionSettings, RequestOrigin, SubmitDecisionError};
use crate::api_key::InferenceKey;

/// Submits a Decisions request: applies the key's guardrails, resolves the models, plans the sub-requests, holds the
/// money that they may cost, runs them, charges the usage, and answers.
///
/// The input that the guardrails' filters return is the only one that is routed and sent. The usage record is durable
/// before the answer is returned. A disconnect of the client cancels the running attempt, but the record is still
/// written: run it in a task that does not end with the connection. A record that cannot be written is an error for the
/// client, and the ledger writes it later.
pub struct SubmitDecision {
    filter: Arc<InputFilter>,
    planner: Arc<RoutePlanner>,
    holds: Arc<HoldPorts>,
    hold_planner: HoldPlanner,
    coordinator: CallCoordinator,
    settlement: Settlement,
}

impl SubmitDecision {
    /// Creates the use case.
    pub fn new(ports: SubmitDecisionPorts, settings: DecisionSettings) -> Self {
        let SubmitDecisionPorts { provider, routing, guardrails, usage, time } = ports;
        let RoutingPorts { catalogue, endpoints, health, random } = routing;
        let FilterPorts { policies, workers } = guardrails;
        let UsagePorts { ledger, records, ids, metrics, broadcaster } = usage;
        let (clock, deadline) = (Arc::clone(&time.clock), settings.deadline);
        let settings = Arc::new(settings);
        let (limit, max_retry_after) = (settings.max_record_bytes_per_day, health.policy().max_backoff);
        let bounds = Bounds {
            provider: Arc::clone(&provider),
            health: Arc::clone(&health),
            clock: Arc::clone(&clock),
            max_tokens_per_byte: settings.max_tokens_per_byte,
        };
        let labels = LabelFilter {
            broadcaster: Arc::clone(&broadcaster),
            workers: Arc::clone(&workers),
            time: time.clone(),
            deadline,
        };
        let filter =
            InputFilter { policies, workers, metrics: Arc::clone(&metrics), labels, time: time.clone(), deadline };
        let sub_requests = SubRequestRunner {
            attempts: AttemptRunner { provider, time: time.clone(), failures: FailureLog::default() },
            health: Arc::clone(&health),
            time: time.clone(),
            settings: Arc::clone(&settings),
        };
        let planner = RoutePlanner {
            catalogue,
            endpoints,
            health,
            random,
            clock: Arc::clone(&clock),
            settings: Arc::clone(&settings),
        };
        let holds = HoldPorts {
            ledger: Arc::clone(&ledger),
            metrics: Arc::clone(&metrics),
            ids,
            time: time.clone(),
            settings: Arc::clone(&settings),
        };
        let runner = Arc::new(CallRunner { sub_requests });
        let record_quota = Arc::new(RecordQuota::new(records, time, limit));
        Self {
            filter: Arc::new(filter),
            planner: Arc::new(planner),
            holds: Arc::new(holds),
            hold_planner: HoldPlanner { bounds, settings },
            coordinator: CallCoordinator { runner, in_flight: SingleFlight::default() },
            settlement: Settlement { ledger, metrics, broadcaster, clock, record_quota, max_retry_after },
        }
    }

    /// Shares the record quota of the use case that this one replaces, so that records written by either count.
    #[must_use]
    pub fn with_record_quota_of(mut self, replaced: &Self) -> Self {
        self.settlement.record_quota = Arc::clone(&replaced.settlement.record_quota);
        self
    }

    /// Returns the status of the record quota, for metrics.
    pub fn record_quota_status(&self) -> RecordQuotaStatus {
        self.settlement.quota_status()
    }

    /// Returns a preview of requests, which sends nothing.
    pub(crate) fn preview(&self) -> RequestPreview {
        let (filter, planner) = (Arc::clone(&self.filter), Arc::clone(&self.planner));
        RequestPreview::new(filter, planner, self.hold_planner.bounds.clone())
    }

    /// Answers a request.
    ///
    /// # Errors
    /// The reason why there is no answer.
    pub async fn execute(
        &self,
        key: &InferenceKey,
        origin: RequestOrigin,
        request: DecisionRequest,
        client: Arc<dyn ClientConnection>,
    ) -> Result<Decision, SubmitDecisionError> {
        let arrival = self.settlement.arrival(origin.began);
        let origin = RequestOrigin { began: Some(arrival.began), ..origin };
        let filtered = self.filter.apply(key, request, &client, arrival.began).await?;
        let (payer, is_limited) = filtered.payer(key);
        let workspace = payer.workspace_id;
        let mut plan = self.planner.plan(&filtered.request, filtered.policy(), is_limited, workspace)?;
        self.settlement.check_quota(workspace).await?;
        let hold = self.holds.open((payer, is_limited), origin, filtered.request.model.clone());
        let funnel = std::mem::take(&mut plan.funnel);
        let held_plan = self.hold_planner.hold(&hold, plan, &client).await?;
        let call = self.coordinator.call(&filtered, workspace, held_plan, client, arrival.began).await;
        self.settlement.settle(Submission { filtered, hold, arrival, funnel }, call).await
    }
}

#[cfg(test)]
mod tests;
