//! A database in a temporary folder, and records for it.
#![allow(dead_code, reason = "each test file uses a part")]

mod ledgers;
mod rejections;

pub use ledgers::*;
pub use rejections::*;

use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use adapters_storage::{
    Database, SeaOrmApiKeyRepository, SeaOrmAuditLog, SeaOrmBudgetAlerts, SeaOrmChangeFeed,
    SeaOrmDestinationRepository, SeaOrmDocumentRepository, SeaOrmEvidenceRepository, SeaOrmGuardrailRepository,
    SeaOrmIdempotentRequests, SeaOrmLedgerReports, SeaOrmModelRepository, SeaOrmOutbox, SeaOrmPresetRepository,
    SeaOrmProviderPauses, SeaOrmUsageRepository, SeaOrmWorkspaceRepository, StorageSettings,
};
use chrono::{DateTime, TimeDelta, Utc};
use domain::api_key::{ApiKey, ApiKeyName, ApiKeyScope};
use domain::audit::{Actor, AuditDraft};
use domain::budget::{Payer, WorkspaceBudgets};
use domain::file::{DocumentQuota, PendingDocument};
use domain::guardrail::{Guardrail, GuardrailName, GuardrailRules};
use domain::ids::{ApiKeyId, DecisionId, DocumentId, GuardrailId, RequestId, WorkspaceId};
use domain::json::Json;
use domain::money::Usd;
use domain::pricing::TokenPrices;
use domain::rate::RateLimits;
use domain::secret::ApiKeyHash;
use domain::system::Clock;
use domain::testing::contract::Stores;
use domain::testing::{FixedClock, MemoryStore};
use domain::usage::{AttemptOutcome, AttemptRecord, UsageOutcome, UsageRecord, UsageShare, UsageSource};
use domain::workspace::{Workspace, WorkspaceName, WorkspaceSlug};
use sea_orm::sqlx::sqlite::{SqliteConnectOptions, SqlitePool, SqlitePoolOptions};
use tempfile::TempDir;
use uuid::Uuid;

/// A folder for one database.
pub struct Folder(TempDir);

impl Folder {
    pub fn new() -> Self {
        Self(TempDir::new().unwrap())
    }

    pub fn path(&self) -> PathBuf {
        self.0.path().join("data/tollgate.db")
    }

    pub fn settings(&self) -> StorageSettings {
        settings(&self.path())
    }

    /// Opens the database as a process does, with the schema applied.
    pub async fn open(&self) -> Database {
        open(&self.settings()).await
    }

    /// Opens a connection outside the adapter.
    pub async fn raw(&self) -> SqlitePool {
        let options = SqliteConnectOptions::new().filename(self.path()).foreign_keys(false);
        SqlitePoolOptions::new().max_connections(1).connect_with(options).await.unwrap()
    }

    /// Returns the number of rows of a table.
    pub async fn count(&self, table: &str) -> i64 {
        let pool = self.raw().await;
        let sql = sea_orm::sqlx::AssertSqlSafe(format!("SELECT COUNT(*) FROM {table}"));
        let count = sea_orm::sqlx::query_scalar(sql).fetch_one(&pool).await.unwrap();
        pool.close().await;
        count
    }

    pub async fn execute(&self, sql: &str) {
        let pool = self.raw().await;
        sea_orm::sqlx::raw_sql(sea_orm::sqlx::AssertSqlSafe(sql.to_owned())).execute(&pool).await.unwrap();
        pool.close().await;
    }
}

pub fn settings(path: &Path) -> StorageSettings {
    StorageSettings::new(format!("sqlite://{}", path.display()))
}

pub async fn open(settings: &StorageSettings) -> Database {
    open_by(settings, clock()).await
}

/// Opens the database with the test's clock.
pub async fn open_by(settings: &StorageSettings, clock: Arc<dyn Clock>) -> Database {
    let database = Database::open(settings, clock).await.unwrap();
    database.migrate().await.unwrap();
    database
}

/// Sets a short lock timeout.
pub fn hasty(settings: StorageSettings) -> StorageSettings {
    StorageSettings { busy_timeout: Duration::from_millis(200), ..settings }
}

/// Returns every port over handles of a database on a server.
pub fn replicas(handles: &[Database], clock: FixedClock) -> Stores {
    stores(handles, clock, ())
}

