//! The journals of this process, and those that it recovers.

use std::sync::{Arc, Mutex, PoisonError};

use adapters_journal::{
    Durability, JournalPorts, JournalSettings, LocalDisk, LocalJournal, LocalJournalSettings, LocalJournals,
};
use adapters_storage::{AdoptionSettings, Database, StoreJournal, StoreJournalSettings, StoreJournals};
use async_trait::async_trait;
use domain::budget::{JournalFactory, OrphanedJournal, OrphanedJournals, UsageJournal, UsageJournalError};
use domain::ids::ProcessId;
use domain::system::{Clock, IdGenerator};
use tokio_util::task::TaskTracker;
use uuid::Uuid;

use super::heartbeat::{ADOPT_AFTER, heartbeat};
use super::{Background, Stores};
use crate::config::{Config, JournalConfig, JournalSync};

/// The size of a segment, and the maximum size of an entry: a record with the messages to its destinations.
pub const SEGMENT_BYTES: u64 = 16 << 20;
const MAX_PAYLOAD_BYTES: usize = 2 << 20;
/// The size of a segment under a limit on file sizes.
const SMALL_SEGMENT_BYTES: u64 = 128 << 10;
const SMALL_PAYLOAD_BYTES: usize = 24 << 10;
/// The newest folded charges in memory of a process with its journal in the database: for a failover to a standby that
/// had not received them.
const KEPT_BYTES: usize = 32 << 20;

/// The id of the newest journal of this process.
#[derive(Clone, Default)]
pub struct CurrentProcess(Arc<Mutex<Option<ProcessId>>>);

impl CurrentProcess {
    fn set(&self, process: ProcessId) {
        *self.0.lock().unwrap_or_else(PoisonError::into_inner) = Some(process);
    }

    fn get(&self) -> Option<ProcessId> {
        *self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// Creates the journals of this process.
pub struct Journals {
    config: JournalConfig,
    store: Uuid,
    database: Database,
    clock: Arc<dyn Clock>,
    ids: Arc<dyn IdGenerator>,
    tasks: TaskTracker,
    current: CurrentProcess,
}

impl Journals {
    /// Creates the factory. `store` is the identity of the database; `current` is told the id of each new journal.
    pub fn new(
        config: &JournalConfig,
        store: Uuid,
        stores: &Stores,
        background: &Background,
        current: CurrentProcess,
    ) -> Self {
        Self {
            config: config.clone(),
            store,
            database: stores.database.clone(),
            clock: Arc::clone(&stores.clock),
            ids: Arc::clone(&stores.ids),
            tasks: background.tasks.clone(),
            current,
        }
    }

    async fn in_store(&self, process: ProcessId) -> Result<Arc<dyn UsageJournal>, UsageJournalError> {
        let settings = StoreJournalSettings {
            max_bytes: self.config.max_bytes,
            max_payload_bytes: MAX_PAYLOAD_BYTES,
            kept_bytes: KEPT_BYTES,
        };
        let created = StoreJournal::create(self.database.clone(), process, settings).await;
        let (journal, writing) = created.map_err(|error| UsageJournalError::Unavailable(Box::new(error)))?;
        self.tasks.spawn(writing);
        Ok(Arc::new(journal))
    }

    fn on_disk(&self, process: ProcessId, durability: Durability) -> Result<Arc<dyn UsageJournal>, UsageJournalError> {
        let local = LocalJournalSettings { store: self.store, durability, keep: self.config.keep };
        let ports = JournalPorts { disk: Arc::new(LocalDisk), clock: Arc::clone(&self.clock) };
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
        let process = self.ids.process_id();
        let journal = match self.config.sync {
            JournalSync::Store => self.in_store(process).await,
            JournalSync::Always => self.on_disk(process, Durability::Synced),
            JournalSync::Interval => self.on_disk(process, Durability::Written),
        };
        let journal = journal?;
        self.current.set(process);
        Ok(journal)
    }
}

/// The journals of dead processes: on the disk of this machine, and in the database.
pub struct RecoverableJournals {
    local: LocalJournals,
    store: StoreJournals,
}

impl RecoverableJournals {
    /// Returns the journals of all other processes.
    pub fn new(config: &Config, store: Uuid, stores: &Stores, current: CurrentProcess) -> Self {
        let (database, clock) = (stores.database.clone(), Arc::clone(&stores.clock));
        let adoption = AdoptionSettings { adopt_after: ADOPT_AFTER, heartbeat: heartbeat(config) };
        Self {
            local: LocalJournals::new(&config.journal.path, store, config.journal.keep),
            store: StoreJournals::new(database, clock, adoption, move || current.get()),
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
