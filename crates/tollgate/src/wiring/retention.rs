//! Removes rows that are older than they are to be kept, a few at a time.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use adapters_storage::SeaOrmOutbox;
use chrono::TimeDelta;
use domain::audit::AuditLog;
use domain::budget::{Ledger, PruneReport};
use domain::error::StoreError;
use domain::observability::Outbox;
use domain::system::{Clock, Randomness};
use tokio_util::sync::CancellationToken;

use super::{Background, Measures, Stores};
use crate::config::RetentionConfig;

/// Rows that go in one transaction: others wait for it no longer than a moment.
const BATCH: u64 = 500;
/// The pause between two transactions, in which others have their turn.
const BREATH: Duration = Duration::from_millis(50);
/// How often rows are looked for.
const EVERY: Duration = Duration::from_hours(1);
/// At most so much later, so that several processes do not look at once.
const JITTER: Duration = Duration::from_mins(10);

/// Removes old rows beside requests until the instance ends.
pub fn start(
    config: RetentionConfig,
    stores: &Stores,
    ledger: Arc<dyn Ledger>,
    random: Arc<dyn Randomness>,
    background: &Background,
    measures: &Measures,
) {
    if config == RetentionConfig::default() {
        return;
    }
    let retention = Retention {
        config,
        ledger,
        audit: Arc::clone(&stores.audit),
        outbox: Arc::new(SeaOrmOutbox::new(stores.database.clone())),
        clock: Arc::clone(&stores.clock),
        unreadable: Arc::default(),
    };
    let unreadable = Arc::clone(&retention.unreadable);
    measures.watch_retention(move || unreadable.load(Ordering::Relaxed));
    let cancelled = background.cancelled.clone();
    background.tasks.spawn(async move { retention.run(random, cancelled).await });
}

/// What is kept for how long, and where.
struct Retention {
    /// For how long.
    config: RetentionConfig,
    /// Usage records.
    ledger: Arc<dyn Ledger>,
    /// The audit log.
    audit: Arc<dyn AuditLog>,
    /// Dead letters.
    outbox: Arc<dyn Outbox>,
    /// What is old by.
    clock: Arc<dyn Clock>,
    /// Old usage records that the last look could not read.
    unreadable: Arc<AtomicU64>,
}

/// What grows old.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Rows {
    Usage,
    Audit,
    DeadLetters,
}

impl Rows {
    const ALL: [Self; 3] = [Self::Usage, Self::Audit, Self::DeadLetters];

    fn as_str(self) -> &'static str {
        match self {
            Self::Usage => "usage records",
            Self::Audit => "audit entries",
            Self::DeadLetters => "dead letters",
        }
    }
}

impl Retention {
    /// Looks at once and then every hour, until it is cancelled. Several processes may do so on one database.
    async fn run(self, random: Arc<dyn Randomness>, cancelled: CancellationToken) {
        loop {
            self.sweep(&cancelled).await;
            let jitter = JITTER.mul_f64(share(random.next_u64()));
            tokio::select! {
                () = cancelled.cancelled() => return,
                () = tokio::time::sleep(EVERY + jitter) => {}
            }
        }
    }

    /// Each kind by itself: what one store does not do keeps nothing of the others.
    async fn sweep(&self, cancelled: &CancellationToken) {
        for rows in Rows::ALL {
            match self.remove(rows, cancelled).await {
                Ok(report) => self.tell(rows, &report),
                Err(error) => {
                    let error = anyhow::Error::from(error);
                    let rows = rows.as_str();
                    tracing::warn!(rows, error = format!("{error:#}"), "old rows cannot be removed; tried again later");
                }
            }
        }
    }

    fn tell(&self, rows: Rows, report: &PruneReport) {
        let (rows_name, removed) = (rows.as_str(), report.removed);
        if removed > 0 {
            tracing::info!(rows = rows_name, removed, "what was kept long enough is removed");
        }
        if report.unreadable > 0 {
            let (unreadable, ids) = (report.unreadable, report.named.join(" "));
            tracing::error!(rows = rows_name, unreadable, ids, "old rows cannot be read and stay; see doctor --audit");
        }
        if rows == Rows::Usage {
            self.unreadable.store(report.unreadable, Ordering::Relaxed);
        }
    }

    async fn remove(&self, rows: Rows, cancelled: &CancellationToken) -> Result<PruneReport, StoreError> {
        let mut removed = 0;
        loop {
            // Each batch meets all of those again that cannot be read, and the last one has met every one.
            let report = self.batch(rows).await?;
            removed += report.removed;
            let is_last = report.removed < BATCH;
            let so_far = PruneReport { removed, ..report };
            if is_last {
                return Ok(so_far);
            }
            tokio::select! {
                () = cancelled.cancelled() => return Ok(so_far),
                () = tokio::time::sleep(BREATH) => {}
            }
        }
    }

