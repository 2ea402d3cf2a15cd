//! The stores behind their ports.

use std::fs::DirBuilder;
use std::os::unix::fs::DirBuilderExt;
use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

use adapters_cache::LiveCatalogue;
use adapters_storage::{
    CheckpointLimits, Database, KeySetting, SeaOrmApiKeyRepository, SeaOrmAuditLog, SeaOrmChangeFeed,
    SeaOrmDocumentRepository, SeaOrmGuardrailRepository, SeaOrmLedgerReports, SeaOrmModelRepository,
    SeaOrmRejectionStore, SeaOrmUsageRepository, SeaOrmWorkspaceRepository, StorageSettings, Synchronous, is_temporary,
};
use adapters_system::{OsSecrets, SystemClock, TokioTimer, UuidV7Ids};
use anyhow::{Context, bail};
use domain::api_key::{ApiKeyRepository, CreateApiKey, KeyGrants};
use domain::audit::AuditLog;
use domain::change_feed::ChangeFeed;
use domain::file::DocumentRepository;
use domain::guardrail::{GuardrailAssignments, GuardrailPorts, GuardrailRepository, KnownNames};
use domain::model::{ImportCatalogue, ModelRepository};
use domain::system::{Clock, IdGenerator, LineLimit, SecretGenerator};
use domain::usage::{FindRecord, RejectionStore, UsageRepository};
use domain::workspace::{BootstrapInstance, CreateWorkspace, WorkspaceRepository};

use super::{Blobs, directory, minimal_rows, open_blobs, sandbox_models, starter};
use crate::config::{Config, StorageConfig};

/// The pause of a start between attempts to open the database.
const OPEN_RETRY: Duration = Duration::from_millis(250);

/// The treatment of the database's schema at open.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Schema {
    /// Migrates it, and fills an empty catalogue.
    UpToDate,
    /// Fails if it lacks a migration, and changes nothing.
    Required,
    /// Leaves it unchanged.
    AsItIs,
}

/// Every store, with the ports that use cases need in addition.
#[derive(Clone)]
pub struct Stores {
    /// The database itself.
    pub database: Database,
    /// True if secrets of destinations are encrypted when they are written.
    pub has_encryption_key: bool,
    /// Workspaces.
    pub workspaces: Arc<dyn WorkspaceRepository>,
    /// Keys.
    pub keys: Arc<dyn ApiKeyRepository>,
    /// The grants of keys, read from the database without a cache.
    pub grants: Arc<dyn KeyGrants>,
    /// Guardrails.
    pub guardrails: Arc<dyn GuardrailRepository>,
    /// The assignments of guardrails to keys.
    pub assignments: Arc<dyn GuardrailAssignments>,
    /// Documents.
    pub documents: Arc<dyn DocumentRepository>,
    /// Catalogue rows.
    pub models: Arc<dyn ModelRepository>,
    /// Usage records, for reads.
    pub usage: Arc<dyn UsageRepository>,
    /// Counts of rejected requests.
    pub rejections: Arc<dyn RejectionStore>,
    /// The audit log.
    pub audit: Arc<dyn AuditLog>,
    /// The change feed.
    pub feed: Arc<dyn ChangeFeed>,
    /// Bytes.
    pub blobs: Arc<dyn Blobs>,
    /// Time.
    pub clock: Arc<dyn Clock>,
    /// Ids.
    pub ids: Arc<dyn IdGenerator>,
    /// Secrets.
    pub secrets: Arc<dyn SecretGenerator>,
}

