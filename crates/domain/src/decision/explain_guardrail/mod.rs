//! Telling what a guardrail would do about a request, without doing it.

mod errors;
mod evaluation;
mod verdict;

use std::sync::Arc;

pub use self::errors::ExplainGuardrailError;
use self::evaluation::RequestEvaluation;
pub use self::verdict::{Decider, EndpointVerdict, Explanation, KeyRejection, Verdict};
use crate::api_key::{ApiKey, ApiKeyRepository, ApiKeyScope, KeyReference, ManagementKey};
use crate::budget::{LimitStatusReader, Payer, admit};
use crate::decision::{DecisionRequest, RequestPreview, SubmitDecision};
use crate::guardrail::{Guardrail, GuardrailRepository, Policy};
use crate::ids::{GuardrailId, WorkspaceId};
use crate::money::Usd;
use crate::system::Clock;
use crate::workspace::{Workspace, WorkspaceRepository};

/// The ports of [`ExplainGuardrail`].
pub struct ExplainGuardrailPorts {
    /// Where guardrails are kept.
    pub guardrails: Arc<dyn GuardrailRepository>,
    /// What workspaces are under.
    pub workspaces: Arc<dyn WorkspaceRepository>,
    /// Which keys there are.
    pub api_keys: Arc<dyn ApiKeyRepository>,
    /// The current amounts of limits.
    pub limits: Arc<dyn LimitStatusReader>,
    /// Time.
    pub clock: Arc<dyn Clock>,
}

/// Tells whether a key that holds a guardrail would reach a model with a request, and which rule decides.
pub struct ExplainGuardrail {
    ports: ExplainGuardrailPorts,
    decisions: RequestPreview,
}

impl ExplainGuardrail {
    /// Wires the ports; `decisions` would answer the request.
    pub fn new(ports: ExplainGuardrailPorts, decisions: &SubmitDecision) -> Self {
        Self { ports, decisions: decisions.preview() }
    }

    /// What would become of the request of a key that holds the guardrail, whether or not it does now, and that is
    /// under the default of its workspace as well. Without a key it is one of the guardrail's workspace that has no
    /// limits of its own. Nothing is sent, reserved or charged, and how well endpoints do at this moment plays no part.
    ///
    /// # Errors
    /// No such guardrail (a malformed id included) or key; a model that nobody has or that cannot be asked, unless the
    /// request is refused before its models are looked for; a store.
    pub async fn execute(
        &self,
        _authority: &ManagementKey,
        id: &str,
        key: Option<&str>,
        request: &DecisionRequest,
    ) -> Result<Explanation, ExplainGuardrailError> {
        let id: GuardrailId = id.parse().map_err(|_| ExplainGuardrailError::UnknownGuardrail)?;
        let guardrail = self.ports.guardrails.find(id).await?.ok_or(ExplainGuardrailError::UnknownGuardrail)?;
        let key = self.key(key).await?;
        let workspace_id = key.as_ref().map_or(guardrail.workspace_id, |(_, id)| *id);
        let workspace = self.ports.workspaces.find(workspace_id).await?;
        let policy = Arc::new(self.policy(guardrail, workspace.as_ref()).await?);
        let key = key.map(|(key, _)| key);
        let limits = match &key {
            Some(key) => {
                let payer = Payer { workspace_id, api_key: key.id, guardrails: policy.ids() };
                self.ports.limits.limit_statuses(&payer).await?
            }
            None => Vec::new(),
        };
        let is_limited = policy.limits_money() || !limits.is_empty();
        let refusal = self.refusal(key.as_ref(), workspace.as_ref());
        let evaluation =
            RequestEvaluation::evaluate(request, &policy, &self.decisions, (workspace_id, is_limited), refusal).await?;
        // What is free needs no money, even where a limit was lowered below what is spent.
        let refused = |bound: Usd| if bound > Usd::ZERO { admit(&limits, bound).err() } else { None };
        let fitting = evaluation.bounds.iter().copied().find(|bound| refused(*bound).is_none());
        let bound = fitting.or(evaluation.bounds.first().copied());
        let overspent = bound.and_then(refused);
        let bound_fits = key.as_ref().and(bound).map(|_| overspent.is_none());
        let decided_by = evaluation.decided_by.or(overspent.map(Decider::Budget));
        Ok(Explanation {
            allowed: decided_by.is_none(),
            decided_by,
            guardrails: policy.ids(),
            model: evaluation.model,
            endpoints: evaluation.endpoints,
            findings: evaluation.findings,
            provider_input: evaluation.provider_input,
            limits,
            bound,
            bound_fits,
        })
    }

    async fn key(&self, name: Option<&str>) -> Result<Option<(ApiKey, WorkspaceId)>, ExplainGuardrailError> {
        let Some(name) = name else { return Ok(None) };
        let name: KeyReference = name.parse().map_err(|_| ExplainGuardrailError::UnknownKey)?;
        let key = self.ports.api_keys.find(&name).await?.ok_or(ExplainGuardrailError::UnknownKey)?;
        match key.scope {
            ApiKeyScope::Inference(workspace_id) => Ok(Some((key, workspace_id))),
            ApiKeyScope::Management => Err(ExplainGuardrailError::UnknownKey),
        }
    }

    /// The guardrail, and before it the one that the workspace is under.
    async fn policy(
        &self,
        guardrail: Guardrail,
        workspace: Option<&Workspace>,
    ) -> Result<Policy, ExplainGuardrailError> {
        let default = match workspace.and_then(|workspace| workspace.default_guardrail_id) {
            Some(default) if default != guardrail.id => self.ports.guardrails.find(default).await?,
            _ => None,
        };
        Ok(Policy::compile(default.into_iter().chain([guardrail]).collect())?)
    }

    fn refusal(&self, key: Option<&ApiKey>, workspace: Option<&Workspace>) -> Option<KeyRejection> {
        let key = key?;
        if key.disabled {
            return Some(KeyRejection::Disabled);
        }
        if key.expires_at.is_some_and(|at| at <= self.ports.clock.now()) {
            return Some(KeyRejection::Expired);
        }
        workspace.is_some_and(|workspace| workspace.suspended).then_some(KeyRejection::WorkspaceSuspended)
    }
}

#[cfg(test)]
mod tests;
