//! A database file, a folder of journals, and copies of both.

use std::fs;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicU32, Ordering};

use adapters_journal::testing::LocalMachine;
use adapters_storage::{
    Database, SeaOrmApiKeyRepository, SeaOrmAuditLog, SeaOrmBudgetAlerts, SeaOrmBudgetStore, SeaOrmChangeFeed,
    SeaOrmDestinationRepository, SeaOrmDocumentRepository, SeaOrmEvidenceRepository, SeaOrmGuardrailRepository,
    SeaOrmIdempotentRequests, SeaOrmLedgerReports, SeaOrmModelRepository, SeaOrmOutbox, SeaOrmPresetRepository,
    SeaOrmProviderPauses, SeaOrmRejectionStore, SeaOrmUsageRepository, SeaOrmWorkspaceRepository, StorageSettings,
};
use async_trait::async_trait;
use domain::testing::contract::{LedgerMachine, StoreBackup, Stores};
use domain::testing::{FixedClock, MemoryStore};
use tempfile::TempDir;

const DATABASE: &str = "tollgate.db";

/// Opens a fresh database and a machine without journals.
pub async fn open() -> LedgerMachine {
    let folder = Arc::new(TempDir::new().unwrap());
    let clock = clock();
    let path = folder.path().join(DATABASE);
    let database = open_database(&path, &clock).await;
    database.migrate().await.unwrap();
    let journals = LocalMachine::new(database.id().await.unwrap(), clock.clone()).unwrap();
    LedgerMachine {
        stores: stores(&database, &clock),
        journals: Arc::new(journals),
        backup: Arc::new(FileBackup { path, clock, copies: AtomicU32::new(0) }),
        keep: Box::new(folder),
    }
}

/// Returns a clock set to the time of the test records.
pub fn clock() -> FixedClock {
    FixedClock::at("2026-07-15T12:00:00Z".parse().unwrap())
}

/// Opens a database file; creates it if it is missing.
pub async fn open_database(path: &Path, clock: &FixedClock) -> Database {
    let settings = StorageSettings::new(format!("sqlite://{}", path.display()));
    Database::open(&settings, Arc::new(clock.clone())).await.unwrap()
}

/// Returns every port of a database except the ledger.
pub fn stores(database: &Database, clock: &FixedClock) -> Stores {
    let database = || database.clone();
    Stores {
        workspaces: Arc::new(SeaOrmWorkspaceRepository::new(database())),
        api_keys: Arc::new(SeaOrmApiKeyRepository::new(database())),
        key_grants: Arc::new(SeaOrmApiKeyRepository::new(database())),
        guardrails: Arc::new(SeaOrmGuardrailRepository::new(database())),
        documents: Arc::new(SeaOrmDocumentRepository::new(database())),
        models: Arc::new(SeaOrmModelRepository::new(database())),
        changes: Arc::new(SeaOrmChangeFeed::new(database())),
        usage: Arc::new(SeaOrmUsageRepository::new(database())),
        // Replaced by the ledger under test.
        ledger: MemoryStore::new().ledger(),
        budget: Arc::new(SeaOrmBudgetStore::new(database())),
        alerts: Arc::new(SeaOrmBudgetAlerts::new(database())),
        limits: Arc::new(SeaOrmLedgerReports::new(database())),
        maintenance: Arc::new(SeaOrmLedgerReports::new(database())),
        audit: Arc::new(SeaOrmAuditLog::new(database())),
        repetitions: Arc::new(SeaOrmIdempotentRequests::new(database())),
        destinations: Arc::new(SeaOrmDestinationRepository::new(database())),
        outbox: Arc::new(SeaOrmOutbox::new(database())),
        pauses: Arc::new(SeaOrmProviderPauses::new(database())),
        presets: Arc::new(SeaOrmPresetRepository::new(database())),
        evidence: Arc::new(SeaOrmEvidenceRepository::new(database())),
        rejections: Arc::new(SeaOrmRejectionStore::new(database())),
        grants_lag: None,
        clock: clock.clone(),
        keep: Box::new(()),
    }
}

/// Copies the files of an idle database.
struct FileBackup {
    path: PathBuf,
    clock: FixedClock,
    copies: AtomicU32,
}

#[async_trait]
impl StoreBackup for FileBackup {
    async fn copy(&self) -> Stores {
        let number = self.copies.fetch_add(1, Ordering::Relaxed);
        let copy = self.path.with_file_name(format!("copy-{number}.db"));
        for suffix in ["", "-wal"] {
            let name = |path: &Path| PathBuf::from(format!("{}{suffix}", path.display()));
            fs::copy(name(&self.path), name(&copy)).unwrap();
        }
        stores(&open_database(&copy, &self.clock).await, &self.clock)
    }
}
