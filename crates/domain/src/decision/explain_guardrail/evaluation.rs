//! Evaluates a request without sending it: first the filters, then the models, the endpoints and the bounds of its plans.

use std::sync::Arc;
use std::time::Duration;

use super::verdict::{Decider, EndpointVerdict, ExplainGuardrailError, KeyRejection, Verdict};
use crate::decision::submit::filter::InputFilter;
use crate::decision::submit::hold::HoldPlanner;
use crate::decision::submit::route::RoutePlanner;
use crate::decision::{DecisionRequest, SubmitDecisionError, UnpricedModels};
use crate::guardrail::Policy;
use crate::ids::WorkspaceId;
use crate::model::ModelId;
use crate::money::Usd;
use crate::question::ProviderInput;
use crate::routing::{Candidate, HealthBoard, HealthPolicy, NoCandidates, Selection};
use crate::system::Randomness;
use crate::usage::Finding;

/// The result of the filters and of the plan of a request.
pub(super) struct RequestEvaluation {
    pub(super) model: Option<ModelId>,
    pub(super) decided_by: Option<Decider>,
    pub(super) endpoints: Vec<EndpointVerdict>,
    pub(super) findings: Vec<Finding>,
    pub(super) provider_input: Option<Arc<ProviderInput>>,
    /// The holds of the preferred plan and of its cheaper alternatives; empty without a plan.
    pub(super) bounds: Vec<Usd>,
}

/// Filters and plans requests without sending, holding or charging.
pub(crate) struct RequestEvaluator {
    pub(in crate::decision) filter: Arc<InputFilter>,
    pub(in crate::decision) planner: Arc<RoutePlanner>,
    pub(in crate::decision) hold_planner: Arc<HoldPlanner>,
}

impl RequestEvaluator {
    pub(super) async fn evaluate(
        &self,
        request: &DecisionRequest,
        policy: &Arc<Policy>,
        (workspace, is_limited): (WorkspaceId, bool),
        key_rejection: Option<KeyRejection>,
    ) -> Result<RequestEvaluation, ExplainGuardrailError> {
        let (filtered, blocked) = match self.filter.scan(policy, &request.provider_input).await? {
            Ok(filtered) => (Some(filtered), None),
            Err(blocked) => (None, Some(Decider::Filter(blocked))),
        };
        // These rejections come before the models are resolved.
        let rejection = key_rejection.map(Decider::Key).or(blocked);
        // The plan is for the filtered input, which is the one that would be sent.
        let provider_input = filtered.as_ref().map_or(&request.provider_input, |filtered| &filtered.provider_input);
        let request = DecisionRequest { provider_input: Arc::clone(provider_input), ..request.clone() };
        let findings = filtered.as_ref().map(|filtered| filtered.findings.clone()).unwrap_or_default();
        let sent = filtered.map(|filtered| filtered.provider_input);
        let catalogue = self.planner.catalogue.snapshot();
        let models = match self.planner.resolve(&catalogue, &request) {
            Ok(models) => models,
            Err(_) if rejection.is_some() => {
                let (endpoints, bounds) = (Vec::new(), Vec::new());
                let (model, decided_by, provider_input) = (None, rejection, sent);
                return Ok(RequestEvaluation { model, decided_by, endpoints, findings, provider_input, bounds });
            }
            Err(error) => return Err(error.into()),
        };
        let unpriced = if is_limited { self.planner.settings.unpriced } else { UnpricedModels::Free };
        let verdict = |candidate: &Candidate| EndpointVerdict {
            model: candidate.model.clone(),
            endpoint: Arc::clone(&candidate.endpoint),
            verdict: match policy.permits(candidate, &catalogue) {
                Err(forbidden) => Verdict::Forbidden(forbidden),
                Ok(()) if !candidate.is_priced && unpriced == UnpricedModels::Reject => Verdict::Unpriced,
                Ok(()) => evaluate_endpoint(&request, candidate, workspace),
            },
        };
        let endpoints = models.iter().flat_map(|model| &model.candidates).map(verdict).collect();
        let now = self.hold_planner.time.monotonic();
        let plan = self.planner.plan(&request, Some(policy.as_ref()), is_limited, (workspace, now));
        let (bounds, unroutable) = match plan {
            Ok(plan) => (self.hold_planner.costs(&plan.sub_requests, now), None),
            Err(error) => (Vec::new(), deciding_rule(error)?),
        };
        Ok(RequestEvaluation {
            decided_by: rejection.or(unroutable),
            bounds: sent.as_ref().map(|_| bounds).unwrap_or_default(),
            findings,
            provider_input: sent,
            model: models.first().map(|model| model.model.clone()),
            endpoints,
        })
    }
}

/// Returns the rule behind an error of planning; `None` for throttling, which is temporary and no rule of a guardrail.
fn deciding_rule(error: SubmitDecisionError) -> Result<Option<Decider>, ExplainGuardrailError> {
    Ok(Some(match error {
        SubmitDecisionError::Throttled { .. } => return Ok(None),
        SubmitDecisionError::Forbidden { forbidden, .. } => Decider::Rule(forbidden),
        SubmitDecisionError::Unpriced(_) => Decider::Unpriced,
        SubmitDecisionError::ExcludedByPreferences { .. } => Decider::Preferences,
        SubmitDecisionError::Unsupported { unsupported, .. } => Decider::Capability(unsupported),
        SubmitDecisionError::NoEndpoint { .. } => Decider::NoEndpoint,
        other => return Err(other.into()),
    }))
}

/// Evaluates routing to this single endpoint, without throttling.
fn evaluate_endpoint(request: &DecisionRequest, candidate: &Candidate, workspace: WorkspaceId) -> Verdict {
    let health = HealthBoard::new(0, HealthPolicy::default());
    let selection = Selection {
        preferences: &request.preferences,
        provider_input: &request.provider_input,
        health: &health,
        workspace,
        random: &ZeroRandomness,
        now: Duration::ZERO,
    };
    match selection.choose(vec![(vec![candidate.clone()], None)], &mut Vec::new()) {
        Ok(_) | Err(NoCandidates::Throttled(_)) => Verdict::Allowed,
        Err(NoCandidates::Unsupported(unsupported)) => Verdict::Unsupported(unsupported),
        Err(NoCandidates::Preferences | NoCandidates::NoEndpoint) => Verdict::Unwanted,
    }
}

/// A random source of zeros: choosing from one candidate needs no draw.
struct ZeroRandomness;

impl Randomness for ZeroRandomness {
    fn next_u64(&self) -> u64 {
        0
    }
}
