//! Lists the configured providers with the status of their endpoints.

use std::collections::HashMap;
use std::sync::Arc;

use super::{EndpointDirectory, HealthBoard, ProviderSlug, ThrottleView};
use crate::system::Clock;

/// A provider with at least one configured endpoint.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ProviderStatus {
    /// Its slug.
    pub slug: ProviderSlug,
    /// Its display name.
    pub name: String,
    /// True if the operator paused it.
    pub is_paused: bool,
    /// The number of its endpoints by throttling.
    pub endpoints: ThrottleCounts,
}

/// The number of endpoints by throttling.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct ThrottleCounts {
    /// Not throttled for any workspace.
    pub healthy: usize,
    /// Throttled for some workspaces because of their own failures.
    pub throttled_for_some: usize,
    /// Throttled for all workspaces.
    pub throttled: usize,
}

impl ThrottleCounts {
    /// Returns the number of all endpoints.
    pub fn total(self) -> usize {
        self.healthy + self.throttled_for_some + self.throttled
    }

    fn add(&mut self, view: &ThrottleView) {
        match view {
            ThrottleView { throttled: true, .. } => self.throttled += 1,
            ThrottleView { throttled_workspaces: 1.., .. } => self.throttled_for_some += 1,
            ThrottleView { .. } => self.healthy += 1,
        }
    }
}

/// Lists the providers.
pub struct ListProviders {
    endpoints: Arc<EndpointDirectory>,
    health: Arc<HealthBoard>,
    clock: Arc<dyn Clock>,
}

impl ListProviders {
    /// Creates the use case. `health` is the board that attempts report to.
    pub fn new(endpoints: Arc<EndpointDirectory>, health: Arc<HealthBoard>, clock: Arc<dyn Clock>) -> Self {
        Self { endpoints, health, clock }
    }

    /// Returns the providers in the order of their first endpoint in the configuration.
    pub fn execute(&self) -> Vec<ProviderStatus> {
        let now = self.clock.monotonic();
        let mut providers: Vec<ProviderStatus> = Vec::new();
        let mut positions: HashMap<&ProviderSlug, usize> = HashMap::new();
        for endpoint in self.endpoints.all() {
            let position = *positions.entry(&endpoint.provider).or_insert_with(|| {
                providers.push(ProviderStatus {
                    slug: endpoint.provider.clone(),
                    name: endpoint.provider_name.clone(),
                    is_paused: self.health.paused().contains(&endpoint.provider),
                    endpoints: ThrottleCounts::default(),
                });
                providers.len() - 1
            });
            providers[position].endpoints.add(&self.health.throttling(endpoint.index, now));
        }
        providers
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::ids::WorkspaceId;
    use crate::routing::{AttemptFailure, AttemptReport, Endpoint, HealthPolicy, Observation, Wire};
    use crate::testing::FixedClock;

    #[test]
    fn execute_lists_each_provider_once_with_endpoint_counts() {
        let endpoint = |provider: &str, name: &str| Endpoint {
            provider_name: name.to_owned(),
            ..Endpoint::new("acme/judge".parse().unwrap(), provider.parse().unwrap(), Wire::SystemOne, "m")
        };
        let endpoints =
            vec![endpoint("two", "Two"), endpoint("one", "One"), endpoint("two", "Two"), endpoint("two", "Two")];
        let clock = FixedClock::default();
        let policy = HealthPolicy::default();
        let board = HealthBoard::new(endpoints.len(), policy);
        let fail = |endpoint: usize, status: u16| {
            let observation = Observation::from(&AttemptFailure::from_status(status, None));
            let (workspace, began) = (WorkspaceId::from_uuid(uuid::Uuid::nil()), clock.monotonic());
            board.report(&AttemptReport { endpoint, workspace, began, observation }, clock.monotonic());
        };
        fail(0, 401);
        for _ in 0..policy.min_requests {
            fail(3, 500);
        }
        let list =
            ListProviders::new(Arc::new(EndpointDirectory::new(endpoints)), Arc::new(board), Arc::new(clock.clone()));
        let listed: Vec<(String, String, ThrottleCounts)> =
            list.execute().into_iter().map(|status| (status.slug.to_string(), status.name, status.endpoints)).collect();
        let counts = |healthy, throttled_for_some, throttled| ThrottleCounts { healthy, throttled_for_some, throttled };
        assert_eq!(
            listed,
            [
                ("two".to_owned(), "Two".to_owned(), counts(1, 1, 1)),
                ("one".to_owned(), "One".to_owned(), counts(1, 0, 0))
            ]
        );
        assert_eq!(listed[0].2.total(), 3);
    }
}