impl Stores {
    /// Opens the stores; creates missing folders and a missing database if that is permitted.
    ///
    /// # Errors
    /// A store cannot be opened or migrated.
    pub async fn open(config: &Config, schema: Schema) -> anyhow::Result<Self> {
        let storage = &config.storage;
        if !storage.is_file() {
            create_local_folder(&storage.file)
                .with_context(|| format!("the folder of {} cannot be created", storage.file.display()))?;
        }
        let clock: Arc<dyn Clock> = Arc::new(SystemClock::new());
        let database = Database::open(&storage_settings(storage), Arc::clone(&clock))
            .await
            .with_context(|| format!("the database {} cannot be opened", storage.name()))?;
        match schema {
            Schema::UpToDate => migrate(&database, storage).await?,
            Schema::Required => require_migrations(&database, storage).await?,
            Schema::AsItIs => {}
        }
        if schema != Schema::AsItIs {
            require_complete(&database, storage).await?;
            // No request may be charged by the clock of this machine.
            database.read_clock().await.context("the time of the database cannot be read")?;
        }
        let blobs = open_blobs(&config.blobs)?;
        let keys = Arc::new(SeaOrmApiKeyRepository::new(database.clone()));
        let stores = Self {
            has_encryption_key: storage.encryption_key.is_some(),
            workspaces: Arc::new(SeaOrmWorkspaceRepository::new(database.clone())),
            keys: Arc::clone(&keys) as Arc<dyn ApiKeyRepository>,
            grants: keys,
            guardrails: Arc::new(SeaOrmGuardrailRepository::new(database.clone())),
            assignments: Arc::new(SeaOrmGuardrailRepository::new(database.clone())),
            documents: Arc::new(SeaOrmDocumentRepository::new(database.clone())),
            models: Arc::new(SeaOrmModelRepository::new(database.clone())),
            usage: Arc::new(SeaOrmUsageRepository::new(database.clone())),
            rejections: Arc::new(SeaOrmRejectionStore::new(database.clone())),
            audit: Arc::new(SeaOrmAuditLog::new(database.clone())),
            feed: Arc::new(SeaOrmChangeFeed::new(database.clone())),
            blobs,
            // All replicas decide by the time of the store.
            clock: Arc::new(database.clone()),
            ids: Arc::new(UuidV7Ids),
            secrets: Arc::new(OsSecrets),
            database,
        };
        if schema == Schema::UpToDate && !storage.read_only {
            starter::fill_empty_catalogue(&*stores.models).await?;
        }
        Ok(stores)
    }

    /// Opens the stores of a server. Waits for a database that is locked, silent or not reachable for the configured
    /// time.
    ///
    /// # Errors
    /// A store cannot be opened or migrated.
    pub async fn open_for_server(config: &Config, schema: Schema) -> anyhow::Result<Self> {
        let (clock, lines) = (SystemClock::new(), LineLimit::default());
        let wait = config.storage.start_timeout;
        let began = clock.monotonic();
        loop {
            let opened = Self::open_writable(config, schema).await;
            let Err(error) = opened else { return opened };
            let waited = clock.monotonic().saturating_sub(began);
            if waited >= wait || !is_temporary(error.as_ref()) {
                return Err(error);
            }
            if lines.admits("start", clock.monotonic()) {
                let wait_ms = u64::try_from(wait.saturating_sub(waited).as_millis()).unwrap_or(u64::MAX);
                tracing::warn!(error = format!("{error:#}"), wait_ms, "database unavailable; the start waits for it");
            }
            tokio::time::sleep(OPEN_RETRY).await;
        }
    }

    /// Opens the stores. Fails if the database is locked: the start of a server writes. A full or read-only database is
    /// served.
    async fn open_writable(config: &Config, schema: Schema) -> anyhow::Result<Self> {
        let stores = Self::open(config, schema).await?;
        if !config.storage.read_only
            && let Err(error) = stores.database.probe_write().await
            && is_temporary(&error)
        {
            stores.database.close().await;
            return Err(error).context("the database takes no writes");
        }
        Ok(stores)
    }

    /// Checkpoints the write-ahead log in the background until the database is closed, so that requests do not. Only
    /// servers need this; commands leave it to SQLite.
    ///
    /// # Errors
    /// The database connection cannot be opened.
    pub async fn start_checkpoint_task(&self) -> anyhow::Result<()> {
        let followed = self.database.start_checkpoint_task(CheckpointLimits::default());
        followed.await.context("failed to start the WAL checkpoint task")
    }

    /// Returns the lookup of records, including records that a server of this machine has just charged.
    pub fn find_record(&self) -> FindRecord {
        FindRecord::new(Arc::clone(&self.usage), None, Arc::clone(&self.clock), Arc::new(TokioTimer))
    }

    /// Returns the reports on limits and the audit of the ledger.
    pub fn reports(&self) -> SeaOrmLedgerReports {
        SeaOrmLedgerReports::new(self.database.clone())
    }

    /// Returns the use case that creates keys.
    pub fn create_api_key(&self) -> CreateApiKey {
        CreateApiKey::new(
            Arc::clone(&self.keys),
            Arc::clone(&self.clock),
            Arc::clone(&self.ids),
            Arc::clone(&self.secrets),
        )
    }

