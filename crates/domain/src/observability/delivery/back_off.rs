//! How long to wait after failures.

use std::time::Duration;

use super::DeliverySettings;

/// Receivers that ask for more than this are asked again anyway.
const LONGEST_ASKED: Duration = Duration::from_hours(1);

impl DeliverySettings {
    /// The wait after so many failures in a row: doubling, less up to a half by lot, so that those who failed together do
    /// not come back together; never less than the receiver asked for. `lot` is uniform over all 64 bits.
    pub(super) fn wait(&self, failures: u32, asked: Option<Duration>, lot: u64) -> Duration {
        let doublings = failures.saturating_sub(1).min(31);
        let whole = self.retry_initial_delay.saturating_mul(1 << doublings).min(self.retry_max_delay);
        let half = whole / 2;
        let thousandths = u32::try_from(lot % 1_001).unwrap_or(0);
        let drawn = half + half / 1_000 * thousandths;
        asked.map_or(drawn, |asked| drawn.max(asked.min(LONGEST_ASKED)))
    }
}
