//! The schedule of retention.

use std::sync::Arc;
use std::time::Duration;

use adapters_storage::{SeaOrmLedgerReports, SeaOrmOutbox};
use adapters_system::TokioTimer;
use domain::retention::{ApplyRetention, ApplyRetentionPorts, RetentionPolicy};
use domain::system::{Randomness, TimeSource};

use super::{Background, ProcessMetrics, Stores};

/// The interval of retention.
const EVERY: Duration = Duration::from_hours(1);
/// The maximum random addition to it, so that several processes do not start simultaneously.
const JITTER: Duration = Duration::from_mins(10);

/// Removes old rows immediately and then about every hour, until the instance ends.
pub fn start(
    policy: RetentionPolicy,
    stores: &Stores,
    random: Arc<dyn Randomness>,
    background: &Background,
    measures: &ProcessMetrics,
) {
    if policy.is_none() {
        return;
    }
    let ports = ApplyRetentionPorts {
        usage: Arc::new(SeaOrmLedgerReports::new(stores.database.clone())),
        rejections: Arc::clone(&stores.rejections),
        audit: Arc::clone(&stores.audit),
        outbox: Arc::new(SeaOrmOutbox::new(stores.database.clone())),
        time: TimeSource { clock: Arc::clone(&stores.clock), timer: Arc::new(TokioTimer) },
    };
    let retention = Arc::new(ApplyRetention::new(ports, policy));
    // A weak reference: the metrics outlive the server and would keep the database open.
    let watched = Arc::downgrade(&retention);
    measures
        .watch_retention(move || watched.upgrade().map(|retention| retention.unreadable_records()).unwrap_or_default());
    let cancelled = background.cancelled.clone();
    background.tasks.spawn(async move {
        loop {
            retention.execute(cancelled.cancelled()).await;
            tokio::select! {
                () = cancelled.cancelled() => return,
                () = tokio::time::sleep(EVERY + jitter(random.next_u64())) => {}
            }
        }
    });
}

/// Maps a random number to a part of [`JITTER`].
fn jitter(random: u64) -> Duration {
    let upper = u32::try_from(random >> 32).unwrap_or(u32::MAX);
    JITTER.mul_f64(f64::from(upper) / f64::from(u32::MAX))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn jitter_spans_zero_to_its_maximum() {
        assert_eq!((jitter(0), jitter(u64::MAX)), (Duration::ZERO, JITTER));
        let half = jitter(1 << 63);
        assert!(half > JITTER.mul_f64(0.49) && half < JITTER.mul_f64(0.51), "{half:?}");
    }
}
