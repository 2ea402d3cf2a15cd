//! Plans a request: chooses endpoints and assigns questions. Sends nothing.

use std::sync::Arc;
use std::time::Duration;

use super::plan::{Precedence, SubRequest, plan};
use super::resolve::{
    ResolvedModel, apply_unpriced_rule, count, keep_permitted, nearest_callable, resolve_model, resolve_models,
};
use crate::decision::{DecisionRequest, DecisionSettings, SubmitDecisionError};
use crate::guardrail::Policy;
use crate::ids::WorkspaceId;
use crate::model::{Catalogue, CatalogueSnapshot, ModelId};
use crate::question::ProviderInput;
use crate::routing::{
    EndpointDirectory, HealthBoard, NoCandidates, RoutingFunnel, RoutingPreferences, SelectedCandidates, Selection,
    UnknownProvider,
};
use crate::system::Randomness;

/// Plans requests.
pub(in crate::decision) struct RoutePlanner {
    pub(in crate::decision) catalogue: Arc<dyn Catalogue>,
    pub(super) endpoints: Arc<EndpointDirectory>,
    pub(super) health: Arc<HealthBoard>,
    pub(super) random: Arc<dyn Randomness>,
    pub(in crate::decision) settings: Arc<DecisionSettings>,
}

/// The plan of a request.
pub(in crate::decision) struct RoutePlan {
    /// The first of its models.
    pub(super) model: ModelId,
    /// True if models without a price make the candidates differ from those of an unlimited request.
    pub(super) prices_differ: bool,
    /// Those of all stages, in their order.
    pub(in crate::decision) sub_requests: Vec<SubRequest>,
    /// The stages with their numbers of sub-requests; empty without a cascade.
    pub(super) stages: Vec<PlannedStage>,
    pub(super) funnel: RoutingFunnel,
}

/// The sub-requests of a stage.
#[derive(Debug, Clone, Copy)]
pub(super) struct PlannedStage {
    /// The index of the stage in the cascade.
    pub(super) index: usize,
    pub(super) sub_requests: usize,
}

impl RoutePlanner {
    /// Resolves the models of a request.
    ///
    /// # Errors
    /// A model that does not exist or does not answer Decisions requests.
    pub(in crate::decision) fn resolve(
        &self,
        snapshot: &CatalogueSnapshot,
        request: &DecisionRequest,
    ) -> Result<Vec<ResolvedModel>, SubmitDecisionError> {
        resolve_models(snapshot, &self.endpoints, request)
    }

    /// Resolves the models, chooses endpoints that the policy permits, and plans the sub-requests. `now` is on the
    /// monotonic clock.
    ///
    /// # Errors
    /// The reason why no endpoint is left.
    pub(in crate::decision) fn plan(
        &self,
        request: &DecisionRequest,
        policy: Option<&Policy>,
        is_limited: bool,
        (workspace, now): (WorkspaceId, Duration),
    ) -> Result<RoutePlan, SubmitDecisionError> {
        let snapshot = self.catalogue.snapshot();
        let scope = (policy, is_limited, (workspace, now));
        let Some(cascade) = &request.cascade else {
            return self.plan_models(&snapshot, self.resolve(&snapshot, request)?, request, scope);
        };
        let (mut whole, mut first_error): (Option<RoutePlan>, _) = (None, None);
        for (index, stage) in cascade.stages.iter().enumerate() {
            let resolved = resolve_model(&snapshot, &self.endpoints, &stage.model);
            match resolved.and_then(|model| self.plan_models(&snapshot, vec![model], request, scope)) {
                Ok(mut plan) => {
                    let sub_requests = std::mem::take(&mut plan.sub_requests);
                    let stage = PlannedStage { index, sub_requests: sub_requests.len() };
                    let whole = whole.get_or_insert(plan);
                    whole.sub_requests.extend(sub_requests);
                    whole.stages.push(stage);
                }
                // A stage that cannot be asked is skipped, as a fallback model is.
                Err(error) => first_error = first_error.or(Some(error)),
            }
        }
        whole.ok_or_else(|| first_error.unwrap_or(SubmitDecisionError::Defect("a cascade without stages")))
    }

