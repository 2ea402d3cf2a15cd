//! Lists the endpoints of a model with their health.

use std::sync::Arc;
use std::time::Duration;

use super::{Endpoint, EndpointDirectory, HealthBoard, HealthView, ThrottleView};
use crate::model::{Catalogue, GetModelError, Model};
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
    pub(super) fn of(endpoint: &Arc<Endpoint>, health: &HealthBoard, now: Duration) -> Self {
        Self {
            health: health.view(endpoint.index, now),
            throttling: health.throttling(endpoint.index, now),
            endpoint: Arc::clone(endpoint),
        }
    }
}

/// Lists the endpoints of a model.
pub struct ListModelEndpoints {
    catalogue: Arc<dyn Catalogue>,
    endpoints: Arc<EndpointDirectory>,
    health: Arc<HealthBoard>,
    clock: Arc<dyn Clock>,
}

impl ListModelEndpoints {
    /// Creates the use case. `health` is the board that attempts report to.
    pub fn new(
        catalogue: Arc<dyn Catalogue>,
        endpoints: Arc<EndpointDirectory>,
        health: Arc<HealthBoard>,
        clock: Arc<dyn Clock>,
    ) -> Self {
        Self { catalogue, endpoints, health, clock }
    }

    /// Resolves the name as [`crate::model::GetModel`] does. A model without an endpoint has an empty list.
    pub fn execute(&self, author: &str, slug: &str) -> Result<ModelEndpoints, GetModelError> {
        let snapshot = self.catalogue.snapshot();
        let model = snapshot.resolve(&format!("{author}/{slug}")).ok_or(GetModelError::NotFound)?.model;
        let now = self.clock.monotonic();
        let status = |endpoint| EndpointStatus::of(endpoint, &self.health, now);
        let endpoints = self.endpoints.for_model(&model).iter().map(status).collect();
        Ok(ModelEndpoints { model, endpoints })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::ids::WorkspaceId;
    use crate::model::{AliasTarget, Pricing};
    use crate::money::Price;
    use crate::routing::{AttemptFailure, AttemptReport, HealthPolicy, Observation, Wire};
    use crate::testing::{FixedClock, MemoryCatalogue};

    fn listing() -> ListModelEndpoints {
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
        ListModelEndpoints::new(
            Arc::new(catalogue),
            Arc::new(EndpointDirectory::new(endpoints)),
            Arc::new(board),
            Arc::new(clock),
        )
    }

    #[test]
    fn execute_returns_health_of_each_endpoint() {
        for slug in ["judge", "JUDGE", "judge:nitro"] {
            let listed = listing().execute("acme", slug).unwrap();
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
        assert_eq!(listing().execute("~acme", "judge-latest").unwrap().endpoints.len(), 2);
    }

    #[test]
    fn execute_returns_empty_list_without_endpoint_and_not_found_for_unknown_model() {
        assert_eq!(listing().execute("acme", "idle").unwrap().endpoints, []);
        assert!(matches!(listing().execute("acme", "other"), Err(GetModelError::NotFound)));
        assert!(matches!(listing().execute("acme", "judge/"), Err(GetModelError::NotFound)));
    }
}
