//! The readiness probes.

use std::sync::Arc;
use std::time::Duration;

use adapters_cache::ChangeWatcher;
use adapters_storage::Database;
use async_trait::async_trait;
use domain::budget::RenewingLedger;
use domain::error::StoreError;
use domain::system::{DiskSpace, HealthProbe};

use super::database_room;

/// The free space below which the probe of the database writes. With more, a write at each probe is needless load.
const LOW_SPACE: u64 = 32 << 20;
/// The maximum time of that write. A longer one waits for another process's lock, which is no full disk.
const WRITE_TIMEOUT: Duration = Duration::from_millis(400);

/// Probes the database. The failure is bridged while known keys are served from memory.
pub struct DatabaseProbe {
    database: Database,
    watcher: Arc<ChangeWatcher>,
    disk: Option<Arc<dyn DiskSpace>>,
}

impl DatabaseProbe {
    /// Creates a probe; `watcher` knows the time of the last successful read. `disk` is that of the database; `None` if
    /// it is read-only.
    pub fn new(database: Database, watcher: Arc<ChangeWatcher>, disk: Option<Arc<dyn DiskSpace>>) -> Self {
        Self { database, watcher, disk }
    }
}

#[async_trait]
impl HealthProbe for DatabaseProbe {
    fn name(&self) -> &'static str {
        self.database.name()
    }

    async fn probe(&self) -> Result<(), StoreError> {
        self.database.probe().await?;
        if let Some(failure) = self.database.write_failure() {
            return Err(StoreError::unavailable(format!("the database takes no writes: {failure}")));
        }
        let Some(disk) = &self.disk else { return Ok(()) };
        if database_room(&**disk)? >= LOW_SPACE {
            return Ok(());
        }
        tokio::time::timeout(WRITE_TIMEOUT, self.database.probe_write()).await.unwrap_or(Ok(()))
    }

    fn serves_during_outage(&self) -> bool {
        self.watcher.is_usable()
    }
}

/// Probes whether the journal accepts entries.
pub struct JournalProbe(pub Arc<RenewingLedger>);

#[async_trait]
impl HealthProbe for JournalProbe {
    fn name(&self) -> &'static str {
        "journal"
    }

    async fn probe(&self) -> Result<(), StoreError> {
        let status = self.0.journal_status();
        if !status.is_writable {
            return Err(StoreError::unavailable("the journal disk does not accept entries"));
        }
        if status.unfolded_bytes >= status.max_bytes {
            return Err(StoreError::unavailable("the journal is full: the database does not accept charges"));
        }
        Ok(())
    }
}
