//! Logs throttled and recovered endpoints, and runs the heartbeat that detects pauses of the process.

use std::sync::Arc;
use std::time::Duration;

use domain::model::ModelId;
use domain::routing::{Endpoint, FailureCause, HealthBoard, ProviderSlug, ThrottleView};
use domain::system::Clock;
use tokio_util::sync::CancellationToken;

use crate::routing::{CurrentRouting, Routing};

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
                self.follow(Arc::clone(&current.borrow_and_update()));
            }
            self.changes(clock.monotonic()).iter().for_each(Change::log);
        }
    }

    /// Replaces the endpoints by those of a reloaded configuration. Endpoints in both keep their state: their throttling
    /// is not logged twice, and their recovery is logged.
    fn follow(&mut self, routing: Arc<Routing>) {
        let endpoints = self.routing.endpoints.all().iter();
        let mut previous: Vec<(&Endpoint, bool)> =
            endpoints.map(|endpoint| &**endpoint).zip(self.throttled.iter().copied()).collect();
        let was_throttled = |endpoint: &Arc<Endpoint>| {
            let same = previous.iter().position(|(old, _)| name(old) == name(endpoint));
            same.is_some_and(|index| previous.remove(index).1)
        };
        self.throttled = routing.endpoints.all().iter().map(was_throttled).collect();
        self.routing = routing;
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

/// Returns the parts of an endpoint that identify it in every configuration.
fn name(endpoint: &Endpoint) -> (&ModelId, &ProviderSlug, &str) {
    (&endpoint.model, &endpoint.provider, &endpoint.upstream_model)
}

impl Change<'_> {
    fn log(&self) {
        let Self { endpoint, throttling, is_throttled } = self;
        let last_error = throttling.last_error.map(|error| error.kind.as_str());
        let status = throttling.last_error.and_then(|error| error.upstream_status);
        let cause = throttling.last_error.and_then(|error| error.cause).map(FailureCause::as_str);
        if *is_throttled {
            tracing::warn!(
                provider.slug = %endpoint.provider,
                upstream.model = &*endpoint.upstream_model,
                last_error,
                upstream.status = status,
                cause,
                accept_rate = throttling.accept_rate,
                throttled_for_all = throttling.throttled,
                throttled_workspaces = throttling.throttled_workspaces,
                retry_in_ms = throttling.retry_in.map(|wait| wait.as_millis()),
                "endpoint throttled"
            );
        } else {
            tracing::info!(
                provider.slug = %endpoint.provider,
                upstream.model = &*endpoint.upstream_model,
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
        report_of(board, 1, observation, now);
    }

    fn report_of(board: &HealthBoard, endpoint: usize, observation: Observation, now: Duration) {
        let workspace = WorkspaceId::from_uuid(SequentialIds::uuid(1));
        board.report(&AttemptReport { endpoint, workspace, began: now, observation }, now);
    }

    fn routing(names: &[&str], health: &Arc<HealthBoard>) -> Arc<Routing> {
        let endpoint =
            |name: &&str| Endpoint::new("a/b".parse().unwrap(), "p".parse().unwrap(), Wire::SystemOne, *name);
        Arc::new(Routing {
            endpoints: Arc::new(EndpointDirectory::new(names.iter().map(endpoint).collect())),
            health: Arc::clone(health),
            provider: Arc::new(adapters_provider::SandboxProvider::new()),
            source: crate::config::ConfigurationSource::default(),
        })
    }

    fn changes_of(log: &mut ThrottleLog, now: Duration) -> Vec<(String, bool)> {
        let changes = log.changes(now);
        changes.iter().map(|change| (change.endpoint.upstream_model.to_string(), change.is_throttled)).collect()
    }

    #[test]
    fn reload_keeps_the_state_of_endpoints() {
        let policy = HealthPolicy::default();
        let board = Arc::new(HealthBoard::new(2, policy));
        let mut log = ThrottleLog::new(routing(&["healthy", "failing"], &board));
        let start = Duration::from_secs(1);
        report(&board, Observation::from(&AttemptFailure::from_status(401, None)), start);
        assert_eq!(changes_of(&mut log, start), [("failing".to_owned(), true)]);

        let next = Arc::new(board.succeeded_by(&[None, Some(0), Some(1)]));
        log.follow(routing(&["new", "healthy", "failing"], &next));
        assert!(changes_of(&mut log, start).is_empty(), "throttling is logged once, reload or not");
        let later = start + policy.auth_backoff;
        for _ in 0..policy.min_requests {
            report_of(&next, 2, Observation::Succeeded { latency: Duration::from_millis(1), tokens: 0 }, later);
        }
        assert_eq!(changes_of(&mut log, later), [("failing".to_owned(), false)], "its recovery is logged");
    }

    #[test]
    fn removed_endpoint_leaves_no_state() {
        let policy = HealthPolicy::default();
        let board = Arc::new(HealthBoard::new(2, policy));
        let mut log = ThrottleLog::new(routing(&["healthy", "failing"], &board));
        let start = Duration::from_secs(1);
        report(&board, Observation::from(&AttemptFailure::from_status(401, None)), start);
        assert_eq!(changes_of(&mut log, start).len(), 1);
        let next = Arc::new(board.succeeded_by(&[Some(0)]));
        log.follow(routing(&["healthy"], &next));
        assert!(changes_of(&mut log, start).is_empty());
        let back = Arc::new(next.succeeded_by(&[Some(0), None]));
        log.follow(routing(&["healthy", "failing"], &back));
        assert!(changes_of(&mut log, start).is_empty(), "it was removed, so its recovery is no event");
    }

    #[test]
    fn change_is_logged_once() {
        let policy = HealthPolicy::default();
        let board = Arc::new(HealthBoard::new(2, policy));
        let mut log = ThrottleLog::new(routing(&["healthy", "failing"], &board));
        let mut changes = |now: Duration| changes_of(&mut log, now);
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
