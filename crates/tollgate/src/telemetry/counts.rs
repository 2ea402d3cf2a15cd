//! Counts of rejected requests and of denied changes, kept in memory and written every few seconds.

use std::collections::VecDeque;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use domain::audit::{AuditDraft, AuditLog, DeniedChange, DeniedChangeCounter, DeniedChangeRecorder};
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
        while cancelled.run_until_cancelled(tokio::time::sleep(WRITE_EVERY)).await.is_some() {
            self.write(&*store).await;
        }
        drop(tokio::time::timeout(LAST_WRITE, self.write(&*store)).await);
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

/// The interval at which past minutes are written.
const WRITE_CHANGES_EVERY: Duration = Duration::from_secs(10);

/// Counts denied changes.
pub struct DeniedChangeLog {
    counter: Mutex<DeniedChangeCounter>,
    clock: Arc<dyn Clock>,
}

impl DeniedChangeLog {
    /// Creates an empty log.
    pub fn new(clock: Arc<dyn Clock>) -> Self {
        Self { counter: Mutex::default(), clock }
    }

    /// Writes the counts until it is cancelled, and then the rest. Counts that the store rejects are kept and block
    /// further ones, which bounds the memory.
    pub async fn write_down(&self, log: Arc<dyn AuditLog>, cancelled: CancellationToken) {
        let mut unwritten: VecDeque<AuditDraft> = VecDeque::new();
        let lines = LineLimit::default();
        loop {
            let ends = cancelled.run_until_cancelled(tokio::time::sleep(WRITE_CHANGES_EVERY)).await.is_none();
            if ends {
                unwritten.extend(self.counter().take_all());
            } else if unwritten.is_empty() {
                unwritten.extend(self.counter().take_finished(self.clock.now()));
            }
            while let Some(draft) = unwritten.front() {
                if let Err(error) = log.append(draft).await {
                    if lines.admits("write", self.clock.monotonic()) {
                        let error = anyhow::Error::from(error);
                        tracing::warn!(
                            error = format!("{error:#}"),
                            left = unwritten.len(),
                            "audit write of denied changes failed"
                        );
                    }
                    break;
                }
                unwritten.pop_front();
            }
            if ends {
                return;
            }
        }
    }

    fn counter(&self) -> MutexGuard<'_, DeniedChangeCounter> {
        self.counter.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl DeniedChangeRecorder for DeniedChangeLog {
    fn record(&self, refusal: DeniedChange) {
        let now = self.clock.now();
        self.counter().record(refusal, now);
    }
}

#[cfg(test)]
mod tests {
    use domain::audit::{Actor, AuditOutcome};
    use domain::error::StoreError;
    use domain::testing::{FixedClock, MemoryStore, SequentialIds};
    use domain::usage::{MockRejectionStore, RejectionFilter, RejectionReason, RejectionStatus};

    use super::*;

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

    fn refusal(status: u16) -> DeniedChange {
        let actor = Actor { name: "key:00".to_owned(), source: Some("10.0.0.1".to_owned()) };
        DeniedChange { actor, route: "POST /guardrails".to_owned(), status }
    }

    #[tokio::test(start_paused = true)]
    async fn denied_changes_are_aggregated_and_written_at_stop() {
        let (clock, store, cancelled) =
            (FixedClock::default(), MemoryStore::new().audit_log(), CancellationToken::new());
        let book = DeniedChangeLog::new(Arc::new(clock.clone()));
        let counting = async {
            for number in 0..100_000 {
                book.record(refusal(if number % 2 == 0 { 403 } else { 404 }));
            }
            clock.advance(Duration::from_mins(1));
            tokio::time::sleep(WRITE_CHANGES_EVERY + Duration::from_secs(1)).await;
            assert_eq!(store.newest(10).await.unwrap().len(), 1, "the minute is over");
            book.record(refusal(409));
            tokio::time::sleep(WRITE_CHANGES_EVERY + Duration::from_secs(1)).await;
            assert_eq!(store.newest(10).await.unwrap().len(), 1, "this one is not");
            cancelled.cancel();
        };
        tokio::join!(book.write_down(Arc::clone(&store) as Arc<dyn AuditLog>, cancelled.clone()), counting);
        let entries = store.newest(10).await.unwrap();
        assert_eq!(entries.len(), 2);
        assert!(entries.iter().all(|entry| entry.outcome == AuditOutcome::Denied));
        assert!(entries[1].details.text().starts_with(r#"{"count":100000,"#));
        assert!(entries[0].details.text().contains(r#""statuses":{"409":1}"#));
    }
}
