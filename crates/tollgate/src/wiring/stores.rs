//! The stores behind their ports, opened and brought up to date.

use std::sync::Arc;

use adapters_blob::LocalBlobStore;
use adapters_cache::LiveCatalogue;
use adapters_storage::{
    Database, LogBounds, SeaOrmApiKeyRepository, SeaOrmAuditLog, SeaOrmChangeFeed, SeaOrmDocumentRepository,
    SeaOrmGuardrailRepository, SeaOrmLedgerReports, SeaOrmModelRepository, SeaOrmUsageRepository,
    SeaOrmWorkspaceRepository, StorageSettings, Synchronous,
};
use adapters_system::{OsSecrets, SystemClock, TokioTimer, UuidV7Ids};
use anyhow::Context;
use domain::api_key::{ApiKeyRepository, CreateApiKey, KeyGrants};
use domain::audit::AuditLog;
use domain::change_feed::ChangeFeed;
use domain::file::DocumentRepository;
use domain::guardrail::{GuardrailAssignments, GuardrailPorts, GuardrailRepository, KnownNames};
use domain::model::{ImportCatalogue, ModelRepository};
use domain::system::{Clock, IdGenerator, SecretGenerator};
use domain::usage::{FindRecord, UsageRepository};
use domain::workspace::{BootstrapInstance, CreateWorkspace, WorkspaceRepository};

use super::{directory, minimal_rows, starter};
use crate::config::{Config, StorageConfig};

/// What to do about the database's schema.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Schema {
    /// Bring it up to date, and fill an empty catalogue.
    UpToDate,
    /// Leave it as it is.
    AsItIs,
}

/// Every store, and what use cases need beside them.
#[derive(Clone)]
pub struct Stores {
    /// The database itself.
    pub database: Database,
    /// Workspaces.
    pub workspaces: Arc<dyn WorkspaceRepository>,
    /// Keys.
    pub keys: Arc<dyn ApiKeyRepository>,
    /// What keys grant, straight from the database.
    pub grants: Arc<dyn KeyGrants>,
    /// Guardrails.
    pub guardrails: Arc<dyn GuardrailRepository>,
    /// Which keys hold them.
    pub assignments: Arc<dyn GuardrailAssignments>,
    /// Documents.
    pub documents: Arc<dyn DocumentRepository>,
    /// Catalogue rows.
    pub models: Arc<dyn ModelRepository>,
    /// Usage records, as they are read.
    pub usage: Arc<dyn UsageRepository>,
    /// The audit log.
    pub audit: Arc<dyn AuditLog>,
    /// The change feed.
    pub feed: Arc<dyn ChangeFeed>,
    /// Bytes.
    pub blobs: Arc<LocalBlobStore>,
    /// Time.
    pub clock: Arc<dyn Clock>,
    /// Ids.
    pub ids: Arc<dyn IdGenerator>,
    /// Secrets.
    pub secrets: Arc<dyn SecretGenerator>,
}

impl Stores {
    /// Opens the stores; makes folders and database where they are missing and may be made.
    ///
    /// # Errors
    /// A store cannot be opened or brought up to date.
    pub async fn open(config: &Config, schema: Schema) -> anyhow::Result<Self> {
        let storage = &config.storage;
        let clock: Arc<dyn Clock> = Arc::new(SystemClock::new());
        let database = Database::open(&settings(storage), Arc::clone(&clock))
            .await
            .with_context(|| format!("the database {} cannot be opened", storage.file.display()))?;
        if schema == Schema::UpToDate {
            migrate(&database, storage).await?;
        }
        let root = &config.blobs.root;
        let blobs = LocalBlobStore::open(root)
            .with_context(|| format!("the blob store {} cannot be opened", root.display()))?
            .with_quiet_period(config.blobs.quiet_period);
        let keys = Arc::new(SeaOrmApiKeyRepository::new(database.clone()));
        let stores = Self {
            workspaces: Arc::new(SeaOrmWorkspaceRepository::new(database.clone())),
            keys: Arc::clone(&keys) as Arc<dyn ApiKeyRepository>,
            grants: keys,
            guardrails: Arc::new(SeaOrmGuardrailRepository::new(database.clone())),
            assignments: Arc::new(SeaOrmGuardrailRepository::new(database.clone())),
            documents: Arc::new(SeaOrmDocumentRepository::new(database.clone())),
            models: Arc::new(SeaOrmModelRepository::new(database.clone())),
            usage: Arc::new(SeaOrmUsageRepository::new(database.clone())),
            audit: Arc::new(SeaOrmAuditLog::new(database.clone())),
            feed: Arc::new(SeaOrmChangeFeed::new(database.clone())),
            blobs: Arc::new(blobs),
            clock,
            ids: Arc::new(UuidV7Ids),
            secrets: Arc::new(OsSecrets),
            database,
        };
        if schema == Schema::UpToDate && !storage.read_only {
            starter::fill_empty_catalogue(&*stores.models).await?;
        }
        Ok(stores)
    }

