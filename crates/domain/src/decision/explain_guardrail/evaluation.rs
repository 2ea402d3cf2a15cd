//! Evaluates a request: first the filters, then the models and endpoints.

use std::sync::Arc;
use std::time::Duration;

use super::verdict::{Decider, EndpointVerdict, KeyRejection, Verdict};
use crate::decision::{DecisionRequest, ExplainGuardrailError, RequestPreview, SubmitDecisionError, UnpricedModels};
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

impl RequestEvaluation {
    pub(super) async fn evaluate(
        request: &DecisionRequest,
        policy: &Arc<Policy>,
        decisions: &RequestPreview,
        (workspace, is_limited): (WorkspaceId, bool),
        key_rejection: Option<KeyRejection>,
    ) -> Result<Self, ExplainGuardrailError> {
        let (filtered, blocked) = match decisions.filter(policy, &request.provider_input).await? {
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
        let preview = match (decisions.plan(&request, policy, is_limited, workspace), rejection.is_some()) {
            (Ok(preview), _) => preview,
            (Err(_), true) => {
                let (endpoints, bounds) = (Vec::new(), Vec::new());
                return Ok(Self {
                    model: None,
                    decided_by: rejection,
                    endpoints,
                    findings,
                    provider_input: sent,
                    bounds,
                });
            }
            (Err(error), false) => return Err(error.into()),
        };
        let verdict = |candidate: &Candidate| EndpointVerdict {
            model: candidate.model.clone(),
            endpoint: Arc::clone(&candidate.endpoint),
            verdict: match policy.permits(candidate, &preview.catalogue) {
                Err(forbidden) => Verdict::Forbidden(forbidden),
                Ok(()) if !candidate.is_priced && preview.unpriced == UnpricedModels::Reject => Verdict::Unpriced,
                Ok(()) => evaluate_endpoint(&request, candidate, workspace),
            },
        };
        let endpoints = preview.candidates.iter().map(verdict).collect();
        let (bounds, unroutable) = match preview.outcome {
            Ok(bounds) => (bounds, None),
            Err(error) => (Vec::new(), deciding_rule(error)?),
        };
        Ok(Self {
            decided_by: rejection.or(unroutable),
            bounds: sent.as_ref().map(|_| bounds).unwrap_or_default(),
            findings,
            provider_input: sent,
            model: Some(preview.model),
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
