//! The health of all endpoints of a process, and of each.

use std::sync::atomic::{AtomicI64, AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use chrono::{DateTime, Utc};

use super::measurements::{DecayingMean, RankOrder, WindowedHistogram};
use super::observation::{BoundExcess, BoundExcesses};
use super::throttle::EndpointThrottle;
use super::{Admission, AttemptError, AttemptReport, HealthPolicy, Observation, ThrottleView};
use crate::ids::WorkspaceId;
use crate::routing::PausedProviders;
use crate::routing::Percentiles;
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
    paused: PausedProviders,
}

impl HealthBoard {
    /// Creates a board of `count` endpoints, none of them throttled, without detection of pauses.
    pub fn new(count: usize, policy: HealthPolicy) -> Self {
        Self::with_pauses(count, policy, PauseDetector::new(Duration::MAX, Duration::ZERO))
    }

    /// Creates a board that drops failures of attempts during which the process was paused.
    pub fn with_pauses(count: usize, policy: HealthPolicy, pauses: PauseDetector) -> Self {
        let endpoints = (0..count).map(|_| Arc::default()).collect();
        Self { policy, endpoints, pauses: Arc::new(pauses), paused: PausedProviders::default() }
    }

    /// Sets the providers that the operator paused.
    #[must_use]
    pub fn with_paused(self, paused: PausedProviders) -> Self {
        Self { paused, ..self }
    }

    /// Returns the paused providers, which get no new attempts.
    pub fn paused(&self) -> &PausedProviders {
        &self.paused
    }

    /// Creates the board of a changed configuration. `previous` has the index in this board of each endpoint that is
    /// the same as before, or `None` for a new endpoint. Both boards share the health of the same endpoints, so that
    /// attempts that began before the change still count, the detector of pauses and the paused providers.
    #[must_use]
    pub fn succeeded_by(&self, previous: &[Option<usize>]) -> Self {
        let health = |index: &Option<usize>| {
            let same = index.and_then(|index| self.endpoints.get(index));
            same.map(Arc::clone).unwrap_or_default()
        };
        let endpoints = previous.iter().map(health).collect();
        Self { policy: self.policy, endpoints, pauses: Arc::clone(&self.pauses), paused: self.paused.clone() }
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

/// The measurements of an endpoint at one point in time.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct HealthView {
    /// The average latency of successful answers, with decay; it does not change without answers.
    pub latency: Option<Duration>,
    /// Percentiles of latency over the window; `None` without an answer in it.
    pub percentiles: Option<LatencyPercentiles>,
    /// The 95th percentile of latency over the window: the default delay of a hedge.
    pub p95: Option<Duration>,
    /// Percentiles of throughput over the window; `None` without an answer with a token count in it.
    pub throughput: Option<ThroughputPercentiles>,
    /// Successful answers in the window: the number of values behind the latency percentiles.
    pub answers_in_window: u64,
    /// Attempts since the process started, except neutral ones.
    pub observations: u64,
    /// How far token counts exceeded the configured bound; `None` if they did not within the last hour or two.
    pub bound_excess: Option<BoundExcess>,
}

/// Percentiles of the latency of successful answers. Accurate to 3.2 % or 1 µs, from 0 to 71 minutes.
pub type LatencyPercentiles = Percentiles<Duration>;

/// Percentiles of throughput: input and output tokens divided by the latency, in thousandths of a token per second.
/// 99 % of the answers have **at least** the throughput p99. Accurate to 3.2 %, up to 4.2 million tokens per second.
pub type ThroughputPercentiles = Percentiles<u64>;

/// The health of one endpoint: its throttle and its measurements.
///
/// The policy is passed to each call and SHOULD be the same one every time. About 2 kB, 0.7 kB more per workspace, and
/// 23 kB more after the first good answer.
#[derive(Debug, Default)]
pub(super) struct EndpointHealth {
    pub(super) throttle: EndpointThrottle,
    latency: DecayingMean,
    latencies: WindowedHistogram,
    throughputs: WindowedHistogram,
    observations: u64,
    pub(super) bound_excesses: BoundExcesses,
}

impl EndpointHealth {
    /// Counts the end of an attempt.
    pub(super) fn report(&mut self, policy: &HealthPolicy, report: &AttemptReport, now: Duration) {
        if report.observation != Observation::Neutral {
            self.observations = self.observations.saturating_add(1);
        }
        if let Observation::Succeeded { latency, tokens } = report.observation {
            self.measure(policy, latency, tokens, now);
        }
        self.throttle.report(policy, report, now);
    }