    /// Returns the ports for managing guardrails, with the names of the current catalogue.
    ///
    /// # Errors
    /// The catalogue cannot be read.
    pub async fn guardrail_ports(&self, config: &Config) -> anyhow::Result<GuardrailPorts> {
        let overlay = minimal_rows(&config.endpoints);
        let models = Arc::clone(&self.models);
        let catalogue = LiveCatalogue::load(models, 0, overlay, sandbox_models(config));
        let catalogue = catalogue.await.context("the catalogue cannot be read")?;
        Ok(self.guardrail_ports_over(KnownNames::new(Arc::new(catalogue), Arc::new(directory(config)))))
    }

    /// Returns the ports for managing guardrails with these known names.
    pub fn guardrail_ports_over(&self, names: KnownNames) -> GuardrailPorts {
        GuardrailPorts {
            guardrails: Arc::clone(&self.guardrails),
            workspaces: Arc::clone(&self.workspaces),
            names,
            clock: Arc::clone(&self.clock),
            ids: Arc::clone(&self.ids),
        }
    }

    /// Returns the use case that creates workspaces.
    pub fn create_workspace(&self) -> CreateWorkspace {
        CreateWorkspace::new(Arc::clone(&self.workspaces), Arc::clone(&self.clock), Arc::clone(&self.ids))
    }

    /// Returns the use case that creates the first workspace and management key.
    pub fn bootstrap(&self) -> BootstrapInstance {
        BootstrapInstance::new(
            Arc::clone(&self.workspaces),
            Arc::clone(&self.clock),
            Arc::clone(&self.ids),
            Arc::clone(&self.secrets),
        )
    }

    /// Returns the use case that imports catalogue rows.
    pub fn import_catalogue(&self) -> ImportCatalogue {
        ImportCatalogue::new(Arc::clone(&self.models))
    }
}

/// Creates the folder of the files that this machine has beside a database on a server.
fn create_local_folder(file: &Path) -> std::io::Result<()> {
    let folder = file.parent().filter(|folder| !folder.as_os_str().is_empty());
    folder.map_or(Ok(()), |folder| DirBuilder::new().recursive(true).mode(OWNER_ONLY).create(folder))
}

/// The permissions of a folder that only its owner enters.
const OWNER_ONLY: u32 = 0o700;

/// How the database is opened. Without a readable encryption key the secrets of destinations cannot be used.
pub fn storage_settings(storage: &StorageConfig) -> StorageSettings {
    StorageSettings {
        synchronous: if storage.synchronous_full { Synchronous::Full } else { Synchronous::Normal },
        busy_timeout: storage.busy_timeout,
        read_connections: storage.read_connections,
        max_bytes: storage.max_database_bytes,
        encryption_key: match storage.read_encryption_key() {
            Ok(None) => KeySetting::Unset,
            Ok(Some(key)) => KeySetting::Key(key),
            Err(error) => KeySetting::Unavailable(error.to_string()),
        },
        ..StorageSettings::new(storage.url.as_str())
    }
}

/// Applies missing migrations; an up-to-date database, for example a read-only one, needs no write.
async fn migrate(database: &Database, storage: &StorageConfig) -> anyhow::Result<()> {
    let name = storage.name();
    let states = database.migration_status().await.with_context(|| format!("cannot read the schema of {name}"))?;
    if states.iter().any(|state| !state.applied) {
        database.migrate().await.with_context(|| format!("the schema of {name} cannot be migrated"))?;
    }
    Ok(())
}

/// An unfinished copy lacks records, and a change would keep the copy from its end.
async fn require_complete(database: &Database, storage: &StorageConfig) -> anyhow::Result<()> {
    let name = storage.name();
    let copy = database.unfinished_copy().await.with_context(|| format!("cannot read {name}"))?;
    match copy {
        None => Ok(()),
        Some(copy) => bail!(
            "{name} is an unfinished copy of another database, begun {}: run the same `tollgate store copy` again to \
             finish it",
            copy.started_at.to_rfc3339()
        ),
    }
}

/// A command never migrates: the server beside it may be of an older release. Nor does a server whose migrations are a
/// job of their own.
async fn require_migrations(database: &Database, storage: &StorageConfig) -> anyhow::Result<()> {
    let name = storage.name();
    let states = database.migration_status().await.with_context(|| format!("cannot read the schema of {name}"))?;
    let missing: Vec<&str> = states.iter().filter(|state| !state.applied).map(|state| state.name.as_str()).collect();
    match missing.first() {
        None => Ok(()),
        Some(first) => bail!(
            "{name} lacks {} migrations, the first is {first}: run `tollgate migrate up` of this version, or \
             `tollgate serve` without --no-migrate",
            missing.len()
        ),
    }
}
