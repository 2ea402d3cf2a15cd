//! Lists endpoints with their health: those of a model, or those with zero data retention.

use std::sync::Arc;
use std::time::Duration;

use super::{Endpoint, EndpointDirectory, HealthBoard, HealthView, ProviderSlug, ThrottleView, price_warnings};
use crate::model::{Catalogue, GetModelError, Model};
use crate::pricing::TokenPrices;
use crate::system::Clock;

/// A model and the endpoints that are configured for it.
#[derive(Debug, Clone, PartialEq)]
pub struct ModelEndpoints {
    /// The row that the name resolved to.
    pub model: Arc<Model>,
    /// Its endpoints, in the order of the configuration.
    pub endpoints: Vec<EndpointStatus>,
}

/// An endpoint and its health.
#[derive(Debug, Clone, PartialEq)]
pub struct EndpointStatus {
    /// The endpoint.
    pub endpoint: Arc<Endpoint>,
    /// Its latencies and throughputs.
    pub health: HealthView,
    /// Its throttling.
    pub throttling: ThrottleView,
}

impl EndpointStatus {
    /// Returns the status of an endpoint at a time of the monotonic clock.
    fn of(endpoint: &Arc<Endpoint>, health: &HealthBoard, now: Duration) -> Self {
        Self {
            health: health.view(endpoint.index, now),
            throttling: health.throttling(endpoint.index, now),
            endpoint: Arc::clone(endpoint),
        }
    }
}

/// Lists endpoints with their health.
pub struct ListEndpoints {
    catalogue: Arc<dyn Catalogue>,
    endpoints: Arc<EndpointDirectory>,
    health: Arc<HealthBoard>,
    clock: Arc<dyn Clock>,
}

impl ListEndpoints {
    /// Creates the use case. `health` is the board that attempts report to.
    pub fn new(
        catalogue: Arc<dyn Catalogue>,
        endpoints: Arc<EndpointDirectory>,
        health: Arc<HealthBoard>,
        clock: Arc<dyn Clock>,
    ) -> Self {
        Self { catalogue, endpoints, health, clock }
    }

    /// Returns all endpoints in the order of the configuration.
    pub fn all(&self) -> Vec<EndpointStatus> {
        let now = self.clock.monotonic();
        self.endpoints.all().iter().map(|endpoint| EndpointStatus::of(endpoint, &self.health, now)).collect()
    }

    /// Returns the warnings of [`price_warnings`] for each endpoint, with its name.
    pub fn price_warnings(&self, rows: &[Model]) -> Vec<String> {
        let of_endpoint = |endpoint: &Arc<Endpoint>| {
            let name = format!("endpoint {} at {}", endpoint.model, endpoint.provider);
            price_warnings(endpoint, rows).into_iter().map(move |reason| format!("{name}: {reason}"))
        };
        self.endpoints.all().iter().flat_map(of_endpoint).collect()
    }

    /// Returns the catalogue's price of a token at an endpoint; `None` without a row or a fixed price.
    pub fn catalogue_prices(&self, endpoint: &Endpoint) -> Option<TokenPrices> {
        let pricing = &self.catalogue.snapshot().resolve(endpoint.model.as_str())?.model.pricing;
        (!pricing.is_variable()).then_some(TokenPrices { prompt: pricing.prompt, completion: pricing.completion })
    }

    /// Returns true if the operator paused the provider.
    pub fn is_paused(&self, provider: &ProviderSlug) -> bool {
        self.health.paused().contains(provider)
    }

    /// Resolves the name as [`crate::model::GetModel`] does. A model without an endpoint has an empty list.
    pub fn of_model(&self, author: &str, slug: &str) -> Result<ModelEndpoints, GetModelError> {
        let snapshot = self.catalogue.snapshot();
        let model = snapshot.resolve(&format!("{author}/{slug}")).ok_or(GetModelError::NotFound)?.model;
        let now = self.clock.monotonic();
        let status = |endpoint| EndpointStatus::of(endpoint, &self.health, now);
        let endpoints = self.endpoints.for_model(&model).iter().map(status).collect();
        Ok(ModelEndpoints { model, endpoints })
    }

