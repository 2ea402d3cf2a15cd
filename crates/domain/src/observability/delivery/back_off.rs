//! The delay between delivery attempts.

use std::time::Duration;

use super::DeliverySettings;

/// The longest `Retry-After` of a destination that is respected.
const MAX_RETRY_AFTER: Duration = Duration::from_hours(1);

impl DeliverySettings {
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
