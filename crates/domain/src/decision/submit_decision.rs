//! Operation 2 of the interface: questions to a model, over the endpoints that serve it.

mod attempt_log;
mod coalescing;
mod ledger;
mod part;
mod plan;
mod router;
mod target;

use std::sync::Arc;
use std::time::Duration;

use chrono::{DateTime, Utc};

use self::coalescing::{InFlight, Share};
use self::router::Router;
use super::{
    CallerPresence, Coalescing, Decision, DecisionProvider, DecisionRequest, RouterSettings, SubmitDecisionError,
};
use crate::api_key::InferenceKey;
use crate::budget::Ledger;
use crate::guardrail::GuardrailPolicies;
use crate::ids::{DecisionId, RequestId};
use crate::model::Catalogue;
use crate::observability::Meter;
use crate::routing::{EndpointDirectory, HealthBoard};
use crate::system::{Clock, IdGenerator, Randomness, Timer};

/// The ports of [`SubmitDecision`].
pub struct SubmitDecisionPorts {
    /// Which models there are.
    pub catalogue: Arc<dyn Catalogue>,
    /// Who makes attempts.
    pub provider: Arc<dyn DecisionProvider>,
    /// Where money is reserved and usage is charged.
    pub ledger: Arc<dyn Ledger>,
    /// What keys are under.
    pub policies: Arc<dyn GuardrailPolicies>,
    /// Who counts.
    pub meter: Arc<dyn Meter>,
    /// Time.
    pub clock: Arc<dyn Clock>,
    /// Waiting, for hedges.
    pub timer: Arc<dyn Timer>,
    /// Ids.
    pub ids: Arc<dyn IdGenerator>,
    /// Draws among endpoints.
    pub random: Arc<dyn Randomness>,
    /// What is known of the endpoints, which every attempt adds to.
    pub health: Arc<HealthBoard>,
}

/// Submits a Decisions request: resolves the model, chooses endpoints, tries them in order, records the usage, answers.
///
/// The usage record is durable before the answer is returned. When the caller leaves, the attempt under way is given
/// up, but the record is still written; run it in a task that outlives the caller.
pub struct SubmitDecision {
    router: Arc<Router>,
    in_flight: InFlight,
}

/// A request on its way to its record.
struct Submission<'a> {
    id: DecisionId,
    key: &'a InferenceKey,
    request_id: RequestId,
    request: &'a DecisionRequest,
    at: DateTime<Utc>,
    began: Duration,
}

impl SubmitDecision {
    /// Wires the ports.
    pub fn new(ports: SubmitDecisionPorts, endpoints: Arc<EndpointDirectory>, settings: RouterSettings) -> Self {
        Self { router: Arc::new(Router { ports, endpoints, settings }), in_flight: InFlight::default() }
    }

    /// Answers the request, or says why not.
    pub async fn execute(
        &self,
        key: &InferenceKey,
        request_id: RequestId,
        request: DecisionRequest,
        caller: Arc<dyn CallerPresence>,
    ) -> Result<Decision, SubmitDecisionError> {
        let router = &self.router;
        let route = router.route(&request)?;
        let request = Arc::new(request);
        let submission = Submission {
            id: router.ports.ids.decision_id(),
            key,
            request_id,
            request: &request,
            at: router.ports.clock.now(),
            began: router.ports.clock.monotonic(),
        };
        let funnel = route.funnel.clone();
        let (end, share) = match router.settings.options(&route.model).coalescing {
            Coalescing::Off => {
                let run = Arc::clone(router).run(route, Arc::clone(&request), caller, submission.began);
                (Arc::new(run.await), Share::WHOLE)
            }
            way => {
                let key = coalescing::key(key.workspace_id(), &route.model, &request);
                let router = Arc::clone(router);
                let (request, began) = (Arc::clone(&request), submission.began);
                let run = |everyone| router.run(route, request, everyone, began);
                self.in_flight.join(key, way, caller, run).await
            }
        };
        router.settle(submission, &end, share, funnel).await
    }
}

#[cfg(test)]
mod tests;
