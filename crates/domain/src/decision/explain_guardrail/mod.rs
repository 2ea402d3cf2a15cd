//! Explains the effect of a guardrail on a request, without sending it.

mod evaluation;
mod verdict;

use std::sync::Arc;

pub(crate) use self::evaluation::RequestEvaluator;
use super::resolve_preset::replace_preset;
use crate::api_key::{ApiKey, ApiKeyRepository, ApiKeyScope, KeyReference};
use crate::authority::{Authority, Right};
use crate::budget::{LedgerReader, Payer, admit};
use crate::decision::{DecisionRequest, SubmitDecision};
use crate::guardrail::{Guardrail, GuardrailRepository, Policy, find_visible};
use crate::ids::WorkspaceId;
use crate::money::Usd;
use crate::preset::{PresetRepository, PresetSlug};
use crate::question::Questions;
use crate::system::Clock;
use crate::workspace::{Workspace, WorkspaceRepository};
pub use verdict::{Decider, EndpointVerdict, ExplainGuardrailError, Explanation, KeyRejection, Verdict};

/// The ports of [`ExplainGuardrail`].
pub struct ExplainGuardrailPorts {
    /// The guardrails.
    pub guardrails: Arc<dyn GuardrailRepository>,
    /// The workspaces, with their default guardrails.
    pub workspaces: Arc<dyn WorkspaceRepository>,
    /// The API keys.
    pub api_keys: Arc<dyn ApiKeyRepository>,
    /// The presets that requests name.
    pub presets: Arc<dyn PresetRepository>,
    /// The current amounts of limits.
    pub limits: Arc<dyn LedgerReader>,
    /// The clock.
    pub clock: Arc<dyn Clock>,
}

/// A request to explain, with the models and questions of its preset.
pub struct ExplainedRequest {
    guardrail: Guardrail,
    key: Option<ApiKey>,
    workspace_id: WorkspaceId,
    request: DecisionRequest,
}

impl ExplainedRequest {
    /// Returns the questions of its preset, which were read for this request; `None` without a preset.
    pub fn preset_questions(&self) -> Option<&Questions> {
        self.request.preset.as_ref().map(|_| &self.request.provider_input.questions)
    }
}

/// Explains whether a request of a key with this guardrail would be sent, and which rule decides.
pub struct ExplainGuardrail {
    ports: ExplainGuardrailPorts,
    decisions: RequestEvaluator,
}

impl ExplainGuardrail {
    /// Creates the use case; `decisions` is the use case that would answer the request.
    pub fn new(ports: ExplainGuardrailPorts, decisions: &SubmitDecision) -> Self {
        Self { ports, decisions: decisions.evaluator() }
    }

    /// Finds the guardrail, the key and the preset of a request. Without a key, assumes one of the guardrail's workspace
    /// without limits.
    ///
    /// # Errors
    /// An unknown guardrail, key or preset; an error of a store.
    pub async fn resolve(
        &self,
        by: &Authority,
        id: &str,
        key: Option<&str>,
        request: DecisionRequest,
    ) -> Result<ExplainedRequest, ExplainGuardrailError> {
        by.check(Right::Read)?;
        let guardrail = find_visible::<ExplainGuardrailError>(&*self.ports.guardrails, by, id).await?;
        let key = self.key(by, key).await?;
        let workspace_id = key.as_ref().map_or(guardrail.workspace_id, |(_, id)| *id);
        let request = self.without_preset(workspace_id, request).await?;
        Ok(ExplainedRequest { guardrail, key: key.map(|(key, _)| key), workspace_id, request })
    }

    /// Explains a request of a key with this guardrail, assigned or not. The default guardrail of its workspace applies
    /// as well. Nothing is sent, held or charged, and the health of endpoints is ignored.
    ///
    /// # Errors
    /// An unknown or unusable model, unless the request is rejected before its models are resolved; an error of a store.
    pub async fn execute(&self, explained: ExplainedRequest) -> Result<Explanation, ExplainGuardrailError> {
        let ExplainedRequest { guardrail, key, workspace_id, request } = explained;
        let workspace = self.ports.workspaces.find(workspace_id).await?;
        let policy = Arc::new(self.policy(guardrail, workspace.as_ref()).await?);
        let limits = match &key {
            Some(key) => {
                let payer = Payer { workspace_id, api_key: key.id, guardrails: policy.ids() };
                self.ports.limits.limit_statuses(&payer).await?
            }
            None => Vec::new(),
        };
        let is_limited = policy.limits_money() || !limits.is_empty();
        let key_rejection = self.key_rejection(key.as_ref(), workspace.as_ref());
        let evaluation = self.decisions.evaluate(&request, &policy, (workspace_id, is_limited), key_rejection).await?;
        // A free request fits even into a limit that was lowered below the spent amount.
        let rejection = |bound: Usd| if bound > Usd::ZERO { admit(&limits, bound).err() } else { None };
        let fitting = evaluation.bounds.iter().copied().find(|bound| rejection(*bound).is_none());
        let bound = fitting.or(evaluation.bounds.first().copied());
        let exceeded = bound.and_then(rejection);
        let bound_fits = key.as_ref().and(bound).map(|_| exceeded.is_none());
        let decided_by = evaluation.decided_by.or(exceeded.map(Decider::Budget));
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

    /// Returns the request with the models and questions of the preset that it names, as the request itself would have
    /// them.
    async fn without_preset(
        &self,
        workspace_id: WorkspaceId,
        request: DecisionRequest,
    ) -> Result<DecisionRequest, ExplainGuardrailError> {
        let Some(slug) = request.preset_slug() else { return Ok(request) };
        let found = match PresetSlug::try_new(slug) {
            Ok(slug) => self.ports.presets.find(workspace_id, &slug).await?,
            Err(_) => None,
        };
        Ok(replace_preset(request, found.as_ref())?)
    }

    async fn key(
        &self,
        by: &Authority,
        name: Option<&str>,
    ) -> Result<Option<(ApiKey, WorkspaceId)>, ExplainGuardrailError> {
        let Some(name) = name else { return Ok(None) };
        let name: KeyReference = name.parse().map_err(|_| ExplainGuardrailError::UnknownKey)?;
        let key = self.ports.api_keys.find(&name).await?.ok_or(ExplainGuardrailError::UnknownKey)?;
        match key.scope {
            ApiKeyScope::Inference(workspace_id) if by.sees(workspace_id) => Ok(Some((key, workspace_id))),
            _ => Err(ExplainGuardrailError::UnknownKey),
        }
    }

    /// Compiles the workspace's default guardrail and then the guardrail into one policy.
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

    fn key_rejection(&self, key: Option<&ApiKey>, workspace: Option<&Workspace>) -> Option<KeyRejection> {
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
