//! Counts of rejected requests: in memory, written every few seconds.

use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use domain::system::{Clock, LineLimit};
use domain::usage::{Rejection, RejectionCounter, RejectionRecorder, RejectionStore};
use tokio_util::sync::CancellationToken;

/// The interval at which counts are written. A killed process loses the counts of this time.
const WRITE_EVERY: Duration = Duration::from_secs(5);
/// The time that the last write may take when the instance ends.
const LAST_WRITE: Duration = Duration::from_secs(10);

/// Counts rejected requests.
pub struct RejectionLog {
    counter: Mutex<RejectionCounter>,
    clock: Arc<dyn Clock>,
    lines: LineLimit,
}

impl RejectionLog {
    /// Creates an empty log.
    pub fn new(clock: Arc<dyn Clock>) -> Self {
        Self { counter: Mutex::default(), clock, lines: LineLimit::default() }
    }

    /// Writes the counts until it is cancelled, and then the rest.
    pub async fn write_until(&self, store: Arc<dyn RejectionStore>, cancelled: CancellationToken) {
        loop {
            let ends = tokio::select! {
                () = cancelled.cancelled() => true,
                () = tokio::time::sleep(WRITE_EVERY) => false,
            };
            if ends {
                drop(tokio::time::timeout(LAST_WRITE, self.write(&*store)).await);
                return;
            }
            self.write(&*store).await;
        }
    }

    /// Writes the counts. Counts that the store rejects stay in memory, which is bounded.
    async fn write(&self, store: &dyn RejectionStore) {
        let (counts, dropped) = {
            let mut counter = self.counter();
            (counter.take(), counter.take_dropped())
        };
        if dropped > 0 {
            tracing::warn!(requests = dropped, "rejected requests not counted");
        }
        if counts.is_empty() {
            return;
        }
        if let Err(error) = store.add(&counts).await {
            if self.lines.admits("write", self.clock.monotonic()) {
                let error = anyhow::Error::from(error);
                tracing::warn!(error = format!("{error:#}"), counts = counts.len(), "write of rejection counts failed");
            }
            let mut counter = self.counter();
            for count in counts {
                counter.add(count);
            }
        }
    }

    fn counter(&self) -> MutexGuard<'_, RejectionCounter> {
        self.counter.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl RejectionRecorder for RejectionLog {
    fn record(&self, rejection: Rejection) {
        let now = self.clock.now();
        self.counter().record(rejection, now);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use domain::error::StoreError;
    use domain::testing::{FixedClock, MemoryStore, SequentialIds};
    use domain::usage::{MockRejectionStore, RejectionFilter, RejectionReason, RejectionStatus};

    fn rejection() -> Rejection {
        Rejection {
            api_key: SequentialIds::key(1),
            workspace_id: None,
            status: RejectionStatus::TooManyRequests,
            reason: RejectionReason::RateLimited,
        }
    }

    #[tokio::test(start_paused = true)]
    async fn counts_are_written_in_batches_and_at_stop() {
        let (store, cancelled) = (MemoryStore::new().rejections(), CancellationToken::new());
        let log = RejectionLog::new(Arc::new(FixedClock::default()));
        let stored = async || store.list(&RejectionFilter::default(), 10).await.unwrap();
        let counting = async {
            for _ in 0..100_000 {
                log.record(rejection());
            }
            assert!(stored().await.is_empty(), "recording does not write");
            tokio::time::sleep(WRITE_EVERY + Duration::from_secs(1)).await;
            assert_eq!(stored().await[0].count, 100_000);
            log.record(rejection());
            cancelled.cancel();
        };
        tokio::join!(log.write_until(Arc::clone(&store) as Arc<dyn RejectionStore>, cancelled.clone()), counting);
        let counts = stored().await;
        assert_eq!((counts.len(), counts[0].count), (1, 100_001));
    }

    #[tokio::test]
    async fn counts_stay_in_memory_when_the_store_fails() {
        let log = RejectionLog::new(Arc::new(FixedClock::default()));
        log.record(rejection());
        let mut failing = MockRejectionStore::new();
        failing.expect_add().times(1).returning(|_| Err(StoreError::unavailable("gone")));
        log.write(&failing).await;
        log.record(rejection());
        let store = MemoryStore::new().rejections();
        log.write(&*store).await;
        log.write(&*store).await;
        assert_eq!(store.list(&RejectionFilter::default(), 10).await.unwrap()[0].count, 2);
    }
}
