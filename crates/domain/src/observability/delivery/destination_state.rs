//! The delivery state of one destination.

use std::time::Duration;

/// The most messages of one delivery.
pub(super) const MAX_BATCH: u64 = 32;

/// The delivery state of one destination in this process.
#[derive(Debug, Clone)]
pub(super) struct DestinationState {
    /// True while a delivery is under way.
    pub(super) busy: bool,
    /// The monotonic time before which nothing is sent.
    pub(super) paused_until: Duration,
    /// Consecutive deliveries that did not reach the destination.
    pub(super) failures: u32,
    /// The most messages of the next delivery: one after a failure, so that a rejected message is found; doubled after
    /// each success.
    pub(super) batch_size: u64,
}

impl Default for DestinationState {
    fn default() -> Self {
        Self { busy: false, paused_until: Duration::ZERO, failures: 0, batch_size: MAX_BATCH }
    }
}

impl DestinationState {
    /// Returns true if nothing may be sent now.
    pub(super) fn is_unavailable(&self, now: Duration) -> bool {
        self.busy || self.paused_until > now
    }

    pub(super) fn grow_batch(&mut self) {
        self.batch_size = self.batch_size.saturating_mul(2).min(MAX_BATCH);
    }
}
