//! Operation 2 of the interface: questions to a model, over the endpoints that serve it.

mod attempt_log;
mod coalescing;
mod filtering;
mod labels;
mod ledger;
mod money;
mod part;
mod plan;
mod preview;
mod purse;
mod record_quota;
mod router;
mod target;
mod thrift;

use std::sync::Arc;
use std::time::Duration;

use chrono::{DateTime, Utc};

use self::coalescing::{CallKey, Everyone, Guest, InFlight, Joined, Share};
use self::money::{Denied, Funds};
use self::purse::Payers;
use self::record_quota::RecordQuota;
pub use self::record_quota::RecordQuotaStatus;
use self::router::{Route, Routed, Router};
use super::{
    CallerPresence, Coalescing, Decision, DecisionProvider, DecisionRequest, Inquiry, RequestLabels, RouterSettings,
    SubmitDecisionError,
};
use crate::api_key::InferenceKey;
use crate::budget::{Backlog, Ledger, Payer};
use crate::error::StoreError;
use crate::guardrail::filter::Filtered;
use crate::guardrail::{GuardrailPolicies, Policy};
use crate::ids::{DecisionId, RequestId};
use crate::model::Catalogue;
use crate::observability::{Broadcast, Meter};
use crate::routing::{EndpointDirectory, HealthBoard};
use crate::system::{Clock, IdGenerator, Randomness, Timer, Workers};
use crate::usage::AttemptRecord;

/// The ports of [`SubmitDecision`].
pub struct SubmitDecisionPorts {
    /// Which models there are.
    pub catalogue: Arc<dyn Catalogue>,
    /// Who makes attempts.
    pub provider: Arc<dyn DecisionProvider>,
    /// Where money is reserved and usage is charged.
    pub ledger: Arc<dyn Ledger>,
    /// Where charges wait that the ledger did not take.
    pub backlog: Backlog,
    /// What keys are under.
    pub policies: Arc<dyn GuardrailPolicies>,
    /// Who counts.
    pub meter: Arc<dyn Meter>,
    /// Who writes what others are told.
    pub broadcaster: Arc<dyn Broadcast>,
    /// Time.
    pub clock: Arc<dyn Clock>,
    /// Waiting, for hedges and for money.
    pub timer: Arc<dyn Timer>,
    /// Who looks through large inquiries.
    pub workers: Arc<dyn Workers>,
    /// Ids.
    pub ids: Arc<dyn IdGenerator>,
    /// Draws among endpoints.
    pub random: Arc<dyn Randomness>,
    /// What is known of the endpoints, which every attempt adds to.
    pub health: Arc<HealthBoard>,
}

/// Submits a Decisions request: applies the key's guardrails, resolves the model, chooses endpoints, reserves what they
/// may come to, tries them in order, charges the usage, answers.
///
/// What the guardrails' filters leave of the inquiry is the one value that is routed and sent. The usage record is durable
/// before the answer is returned. When the caller leaves, the attempt under way is given up, but the record is still
/// written; run it in a task that outlives the caller. A record that the store does not take is kept in the backlog and
/// written later; its caller gets an error.
pub struct SubmitDecision {
    router: Arc<Router>,
    in_flight: InFlight,
}

/// A request on its way to its record.
struct Submission<'a> {
    id: DecisionId,
    key: &'a InferenceKey,
    policy: Option<&'a Policy>,
    request_id: RequestId,
    /// With the inquiry as it is sent.
    request: &'a DecisionRequest,
    /// The inquiry as it came.
    asked: Arc<Inquiry>,
    filtered: Filtered,
    /// What the caller says for the record alone.
    labels: RequestLabels,
    /// The same after content filters, for destinations; `None` where nothing filters them.
    redacted_labels: Option<RequestLabels>,
    /// What is reserved for it, where it is limited.
    funds: Option<Arc<Funds>>,
    at: DateTime<Utc>,
    began: Duration,
}

impl SubmitDecision {
    /// Wires the ports.
    pub fn new(ports: SubmitDecisionPorts, endpoints: Arc<EndpointDirectory>, settings: RouterSettings) -> Self {
        let router = Router { ports, endpoints, settings, record_quota: RecordQuota::default() };
        Self { router: Arc::new(router), in_flight: InFlight::default() }
    }

    /// How the bound on the bytes of records stands, for metrics.
    pub fn record_quota_status(&self) -> RecordQuotaStatus {
        self.router.record_quota.status(self.router.ports.clock.now())
    }

