//! The readiness probes, and the disks under the stores.

use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use adapters_cache::ChangeWatcher;
use adapters_storage::Database;
use adapters_system::LocalDiskSpace;
use async_trait::async_trait;
use domain::budget::RenewingLedger;
use domain::error::StoreError;
use domain::system::HealthProbe;

use crate::config::Config;

/// The free space below which the probe of the database writes. With more, a write at each probe is needless load.
const LOW_SPACE: u64 = 32 << 20;
/// The maximum time of that write. A longer one waits for another process's lock, which is no full disk.
const WRITE_TIMEOUT: Duration = Duration::from_millis(400);

/// Probes the database. The failure is bridged while known keys are served from memory.
pub struct DatabaseProbe {
    database: Database,
    watcher: Arc<ChangeWatcher>,
    disk: Option<LocalDiskSpace>,
}

impl DatabaseProbe {
    /// Creates a probe; `watcher` knows the time of the last successful read. `disk` is that of the database; `None` if
    /// it is read-only.
    pub fn new(database: Database, watcher: Arc<ChangeWatcher>, disk: Option<LocalDiskSpace>) -> Self {
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
        if database_room(disk)? >= LOW_SPACE {
            return Ok(());
        }
        tokio::time::timeout(WRITE_TIMEOUT, self.database.probe_write()).await.unwrap_or(Ok(()))
    }

    fn serves_during_outage(&self) -> bool {
        self.watcher.is_usable()
    }
}

/// Probes whether the journal accepts entries.
pub struct JournalProbe {
    /// The ledger that writes it.
    pub ledger: Arc<RenewingLedger>,
    /// True if it is in the database, and not on a disk of this machine.
    pub is_in_store: bool,
}

#[async_trait]
impl HealthProbe for JournalProbe {
    fn name(&self) -> &'static str {
        "journal"
    }

    async fn probe(&self) -> Result<(), StoreError> {
        let status = self.ledger.journal_status();
        if !status.is_writable {
            let place = if self.is_in_store { "database" } else { "disk of journal.path" };
            return Err(StoreError::unavailable(format!("the {place} does not accept journal entries")));
        }
        if status.unfolded_bytes >= status.max_bytes {
            return Err(StoreError::unavailable("the journal is full: the database does not accept charges"));
        }
        Ok(())
    }
}

/// The free space below which a disk counts as full. The database may still have room for a page, but not for a record.
const FULL: u64 = 1 << 20;

/// Returns the free bytes of the disk of the database.
///
/// # Errors
/// The disk is full, or cannot be examined.
pub fn database_room(disk: &LocalDiskSpace) -> Result<u64, StoreError> {
    match disk.free_bytes()? {
        free if free < FULL => Err(StoreError::unavailable(format!("the disk is full: {free} bytes are free"))),
        free => Ok(free),
    }
}

/// The disks under the stores, which may be the same one.
#[derive(Clone)]
pub struct StoreDisks {
    /// The disk of the database.
    pub database: LocalDiskSpace,
    /// The disk of the journal.
    pub journal: LocalDiskSpace,
    /// The disk of container files and documents; `None` for a bucket.
    pub blobs: Option<LocalDiskSpace>,
}

impl StoreDisks {
    /// Returns the disks of the configured paths.
    pub fn new(config: &Config) -> Self {
        let disk = |path: PathBuf| LocalDiskSpace::new(path);
        Self {
            database: disk(folder_of(&config.storage.file)),
            journal: disk(config.journal.path.clone()),
            blobs: config.blobs.folder().map(|folder| disk(folder.root.clone())),
        }
    }

    /// Returns the disks with the names of their stores.
    pub fn named(&self) -> impl Iterator<Item = (&'static str, &LocalDiskSpace)> {
        let local = [("database", &self.database), ("journal", &self.journal)];
        local.into_iter().chain(self.blobs.iter().map(|disk| ("blobs", disk)))
    }
}

/// Returns the folder of a file; a bare name is in the working directory.
fn folder_of(file: &Path) -> PathBuf {
    match file.parent() {
        Some(folder) if !folder.as_os_str().is_empty() => folder.to_owned(),
        _ => PathBuf::from("."),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn folder_of_bare_name_is_the_working_directory() {
        assert_eq!(folder_of(Path::new("t.db")), Path::new("."));
        assert_eq!(folder_of(Path::new("/data/t.db")), Path::new("/data"));
    }
}
