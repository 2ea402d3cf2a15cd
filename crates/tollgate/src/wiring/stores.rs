//! The stores behind their ports, the initial catalogue of a new database, and the blob store: a folder or a bucket.

use std::fs::DirBuilder;
use std::os::unix::fs::DirBuilderExt;
use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

use adapters_blob::LocalBlobStore;
use adapters_cache::LiveCatalogue;
use adapters_s3::{BucketCheck, S3BlobStore, create_missing_bucket};
use adapters_storage::{
    CheckpointLimits, Database, KeySetting, SeaOrmApiKeyRepository, SeaOrmAuditLog, SeaOrmChangeFeed,
    SeaOrmDocumentRepository, SeaOrmEvidenceRepository, SeaOrmGuardrailRepository, SeaOrmIdempotentRequests,
    SeaOrmLedgerReports, SeaOrmModelRepository, SeaOrmPresetRepository, SeaOrmProviderPauses, SeaOrmRejectionStore,
    SeaOrmUsageRepository, SeaOrmWorkspaceRepository, StorageSettings, Synchronous, is_temporary,
};
use adapters_system::{OsSecrets, SystemClock, TokioTimer, UuidV7Ids};
use anyhow::{Context, bail};
use api_actix::EvidenceServices;
use domain::api_key::{ApiKeyRepository, CreateApiKey, KeyGrants, ManageApiKeys};
use domain::audit::{Actor, AuditDraft, AuditLog};
use domain::budget::LedgerReader;
use domain::change_feed::ChangeFeed;
use domain::container::BlobStore;
use domain::decision::{FindRecord, UsageNames};
use domain::error::StoreError;
use domain::evidence::{EvidenceRepository, LabelAnswers, ListEvidence, SubmitFeedback};
use domain::file::{DeleteDocument, DocumentRepository};
use domain::guardrail::{GuardrailRepository, KnownNames, ManageGuardrails};
use domain::json::Json;
use domain::model::{Catalogue, CatalogueChange, ImportCatalogue, Model, ModelRepository};
use domain::observability::ManageDestinations;
use domain::preset::{ManagePresets, PresetRepository};
use domain::repetition::IdempotentRequests;
use domain::retention::DeleteWorkspace;
use domain::routing::ProviderPauses;
use domain::system::{Clock, HealthProbe, IdGenerator, LineLimit, SecretGenerator};
use domain::usage::{RejectionStore, UsageRepository};
use domain::workspace::{BootstrapInstance, CreateWorkspace, ManageWorkspaces, WorkspaceRepository};

use super::{directory, minimal_rows, sandbox_models};
use crate::config::{BlobsConfig, BucketConfig, Config, FolderConfig, StorageConfig};