    /// The measurements at this point in time.
    pub(super) fn view(&self, policy: &HealthPolicy, now: Duration) -> HealthView {
        let percentiles = self.latencies.percentiles([50, 75, 90, 95, 99], RankOrder::Ascending, policy.window, now);
        let latencies = percentiles.map(|(values, _)| values.map(Duration::from_micros));
        let throughput = self.throughputs.percentiles([50, 75, 90, 99], RankOrder::Descending, policy.window, now);
        HealthView {
            latency: self.latency.mean().map(|secs| Duration::try_from_secs_f64(secs).unwrap_or(Duration::MAX)),
            percentiles: latencies.map(|[p50, p75, p90, _, p99]| LatencyPercentiles { p50, p75, p90, p99 }),
            p95: latencies.map(|[_, _, _, p95, _]| p95),
            throughput: throughput.map(|([p50, p75, p90, p99], _)| ThroughputPercentiles { p50, p75, p90, p99 }),
            answers_in_window: percentiles.map_or(0, |(_, answers)| answers),
            observations: self.observations,
            bound_excess: self.bound_excesses.highest(now),
        }
    }

    fn measure(&mut self, policy: &HealthPolicy, latency: Duration, tokens: u64, now: Duration) {
        self.latency.add(latency.as_secs_f64(), policy.half_life, now);
        let micros = u64::try_from(latency.as_micros()).unwrap_or(u64::MAX);
        self.latencies.record(micros, policy.window, now);
        if tokens > 0 {
            // Thousandths of a token a second; an answer in no time at all took a microsecond.
            let throughput = tokens.saturating_mul(1_000_000_000) / micros.max(1);
            self.throughputs.record(throughput, policy.window, now);
        }
    }
}

/// Detects pauses by late heartbeats. During a pause the clock advances while no task runs, so deadlines pass
/// regardless of the providers.
///
/// Without heartbeats, it detects no pauses.
#[derive(Debug)]
pub struct PauseDetector {
    /// The time after a heartbeat from which the next one is late.
    late_after: Duration,
    /// The last heartbeat, in nanoseconds; `NEVER` before the first.
    last_beat: AtomicU64,
    /// The last heartbeat by the wall clock, in milliseconds: a suspended machine stops the monotonic clock.
    last_wall: AtomicI64,
    /// The end of the last pause, in nanoseconds; 0 before the first.
    pause_ended: AtomicU64,
}

const NEVER: u64 = u64::MAX;

impl PauseDetector {
    /// Creates a detector of heartbeats every `interval`, each late by `tolerance` at most.
    pub fn new(interval: Duration, tolerance: Duration) -> Self {
        Self {
            late_after: interval.saturating_add(tolerance),
            last_beat: AtomicU64::new(NEVER),
            last_wall: AtomicI64::new(0),
            pause_ended: AtomicU64::new(0),
        }
    }

    /// Records a heartbeat. Returns the length of a pause that has just ended.
    pub fn beat(&self, now: Duration, wall: DateTime<Utc>) -> Option<Duration> {
        let beat = nanos(now);
        let last = self.last_beat.load(Ordering::Acquire);
        let last_wall = self.last_wall.swap(wall.timestamp_millis(), Ordering::AcqRel);
        let mut pause = None;
        if last != NEVER {
            let elapsed = Duration::from_nanos(beat.saturating_sub(last));
            let by_wall = wall.timestamp_millis().saturating_sub(last_wall);
            let elapsed = elapsed.max(Duration::from_millis(u64::try_from(by_wall).unwrap_or(0)));
            if elapsed > self.late_after {
                self.pause_ended.fetch_max(beat, Ordering::AcqRel);
                pause = Some(elapsed);
            }
        }
        // Stored after `pause_ended`, so that the pause is visible at every instant.
        self.last_beat.store(beat.min(NEVER - 1), Ordering::Release);
        pause
    }

    /// Returns true if the process was paused since `began`: a pause ended since then, or the heartbeat is late now.
    pub fn was_paused_since(&self, began: Duration, now: Duration) -> bool {
        let last = self.last_beat.load(Ordering::Acquire);
        let late = nanos(self.late_after);
        let is_late = last != NEVER && nanos(now).saturating_sub(last) > late;
        is_late || nanos(began) < self.pause_ended.load(Ordering::Acquire)
    }
}

fn nanos(time: Duration) -> u64 {
    u64::try_from(time.as_nanos()).unwrap_or(u64::MAX)
}