/// Returns every port over the handles, which are used in turn and share `clock`. Keeps `keep` as long as they are used.
pub fn stores(handles: &[Database], clock: FixedClock, keep: impl Send + Sync + 'static) -> Stores {
    let database = |number: usize| handles[number % handles.len()].clone();
    Stores {
        workspaces: Arc::new(SeaOrmWorkspaceRepository::new(database(0))),
        api_keys: Arc::new(SeaOrmApiKeyRepository::new(database(1))),
        key_grants: Arc::new(SeaOrmApiKeyRepository::new(database(0))),
        guardrails: Arc::new(SeaOrmGuardrailRepository::new(database(0))),
        documents: Arc::new(SeaOrmDocumentRepository::new(database(1))),
        models: Arc::new(SeaOrmModelRepository::new(database(1))),
        pauses: Arc::new(SeaOrmProviderPauses::new(database(0))),
        presets: Arc::new(SeaOrmPresetRepository::new(database(0))),
        evidence: Arc::new(SeaOrmEvidenceRepository::new(database(0))),
        changes: Arc::new(SeaOrmChangeFeed::new(database(0))),
        usage: Arc::new(SeaOrmUsageRepository::new(database(1))),
        // The ledger has a separate suite; the suites here do not use it.
        ledger: MemoryStore::new().ledger(),
        budget: Arc::new(BudgetStores::over(handles)),
        alerts: Arc::new(SeaOrmBudgetAlerts::new(database(1))),
        limits: Arc::new(SeaOrmLedgerReports::new(database(1))),
        maintenance: Arc::new(SeaOrmLedgerReports::new(database(1))),
        audit: Arc::new(SeaOrmAuditLog::new(database(1))),
        destinations: Arc::new(SeaOrmDestinationRepository::new(database(0))),
        outbox: Arc::new(SeaOrmOutbox::new(database(1))),
        rejections: Arc::new(RejectionStores::over(handles)),
        repetitions: Arc::new(SeaOrmIdempotentRequests::new(database(1))),
        grants_lag: None,
        clock,
        keep: Box::new(keep),
    }
}

/// Returns every port of one database with a number of open handles, all with one clock.
pub async fn processes(count: usize) -> Stores {
    processes_in(Folder::new(), count).await
}

pub async fn processes_in(folder: Folder, count: usize) -> Stores {
    let clock = FixedClock::at(at(0));
    let mut handles = Vec::new();
    for _ in 0..count {
        handles.push(open_by(&folder.settings(), Arc::new(clock.clone())).await);
    }
    stores(&handles, clock, folder)
}

/// The step of a later release, which an older one works beside.
pub const LATER_STEP: &str = "INSERT INTO seaql_migrations (version, applied_at) VALUES ('m20990101_000001_future', 0); \
                              CREATE TABLE future (id text PRIMARY KEY)";

/// Returns the statements with which a later release expands a table.
pub fn expand(table: &str) -> String {
    format!(
        "ALTER TABLE \"{table}\" ADD COLUMN future_text text; \
         ALTER TABLE \"{table}\" ADD COLUMN future_number bigint NOT NULL DEFAULT 7; \
         CREATE INDEX \"future_{table}\" ON \"{table}\" (future_number)"
    )
}

/// Returns every port over two handles of a database whose tables a later release has expanded.
pub async fn on_newer_schema() -> Stores {
    let folder = Folder::new();
    folder.open().await.close().await;
    let pool = folder.raw().await;
    let names = "SELECT name FROM sqlite_master WHERE type = 'table' AND name NOT LIKE 'sqlite_%'";
    let tables: Vec<String> = sea_orm::sqlx::query_scalar(names).fetch_all(&pool).await.unwrap();
    pool.close().await;
    for table in tables {
        folder.execute(&expand(&table)).await;
    }
    folder.execute(LATER_STEP).await;
    processes_in(folder, 2).await
}

/// Returns a fixed clock.
pub fn clock() -> Arc<dyn Clock> {
    Arc::new(FixedClock::at(at(0)))
}

/// Returns the audit entry of a change.
pub fn audit() -> AuditDraft {
    AuditDraft::done(&Actor::system(), "test.change", "subject", Json::object([]))
}

pub fn at(seconds: i64) -> DateTime<Utc> {
    DateTime::from_timestamp_millis(1_790_000_000_000).unwrap() + TimeDelta::seconds(seconds)
}

pub fn workspace_id(number: u128) -> WorkspaceId {
    WorkspaceId::from_uuid(Uuid::from_u128(number))
}

pub fn guardrail_id(number: u128) -> GuardrailId {
    GuardrailId::from_uuid(Uuid::from_u128(number))
}

pub fn document_id(number: u128) -> DocumentId {
    DocumentId::from_uuid(Uuid::from_u128(number))
}

pub fn decision_id(number: u128) -> DecisionId {
    DecisionId::from_uuid(Uuid::from_u128(number))
}

/// Returns the column of a UUID in usage records.
pub fn id_column(number: u128) -> String {
    format!("x'{number:032x}'")
}

pub fn key_id(number: u64) -> ApiKeyId {
    ApiKeyId::from_uuid(Uuid::from_u128(number.into()))
}

