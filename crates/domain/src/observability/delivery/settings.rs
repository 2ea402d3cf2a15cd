//! The settings of delivery.

use std::time::Duration;

use crate::observability::Destination;

/// The longest `Retry-After` of a destination that is respected.
const MAX_RETRY_AFTER: Duration = Duration::from_hours(1);

/// The settings of delivery.
#[derive(Debug, Clone)]
pub struct DeliverySettings {
    /// Failures after which a message becomes a dead letter, at least 1.
    pub max_attempts: u32,
    /// The wait after the first failure; it doubles with each further one.
    pub retry_initial_delay: Duration,
    /// The longest wait.
    pub retry_max_delay: Duration,
    /// How long a taken message is reserved for its taker: longer than a delivery may take.
    pub lease: Duration,
    /// The time between two polls of an idle outbox.
    pub poll_every: Duration,
    /// How long running deliveries are awaited at shutdown.
    pub grace: Duration,
    /// The operator's collector.
    pub operators: Option<Destination>,
}

impl DeliverySettings {
    /// Returns twelve attempts over about half an hour, for a sender with this timeout.
    pub fn new(timeout: Duration) -> Self {
        Self {
            max_attempts: 12,
            retry_initial_delay: Duration::from_secs(1),
            retry_max_delay: Duration::from_mins(5),
            lease: timeout.saturating_mul(2).saturating_add(Duration::from_secs(1)),
            poll_every: Duration::from_millis(500),
            grace: Duration::from_secs(3),
            operators: None,
        }
    }

    /// Returns the delay after consecutive failures: it doubles, minus up to 50 % jitter, so that destinations that
    /// failed together are not retried together. It is never shorter than the destination asked for. `random` is a
    /// number, uniform over all 64 bits.
    pub(super) fn wait(&self, failures: u32, asked: Option<Duration>, random: u64) -> Duration {
        let doublings = failures.saturating_sub(1).min(31);
        let whole = self.retry_initial_delay.saturating_mul(1 << doublings).min(self.retry_max_delay);
        let half = whole / 2;
        let thousandths = u32::try_from(random % 1_001).unwrap_or(0);
        let drawn = half + half / 1_000 * thousandths;
        asked.map_or(drawn, |asked| drawn.max(asked.min(MAX_RETRY_AFTER)))
    }
}
