//! Submits Decisions requests. Each step is a function from its input to its output:
//!
//! | step | from | to |
//! |---|---|---|
//! | `filter` | the client's request and its key | `FilteredRequest`; planned, it is a `Request`, which all further steps borrow |
//! | `route`, `resolve`, `plan` | the request | `RoutePlan`: sub-requests, each with its candidates in order |
//! | `held_plan`, with `bounds`, `affordable`, `hold` | the plan | `Coverage`: the bound, then the cheaper plan if a limit requires it, then the hold |
//! | `call`, `shared_call` | the plan and its coverage | `EndedCall`: the outcome and the share of its cost |
//! | `stages`, `staged` | the sub-requests of each stage of a preset | the accepted answers, or the last ones |
//! | `sub_request`, `attempt`, `attempt_budget` | a sub-request | attempts, each covered by the hold, and `SubRequestOutcome` |
//! | `outcome` | the call's outcome | answers or a failure; `RequestCost` |
//! | `settle`, `evidence` | the request, answers, cost | the record, its evidence and its charge, and only then `Decision` |

mod affordable;
mod attempt;
mod attempt_budget;
mod attempts;
mod bounds;
mod call;
mod call_key;
mod evidence;
mod failure_log;
pub(in crate::decision) mod filter;
mod held_plan;
pub(in crate::decision) mod hold;
mod outcome;
mod plan;
mod record_quota;
mod request;
mod resolve;
pub(in crate::decision) mod route;
mod settle;
mod shared_call;
mod staged;
mod stages;
mod sub_request;

use std::sync::{Arc, Mutex};

use self::bounds::Bounds;
use self::call::{CallRunner, SharedCalls};
use self::failure_log::FailureLog;
use self::filter::InputFilter;
use self::hold::HoldPlanner;
use self::record_quota::RecordQuota;
pub use self::record_quota::RecordQuotaStatus;
use self::request::Request;
use self::route::RoutePlanner;
use self::settle::Settlement;
use self::shared_call::SingleFlight;
use super::{
    Broadcast, ClientConnection, Decision, DecisionProvider, DecisionRequest, DecisionSettings, Metrics,
    RequestEvaluator, RequestOrigin, SubmitDecisionError,
};
use crate::api_key::InferenceKey;
use crate::budget::Ledger;
use crate::guardrail::GuardrailPolicies;
use crate::model::Catalogue;
use crate::routing::{EndpointDirectory, HealthBoard};
use crate::system::{IdGenerator, Randomness, TimeSource, Workers};
use crate::usage::UsageRepository;

/// The ports of [`SubmitDecision`].
pub struct SubmitDecisionPorts {
    /// Calls providers.
    pub provider: Arc<dyn DecisionProvider>,
    /// Chooses endpoints.
    pub routing: RoutingPorts,
    /// Applies guardrails.
    pub guardrails: FilterPorts,
    /// Holds money, and records and charges usage.
    pub usage: UsagePorts,
    /// The clock and the timer.
    pub time: TimeSource,
}

/// The ports that endpoints are chosen by.
pub struct RoutingPorts {
    /// The models.
    pub catalogue: Arc<dyn Catalogue>,
    /// The configured endpoints.
    pub endpoints: Arc<EndpointDirectory>,
    /// The health of the endpoints, which every attempt adds to.
    pub health: Arc<HealthBoard>,
    /// Draws among endpoints.
    pub random: Arc<dyn Randomness>,
}

/// The ports that guardrails are applied by.
#[derive(Clone)]
pub struct FilterPorts {
    /// The guardrails of keys.
    pub policies: Arc<dyn GuardrailPolicies>,
    /// Scans large inputs.
    pub workers: Arc<dyn Workers>,
}

