//! What the caller's names for models mean.

use std::sync::Arc;

use super::router::Router;
use crate::decision::SubmitDecisionError;
use crate::model::{CatalogueSnapshot, DynamicVariant, Model, ModelId};
use crate::routing::{Candidate, Endpoint, Sort, SortBy, TokenPrices};

/// How many names an unknown model is answered with.
const NEAREST: usize = 3;

/// A model that can be asked, and where.
pub(super) struct Target {
    pub(super) model: ModelId,
    pub(super) sort: Option<Sort>,
    /// Endpoints that are configured, priced or not.
    pub(super) configured: usize,
    pub(super) candidates: Vec<Candidate>,
}

/// Prices, and whether somebody has named them.
#[derive(Clone, Copy)]
struct RowPrices {
    prices: TokenPrices,
    are_known: bool,
}

impl Router {
    /// A row of the catalogue, by any of its names or by a bare one; else a sandbox model by its own name.
    pub(super) fn resolve(&self, snapshot: &CatalogueSnapshot, name: &str) -> Result<Target, SubmitDecisionError> {
        if let Some(found) = snapshot.resolve(name).or_else(|| snapshot.resolve_bare(name)) {
            return Target::from_row(&found.model, found.dynamic, self.endpoints.for_model(&found.model));
        }
        match self.endpoints.sandbox(name) {
            Some(endpoint) => Ok(Target::new(&endpoint.model, None, None, std::slice::from_ref(endpoint))),
            None => Err(SubmitDecisionError::UnknownModel {
                nearest: snapshot.nearest(name, NEAREST, Model::serves_decisions),
            }),
        }
    }
}

impl Target {
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
        let prices = TokenPrices { prompt: model.pricing.prompt, completion: model.pricing.completion };
        let row_prices = RowPrices { prices, are_known: model.pricing.is_known };
        Ok(Self::new(&model.id, dynamic, Some(row_prices), endpoints))
    }

    fn new(
        model: &ModelId,
        dynamic: Option<DynamicVariant>,
        row_prices: Option<RowPrices>,
        endpoints: &[Arc<Endpoint>],
    ) -> Self {
        let priced = endpoints.iter().filter_map(|endpoint| {
            let own = endpoint.prices.map(|prices| RowPrices { prices, are_known: true });
            let RowPrices { prices, are_known: is_priced } = own.or(row_prices)?;
            Some(Candidate { model: model.clone(), endpoint: Arc::clone(endpoint), prices, is_priced })
        });
        let by = match dynamic {
            Some(DynamicVariant::Floor) => Some(SortBy::Price),
            Some(DynamicVariant::Nitro) => Some(SortBy::Throughput),
            // Nothing is measured of how good answers are, and nothing is searched.
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
