//! Lists the endpoints with zero data retention.

use std::sync::Arc;

use super::{EndpointDirectory, EndpointStatus, HealthBoard};
use crate::model::{Catalogue, Model};
use crate::system::Clock;

/// Lists the endpoints with zero data retention.
pub struct ListZeroRetentionEndpoints {
    catalogue: Arc<dyn Catalogue>,
    endpoints: Arc<EndpointDirectory>,
    health: Arc<HealthBoard>,
    clock: Arc<dyn Clock>,
}

impl ListZeroRetentionEndpoints {
    /// Creates the use case. `health` is the board that attempts report to.
    pub fn new(
        catalogue: Arc<dyn Catalogue>,
        endpoints: Arc<EndpointDirectory>,
        health: Arc<HealthBoard>,
        clock: Arc<dyn Clock>,
    ) -> Self {
        Self { catalogue, endpoints, health, clock }
    }

    /// Returns the endpoints in the order of the configuration, each with its model. An endpoint whose model is not in
    /// the catalogue serves no request and is left out.
    pub fn execute(&self) -> Vec<(Arc<Model>, EndpointStatus)> {
        let snapshot = self.catalogue.snapshot();
        let now = self.clock.monotonic();
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
    use crate::model::Pricing;
    use crate::money::Price;
    use crate::routing::{DataPolicy, Endpoint, HealthPolicy, Wire};
    use crate::testing::{FixedClock, MemoryCatalogue};

    #[test]
    fn execute_returns_only_endpoints_with_zero_retention_in_configuration_order() {
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
        let listed = ListZeroRetentionEndpoints::new(
            Arc::new(catalogue),
            Arc::new(EndpointDirectory::new(endpoints)),
            Arc::new(board),
            Arc::new(FixedClock::default()),
        )
        .execute();
        let listed: Vec<(&str, &str, usize)> = listed
            .iter()
            .map(|(model, status)| (model.id.as_str(), status.endpoint.provider.as_str(), status.endpoint.index))
            .collect();
        assert_eq!(listed, [("acme/other", "two", 0), ("acme/judge", "two", 2)]);
    }
}
