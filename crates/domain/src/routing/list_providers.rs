//! Who could be asked, and how they are now.

use std::collections::HashMap;
use std::sync::Arc;

use super::{BreakerState, EndpointDirectory, HealthBoard, ProviderSlug};
use crate::system::Clock;

/// A provider that at least one endpoint is configured for.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ProviderStatus {
    /// Its slug.
    pub slug: ProviderSlug,
    /// Its display name.
    pub name: String,
    /// Its endpoints, by what their breakers do at this moment.
    pub endpoints: BreakerCounts,
}

/// How many endpoints are in which state.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct BreakerCounts {
    /// All attempts pass.
    pub closed: usize,
    /// One attempt at a time passes, to see how it goes.
    pub half_open: usize,
    /// No attempt passes.
    pub open: usize,
}

impl BreakerCounts {
    /// All of them.
    pub fn total(self) -> usize {
        self.closed + self.half_open + self.open
    }

    fn add(&mut self, state: BreakerState) {
        match state {
            BreakerState::Closed => self.closed += 1,
            BreakerState::HalfOpen => self.half_open += 1,
            BreakerState::Open => self.open += 1,
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
    /// Wires the ports. `health` is the board that attempts report to.
    pub fn new(endpoints: Arc<EndpointDirectory>, health: Arc<HealthBoard>, clock: Arc<dyn Clock>) -> Self {
        Self { endpoints, health, clock }
    }

    /// In the order in which the configuration first names an endpoint of theirs.
    pub fn execute(&self) -> Vec<ProviderStatus> {
        let now = self.clock.monotonic();
        let mut providers: Vec<ProviderStatus> = Vec::new();
        let mut places: HashMap<&ProviderSlug, usize> = HashMap::new();
        for endpoint in self.endpoints.all() {
            let place = *places.entry(&endpoint.provider).or_insert_with(|| {
                providers.push(ProviderStatus {
                    slug: endpoint.provider.clone(),
                    name: endpoint.provider_name.clone(),
                    endpoints: BreakerCounts::default(),
                });
                providers.len() - 1
            });
            providers[place].endpoints.add(self.health.view(endpoint.index, now).state);
        }
        providers
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::routing::{Admission, Endpoint, HealthPolicy, Observation, Wire};
    use crate::testing::FixedClock;
    use std::time::Duration;

    #[test]
    fn each_provider_stands_once_with_the_states_of_its_endpoints() {
        let endpoint = |provider: &str, name: &str| Endpoint {
            provider_name: name.to_owned(),
            ..Endpoint::new("acme/judge".parse().unwrap(), provider.parse().unwrap(), Wire::SystemOne, "m")
        };
        let endpoints =
            vec![endpoint("two", "Two"), endpoint("one", "One"), endpoint("two", "Two"), endpoint("two", "Two")];
        let clock = FixedClock::default();
        let policy = HealthPolicy::default();
        let board = HealthBoard::new(endpoints.len(), policy);
        let fail = |index: usize| {
            let Admission::Admitted(permit) = board.admit(index, clock.monotonic()) else { panic!("it is closed") };
            board.report(permit, Observation::Unauthorised, clock.monotonic());
        };
        fail(0);
        clock.advance(policy.open_for + Duration::from_millis(1));
        fail(3);
        let list =
            ListProviders::new(Arc::new(EndpointDirectory::new(endpoints)), Arc::new(board), Arc::new(clock.clone()));
        let told: Vec<(String, String, BreakerCounts)> =
            list.execute().into_iter().map(|status| (status.slug.to_string(), status.name, status.endpoints)).collect();
        let counts = |closed, half_open, open| BreakerCounts { closed, half_open, open };
        assert_eq!(
            told,
            [
                ("two".to_owned(), "Two".to_owned(), counts(1, 1, 1)),
                ("one".to_owned(), "One".to_owned(), counts(1, 0, 0))
            ]
        );
        assert_eq!(told[0].2.total(), 3);
    }
}