    /// Takes the copying of the database's log off the path of requests, until the database is closed. For a process that
    /// serves; those that live for one command leave it to SQLite.
    ///
    /// # Errors
    /// The database's connection cannot be had.
    pub async fn checkpoint_beside_requests(&self) -> anyhow::Result<()> {
        let followed = self.database.checkpoint_beside_requests(LogBounds::default());
        followed.await.context("the database's log cannot be looked after")
    }

    /// Finds records, also those that a server of this machine charged a moment ago.
    pub fn find_record(&self) -> FindRecord {
        FindRecord::new(Arc::clone(&self.usage), None, Arc::clone(&self.clock), Arc::new(TokioTimer))
    }

    /// Reads the amounts of limits, and audits the ledger.
    pub fn reports(&self) -> SeaOrmLedgerReports {
        SeaOrmLedgerReports::new(self.database.clone())
    }

    /// Makes keys.
    pub fn create_api_key(&self) -> CreateApiKey {
        CreateApiKey::new(
            Arc::clone(&self.keys),
            Arc::clone(&self.clock),
            Arc::clone(&self.ids),
            Arc::clone(&self.secrets),
        )
    }

    /// What manages guardrails, for a command: over the catalogue as it is now.
    ///
    /// # Errors
    /// The catalogue cannot be read.
    pub async fn guardrail_ports(&self, config: &Config) -> anyhow::Result<GuardrailPorts> {
        let overlay = minimal_rows(&config.endpoints);
        let models = Arc::clone(&self.models);
        let catalogue = LiveCatalogue::load(models, 0, overlay, !config.sandbox_enabled);
        let catalogue = catalogue.await.context("the catalogue cannot be read")?;
        Ok(self.guardrail_ports_over(KnownNames::new(Arc::new(catalogue), Arc::new(directory(config)))))
    }

    /// What manages guardrails that can name these models and providers.
    pub fn guardrail_ports_over(&self, names: KnownNames) -> GuardrailPorts {
        GuardrailPorts {
            guardrails: Arc::clone(&self.guardrails),
            workspaces: Arc::clone(&self.workspaces),
            names,
            clock: Arc::clone(&self.clock),
            ids: Arc::clone(&self.ids),
        }
    }

    /// Makes workspaces.
    pub fn create_workspace(&self) -> CreateWorkspace {
        CreateWorkspace::new(Arc::clone(&self.workspaces), Arc::clone(&self.clock), Arc::clone(&self.ids))
    }

    /// Makes the first workspace and management key.
    pub fn bootstrap(&self) -> BootstrapInstance {
        BootstrapInstance::new(
            Arc::clone(&self.workspaces),
            Arc::clone(&self.clock),
            Arc::clone(&self.ids),
            Arc::clone(&self.secrets),
        )
    }

    /// Imports catalogue rows.
    pub fn import_catalogue(&self) -> ImportCatalogue {
        ImportCatalogue::new(Arc::clone(&self.models))
    }
}

fn settings(storage: &StorageConfig) -> StorageSettings {
    StorageSettings {
        synchronous: if storage.synchronous_full { Synchronous::Full } else { Synchronous::Normal },
        busy_timeout: storage.busy_timeout,
        read_connections: storage.read_connections,
        max_bytes: storage.max_database_bytes,
        ..StorageSettings::new(storage.url.as_str())
    }
}

/// Applies what is missing, so that an up-to-date database (a read-only one too) needs no write.
async fn migrate(database: &Database, storage: &StorageConfig) -> anyhow::Result<()> {
    let file = storage.file.display();
    let states = database.migration_status().await.with_context(|| format!("the schema of {file} cannot be read"))?;
    if states.iter().any(|state| !state.applied) {
        database.migrate().await.with_context(|| format!("the schema of {file} cannot be brought up to date"))?;
    }
    Ok(())
}
