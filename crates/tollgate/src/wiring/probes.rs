//! The readiness probes.

use std::sync::Arc;

use adapters_cache::ChangeWatcher;
use adapters_storage::Database;
use async_trait::async_trait;
use domain::budget::JournaledLedger;
use domain::error::StoreError;
use domain::system::HealthProbe;

/// Probes the database. The failure is bridged while known keys are served from memory.
pub struct DatabaseProbe {
    database: Database,
    watcher: Arc<ChangeWatcher>,
}

impl DatabaseProbe {
    /// Creates a probe; `watcher` knows the time of the last successful read.
    pub fn new(database: Database, watcher: Arc<ChangeWatcher>) -> Self {
        Self { database, watcher }
    }
}

#[async_trait]
impl HealthProbe for DatabaseProbe {
    fn name(&self) -> &'static str {
        self.database.name()
    }

    async fn probe(&self) -> Result<(), StoreError> {
        self.database.probe().await
    }

    fn serves_during_outage(&self) -> bool {
        self.watcher.is_usable()
    }
}

/// Probes whether the journal accepts entries.
pub struct JournalProbe(pub Arc<JournaledLedger>);

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
