//! The ledger of this process: its journal, its allowances, and the journals of dead processes.

use std::sync::Arc;
use std::time::Duration;

use adapters_journal::{
    Durability, JournalPorts, JournalSettings, LocalDisk, LocalJournal, LocalJournalSettings, LocalJournals,
};
use adapters_storage::{AdoptionSettings, SeaOrmBudgetStore, StoreJournal, StoreJournalSettings, StoreJournals};
use adapters_system::{SystemClock, TokioTimer};
use anyhow::Context;
use async_trait::async_trait;
use domain::budget::{
    BudgetStore, ForgetProcesses, ForgetSettings, JournalFactory, LedgerReader, LedgerSettings, OrphanedJournal,
    OrphanedJournals, RecoverJournals, RenewingLedger, RenewingLedgerPorts, UsageJournal, UsageJournalError,
};
use domain::decision::Metrics;
use domain::ids::ProcessId;
use domain::system::{Clock, LineLimit, TimeSource};
use tokio::sync::watch;
use tokio_util::task::TaskTracker;
use uuid::Uuid;

use super::background::{ADOPT_AFTER, heartbeat, lost_after};
use super::{Background, Stores};
use crate::config::{Config, JournalConfig, JournalSync};

/// The interval of the search for journals of dead processes.
const RECOVER_EVERY: Duration = Duration::from_secs(1);
/// The time that a stop waits for an unavailable store: slightly less than the whole stop.
const CLOSE_WITHIN: Duration = Duration::from_secs(25);
/// The time that a command waits for running servers to fold their journals.
pub const FOLD_WITHIN: Duration = Duration::from_secs(1);
const SETTLE_STEP: Duration = Duration::from_millis(10);

/// Recovers the journals of dead processes, creates the journal of this one and starts the background tasks.
///
/// # Errors
/// The journal cannot be created, or the store cannot be written.
pub async fn start(
    config: &Config,
    stores: &Stores,
    limits: Arc<dyn LedgerReader>,
    metrics: Arc<dyn Metrics>,
    background: &Background,
) -> anyhow::Result<Arc<RenewingLedger>> {
    let store_id = stores.database.id().await.context("the identity of the database cannot be read")?;
    let store: Arc<dyn BudgetStore> = Arc::new(SeaOrmBudgetStore::new(stores.database.clone()));
    let (current, newest) = watch::channel(None);
    let orphans = Arc::new(RecoverableJournals::new(config, store_id, stores, newest));
    let recover = Arc::new(RecoverJournals::new(Arc::clone(&store), orphans, config.unknown_usage));
    // The charges of dead processes count before the first request.
    let report = recover.execute().await.context("the journals of earlier processes cannot be read")?;
    metrics.record_abandoned_requests(report.abandoned);
    let (journal, tasks) = (config.journal.clone(), background.tasks.clone());
    let journals = Journals { config: journal, store: store_id, stores: stores.clone(), tasks, current };
    let ports = RenewingLedgerPorts {
        store,
        journals: Arc::new(journals),
        time: TimeSource { clock: Arc::clone(&stores.clock), timer: Arc::new(TokioTimer) },
        limits,
        recover: Arc::clone(&recover),
    };
    let settings = LedgerSettings { heartbeat: heartbeat(config), ..LedgerSettings::default() };
    let created = RenewingLedger::start(ports, settings).await;
    let place = config.journal.path.display();
    let ledger = Arc::new(created.with_context(|| format!("the journal cannot be created (journal.path is {place})"))?);
    let (running, cancelled) = (Arc::clone(&ledger), background.cancelled.clone());
    background.tasks.spawn(async move { running.run(cancelled.cancelled(), CLOSE_WITHIN).await });
    recover_journals_of_others(recover, forget_processes(config, stores).await?, metrics, background);
    Ok(ledger)
}