/// Returns a hash distributed like a digest.
pub fn hash(number: u64) -> ApiKeyHash {
    let mut bytes = [0; 32];
    for (place, part) in bytes.chunks_mut(8).zip(1_u64..) {
        let mixed = (number + 1).wrapping_mul(0x9e37_79b9_7f4a_7c15).wrapping_mul(2 * part + 1);
        place.copy_from_slice(&(mixed ^ (mixed >> 29)).to_be_bytes());
    }
    ApiKeyHash::from_bytes(bytes)
}

pub fn workspace(number: u128) -> Workspace {
    Workspace {
        id: workspace_id(number),
        name: WorkspaceName::try_new("acme").unwrap(),
        slug: WorkspaceSlug::try_new(&format!("w-{number}")).unwrap(),
        description: None,
        owner_id: None,
        is_default: false,
        suspended: false,
        credit: None,
        budgets: WorkspaceBudgets::default(),
        rates: RateLimits::default(),
        default_guardrail_id: None,
        storage_used_bytes: 0,
        created_at: at(0),
        updated_at: None,
    }
}

pub fn key(number: u64, scope: ApiKeyScope) -> ApiKey {
    ApiKey {
        id: key_id(number),
        hash: hash(number),
        label: "sk-tg-v1-abc...def".to_owned(),
        name: ApiKeyName::try_new("key").unwrap(),
        scope,
        disabled: false,
        expires_at: None,
        limit: None,
        rates: RateLimits::default(),
        guardrail_id: None,
        users: domain::api_key::KeyUsers::default(),
        previous_secret: None,
        created_at: at(0),
        updated_at: None,
    }
}

pub fn guardrail(number: u128, workspace: u128) -> Guardrail {
    Guardrail {
        id: guardrail_id(number),
        workspace_id: workspace_id(workspace),
        name: GuardrailName::try_new("guardrail").unwrap(),
        budget: None,
        rules: GuardrailRules::default(),
        version: 1,
        created_at: at(0),
        updated_at: None,
    }
}

pub fn pending(number: u128, workspace: u128, size_bytes: u64) -> PendingDocument {
    PendingDocument {
        id: document_id(number),
        workspace_id: workspace_id(workspace),
        filename: "a.txt".to_owned(),
        size_bytes,
        charged_bytes: size_bytes,
        process: None,
        created_at: at(0),
    }
}

/// Returns a quota of bytes only.
pub fn quota(bytes: u64) -> DocumentQuota {
    DocumentQuota { bytes, documents: u64::MAX }
}

/// Returns the payer for key 1 of workspace 1.
pub fn payer() -> Payer {
    Payer { workspace_id: workspace_id(1), api_key: key_id(1), guardrails: Vec::new() }
}

pub fn attempt(pico: u32) -> AttemptRecord {
    AttemptRecord {
        provider: "acme".into(),
        model: "a/b".parse().unwrap(),
        upstream_model: "b".into(),
        part: 0,
        outcome: AttemptOutcome::Abandoned,
        upstream_status: None,
        began: Duration::ZERO,
        latency: Duration::ZERO,
        input_tokens: pico.into(),
        output_tokens: 0,
        usage_source: UsageSource::UpperBound,
        prices: TokenPrices { prompt: "0.000000000001".parse().unwrap(), completion: "0".parse().unwrap() },
    }
}

/// Returns a record with a cost of one picodollar per token.
pub fn charged(number: u128, pico: u32) -> UsageRecord {
    let attempts: Arc<[AttemptRecord]> = Arc::new([attempt(pico)]);
    let prices = attempts[0].prices;
    UsageRecord { attempts, prices, cost: Usd::from_pico(pico.into()), input_tokens: pico.into(), ..usage(number, 1) }
}

pub fn usage(number: u128, workspace: u128) -> UsageRecord {
    UsageRecord {
        id: decision_id(number),
        workspace_id: workspace_id(workspace),
        api_key: key_id(1),
        request_id: RequestId::from_uuid(Uuid::from_u128(number)),
        requested_model: "a/b".to_owned(),
        model: "a/b".parse().unwrap(),
        provider: "acme".to_owned(),
        outcome: UsageOutcome::Completed,
        input_tokens: 429,
        output_tokens: 3,
        usage_source: UsageSource::Reported,
        cost: Usd::from_pico(18_018_000),
        prices: TokenPrices { prompt: "0.000000042".parse().unwrap(), completion: "0".parse().unwrap() },
        share: UsageShare::WHOLE,
        attempts: std::sync::Arc::default(),
        guardrails: Vec::new(),
        findings: Vec::new(),
        charged_at: at(0),
        session_id: None,
        trace: None,
        user: None,
        client_address: None,
        preset: None,
        outcomes: None,
        created_at: at(0),
        latency: Duration::from_millis(5),
    }
}
