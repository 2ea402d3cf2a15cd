//! How patient delivery is.

use std::time::Duration;

use crate::observability::Destination;

/// How messages are delivered.
#[derive(Debug, Clone)]
pub struct DeliverySettings {
    /// Failures after which a message becomes a dead letter, at least 1.
    pub max_attempts: u32,
    /// The wait after the first failure; it doubles with each further one.
    pub retry_initial_delay: Duration,
    /// The longest wait.
    pub retry_max_delay: Duration,
    /// For how long a message that was taken is nobody else's: longer than a delivery may take.
    pub lease: Duration,
    /// How often the outbox is looked into while nothing is to be done.
    pub poll_every: Duration,
    /// How long deliveries that are under way are waited for at the end.
    pub grace: Duration,
    /// The operator's own collector.
    pub operators: Option<Destination>,
}

impl DeliverySettings {
    /// Twelve attempts over about half an hour, for a sender that gives up after `timeout`.
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
