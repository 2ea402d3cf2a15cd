//! Resolves names to models with their endpoints and prices. Pure.

use std::sync::Arc;

use crate::decision::{DecisionRequest, SubmitDecisionError, UnpricedModels};
use crate::guardrail::Policy;
use crate::model::{CatalogueSnapshot, DynamicVariant, Model, ModelId, NEAREST, Pricing};
use crate::pricing::TokenPrices;
use crate::routing::{Candidate, Endpoint, EndpointDirectory, RoutingFunnel, Sort, SortBy};

/// A model of the catalogue with the endpoints that serve it.
pub(in crate::decision) struct ResolvedModel {
    pub(in crate::decision) model: ModelId,
    pub(super) sort: Option<Sort>,
    /// The number of configured endpoints, with or without a price.
    pub(super) configured: usize,
    pub(in crate::decision) candidates: Vec<Candidate>,
}

/// Resolves the model of a request and its fallback models, each once.
///
/// # Errors
/// A name without a model, or a model that does not answer Decisions requests.
pub(in crate::decision) fn resolve_models(
    snapshot: &CatalogueSnapshot,
    endpoints: &EndpointDirectory,
    request: &DecisionRequest,
) -> Result<Vec<ResolvedModel>, SubmitDecisionError> {
    let mut models = vec![resolve_model(snapshot, endpoints, &request.model)?];
    for name in &request.fallback_models {
        let fallback = resolve_model(snapshot, endpoints, name)?;
        if models.iter().all(|other| other.model != fallback.model) {
            models.push(fallback);
        }
    }
    Ok(models)
}

/// Resolves one of the names of a catalogue row, or its bare name; otherwise the name of a sandbox model.
pub(super) fn resolve_model(
    snapshot: &CatalogueSnapshot,
    endpoints: &EndpointDirectory,
    name: &str,
) -> Result<ResolvedModel, SubmitDecisionError> {
    if let Some(found) = snapshot.resolve_any(name) {
        return ResolvedModel::from_row(&found.model, found.dynamic, endpoints.for_model(&found.model));
    }
    if let Some(endpoint) = endpoints.sandbox(name) {
        return Ok(ResolvedModel::new(&endpoint.model, None, None, std::slice::from_ref(endpoint)));
    }
    let nearest = snapshot.nearest(name, NEAREST, |model| endpoints.serves(model));
    Err(SubmitDecisionError::UnknownModel { nearest })
}

/// Returns the callable models nearest to a model without an endpoint.
pub(super) fn nearest_callable(
    snapshot: &CatalogueSnapshot,
    endpoints: &EndpointDirectory,
    model: &ModelId,
) -> Vec<String> {
    snapshot.closest(model.as_str(), NEAREST, |other| endpoints.serves(other))
}

impl ResolvedModel {
    fn from_row(
        model: &Model,
        dynamic: Option<DynamicVariant>,
        endpoints: &[Arc<Endpoint>],
    ) -> Result<Self, SubmitDecisionError> {
        if !model.serves_decisions() {
            return Err(SubmitDecisionError::NotADecisionModel(model.id.clone()));
        }
        if model.pricing.is_variable() {
            return Err(SubmitDecisionError::VariablePrice(model.id.clone()));
        }
        Ok(Self::new(&model.id, dynamic, Some(&model.pricing), endpoints))
    }

    fn new(
        model: &ModelId,
        dynamic: Option<DynamicVariant>,
        pricing: Option<&Pricing>,
        endpoints: &[Arc<Endpoint>],
    ) -> Self {
        let priced = endpoints.iter().filter_map(|endpoint| Candidate::new(model, endpoint, pricing));
        let by = match dynamic {
            Some(DynamicVariant::Floor) => Some(SortBy::Price),
            Some(DynamicVariant::Nitro) => Some(SortBy::Throughput),
            // The quality of answers is not measured, and there is no web search.
            Some(DynamicVariant::Exacto | DynamicVariant::Online) | None => None,
        };
        Self {
            candidates: priced.collect(),
            configured: endpoints.len(),
            sort: by.map(|by| Sort { by, across_models: false }),
            model: model.clone(),
        }
    }
}

/// Keeps the candidates that a policy permits.
///
/// # Errors
/// The first rule that forbids a candidate, if none is left.
pub(super) fn keep_permitted(
    models: &mut [ResolvedModel],
    policy: &Policy,
    snapshot: &CatalogueSnapshot,
    funnel: &mut RoutingFunnel,
) -> Result<(), SubmitDecisionError> {
    let mut first = None;
    for model in models.iter_mut() {
        model.candidates.retain(|candidate| match policy.permits(candidate, snapshot) {
            Ok(()) => true,
            Err(forbidden) => {
                first.get_or_insert_with(|| (candidate.model.clone(), forbidden));
                false
            }
        });
    }
    let left = count(models);
    funnel.push(("guardrail", left));
    match first {
        Some((model, forbidden)) if left == 0 => {
            Err(SubmitDecisionError::Forbidden { model, forbidden, funnel: funnel.clone() })
        }
        _ => Ok(()),
    }
}

/// Applies the rule for models without a price to a limited request. Returns true if its candidates differ from
/// those of an unlimited one.
///
/// # Errors
/// A model without a price, if no other candidate is left.
pub(super) fn apply_unpriced_rule(
    models: &mut [ResolvedModel],
    rule: UnpricedModels,
    funnel: &mut RoutingFunnel,
) -> Result<bool, SubmitDecisionError> {
    let mut all = models.iter().flat_map(|model| &model.candidates);
    let Some(unpriced) = all.find(|candidate| !candidate.is_priced).map(|candidate| candidate.model.clone()) else {
        return Ok(false);
    };
    match rule {
        UnpricedModels::Free => Ok(false),
        UnpricedModels::DefaultPrice(price) => {
            let candidates = models.iter_mut().flat_map(|model| &mut model.candidates);
            for candidate in candidates.filter(|candidate| !candidate.is_priced) {
                candidate.prices = TokenPrices { prompt: price, completion: price };
            }
            Ok(true)
        }
        UnpricedModels::Reject => {
            for model in models.iter_mut() {
                model.candidates.retain(|candidate| candidate.is_priced);
            }
            let left = count(models);
            funnel.push(("unpriced", left));
            if left == 0 { Err(SubmitDecisionError::Unpriced(unpriced)) } else { Ok(true) }
        }
    }
}

/// Returns the number of candidates of all models.
pub(super) fn count(models: &[ResolvedModel]) -> usize {
    models.iter().map(|model| model.candidates.len()).sum()
}
