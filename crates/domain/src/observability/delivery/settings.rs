//! The settings of delivery.

use std::time::Duration;

use crate::observability::Destination;

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
}