/// Returns the use case that lists and forgets processes without a journal.
///
/// # Errors
/// The store cannot be read.
pub async fn forget_processes(config: &Config, stores: &Stores) -> anyhow::Result<ForgetProcesses> {
    let store_id = stores.database.id().await.context("the identity of the database cannot be read")?;
    let journals = RecoverableJournals::new(config, store_id, stores, watch::channel(None).1);
    let settings = ForgetSettings { lost_after: lost_after(config), unknown: config.unknown_usage };
    let store = Arc::new(SeaOrmBudgetStore::new(stores.database.clone()));
    Ok(ForgetProcesses::new(store, Arc::new(journals), Arc::clone(&stores.clock), settings))
}

/// Updates the store for a command that shows money or usage: folds the journals of dead processes, and waits until the
/// running ones of this machine have folded theirs. Returns those that have charges which are not in the store after
/// that time.
///
/// # Errors
/// The journals or the store cannot be read.
pub async fn fold_journals(config: &Config, stores: &Stores, within: Duration) -> anyhow::Result<Vec<ProcessId>> {
    let mut behind = Vec::new();
    if config.storage.read_only {
        return Ok(behind);
    }
    let store_id = stores.database.id().await.context("the identity of the database cannot be read")?;
    let store: Arc<dyn BudgetStore> = Arc::new(SeaOrmBudgetStore::new(stores.database.clone()));
    let journals = LocalJournals::new(&config.journal.path, store_id, SEGMENT_RETENTION);
    let live = journals.live().context("the journals cannot be read")?;
    RecoverJournals::new(Arc::clone(&store), Arc::new(journals), config.unknown_usage).execute().await?;
    let began = stores.clock.monotonic();
    for (process, last) in live {
        while store.process(process).await?.is_some_and(|status| status.folded_sequence < last) {
            if stores.clock.monotonic().saturating_sub(began) >= within {
                behind.push(process);
                break;
            }
            tokio::time::sleep(SETTLE_STEP).await;
        }
    }
    Ok(behind)
}

/// Recovers journals continuously: another process may die at any time, on this machine or with another one.
fn recover_journals_of_others(
    recover: Arc<RecoverJournals>,
    forget: ForgetProcesses,
    metrics: Arc<dyn Metrics>,
    background: &Background,
) {
    let cancelled = background.cancelled.clone();
    background.tasks.spawn(async move {
        let (lines, clock) = (LineLimit::default(), SystemClock::new());
        while cancelled.run_until_cancelled(tokio::time::sleep(RECOVER_EVERY)).await.is_some() {
            match recover.execute().await {
                Ok(report) => metrics.record_abandoned_requests(report.abandoned),
                Err(error) if !lines.admits("recovery", clock.monotonic()) => drop(error),
                Err(error) => {
                    let error = anyhow::Error::from(error);
                    tracing::warn!(error = format!("{error:#}"), "journals of dead processes not read, retrying");
                }
            }
            if let Err(error) = forget.execute().await {
                let error = anyhow::Error::from(error);
                tracing::debug!(error = format!("{error:#}"), "processes not read, retrying");
            }
        }
    });
}

/// The size of a segment, and the maximum size of an entry: a record with the messages to its destinations.
pub const SEGMENT_BYTES: u64 = 16 << 20;
/// The retention time of folded segments: charges that a restored or promoted database lacks are folded again.
const SEGMENT_RETENTION: Duration = Duration::from_mins(10);
const MAX_PAYLOAD_BYTES: usize = 2 << 20;
/// The size of a segment under a limit on file sizes.
const SMALL_SEGMENT_BYTES: u64 = 128 << 10;
const SMALL_PAYLOAD_BYTES: usize = 24 << 10;
/// The newest folded charges in memory of a process with its journal in the database: for a failover to a standby that
/// had not received them.
const KEPT_BYTES: usize = 32 << 20;

