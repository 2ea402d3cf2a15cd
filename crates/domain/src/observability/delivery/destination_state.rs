//! What this process knows of the way to one destination.

use std::time::Duration;

/// Most messages of one delivery.
pub(super) const MAX_BATCH: u64 = 32;

/// The way to one destination.
#[derive(Debug, Clone)]
pub(super) struct DestinationState {
    /// True while a delivery is under way.
    pub(super) busy: bool,
    /// Nothing is sent before this moment of the monotonic clock.
    pub(super) paused_until: Duration,
    /// Deliveries in a row at which the receiver was not there.
    pub(super) failures: u32,
    /// How many messages go together: one after a failure, so that a message which is at fault is found, and doubling
    /// with each success.
    pub(super) batch_size: u64,
}

impl Default for DestinationState {
    fn default() -> Self {
        Self { busy: false, paused_until: Duration::ZERO, failures: 0, batch_size: MAX_BATCH }
    }
}

impl DestinationState {
    /// True where nothing may be sent now.
    pub(super) fn is_unavailable(&self, now: Duration) -> bool {
        self.busy || self.paused_until > now
    }

    pub(super) fn grow_batch(&mut self) {
        self.batch_size = self.batch_size.saturating_mul(2).min(MAX_BATCH);
    }
}