    async fn batch(&self, rows: Rows) -> Result<PruneReport, StoreError> {
        let before =
            |kept: Duration| TimeDelta::from_std(kept).ok().and_then(|kept| self.clock.now().checked_sub_signed(kept));
        let RetentionConfig { usage, audit, dead_letters } = self.config;
        let removed = match rows {
            Rows::Usage => match usage {
                Some(kept) => return self.ledger.prune(kept, BATCH).await,
                None => 0,
            },
            Rows::Audit => match audit.and_then(before) {
                Some(before) => self.audit.prune(before, BATCH).await?,
                None => 0,
            },
            Rows::DeadLetters => match dead_letters.and_then(before) {
                Some(before) => self.outbox.prune(before, BATCH).await?,
                None => 0,
            },
        };
        Ok(PruneReport { removed, ..PruneReport::default() })
    }
}

/// A number from 0 to 1.
fn share(random: u64) -> f64 {
    let upper = u32::try_from(random >> 32).unwrap_or(u32::MAX);
    f64::from(upper) / f64::from(u32::MAX)
}

#[cfg(test)]
mod tests {
    use super::*;
    use domain::audit::{Actor, AuditDraft, VerifyAuditLog};
    use domain::budget::MockLedger;
    use domain::json::Json;
    use domain::testing::{FixedClock, MemoryStore, ScriptedRandomness};

    const DAY: Duration = Duration::from_hours(24);

    fn retention(store: &MemoryStore, clock: &FixedClock, audit: Option<Duration>) -> Retention {
        Retention {
            config: RetentionConfig { audit, ..RetentionConfig::default() },
            ledger: Arc::new(store.clone()),
            audit: Arc::new(store.clone()),
            outbox: Arc::new(store.clone()),
            clock: Arc::new(clock.clone()),
            unreadable: Arc::default(),
        }
    }

    async fn entries(store: &MemoryStore) -> usize {
        AuditLog::read(store, 0, 10_000).await.unwrap().len()
    }

    #[tokio::test(start_paused = true)]
    async fn what_is_old_goes_in_batches_at_the_start_and_every_hour() {
        let clock = FixedClock::default();
        let store = MemoryStore::new().with_clock(clock.clone());
        let draft = AuditDraft::done(&Actor::system(), "key.create", "key", Json::object([]));
        for _ in 0..BATCH * 2 + 3 {
            store.append(&draft).await.unwrap();
        }
        clock.advance(2 * DAY);
        store.append(&draft).await.unwrap();
        retention(&store, &clock, None).sweep(&CancellationToken::new()).await;
        assert_eq!(entries(&store).await, 1004, "what is not configured is kept for ever");

        let cancelled = CancellationToken::new();
        let running =
            retention(&store, &clock, Some(DAY)).run(Arc::new(ScriptedRandomness::new([])), cancelled.clone());
        let watching = async {
            tokio::time::sleep(Duration::from_secs(1)).await;
            assert_eq!(entries(&store).await, 1, "the start removes what is old");
            store.append(&draft).await.unwrap();
            store.append(&draft).await.unwrap();
            clock.advance(2 * DAY);
            store.append(&draft).await.unwrap();
            tokio::time::sleep(EVERY + JITTER).await;
            assert_eq!(entries(&store).await, 1, "and so does every hour");
            cancelled.cancel();
        };
        tokio::join!(running, watching);
        let found = VerifyAuditLog::new(Arc::new(store)).execute(None).await.unwrap();
        assert_eq!((found.oldest, found.fault), (Some(1007), None));
    }

    #[tokio::test(start_paused = true)]
    async fn what_cannot_be_read_ends_no_round_and_is_counted() {
        let (store, clock) = (MemoryStore::new(), FixedClock::default());
        let mut ledger = MockLedger::new();
        let found = |removed| PruneReport { removed, unreadable: 2, named: vec!["a".to_owned(), "b".to_owned()] };
        let rounds = std::sync::Mutex::new(vec![PruneReport::default(), found(0), found(3), found(BATCH)]);
        ledger.expect_prune().times(4).returning(move |_, _| Ok(rounds.lock().unwrap().pop().unwrap()));
        let mut retention = retention(&store, &clock, None);
        retention.ledger = Arc::new(ledger);
        retention.config.usage = Some(DAY);
        let report = retention.remove(Rows::Usage, &CancellationToken::new()).await.unwrap();
        assert_eq!(report, found(BATCH + 3));
        for left in [2, 0] {
            retention.sweep(&CancellationToken::new()).await;
            assert_eq!(retention.unreadable.load(Ordering::Relaxed), left);
        }
    }

    #[test]
    fn shares_are_from_nothing_to_all() {
        let jitter = |random| JITTER.mul_f64(share(random));
        assert_eq!((jitter(0), jitter(u64::MAX)), (Duration::ZERO, JITTER));
    }
}