    fn plan_models(
        &self,
        snapshot: &CatalogueSnapshot,
        mut models: Vec<ResolvedModel>,
        request: &DecisionRequest,
        (policy, is_limited, (workspace, now)): (Option<&Policy>, bool, (WorkspaceId, Duration)),
    ) -> Result<RoutePlan, SubmitDecisionError> {
        let model = models[0].model.clone();
        let configured = models.iter().map(|model| model.configured).sum();
        let mut funnel: RoutingFunnel = vec![("model", configured), ("price", count(&models))];
        if let Some(policy) = policy {
            keep_permitted(&mut models, policy, snapshot, &mut funnel)?;
        }
        let prices_differ = is_limited && apply_unpriced_rule(&mut models, self.settings.unpriced, &mut funnel)?;
        let selection = Selection {
            preferences: &request.preferences,
            provider_input: &request.provider_input,
            health: &self.health,
            workspace,
            random: &*self.random,
            now,
        };
        let is_sorted = request.preferences.sort.is_some() || models[0].sort.is_some();
        let precedence = Precedence {
            first_endpoint: is_sorted || !request.preferences.order.is_empty(),
            across_models: request.preferences.sort.is_some_and(|sort| sort.across_models),
        };
        let candidates = models.into_iter().map(|model| (model.candidates, model.sort)).collect();
        let planned = selection
            .choose(candidates, &mut funnel)
            .and_then(|chosen| plan_chosen(&request.provider_input, chosen, precedence));
        match planned {
            Ok(sub_requests) => Ok(RoutePlan { model, prices_differ, sub_requests, stages: Vec::new(), funnel }),
            Err(NoCandidates::NoEndpoint) => {
                let nearest = nearest_callable(snapshot, &self.endpoints, &model);
                Err(SubmitDecisionError::NoEndpoint { model, nearest, funnel })
            }
            Err(NoCandidates::Preferences) => {
                let unknown = self.unknown_provider(&request.preferences);
                Err(SubmitDecisionError::ExcludedByPreferences { model, unknown, funnel })
            }
            Err(NoCandidates::Unsupported(unsupported)) => {
                Err(SubmitDecisionError::Unsupported { model, unsupported, funnel })
            }
            Err(NoCandidates::Throttled(endpoints)) => Err(SubmitDecisionError::Throttled { model, endpoints, funnel }),
        }
    }

    /// Returns the first provider that the preferences require and that does not exist.
    fn unknown_provider(&self, preferences: &RoutingPreferences) -> Option<UnknownProvider> {
        let known = || self.endpoints.all().iter().map(|endpoint| endpoint.provider.as_str());
        let order = preferences.order.iter().filter(|_| !preferences.allow_fallbacks);
        let mut required = preferences.only.iter().flatten().chain(order);
        let unknown = required.find(|name| known().all(|slug| slug != name.as_str()))?;
        Some(UnknownProvider::new(unknown, known()))
    }
}

/// Plans with the candidates that are not throttled. Throttled ones come after them, and are included in the plan if
/// those cannot answer everything.
fn plan_chosen(
    input: &Arc<ProviderInput>,
    chosen: SelectedCandidates,
    precedence: Precedence,
) -> Result<Vec<SubRequest>, NoCandidates> {
    let SelectedCandidates { candidates, throttled, rejected, rejections } = chosen;
    if throttled.is_empty() || candidates.is_empty() {
        let candidates = if candidates.is_empty() { throttled } else { candidates };
        return plan(input, &candidates, precedence).map_err(|unsupported| {
            let Some(rejections) = rejections else { return NoCandidates::Unsupported(unsupported) };
            // A throttled endpoint may support the request, so the client can retry later.
            let all = [&candidates[..], &rejected[..]].concat();
            match plan(input, &all, precedence) {
                Ok(_) => NoCandidates::Throttled(rejections),
                Err(_) => NoCandidates::Unsupported(unsupported),
            }
        });
    }
    if let Ok(planned) = plan(input, &candidates, precedence) {
        return Ok(planned.into_iter().map(|part| part.then(&throttled)).collect());
    }
    let candidates = [candidates, throttled].concat();
    plan_chosen(input, SelectedCandidates { candidates, throttled: Vec::new(), rejected, rejections }, precedence)
}