/// The pause of a start between attempts to open the database.
const OPEN_RETRY: Duration = Duration::from_millis(250);
/// The time that a start waits for a database; then the supervisor of the process decides.
const START_TIMEOUT: Duration = Duration::from_mins(1);

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
    /// Documents.
    pub documents: Arc<dyn DocumentRepository>,
    /// Catalogue rows.
    pub models: Arc<dyn ModelRepository>,
    /// Presets.
    pub presets: Arc<dyn PresetRepository>,
    /// Evidence and labels.
    pub evidence: Arc<dyn EvidenceRepository>,
    /// The paused providers.
    pub pauses: Arc<dyn ProviderPauses>,
    /// Usage records, for reads.
    pub usage: Arc<dyn UsageRepository>,
    /// Counts of rejected requests.
    pub rejections: Arc<dyn RejectionStore>,
    /// Requests with an idempotency key.
    pub repetitions: Arc<dyn IdempotentRequests>,
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
    /// Opens the stores. With [`Schema::UpToDate`] it creates missing folders and a missing database.
    ///
    /// # Errors
    /// A store cannot be opened or migrated.
    pub async fn open(config: &Config, schema: Schema) -> anyhow::Result<Self> {
        Self::open_with(config, schema, schema == Schema::UpToDate).await
    }

    async fn open_with(config: &Config, schema: Schema, creates_folders: bool) -> anyhow::Result<Self> {
        let storage = &config.storage;
        if creates_folders && !storage.is_file() {
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
        let blobs = if creates_folders { open_blobs(&config.blobs)? } else { open_existing_blobs(&config.blobs)? };
        let keys = Arc::new(SeaOrmApiKeyRepository::new(database.clone()));
        let stores = Self {
            has_encryption_key: storage.encryption_key.is_some(),
            workspaces: Arc::new(SeaOrmWorkspaceRepository::new(database.clone())),
            keys: Arc::clone(&keys) as Arc<dyn ApiKeyRepository>,
            grants: keys,
            guardrails: Arc::new(SeaOrmGuardrailRepository::new(database.clone())),
            documents: Arc::new(SeaOrmDocumentRepository::new(database.clone())),
            models: Arc::new(SeaOrmModelRepository::new(database.clone())),
            presets: Arc::new(SeaOrmPresetRepository::new(database.clone())),
            evidence: Arc::new(SeaOrmEvidenceRepository::new(database.clone())),
            pauses: Arc::new(SeaOrmProviderPauses::new(database.clone())),
            usage: Arc::new(SeaOrmUsageRepository::new(database.clone())),
            rejections: Arc::new(SeaOrmRejectionStore::new(database.clone())),
            repetitions: Arc::new(SeaOrmIdempotentRequests::new(database.clone())),
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
            fill_empty_catalogue(&*stores.models).await?;
        }
        Ok(stores)
    }

    /// Opens the stores of a server. Waits a minute for a database that is locked, silent or not reachable.
    ///
    /// # Errors
    /// A store cannot be opened or migrated.
    pub async fn open_for_server(config: &Config, schema: Schema) -> anyhow::Result<Self> {
        let (clock, lines) = (SystemClock::new(), LineLimit::default());
        let began = clock.monotonic();
        loop {
            let opened = Self::open_writable(config, schema).await;
            let Err(error) = opened else { return opened };
            let waited = clock.monotonic().saturating_sub(began);
            if waited >= START_TIMEOUT || !is_temporary(error.as_ref()) {
                return Err(error);
            }
            if lines.admits("start", clock.monotonic()) {
                let wait_ms = u64::try_from(START_TIMEOUT.saturating_sub(waited).as_millis()).unwrap_or(u64::MAX);
                tracing::warn!(error = format!("{error:#}"), wait_ms, "database unavailable; the start waits for it");
            }
            tokio::time::sleep(OPEN_RETRY).await;
        }
    }

    /// Opens the stores and creates missing folders. Fails if the database is locked: the start of a server writes. A
    /// full or read-only database is served.
    async fn open_writable(config: &Config, schema: Schema) -> anyhow::Result<Self> {
        let stores = Self::open_with(config, schema, true).await?;
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

    /// Returns the use cases of guardrails, with the names of the current catalogue.
    ///
    /// # Errors
    /// The catalogue cannot be read.
    pub async fn manage_guardrails(&self, config: &Config) -> anyhow::Result<ManageGuardrails> {
        let overlay = minimal_rows(&config.endpoints);
        let models = Arc::clone(&self.models);
        let catalogue = LiveCatalogue::load(models, 0, overlay, sandbox_models(config));
        let catalogue = catalogue.await.context("the catalogue cannot be read")?;
        Ok(self.manage_guardrails_over(KnownNames::new(Arc::new(catalogue), Arc::new(directory(config)))))
    }

    /// Returns the use cases of guardrails with these known names.
    pub fn manage_guardrails_over(&self, names: KnownNames) -> ManageGuardrails {
        ManageGuardrails {
            guardrails: Arc::clone(&self.guardrails),
            workspaces: Arc::clone(&self.workspaces),
            names,
            clock: Arc::clone(&self.clock),
            ids: Arc::clone(&self.ids),
        }
    }

    /// Returns the use cases of evidence. `ledger` stores the charges of this process.
    pub fn evidence_services(&self, ledger: &Arc<dyn LedgerReader>) -> EvidenceServices {
        let labels = LabelAnswers {
            evidence: Arc::clone(&self.evidence),
            presets: Arc::clone(&self.presets),
            ledger: Arc::clone(ledger),
        };
        let (usage, clock) = (Arc::clone(&self.usage), Arc::clone(&self.clock));
        let records = FindRecord::new(usage, Arc::clone(ledger), clock, Arc::new(TokioTimer));
        let list = ListEvidence { evidence: Arc::clone(&self.evidence), ledger: Arc::clone(ledger) };
        let feedback = SubmitFeedback { records, labels: labels.clone() };
        EvidenceServices { list: Arc::new(list), labels, feedback }
    }

    /// Returns the use cases of presets.
    pub fn manage_presets(&self, catalogue: Arc<dyn Catalogue>) -> ManagePresets {
        ManagePresets {
            presets: Arc::clone(&self.presets),
            workspaces: Arc::clone(&self.workspaces),
            catalogue,
            clock: Arc::clone(&self.clock),
            ids: Arc::clone(&self.ids),
        }
    }

    /// Returns the use cases that change keys.
    pub fn manage_keys(&self) -> ManageApiKeys {
        ManageApiKeys::new(Arc::clone(&self.keys), Arc::clone(&self.clock))
    }

    /// Returns the use case that deletes documents.
    pub fn delete_document(&self) -> DeleteDocument {
        DeleteDocument::new(Arc::clone(&self.documents), Arc::clone(&self.blobs) as _)
    }

    /// Returns the use case that deletes workspaces with their destinations and guardrails.
    pub fn delete_workspace(&self, destinations: ManageDestinations, guardrails: ManageGuardrails) -> DeleteWorkspace {
        let (workspaces, keys, documents) = (Arc::clone(&self.workspaces), self.manage_keys(), self.delete_document());
        DeleteWorkspace { workspaces, keys, documents, destinations, guardrails }
    }

    /// Returns the use cases that change workspaces.
    pub fn manage_workspaces(&self, ledger: Arc<dyn LedgerReader>) -> ManageWorkspaces {
        ManageWorkspaces::new(Arc::clone(&self.workspaces), ledger, Arc::clone(&self.clock))
    }

    /// Returns the use case that creates workspaces.
    pub fn create_workspace(&self) -> CreateWorkspace {
        CreateWorkspace::new(Arc::clone(&self.workspaces), Arc::clone(&self.clock), Arc::clone(&self.ids))
    }

    /// Returns the keys and workspaces that filters of usage name.
    pub fn usage_names(&self) -> UsageNames {
        UsageNames { keys: Arc::clone(&self.keys), workspaces: Arc::clone(&self.workspaces) }
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
    pub fn import_catalogue(&self, config: &Config) -> ImportCatalogue {
        let served = config.endpoints.iter().map(|endpoint| endpoint.model.clone());
        ImportCatalogue::new(Arc::clone(&self.models)).serving(served, sandbox_models(config))
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

/// The rows shipped with the binary, in the public format.
pub const STARTER_CATALOGUE: &str = include_str!("../../assets/starter-catalogue.json");

/// Parses the rows shipped with the binary.
///
/// # Errors
/// The rows are invalid; a test excludes this.
pub fn starter_rows() -> anyhow::Result<Vec<Model>> {
    wires::catalogue::read_rows(STARTER_CATALOGUE).context("the starter catalogue cannot be read")
}

/// Adds the starter catalogue to a database whose catalogue was never changed. A catalogue emptied by an import stays
/// empty.
///
/// # Errors
/// The store failed.
async fn fill_empty_catalogue(models: &dyn ModelRepository) -> anyhow::Result<()> {
    if models.version().await? != 0 {
        return Ok(());
    }
    let change = CatalogueChange { upsert: starter_rows()?, remove: Vec::new() };
    // A rejected change means that another process has just added it.
    let audit = AuditDraft::done(&Actor::system(), "catalogue.starter", "catalogue", Json::object([]));
    models.apply(&change, 0, &audit).await.context("the starter catalogue cannot be stored")?;
    Ok(())
}

/// The longest time that a start waits for the bucket.
const START_CHECK: Duration = Duration::from_secs(5);

/// A blob store with its readiness probe.
pub trait Blobs: BlobStore + HealthProbe {}

impl<T: BlobStore + HealthProbe> Blobs for T {}

/// Opens the store; creates a missing folder. No request is sent to a bucket.
///
/// # Errors
/// The folder cannot be created or opened, or the settings of the bucket cannot be used.
pub fn open_blobs(config: &BlobsConfig) -> anyhow::Result<Arc<dyn Blobs>> {
    match config {
        BlobsConfig::Folder(folder) => Ok(Arc::new(in_folder(folder, LocalBlobStore::open)?)),
        BlobsConfig::Bucket(bucket) => Ok(Arc::new(open_bucket(bucket)?)),
    }
}

/// Opens the store for a command. A missing folder is an error of each operation: a new one would hide the loss.
fn open_existing_blobs(config: &BlobsConfig) -> anyhow::Result<Arc<dyn Blobs>> {
    match config {
        BlobsConfig::Folder(folder) => Ok(Arc::new(in_folder(folder, LocalBlobStore::open_existing)?)),
        BlobsConfig::Bucket(_) => open_blobs(config),
    }
}

fn in_folder(
    folder: &FolderConfig,
    open: impl FnOnce(&Path) -> Result<LocalBlobStore, StoreError>,
) -> anyhow::Result<LocalBlobStore> {
    let root = &folder.root;
    let store = open(root);
    let store = store.with_context(|| format!("the blob store {} cannot be opened", root.display()))?;
    Ok(store.with_quiet_period(folder.quiet_period))
}

fn open_bucket(bucket: &BucketConfig) -> anyhow::Result<S3BlobStore> {
    let store = bucket.settings().and_then(|settings| Ok(S3BlobStore::new(&settings)?));
    store.with_context(|| format!("the blob store {} cannot be opened", bucket.name()))
}

/// Creates the bucket of `blobs.url` if it does not exist. Returns true if this call created it.
///
/// # Errors
/// The files are not in a bucket, or the bucket can be neither used nor created.
pub async fn create_bucket(config: &BlobsConfig) -> anyhow::Result<bool> {
    let BlobsConfig::Bucket(bucket) = config else {
        bail!("no bucket to create: blobs.url is a folder, not s3://bucket/prefix")
    };
    create_missing_bucket(&bucket.settings()?).await.with_context(|| format!("blobs.url {}", bucket.name()))
}

/// Checks the bucket at the start of a server. An outage is logged only: decisions need no files, and the store
/// recovers without a restart.
///
/// # Errors
/// The service rejects the configuration, for example the credentials or the name of the bucket.
pub async fn require_bucket(config: &BlobsConfig) -> anyhow::Result<()> {
    let BlobsConfig::Bucket(bucket) = config else { return Ok(()) };
    let store = open_bucket(bucket)?;
    let checked = tokio::time::timeout(START_CHECK, store.check_bucket()).await;
    let outage = match checked {
        Ok(BucketCheck::Accessible) => return Ok(()),
        Ok(BucketCheck::Missing(reason) | BucketCheck::Rejected(reason)) => {
            bail!("the blob store {} cannot be used: {reason}", bucket.name())
        }
        Ok(BucketCheck::Unavailable(error)) => error,
        Err(_) => StoreError::unavailable(format!("no answer within {} ms", START_CHECK.as_millis())),
    };
    let error = anyhow::Error::from(outage);
    tracing::warn!(store = "blobs", error = format!("{error:#}"), "object store unavailable at start");
    Ok(())
}

#[cfg(test)]
mod tests {
    use adapters_provider::SandboxProvider;
    use domain::model::{CatalogueSnapshot, Modality};
    use domain::pricing::TokenPrices;

    use super::*;
    use crate::config::{Environment, load_text};

    #[tokio::test]
    async fn start_fails_when_the_checkpoint_task_cannot_start() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().display();
        let text = format!("[storage]\nurl = \"sqlite://{path}/t.db\"\n[blobs]\nurl = \"file:{path}/blobs\"\n");
        let config = load_text(None, &text, &Environment::default()).unwrap();
        let stores = Stores::open(&config, Schema::UpToDate).await.unwrap();
        stores.database.close().await;
        let error = format!("{:#}", stores.start_checkpoint_task().await.unwrap_err());
        assert!(error.starts_with("failed to start the WAL checkpoint task: "), "{error}");
    }

    #[test]
    fn starter_catalogue_is_valid() {
        let rows = starter_rows().unwrap();
        assert_eq!(CatalogueSnapshot::check(&rows), Ok(()));
        for row in &rows {
            assert!(!row.name.is_empty() && !row.description.is_empty(), "{}", row.id);
            assert!(row.description.chars().count() <= 190, "{}", row.id);
            assert!(row.description.is_ascii(), "{}", row.id);
            assert!(!row.pricing.is_variable(), "{}", row.id);
        }
    }

    #[test]
    fn starter_catalogue_has_decision_models_of_several_vendors() {
        let rows = starter_rows().unwrap();
        let mut vendors: Vec<&str> =
            rows.iter().filter(|row| row.serves_decisions()).map(|row| row.id.author()).collect();
        vendors.sort_unstable();
        vendors.dedup();
        assert!(vendors.len() >= 8, "{vendors:?}");
        let snapshot = CatalogueSnapshot::build(rows);
        let latest = snapshot.resolve("~typesafe/jev-latest").unwrap();
        assert_eq!(latest.model.id.as_str(), "typesafe/jev-1.14");
        assert_eq!(snapshot.resolve("typesafe/jev-1.13-20260917").unwrap().model.id.as_str(), "typesafe/jev-1.13");
    }

    #[test]
    fn starter_catalogue_has_every_output_modality_except_video() {
        let rows = starter_rows().unwrap();
        for modality in Modality::ALL.into_iter().filter(|modality| *modality != Modality::Video) {
            assert!(rows.iter().any(|row| row.architecture.outputs().contains(modality)), "{modality:?}");
        }
    }

    #[test]
    fn starter_catalogue_has_sandbox_models_at_their_prices() {
        let rows = starter_rows().unwrap();
        let mut endpoints = SandboxProvider::endpoints();
        endpoints.extend(SandboxProvider::error_endpoints());
        assert_eq!(endpoints.len(), 9);
        for endpoint in &endpoints {
            let row = rows.iter().find(|row| row.id == endpoint.model).unwrap();
            assert!(row.serves_decisions(), "{}", row.id);
            let prices = TokenPrices { prompt: row.pricing.prompt, completion: row.pricing.completion };
            assert_eq!(Some(prices), endpoint.prices, "{}", row.id);
        }
        assert_eq!(rows.iter().filter(|row| row.id.author() == "sandbox").count(), endpoints.len());
    }
}
