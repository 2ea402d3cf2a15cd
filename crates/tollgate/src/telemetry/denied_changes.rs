//! The audit of denied changes: counted in memory, written per minute.

use std::collections::VecDeque;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use domain::audit::{AuditDraft, AuditLog, DeniedChange, DeniedChangeCounter, DeniedChangeRecorder};
use domain::system::{Clock, LineLimit};
use tokio_util::sync::CancellationToken;

/// The interval at which past minutes are written.
const WRITE_EVERY: Duration = Duration::from_secs(10);

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
            let ends = tokio::select! {
                () = cancelled.cancelled() => true,
                () = tokio::time::sleep(WRITE_EVERY) => false,
            };
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
    use super::*;
    use domain::audit::{Actor, AuditOutcome};
    use domain::testing::{FixedClock, MemoryStore};

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
            tokio::time::sleep(WRITE_EVERY + Duration::from_secs(1)).await;
            assert_eq!(store.newest(10).await.unwrap().len(), 1, "the minute is over");
            book.record(refusal(409));
            tokio::time::sleep(WRITE_EVERY + Duration::from_secs(1)).await;
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
