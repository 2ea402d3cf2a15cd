//! Background tasks; the interval in which the store sees a process, and the silence after which others act for it.

use std::sync::Arc;
use std::time::Duration;

use adapters_cache::{ChangeWatcher, LiveCatalogue, LivePauses};
use adapters_storage::{ChangeNotifications, ChangedMonths, Database, PollIntervals, SeaOrmBudgetStore, UsageMonths};
use domain::audit::DeniedChangeRecorder;
use domain::container::BlobStore;
use domain::error::StoreError;
use domain::file::{
    ProcessSilence, ReleaseAbandonedPromotions, ReleaseAbandonedPromotionsPorts, RunningPromotions, SweepDocuments,
    SweepReport,
};
use domain::system::{Clock, LineLimit};
use domain::usage::RejectionRecorder;
use tokio_util::sync::CancellationToken;
use tokio_util::task::TaskTracker;

use super::Stores;
use crate::config::{Config, JournalSync};
use crate::routing::CurrentRouting;
use crate::telemetry::{DeniedChangeLog, RejectionLog, ThrottleLog, keep_heartbeat};

/// The poll intervals of the change feed. Either is a small part of the second within which a change is in force.
const FEED_POLLS: PollIntervals =
    PollIntervals { unnotified: Duration::from_millis(50), notified: Duration::from_millis(250) };
/// The interval of the search for abandoned promotions.
const RELEASE_EVERY: Duration = Duration::from_secs(1);
/// The interval of the search for leftovers.
const SWEEP_EVERY: Duration = Duration::from_mins(10);
/// The interval at which months of the usage table are created and dropped.
const MONTHS_EVERY: Duration = Duration::from_hours(1);
/// The age from which leftovers are removed: longer than the longest copy.
const SWEEP_GRACE: Duration = Duration::from_hours(1);

/// Tracked tasks and the token that cancels them.
#[derive(Debug, Clone, Default)]
pub struct Background {
    /// All tasks, those of requests included.
    pub tasks: TaskTracker,
    /// Cancels the tasks of this module.
    pub cancelled: CancellationToken,
}

impl Background {
    /// Follows the change feed by polls, and by notifications of PostgreSQL.
    pub fn follow_changes(
        &self,
        database: Database,
        watcher: Arc<ChangeWatcher>,
        catalogue: Arc<LiveCatalogue>,
        pauses: Arc<LivePauses>,
    ) {
        let notifications = Arc::new(ChangeNotifications::new(database, FEED_POLLS));
        let (listening, cancelled) = (Arc::clone(&notifications), self.cancelled.clone());
        self.tasks.spawn(async move { listening.listen(cancelled).await });
        let cancelled = self.cancelled.clone();
        self.tasks.spawn(async move { watcher.run(notifications, catalogue, pauses, cancelled).await });
    }

    /// Creates the months of the usage table ahead of their time, and drops those that retention emptied: now, and every
    /// hour.
    pub async fn maintain_usage_months(&self, database: Database) {
        let months = UsageMonths::new(database);
        log_months(months.maintain().await);
        let cancelled = self.cancelled.clone();
        self.tasks.spawn(async move {
            while cancelled.run_until_cancelled(tokio::time::sleep(MONTHS_EVERY)).await.is_some() {
                log_months(months.maintain().await);
            }
        });
    }

    /// Logs throttled endpoints and detects pauses of the process.
    pub fn watch_endpoints(&self, current: CurrentRouting, clock: &Arc<dyn Clock>) {
        let routing = Arc::clone(&current.borrow());
        // Later health boards share the detector of pauses.
        let heartbeat = keep_heartbeat(Arc::clone(&routing.health), Arc::clone(clock), self.cancelled.clone());
        self.tasks.spawn(heartbeat);
        self.tasks.spawn(ThrottleLog::new(routing).run(current, Arc::clone(clock), self.cancelled.clone()));
    }

    /// Returns the recorder of rejected requests, and writes its counts until the instance ends.
    pub fn record_rejections(&self, stores: &Stores) -> Arc<dyn RejectionRecorder> {
        let log = Arc::new(RejectionLog::new(Arc::clone(&stores.clock)));
        let (writing, store, cancelled) = (Arc::clone(&log), Arc::clone(&stores.rejections), self.cancelled.clone());
        self.tasks.spawn(async move { writing.write_until(store, cancelled).await });
        log
    }

    /// Returns the recorder of denied changes, and writes their counts until the instance ends.
    pub fn record_denied_changes(&self, stores: &Stores) -> Arc<dyn DeniedChangeRecorder> {
        let book = Arc::new(DeniedChangeLog::new(Arc::clone(&stores.clock)));
        let (writing, log, cancelled) = (Arc::clone(&book), Arc::clone(&stores.audit), self.cancelled.clone());
        self.tasks.spawn(async move { writing.write_down(log, cancelled).await });
        book
    }

