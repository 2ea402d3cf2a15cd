//! Passive health of endpoints: a pure state machine that receives the reports of attempts. It sends no probe requests.
//!
//! Each endpoint is throttled adaptively, after "Handling overload" in the Google SRE book: over a sliding window it
//! counts the requests that were sent and those that were accepted, and a further request is rejected with the
//! probability `max(0, (requests - K * accepts) / (requests + 1))`. An endpoint that fails half of its requests still
//! gets nearly all of them; one that fails all of them gets a trickle, and at least one request per probe interval.
//!
//! Failures that the content of a request can provoke count for the workspace that met them. They count for all
//! workspaces once a second workspace met some: see [`HealthBoard::admit`].
//!
//! Time is passed in as `now`, a [`Duration`](std::time::Duration) since a fixed point of a clock that never goes back
//! ([`Clock::monotonic`](crate::system::Clock::monotonic)). A `now` older than an earlier one is allowed:
//! threads read the clock before they wait for the lock.

mod board;
mod measurements;
mod observation;
mod throttle;
mod window;

use std::time::Duration;

pub use board::{HealthBoard, HealthView, LatencyPercentiles, PauseDetector, ThroughputPercentiles};
pub use observation::{AttemptError, AttemptReport, BoundExcess, FailureClass, Observation};
pub use throttle::{Admission, ThrottleView, ThrottledEndpoint, ThrottledEndpoints, rejection_probability};

/// The parameters of the health rules. Every value is valid; no value causes a panic.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct HealthPolicy {
    /// The period over which requests and accepts are counted, in 24 buckets. 2 min, as in the SRE book.
    pub throttle_window: Duration,
    /// K: requests per accept above which an endpoint is throttled. 2: an endpoint that fails half of its requests is
    /// not throttled.
    pub accept_multiplier: f64,
    /// Requests in the window below which an endpoint is not throttled. 10: four failures of six may be chance.
    pub min_requests: u32,
    /// The number of requests that a passed deadline counts as. 5: it costs the client more than a quick error.
    pub timeout_weight: u32,
    /// The longest back-off, and the longest `Retry-After` for clients. A longer `Retry-After` of a provider is reduced
    /// to it. 60 s: a wrong header must not disable an endpoint for a day. 0: no back-off.
    pub max_backoff: Duration,
    /// The back-off after a provider rejected our credentials. 5 s.
    pub auth_backoff: Duration,
    /// A throttled endpoint gets at least one request per this period. 5 s. 0: no endpoint is throttled, except during
    /// a back-off.
    pub probe_interval: Duration,
    /// Workspaces per endpoint whose own requests are counted; the least recently seen is dropped. 1,000; 0 counts as
    /// 1.
    pub max_workspaces: usize,
    /// The age at which an answer has half its weight in the average latency. 60 s.
    pub half_life: Duration,
    /// The period of the percentiles: between five sixths of this and all of it. 300 s.
    pub window: Duration,
    /// The period for which a failure is called recent. 30 s: endpoints without a recent failure are preferred.
    pub recent_failure: Duration,
}

impl Default for HealthPolicy {
    fn default() -> Self {
        Self {
            throttle_window: Duration::from_mins(2),
            accept_multiplier: 2.0,
            min_requests: 10,
            timeout_weight: 5,
            max_backoff: Duration::from_mins(1),
            auth_backoff: Duration::from_secs(5),
            probe_interval: Duration::from_secs(5),
            max_workspaces: 1_000,
            half_life: Duration::from_mins(1),
            window: Duration::from_mins(5),
            recent_failure: Duration::from_secs(30),
        }
    }
}

impl HealthPolicy {
    /// Returns the back-off for a `Retry-After`, if any.
    pub(super) fn backoff(&self, retry_after: Option<Duration>) -> Option<Duration> {
        retry_after.map(|wait| wait.min(self.max_backoff)).filter(|wait| !wait.is_zero())
    }

    /// Returns the back-off after rejected credentials.
    pub(super) fn credentials_backoff(&self) -> Duration {
        self.auth_backoff.min(self.max_backoff)
    }
}

#[cfg(test)]
mod tests;