    /// Returns the endpoints with zero data retention in the order of the configuration, each with its model. An
    /// endpoint whose model is not in the catalogue serves no request and is left out.
    pub fn with_zero_retention(&self) -> Vec<(Arc<Model>, EndpointStatus)> {
        let (snapshot, now) = (self.catalogue.snapshot(), self.clock.monotonic());
        let retains_nothing = self.endpoints.all().iter().filter(|endpoint| endpoint.data_policy.zdr);
        retains_nothing
            .filter_map(|endpoint| {
                let model = snapshot.resolve(endpoint.model.as_str())?.model;
                Some((model, EndpointStatus::of(endpoint, &self.health, now)))
            })
            .collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::ids::WorkspaceId;
    use crate::model::{AliasTarget, Pricing};
    use crate::money::Price;
    use crate::routing::{AttemptFailure, AttemptReport, DataPolicy, HealthPolicy, Observation, Wire};
    use crate::testing::{FixedClock, MemoryCatalogue};

    fn listing() -> ListEndpoints {
        let row = |id: &str| Model::minimal(id.parse().unwrap(), Pricing::per_token(Price::ZERO, Price::ZERO));
        let target = AliasTarget { name: "Judge".to_owned(), slug: "acme/judge".parse().unwrap() };
        let alias = Model { alias_target: Some(target), ..row("~acme/judge-latest") };
        let catalogue = MemoryCatalogue::new(vec![row("acme/judge"), row("acme/idle"), alias]);
        let endpoint = |model: &str, provider: &str| {
            Endpoint::new(model.parse().unwrap(), provider.parse().unwrap(), Wire::SystemOne, "m")
        };
        let endpoints =
            vec![endpoint("acme/other", "zero"), endpoint("acme/judge", "one"), endpoint("acme/judge", "two")];
        let clock = FixedClock::default();
        let board = HealthBoard::new(endpoints.len(), HealthPolicy::default());
        let observation = Observation::from(&AttemptFailure::from_status(401, None));
        let (workspace, began) = (WorkspaceId::from_uuid(uuid::Uuid::nil()), clock.monotonic());
        board.report(&AttemptReport { endpoint: 2, workspace, began, observation }, clock.monotonic());
        ListEndpoints::new(
            Arc::new(catalogue),
            Arc::new(EndpointDirectory::new(endpoints)),
            Arc::new(board),
            Arc::new(clock),
        )
    }

    #[test]
    fn of_model_returns_health_of_each_endpoint() {
        for slug in ["judge", "JUDGE", "judge:nitro"] {
            let listed = listing().of_model("acme", slug).unwrap();
            assert_eq!(listed.model.id.as_str(), "acme/judge");
            let health: Vec<(&str, bool, Option<f64>)> = listed
                .endpoints
                .iter()
                .map(|status| {
                    (status.endpoint.provider.as_str(), status.throttling.throttled, status.throttling.accept_rate)
                })
                .collect();
            assert_eq!(health, [("one", false, None), ("two", true, Some(0.0))]);
        }
        assert_eq!(listing().of_model("~acme", "judge-latest").unwrap().endpoints.len(), 2);
    }

    #[test]
    fn of_model_returns_empty_list_without_endpoint_and_not_found_for_unknown_model() {
        assert_eq!(listing().of_model("acme", "idle").unwrap().endpoints, []);
        assert!(matches!(listing().of_model("acme", "other"), Err(GetModelError::NotFound)));
        assert!(matches!(listing().of_model("acme", "judge/"), Err(GetModelError::NotFound)));
    }

    #[test]
    fn with_zero_retention_returns_only_such_endpoints_in_configuration_order() {
        let row = |id: &str, slug: &str| Model {
            canonical_slug: slug.parse().unwrap(),
            ..Model::minimal(id.parse().unwrap(), Pricing::per_token(Price::ZERO, Price::ZERO))
        };
        let catalogue = MemoryCatalogue::new(vec![row("acme/judge", "acme/judge-1"), row("acme/other", "acme/other")]);
        let endpoint = |model: &str, provider: &str, zdr, collects| Endpoint {
            data_policy: DataPolicy { zdr, collects },
            ..Endpoint::new(model.parse().unwrap(), provider.parse().unwrap(), Wire::SystemOne, "m")
        };
        let endpoints = vec![
            endpoint("acme/other", "two", true, true),
            endpoint("acme/judge", "one", false, false),
            endpoint("acme/judge-1", "two", true, false),
            endpoint("acme/unknown", "two", true, false),
        ];
        let board = HealthBoard::new(endpoints.len(), HealthPolicy::default());
        let listed = ListEndpoints::new(
            Arc::new(catalogue),
            Arc::new(EndpointDirectory::new(endpoints)),
            Arc::new(board),
            Arc::new(FixedClock::default()),
        )
        .with_zero_retention();
        let listed: Vec<(&str, &str, usize)> = listed
            .iter()
            .map(|(model, status)| (model.id.as_str(), status.endpoint.provider.as_str(), status.endpoint.index))
            .collect();
        assert_eq!(listed, [("acme/other", "two", 0), ("acme/judge", "two", 2)]);
    }
}