    /// Releases abandoned promotions: now, for those of processes that died before this start, and every second.
    pub async fn release_promotions(&self, config: &Config, stores: &Stores, running: Arc<RunningPromotions>) {
        let ports = ReleaseAbandonedPromotionsPorts {
            documents: Arc::clone(&stores.documents),
            blobs: Arc::clone(&stores.blobs) as Arc<dyn BlobStore>,
            processes: Arc::new(SeaOrmBudgetStore::new(stores.database.clone())),
            running,
            clock: Arc::clone(&stores.clock),
        };
        let heartbeat = heartbeat(config);
        let gone_after = ADOPT_AFTER.max(heartbeat * ADOPTION_HEARTBEATS);
        let release = ReleaseAbandonedPromotions::new(ports, ProcessSilence { heartbeat, gone_after });
        let (cancelled, clock, limit) = (self.cancelled.clone(), Arc::clone(&stores.clock), LineLimit::default());
        let round = async move || {
            if let Err(error) = release.execute().await
                && limit.admits("promotions", clock.monotonic())
            {
                let error: &dyn std::error::Error = &error;
                tracing::warn!(error, "abandoned promotions not released, retrying");
            }
        };
        round().await;
        self.tasks.spawn(async move {
            while cancelled.run_until_cancelled(tokio::time::sleep(RELEASE_EVERY)).await.is_some() {
                round().await;
            }
            // Promotions that the stop abandoned.
            round().await;
        });
    }

    /// Removes leftovers of interrupted promotions, immediately and every ten minutes.
    pub fn sweep(&self, stores: &Stores) {
        let (documents, clock) = (Arc::clone(&stores.documents), Arc::clone(&stores.clock));
        let blobs = Arc::clone(&stores.blobs) as Arc<dyn BlobStore>;
        let sweep = SweepDocuments::new(documents, blobs, clock, SWEEP_GRACE);
        let cancelled = self.cancelled.clone();
        self.tasks.spawn(async move {
            log_sweep(sweep.execute().await);
            while cancelled.run_until_cancelled(tokio::time::sleep(SWEEP_EVERY)).await.is_some() {
                log_sweep(sweep.execute().await);
            }
        });
    }

    /// Cancels the tasks and waits for all of them; returns false if some did not end in time.
    pub async fn end(self, within: Duration) -> bool {
        self.cancelled.cancel();
        self.tasks.close();
        tokio::time::timeout(within, self.tasks.wait()).await.is_ok()
    }
}

fn log_months(changed: Result<ChangedMonths, StoreError>) {
    match changed {
        Ok(ChangedMonths { created, dropped }) => {
            if !created.is_empty() {
                tracing::info!(months = created.join(" "), "partitions of usage records created");
            }
            if !dropped.is_empty() {
                tracing::info!(months = dropped.join(" "), "empty partitions of usage records dropped");
            }
        }
        Err(error) => {
            let error: &dyn std::error::Error = &error;
            tracing::warn!(error, "partitions of usage records not created or dropped, retrying in an hour");
        }
    }
}

fn log_sweep(swept: Result<SweepReport, StoreError>) {
    match swept {
        Ok(report @ SweepReport { pending_documents, orphan_objects, foreign_objects, partial_files, claims }) => {
            if foreign_objects > 0 {
                tracing::warn!(foreign_objects, "blobs.url has documents of another installation; they stay");
            }
            if report != (SweepReport { foreign_objects, ..SweepReport::default() }) {
                tracing::info!(
                    pending_documents,
                    orphan_objects,
                    partial_files,
                    claims,
                    "sweeper removed orphaned rows and files"
                );
            }
        }
        Err(error) => {
            let error = anyhow::Error::from(error);
            tracing::warn!(error = format!("{error:#}"), "sweeper failed, retrying");
        }
    }
}

/// The interval of an idle server on one machine, with its journal on the disk: it need not write more often.
const LOCAL_HEARTBEAT: Duration = Duration::from_secs(30);
/// The minimum number of heartbeats before another process recovers a journal in the database, or a promotion.
pub const ADOPTION_HEARTBEATS: u32 = 3;
/// The silence after which another process recovers the journal of a process in the database.
pub const ADOPT_AFTER: Duration = Duration::from_secs(15);
/// The silence after which a process without a journal on this machine counts as lost, at least.
const LOST_AFTER: Duration = Duration::from_hours(1);

/// Returns the silence after which a process without a journal on this machine counts as lost. A replica that is cut off
/// from the database serves on for a time; another one must not give its allowances back meanwhile.
pub fn lost_after(config: &Config) -> Duration {
    let serves_for = config.max_stale_keys.saturating_add(config.limits.request_timeout);
    LOST_AFTER.max(serves_for.saturating_mul(2))
}

/// Returns the maximum interval in which the store sees this process.
pub fn heartbeat(config: &Config) -> Duration {
    let is_local = config.storage.is_file() && config.journal.sync != JournalSync::Store;
    if is_local { LOCAL_HEARTBEAT } else { ADOPT_AFTER / ADOPTION_HEARTBEATS }
}