/// The ports that usage is charged and reported by.
#[derive(Clone)]
pub struct UsagePorts {
    /// Holds money and charges usage.
    pub ledger: Arc<dyn Ledger>,
    /// Bounds the bytes of records.
    pub records: Arc<dyn UsageRepository>,
    /// Names requests.
    pub ids: Arc<dyn IdGenerator>,
    /// Counts.
    pub metrics: Arc<dyn Metrics>,
    /// Writes the messages for destinations.
    pub broadcaster: Arc<dyn Broadcast>,
}

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
    ids: Arc<dyn IdGenerator>,
    hold_planner: Arc<HoldPlanner>,
    calls: SharedCalls,
    settlement: Settlement,
}

impl SubmitDecision {
    /// Creates the use case.
    pub fn new(ports: SubmitDecisionPorts, settings: DecisionSettings) -> Self {
        let SubmitDecisionPorts { provider, routing, guardrails, usage, time } = ports;
        let RoutingPorts { catalogue, endpoints, health, random } = routing;
        let FilterPorts { policies, workers } = guardrails;
        let UsagePorts { ledger, records, ids, metrics, broadcaster } = usage;
        let settings = Arc::new(settings);
        let deadline = settings.deadline;
        let record_quota = Arc::new(RecordQuota::new(records, time.clone(), settings.max_record_bytes_per_day));
        let max_retry_after = health.policy().max_backoff;
        let bounds = Bounds {
            provider: Arc::clone(&provider),
            health: Arc::clone(&health),
            max_tokens_per_byte: settings.max_tokens_per_byte,
        };
        let runner = CallRunner {
            provider,
            health: Arc::clone(&health),
            time: time.clone(),
            settings: Arc::clone(&settings),
            failures: FailureLog::default(),
        };
        let planner = RoutePlanner { catalogue, endpoints, health, random, settings: Arc::clone(&settings) };
        let filter = InputFilter {
            policies,
            workers,
            metrics: Arc::clone(&metrics),
            broadcaster: Arc::clone(&broadcaster),
            time: time.clone(),
            deadline,
        };
        let hold_planner = Arc::new(HoldPlanner { ledger, metrics, time, settings, bounds });
        Self {
            filter: Arc::new(filter),
            planner: Arc::new(planner),
            ids,
            hold_planner: Arc::clone(&hold_planner),
            calls: SharedCalls { runner: Arc::new(runner), in_flight: SingleFlight::default() },
            settlement: Settlement { hold_planner, broadcaster, record_quota, max_retry_after },
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
        self.settlement.record_quota.status()
    }

    /// Returns an evaluator of requests, which sends nothing.
    pub(in crate::decision) fn evaluator(&self) -> RequestEvaluator {
        let (filter, planner) = (Arc::clone(&self.filter), Arc::clone(&self.planner));
        RequestEvaluator { filter, planner, hold_planner: Arc::clone(&self.hold_planner) }
    }

    /// Answers a request.
    ///
    /// # Errors
    /// The reason why there is no answer.
    pub async fn execute(
        &self,
        key: &InferenceKey,
        origin: RequestOrigin,
        mut body: DecisionRequest,
        client: Arc<dyn ClientConnection>,
    ) -> Result<Decision, SubmitDecisionError> {
        let time = &self.hold_planner.time;
        let (arrived_at, began) = origin.began.unwrap_or_else(|| (time.now(), time.monotonic()));
        let filtered = self.filter.apply(key, &mut body, &client, began).await?;
        // The plan and its hold share one reading of the clock.
        let now = time.monotonic();
        let (payer, is_limited) = filtered.payer(key);
        let workspace = payer.workspace_id;
        let mut plan = self.planner.plan(&body, filtered.policy(), is_limited, (workspace, now))?;
        self.settlement.record_quota.check(workspace, (arrived_at, now)).await?;
        let (id, hold) = (self.ids.decision_id(arrived_at), Mutex::default());
        let mut request = Request { id, origin, arrived_at, began, client, payer, is_limited, body, filtered, hold };
        let coverage = self.hold_planner.hold_plan(&request, &mut plan, now).await?;
        let call = self.calls.call(&request, &mut plan, &coverage).await;
        drop(coverage);
        self.settlement.settle(&mut request, call, plan.funnel).await
    }
}

#[cfg(test)]
mod tests;