/// Creates the journals of this process.
struct Journals {
    config: JournalConfig,
    /// The identity of the database.
    store: Uuid,
    stores: Stores,
    tasks: TaskTracker,
    /// Receives the id of each new journal.
    current: watch::Sender<Option<ProcessId>>,
}

impl Journals {
    async fn in_store(&self, process: ProcessId) -> Result<Arc<dyn UsageJournal>, UsageJournalError> {
        let settings = StoreJournalSettings {
            max_bytes: self.config.max_bytes,
            max_payload_bytes: MAX_PAYLOAD_BYTES,
            kept_bytes: KEPT_BYTES,
        };
        let created = StoreJournal::create(self.stores.database.clone(), process, settings).await;
        let (journal, writing) = created.map_err(|error| UsageJournalError::Unavailable(Box::new(error)))?;
        self.tasks.spawn(writing);
        Ok(Arc::new(journal))
    }

    fn on_disk(&self, process: ProcessId, durability: Durability) -> Result<Arc<dyn UsageJournal>, UsageJournalError> {
        let local = LocalJournalSettings { store: self.store, durability, keep: SEGMENT_RETENTION };
        let ports = JournalPorts { disk: Arc::new(LocalDisk), clock: Arc::clone(&self.stores.clock) };
        let create = |segment_bytes: u64, max_payload_bytes: usize| {
            let max_unfolded_bytes = self.config.max_bytes;
            let settings =
                JournalSettings { segment_bytes, max_payload_bytes, max_unfolded_bytes, ..JournalSettings::default() };
            LocalJournal::create(&self.config.path, process, local, settings, &ports)
        };
        // A resource limit may forbid files of the usual size.
        let journal =
            create(SEGMENT_BYTES, MAX_PAYLOAD_BYTES).or_else(|_| create(SMALL_SEGMENT_BYTES, SMALL_PAYLOAD_BYTES));
        Ok(Arc::new(journal.map_err(|error| UsageJournalError::Unavailable(Box::new(error)))?))
    }
}

#[async_trait]
impl JournalFactory for Journals {
    async fn create(&self) -> Result<Arc<dyn UsageJournal>, UsageJournalError> {
        let process = self.stores.ids.process_id();
        let journal = match self.config.sync {
            JournalSync::Store => self.in_store(process).await,
            JournalSync::Always => self.on_disk(process, Durability::Synced),
            JournalSync::Interval => self.on_disk(process, Durability::Written),
        };
        let journal = journal?;
        self.current.send_replace(Some(process));
        Ok(journal)
    }
}

/// The journals of dead processes: on the disk of this machine, and in the database.
struct RecoverableJournals {
    local: LocalJournals,
    store: StoreJournals,
}

impl RecoverableJournals {
    /// Returns the journals of all processes but the newest of this one.
    fn new(config: &Config, store: Uuid, stores: &Stores, newest: watch::Receiver<Option<ProcessId>>) -> Self {
        let (database, clock) = (stores.database.clone(), Arc::clone(&stores.clock));
        let adoption = AdoptionSettings { adopt_after: ADOPT_AFTER, heartbeat: heartbeat(config) };
        Self {
            local: LocalJournals::new(&config.journal.path, store, SEGMENT_RETENTION),
            store: StoreJournals::new(database, clock, adoption, move || *newest.borrow()),
        }
    }
}

#[async_trait]
impl OrphanedJournals for RecoverableJournals {
    async fn contains(&self, process: ProcessId) -> Result<bool, UsageJournalError> {
        Ok(self.local.contains(process).await? || self.store.contains(process).await?)
    }

    async fn find(&self) -> Result<Vec<Box<dyn OrphanedJournal>>, UsageJournalError> {
        let mut found = self.local.find().await?;
        found.extend(self.store.find().await?);
        Ok(found)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn folded_segments_are_kept_for_ten_minutes() {
        assert_eq!(SEGMENT_RETENTION.as_secs(), 600);
    }
}
