//! Logs throttled and recovered endpoints, and runs the heartbeat that detects pauses of the process.

use std::sync::Arc;
use std::time::Duration;

use domain::routing::{Endpoint, HealthBoard, ThrottleView};
use domain::system::Clock;
use tokio_util::sync::CancellationToken;

use super::{CurrentRouting, Routing};

/// The interval of the check for the log.
const CHECK_EVERY: Duration = Duration::from_secs(1);
/// The interval of the heartbeat.
pub const HEARTBEAT: Duration = Duration::from_millis(100);
/// The rejection probability below which an endpoint has recovered: lower than the throttling threshold, to avoid
/// alternating log lines.
const RECOVERED_BELOW: f64 = 0.05;

/// Runs the heartbeat until it is cancelled.
pub async fn keep_heartbeat(health: Arc<HealthBoard>, clock: Arc<dyn Clock>, cancelled: CancellationToken) {
    loop {
        if let Some(pause) = health.pauses().beat(clock.monotonic(), clock.now()) {
            tracing::warn!(pause_ms = pause.as_millis(), "process was paused");
        }
        tokio::select! {
            () = cancelled.cancelled() => return,
            () = tokio::time::sleep(HEARTBEAT) => {}
        }
    }
}

/// The endpoints that were throttled at the last check.
pub struct ThrottleLog {
    routing: Arc<Routing>,
    throttled: Vec<bool>,
}

/// A change of an endpoint since the last check.
struct Change<'a> {
    endpoint: &'a Endpoint,
    throttling: ThrottleView,
    is_throttled: bool,
}

impl ThrottleLog {
    /// Creates a log with no endpoint throttled.
    pub fn new(routing: Arc<Routing>) -> Self {
        Self { throttled: vec![false; routing.endpoints.all().len()], routing }
    }

    /// Checks and logs the endpoints of the current configuration, until it is cancelled.
    pub async fn run(mut self, mut current: CurrentRouting, clock: Arc<dyn Clock>, cancelled: CancellationToken) {
        loop {
            tokio::select! {
                () = cancelled.cancelled() => return,
                () = tokio::time::sleep(CHECK_EVERY) => {}
            }
            if current.has_changed().unwrap_or(false) {
                self = Self::new(Arc::clone(&current.borrow_and_update()));
            }
            self.changes(clock.monotonic()).iter().for_each(Change::log);
        }
    }

    /// Returns the changes since the last check.
    fn changes(&mut self, now: Duration) -> Vec<Change<'_>> {
        let mut changes = Vec::new();
        let Routing { endpoints, health, .. } = &*self.routing;
        for (endpoint, was_throttled) in endpoints.all().iter().zip(&mut self.throttled) {
            let throttling = health.throttling(endpoint.index, now);
            let is_throttled = throttling.throttled || throttling.throttled_workspaces > 0;
            let has_recovered = !is_throttled && throttling.rejection_probability < RECOVERED_BELOW;
            let has_changed = if *was_throttled { has_recovered } else { is_throttled };
            if has_changed {
                *was_throttled = is_throttled;
                changes.push(Change { endpoint, throttling, is_throttled });
            }
        }
        changes
    }
}

impl Change<'_> {
    fn log(&self) {
        let Self { endpoint, throttling, is_throttled } = self;
        let last_error = throttling.last_error.map(|error| error.kind.as_str());
        let status = throttling.last_error.and_then(|error| error.upstream_status);
        if *is_throttled {
            tracing::warn!(
                provider.slug = %endpoint.provider,
                upstream.model = endpoint.upstream_model,
                last_error,
                upstream.status = status,
                accept_rate = throttling.accept_rate,
                throttled_for_all = throttling.throttled,
                throttled_workspaces = throttling.throttled_workspaces,
                retry_in_ms = throttling.retry_in.map(|wait| wait.as_millis()),
                "endpoint throttled"
            );
        } else {
            tracing::info!(
                provider.slug = %endpoint.provider,
                upstream.model = endpoint.upstream_model,
                last_error,
                upstream.status = status,
                accept_rate = throttling.accept_rate,
                "endpoint recovered"
            );
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use domain::ids::WorkspaceId;
    use domain::routing::{AttemptFailure, AttemptReport, EndpointDirectory, HealthPolicy, Observation, Wire};
    use domain::testing::SequentialIds;

    fn report(board: &HealthBoard, observation: Observation, now: Duration) {
        let workspace = WorkspaceId::from_uuid(SequentialIds::uuid(1));
        board.report(&AttemptReport { endpoint: 1, workspace, began: now, observation }, now);
    }

    #[test]
    fn change_is_logged_once() {
        let endpoint = |name: &str| Endpoint::new("a/b".parse().unwrap(), "p".parse().unwrap(), Wire::SystemOne, name);
        let endpoints = Arc::new(EndpointDirectory::new(vec![endpoint("healthy"), endpoint("failing")]));
        let policy = HealthPolicy::default();
        let board = Arc::new(HealthBoard::new(2, policy));
        let provider = Arc::new(adapters_provider::SandboxProvider::new());
        let loaded_at = chrono::DateTime::UNIX_EPOCH;
        let routing = Routing { endpoints, health: Arc::clone(&board), provider, loaded_at, variables: Vec::new() };
        let mut log = ThrottleLog::new(Arc::new(routing));
        let mut changes = |now: Duration| -> Vec<(String, bool)> {
            let changes = log.changes(now);
            changes.iter().map(|change| (change.endpoint.upstream_model.clone(), change.is_throttled)).collect()
        };
        let start = Duration::from_secs(1);
        assert!(changes(start).is_empty());
        report(&board, Observation::from(&AttemptFailure::from_status(401, None)), start);
        assert_eq!(changes(start), [("failing".to_owned(), true)]);
        assert!(changes(start).is_empty(), "once");
        let later = start + policy.auth_backoff;
        assert!(changes(later).is_empty(), "the back-off is over, and the trickle begins");
        for _ in 0..policy.min_requests {
            report(&board, Observation::Succeeded { latency: Duration::from_millis(1), tokens: 0 }, later);
        }
        assert_eq!(changes(later), [("failing".to_owned(), false)]);
        for _ in 0..30 {
            report(&board, Observation::from(&AttemptFailure::from_status(500, None)), later);
        }
        assert_eq!(changes(later), [("failing".to_owned(), true)], "by the failures of one workspace");
    }
}