    /// Answers the request, or says why not.
    pub async fn execute(
        &self,
        key: &InferenceKey,
        request_id: RequestId,
        mut request: DecisionRequest,
        caller: Arc<dyn CallerPresence>,
    ) -> Result<Decision, SubmitDecisionError> {
        let router = &self.router;
        let (at, began) = (router.ports.clock.now(), router.ports.clock.monotonic());
        let policy = router.ports.policies.find(key).await?;
        let asked = Arc::clone(&request.inquiry);
        let filtered = router.filter(policy.as_ref(), &asked, (key.workspace_id(), &caller), began).await?;
        let labels = RequestLabels {
            session_id: request.session_id.take(),
            trace: request.trace.take(),
            user: request.user.take(),
        };
        let redacted_labels = router.redact_labels(policy.as_ref(), key.workspace_id(), &labels, began).await;
        let policy = policy.as_deref();
        // From here on there is no other inquiry than the one that may be sent.
        request.inquiry = Arc::clone(&filtered.inquiry);
        let request = Arc::new(request);
        let is_limited = key.limited() || policy.is_some_and(Policy::limits_money);
        let mut route = router.route(&request, policy, is_limited, key.workspace_id())?;
        if !router.ports.backlog.accepts() {
            // A provider would bill what nobody could be charged.
            return Err(StoreError::unavailable("too many settlements wait to be written").into());
        }
        if let Some(limit) = router.settings.max_record_bytes_per_day {
            router.record_quota.check(&router.ports, key.workspace_id(), limit).await?;
        }
        let id = router.ports.ids.decision_id();
        let funds = is_limited.then(|| {
            let guardrails = policy.map(Policy::ids).unwrap_or_default();
            let payer = Payer { workspace_id: key.workspace_id(), api_key: key.hash(), guardrails };
            Arc::new(Funds::new(id.clone(), payer, request_id.clone(), request.model.clone()))
        });
        let submission = Submission {
            id,
            key,
            policy,
            request_id,
            request: &request,
            asked,
            filtered,
            labels,
            redacted_labels,
            funds,
            at,
            began,
        };
        let funnel = std::mem::take(&mut route.funnel);
        let (end, share) = self.call(&submission, &request, route, caller).await?;
        router.settle(submission, end, share, funnel).await
    }

    /// Reserves what the request may come to and makes the call, or joins one that is alike.
    async fn call(
        &self,
        submission: &Submission<'_>,
        request: &Arc<DecisionRequest>,
        mut route: Route,
        caller: Arc<dyn CallerPresence>,
    ) -> Result<(Arc<Routed>, Share), SubmitDecisionError> {
        let (router, funds) = (&self.router, &submission.funds);
        let scope = (submission.key.workspace_id(), submission.began);
        let way = router.settings.options(&route.model).coalescing;
        let mut planned =
            if funds.is_some() || way != Coalescing::Off { router.planned(&route.parts) } else { Vec::new() };
        if let Some(funds) = funds {
            planned = router.reserve(funds, planned, &mut route.parts, &caller).await?;
        }
        if way == Coalescing::Off {
            let money = (Payers::of(funds.as_ref()), planned);
            let run = Arc::clone(router).run(route, Arc::clone(request), caller, money, scope);
            return Ok((Arc::new(run.await), Share::WHOLE));
        }
        let is_same = (&route.model, route.prices_differ);
        let key = coalescing::key(submission.key.workspace_id(), submission.policy, is_same, request);
        let firsts = planned.clone();
        let run = {
            let (router, request) = (Arc::clone(router), Arc::clone(request));
            move |everyone: Arc<Everyone>| {
                let presence = Arc::clone(&everyone) as Arc<dyn CallerPresence>;
                router.run(route, request, presence, (Payers::Everyone(everyone), planned), scope)
            }
        };
        self.share(submission, (key, way), &caller, &firsts, run).await
    }

    /// Joins a call that is alike, or makes one that others may join. Who cannot pay for all that the call of the others
    /// may come to makes one alone.
    async fn share<R, F>(
        &self,
        submission: &Submission<'_>,
        (key, way): (CallKey, Coalescing),
        caller: &Arc<dyn CallerPresence>,
        planned: &[AttemptRecord],
        mut run: F,
    ) -> Result<(Arc<Routed>, Share), SubmitDecisionError>
    where
        F: FnOnce(Arc<Everyone>) -> R + Send,
        R: Future<Output = Routed> + Send + 'static,
    {
        let (router, funds) = (&self.router, submission.funds.as_ref());
        let own = InFlight::default();
        let mut calls = &self.in_flight;
        loop {
            let guest = Guest { funds: funds.cloned(), needed: money::total(planned) };
            match calls.join(key, way, caller, guest, run).await {
                Joined::Ended(end, share) => return Ok((end, share)),
                Joined::PutOut => {
                    router.release(funds).await;
                    let nobody = SubmitDecisionError::Defect("a limit refused money that nobody asked for");
                    return Err(submission.denied(Denied::Overspent).unwrap_or(nobody));
                }
                Joined::Not { needed, run: again } => {
                    run = again;
                    let reserved = funds.filter(|funds| funds.at().is_some());
                    let kept_up = match reserved {
                        Some(funds) => router.raise(funds, needed, planned).await.map(|raised| raised.is_ok()),
                        None => Ok(false),
                    };
                    match kept_up {
                        Ok(true) => {}
                        Ok(false) => calls = &own,
                        Err(error) => {
                            router.release(funds).await;
                            return Err(error.into());
                        }
                    }
                }
            }
        }
    }
}

#[cfg(test)]
mod tests;
