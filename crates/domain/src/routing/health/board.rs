//! The health of all endpoints of a process.

use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use super::endpoint_health::EndpointHealth;
use super::{
    Admission, AttemptError, AttemptReport, BoundExcess, HealthPolicy, HealthView, PauseDetector, ThrottleView,
};
use crate::ids::WorkspaceId;
use crate::system::Randomness;

/// The health of all endpoints of a process, by their index in the configuration. Each endpoint has its own lock, held
/// for less than a microsecond, and for up to two microseconds by [`Self::view`].
///
/// An unknown index is an endpoint without state: it is never throttled.
#[derive(Debug)]
pub struct HealthBoard {
    policy: HealthPolicy,
    endpoints: Vec<Arc<Mutex<EndpointHealth>>>,
    pauses: Arc<PauseDetector>,
}

impl HealthBoard {
    /// Creates a board of `count` endpoints, none of them throttled, without detection of pauses.
    pub fn new(count: usize, policy: HealthPolicy) -> Self {
        Self::with_pauses(count, policy, PauseDetector::new(Duration::MAX, Duration::ZERO))
    }

    /// Creates a board that drops failures of attempts during which the process was paused.
    pub fn with_pauses(count: usize, policy: HealthPolicy, pauses: PauseDetector) -> Self {
        Self { policy, endpoints: (0..count).map(|_| Arc::default()).collect(), pauses: Arc::new(pauses) }
    }

    /// Creates the board of a changed configuration. `previous` has the index in this board of each endpoint that is
    /// the same as before, or `None` for a new endpoint. Both boards share the health of the same endpoints, so that
    /// attempts that began before the change still count, and the detector of pauses. With another policy all endpoints
    /// begin without state, because the counts depend on it.
    #[must_use]
    pub fn succeeded_by(&self, previous: &[Option<usize>], policy: HealthPolicy) -> Self {
        let keeps = self.policy == policy;
        let health = |index: &Option<usize>| {
            let same = index.filter(|_| keeps).and_then(|index| self.endpoints.get(index));
            same.map(Arc::clone).unwrap_or_default()
        };
        Self { policy, endpoints: previous.iter().map(health).collect(), pauses: Arc::clone(&self.pauses) }
    }

    /// Returns the policy.
    pub fn policy(&self) -> &HealthPolicy {
        &self.policy
    }

    /// Returns the detector of pauses, which receives heartbeats.
    pub fn pauses(&self) -> &PauseDetector {
        &self.pauses
    }

    /// Returns the number of endpoints.
    pub fn len(&self) -> usize {
        self.endpoints.len()
    }

    /// Returns true if it has no endpoints.
    pub fn is_empty(&self) -> bool {
        self.endpoints.is_empty()
    }

    /// Decides on one attempt of a workspace, and counts an admitted one.
    ///
    /// A rejection has one of these reasons:
    /// - a back-off: a provider rejected our credentials (for all workspaces), or it asked this workspace or at least
    ///   two workspaces to retry later;
    /// - the workspace's own requests: its accepts, and all failures that it met;
    /// - the requests of all workspaces: all accepts, connection failures, and failures that content can provoke where
    ///   at least two workspaces met some. The workspace with the most of them counts no more than all others together.
    pub fn admit(&self, index: usize, workspace: WorkspaceId, random: &dyn Randomness, now: Duration) -> Admission {
        let Some(mut endpoint) = self.endpoint(index) else { return Admission::Normal };
        endpoint.throttle.admit(&self.policy, workspace, random, now)
    }

    /// Returns the remaining back-off of a workspace, and the last failure that it met.
    pub fn backoff(
        &self,
        index: usize,
        workspace: WorkspaceId,
        now: Duration,
    ) -> Option<(Duration, Option<AttemptError>)> {
        let mut endpoint = self.endpoint(index)?;
        let wait = endpoint.throttle.backoff(&self.policy, workspace, now)?;
        Some((wait, endpoint.throttle.last_error(workspace)))
    }

    /// Counts the end of an attempt. A failure during which the process was paused is dropped.
    pub fn report(&self, report: &AttemptReport, now: Duration) {
        if report.observation.is_failure() && self.pauses.was_paused_since(report.began, now) {
            return;
        }
        if let Some(mut endpoint) = self.endpoint(report.endpoint) {
            endpoint.report(&self.policy, report, now);
        }
    }

    /// Compares the token count of an answer with the configured bound of what was sent. Returns the excess if it raises
    /// the endpoint's bound for the first time within the last hour or two.
    pub fn count_tokens(&self, index: usize, bound: u64, counted: u64, now: Duration) -> Option<BoundExcess> {
        let excess = BoundExcess::observed(bound, counted)?;
        self.endpoint(index)?.bound_excesses.add(excess, now)
    }

    /// Returns how far the token counts of an endpoint exceeded its configured bound.
    pub fn bound_excess(&self, index: usize, now: Duration) -> Option<BoundExcess> {
        self.endpoint(index)?.bound_excesses.highest(now)
    }

    /// Returns true if a workspace met a failure less than [`HealthPolicy::recent_failure`] ago. Connection failures
    /// and rejected credentials count for all workspaces; other failures do so once two workspaces met some.
    pub fn failed_recently(&self, index: usize, workspace: WorkspaceId, now: Duration) -> bool {
        self.endpoint(index).is_some_and(|mut endpoint| endpoint.throttle.failed_recently(&self.policy, workspace, now))
    }

    /// Returns the latencies and throughputs of an endpoint.
    pub fn view(&self, index: usize, now: Duration) -> HealthView {
        match self.endpoint(index) {
            Some(endpoint) => endpoint.view(&self.policy, now),
            None => EndpointHealth::default().view(&self.policy, now),
        }
    }

    /// Returns the throttling of an endpoint. Reads the state of each of its workspaces.
    pub fn throttling(&self, index: usize, now: Duration) -> ThrottleView {
        match self.endpoint(index) {
            Some(mut endpoint) => endpoint.throttle.view(&self.policy, now),
            None => EndpointHealth::default().throttle.view(&self.policy, now),
        }
    }

    fn endpoint(&self, index: usize) -> Option<MutexGuard<'_, EndpointHealth>> {
        // No code under the lock panics. Counts would stay usable after a panic.
        self.endpoints.get(index).map(|endpoint| endpoint.lock().unwrap_or_else(PoisonError::into_inner))
    }
}
