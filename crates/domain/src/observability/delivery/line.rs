//! What this process knows of the way to one destination.

use std::time::Duration;

/// Most messages of one delivery.
pub(super) const WIDEST: u64 = 32;

/// The way to one destination.
#[derive(Debug, Clone)]
pub(super) struct Line {
    /// True while a delivery is under way.
    pub(super) busy: bool,
    /// Nothing is sent before this moment of the monotonic clock.
    pub(super) rests_until: Duration,
    /// Deliveries in a row at which the receiver was not there.
    pub(super) failures: u32,
    /// How many messages go together: one after a failure, so that a message which is at fault is found, and doubling
    /// with each success.
    pub(super) width: u64,
}

impl Default for Line {
    fn default() -> Self {
        Self { busy: false, rests_until: Duration::ZERO, failures: 0, width: WIDEST }
    }
}

impl Line {
    /// True where nothing may be sent now.
    pub(super) fn is_closed(&self, now: Duration) -> bool {
        self.busy || self.rests_until > now
    }

    pub(super) fn widen(&mut self) {
        self.width = self.width.saturating_mul(2).min(WIDEST);
    }
}
