//! The numbers of the health rules.

use std::time::Duration;

/// The numbers of the health rules. Every value is legal and none can panic; what makes no sense is said per field.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct HealthPolicy {
    /// Failures in a row that open a breaker. 5: a single reset or time-out is ordinary, five in a row are not, and five
    /// callers have had their fallback by then. 0 is the same as 1.
    pub failures_to_open: u32,
    /// The share of failures, 0 to 1, above which a breaker opens. 0.5: an endpoint that fails more often than not
    /// costs its callers more time than it gives answers. 1 or more switches the rule off.
    pub error_rate_to_open: f64,
    /// How many attempts the share must rest on, counted with decay. 10: four failures of six are still chance.
    pub error_rate_min_observations: u32,
    /// How long the first opening lasts. 5 s: longer than a restart behind a load balancer, short enough that a hiccup
    /// is over for callers as well.
    pub open_for: Duration,
    /// No opening lasts longer, but for a provider's `Retry-After`. Each opening doubles the one before, until a probe
    /// succeeds. 60 s: one call a minute is no load on who is down, and a recovery is seen within the minute.
    pub open_for_max: Duration,
    /// The longest `Retry-After` that is kept to; a longer one is cut to it. 10 min: a mistaken header must not take an
    /// endpoint out for a day. 0: no `Retry-After` is kept to, it counts as a failure.
    pub max_retry_after: Duration,
    /// How long a probe that does not report keeps its place. 120 s: longer than any attempt may take, so that a place
    /// expires only where its attempt was lost. It SHOULD be longer than the attempt's deadline; at 0 every attempt at
    /// a half-open breaker is a probe.
    pub probe_lease: Duration,
    /// After this time an observation has half its weight in the error rate and the average latency. 60 s: a minute's
    /// traffic decides, and the number still moves within seconds. 0: only observations of this very moment count.
    pub half_life: Duration,
    /// What percentiles look back over: between five sixths of this and all of it. 300 s, as callers' bounds on
    /// latency and throughput are understood.
    pub window: Duration,
    /// How long a failure is called recent. 30 s: endpoints without one are preferred.
    pub recent_failure: Duration,
}

impl Default for HealthPolicy {
    fn default() -> Self {
        Self {
            failures_to_open: 5,
            error_rate_to_open: 0.5,
            error_rate_min_observations: 10,
            open_for: Duration::from_secs(5),
            open_for_max: Duration::from_mins(1),
            max_retry_after: Duration::from_mins(10),
            probe_lease: Duration::from_mins(2),
            half_life: Duration::from_mins(1),
            window: Duration::from_mins(5),
            recent_failure: Duration::from_secs(30),
        }
    }
}

impl HealthPolicy {
    /// How long the opening of this number lasts, where 1 is the first since the breaker was last closed.
    pub(super) fn opening(&self, number: u32) -> Duration {
        let factor = 2_u32.saturating_pow(number.saturating_sub(1));
        self.open_for.saturating_mul(factor).min(self.open_for_max)
    }

    /// The wait that a provider asked for and that is kept to, if it did.
    pub(super) fn told_wait(&self, retry_after: Option<Duration>) -> Option<Duration> {
        retry_after.map(|wait| wait.min(self.max_retry_after)).filter(|wait| !wait.is_zero())
    }
}
