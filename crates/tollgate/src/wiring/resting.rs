//! Tells the log which endpoints begin to rest and which come back: the board that attempts report to says nothing by
//! itself.

use std::sync::Arc;
use std::time::Duration;

use domain::routing::{BreakerState, Endpoint, EndpointDirectory, HealthBoard, HealthView};
use domain::system::Clock;
use tokio_util::sync::CancellationToken;

/// How often the board is looked at: well within the shortest rest.
const LOOK_EVERY: Duration = Duration::from_secs(1);

/// Which endpoints rested when they were looked at last.
pub struct Resting {
    endpoints: Arc<EndpointDirectory>,
    health: Arc<HealthBoard>,
    resting: Vec<bool>,
}

/// An endpoint that began or ended to rest.
struct Change<'a> {
    endpoint: &'a Endpoint,
    health: HealthView,
}

impl Resting {
    /// Nobody rests.
    pub fn new(endpoints: Arc<EndpointDirectory>, health: Arc<HealthBoard>) -> Self {
        Self { resting: vec![false; endpoints.all().len()], endpoints, health }
    }

    /// Looks and tells, until it is cancelled.
    pub async fn run(mut self, clock: Arc<dyn Clock>, cancelled: CancellationToken) {
        loop {
            tokio::select! {
                () = cancelled.cancelled() => return,
                () = tokio::time::sleep(LOOK_EVERY) => {}
            }
            self.changes(clock.monotonic()).iter().for_each(Change::tell);
        }
    }

    /// What changed since the last look. An endpoint that is being probed still rests.
    fn changes(&mut self, now: Duration) -> Vec<Change<'_>> {
        let mut changes = Vec::new();
        for (endpoint, resting) in self.endpoints.all().iter().zip(&mut self.resting) {
            let health = self.health.view(endpoint.index, now);
            let rests = health.state != BreakerState::Closed;
            if rests != *resting {
                *resting = rests;
                changes.push(Change { endpoint, health });
            }
        }
        changes
    }
}

impl Change<'_> {
    fn tell(&self) {
        let Self { endpoint, health } = self;
        if health.state == BreakerState::Closed {
            tracing::info!(
                provider.slug = %endpoint.provider,
                upstream.model = endpoint.upstream_model,
                "an endpoint is back"
            );
        } else {
            tracing::warn!(
                provider.slug = %endpoint.provider,
                upstream.model = endpoint.upstream_model,
                failures = health.consecutive_failures,
                retry_in_ms = health.retry_in.map(|wait| wait.as_millis()),
                "an endpoint rests after failures"
            );
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use domain::routing::{Admission, HealthPolicy, Observation, Wire};

    fn report(board: &HealthBoard, observation: Observation, now: Duration) {
        let Admission::Admitted(permit) = board.admit(1, now) else { panic!("it is admitted") };
        board.report(permit, observation, now);
    }

    #[test]
    fn each_rest_is_told_when_it_begins_and_when_it_ends() {
        let endpoint = |name: &str| Endpoint::new("a/b".parse().unwrap(), "p".parse().unwrap(), Wire::SystemOne, name);
        let endpoints = Arc::new(EndpointDirectory::new(vec![endpoint("well"), endpoint("ill")]));
        let policy = HealthPolicy::default();
        let board = Arc::new(HealthBoard::new(2, policy));
        let mut resting = Resting::new(endpoints, Arc::clone(&board));
        let mut told = |now: Duration| -> Vec<(String, bool)> {
            let changes = resting.changes(now);
            let shown = |change: &Change<'_>| {
                (change.endpoint.upstream_model.clone(), change.health.state != BreakerState::Closed)
            };
            changes.iter().map(shown).collect()
        };
        let start = Duration::from_secs(1);
        assert!(told(start).is_empty());
        report(&board, Observation::Unauthorised, start);
        assert_eq!(told(start), [("ill".to_owned(), true)]);
        assert!(told(start).is_empty(), "it is told once");
        let later = start + policy.open_for;
        assert!(told(later).is_empty(), "it may be probed, and is not back");
        report(&board, Observation::Succeeded { latency: Duration::from_millis(1), tokens: 0 }, later);
        assert_eq!(told(later), [("ill".to_owned(), false)]);
    }
}
