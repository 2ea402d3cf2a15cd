//! The database file, its schema, and unreadable data.
#![expect(clippy::unwrap_used, reason = "a test fails by panicking")]

mod common;

use adapters_storage::{
    Database, SeaOrmApiKeyRepository, SeaOrmChangeFeed, SeaOrmDocumentRepository, SeaOrmGuardrailRepository,
    SeaOrmModelRepository, SeaOrmWorkspaceRepository, StorageSettings,
};
use common::*;
use domain::api_key::{ApiKeyRepository, ApiKeyScope, KeyGrants};
use domain::change_feed::ChangeFeed;
use domain::error::StoreError;
use domain::file::DocumentRepository;
use domain::guardrail::GuardrailRepository;
use domain::model::{CatalogueChange, Model, ModelRepository, Pricing};
use domain::money::Price;
use domain::system::HealthProbe;
use domain::workspace::WorkspaceRepository;
use migrations::{Migrator, MigratorTrait};
use sea_orm::SqlxSqliteConnector;

fn corrupt<T: std::fmt::Debug>(what: &str, result: &Result<T, StoreError>) {
    assert!(matches!(result, Err(StoreError::Corrupt(_))), "{what}: {result:?}");
}

#[tokio::test]
async fn every_migration_applies_and_reverts() {
    let folder = Folder::new();
    let database = Database::open(&folder.settings(), common::clock()).await.unwrap();
    assert!(database.migration_status().await.unwrap().iter().all(|step| !step.applied));
    assert!(database.probe().await.is_err(), "there is no schema yet");
    database.migrate().await.unwrap();
    database.migrate().await.unwrap();
    database.probe().await.unwrap();
    let raw = SqlxSqliteConnector::from_sqlx_sqlite_pool(folder.raw().await);
    Migrator::down(&raw, None).await.unwrap();
    assert!(database.migration_status().await.unwrap().iter().all(|step| !step.applied));
    database.migrate().await.unwrap();
    SeaOrmWorkspaceRepository::new(database.clone()).insert(&workspace(1), &common::audit()).await.unwrap();
    let names: Vec<String> = database.migration_status().await.unwrap().into_iter().map(|step| step.name).collect();
    let all = [
        "m20261121_000001_initial",
        "m20261121_000002_usage_share",
        "m20261121_000003_limits",
        "m20261122_000004_files_and_audit",
        "m20261122_000005_record_bytes",
        "m20261122_000006_allowances",
        "m20261122_000007_compact_records",
        "m20261122_000008_store_identity",
        "m20261123_000009_recall_answers",
        "m20261123_000010_changes",
        "m20261123_000011_key_ids",
        "m20261123_000012_outcome_names",
        "m20261123_000013_incompatible_migrations",
        "m20261123_000014_rejections",
        "m20261123_000015_budget_alerts",
        "m20261123_000020_deleted_workspaces",
        "m20261123_000021_client_addresses",
        "m20261123_000024_store_copies",
        "m20261125_000025_store_journals",
        "m20261126_000026_usage_months",
        "m20261126_000027_promoting_processes",
        "m20261126_000028_configured_endpoints",
    ];
    assert_eq!(names, all);
}

#[tokio::test]
async fn migrate_accepts_newer_schema_unless_marked_incompatible() {
    let folder = Folder::new();
    let database = folder.open().await;
    folder.execute("INSERT INTO seaql_migrations VALUES ('m20990101_000001_future', 0)").await;
    folder.execute("ALTER TABLE workspaces ADD COLUMN future text").await;
    database.migrate().await.unwrap();
    let steps = database.migration_status().await.unwrap();
    assert!(steps.iter().all(|step| step.applied && step.known != step.name.contains("future")), "{steps:?}");
    assert_eq!(steps.last().unwrap().name, "m20990101_000001_future", "the unknown ones come last");
    SeaOrmWorkspaceRepository::new(database.clone()).insert(&workspace(1), &common::audit()).await.unwrap();

    folder.execute("INSERT INTO incompatible_migrations VALUES ('m20990101_000002_other', 'not applied')").await;
    database.migrate().await.unwrap();
    folder.execute("INSERT INTO incompatible_migrations VALUES ('m20990101_000001_future', 'columns split')").await;
    corrupt("migrate", &database.migrate().await);
    let error = database.migration_status().await.unwrap_err().to_string();
    assert!(error.contains("m20990101_000001_future: columns split"), "{error}");
}

#[tokio::test]
async fn schema_with_a_newer_step_and_without_an_older_one_is_refused() {
    let folder = Folder::new();
    let database = Database::open(&folder.settings(), common::clock()).await.unwrap();
    database.migrate().await.unwrap();
    folder.execute("INSERT INTO seaql_migrations VALUES ('m20990101_000001_future', 0)").await;
    folder.execute("DELETE FROM seaql_migrations WHERE version = 'm20261123_000011_key_ids'").await;
    corrupt("status", &database.migration_status().await);
    corrupt("migrate", &database.migrate().await);
}

#[tokio::test]
async fn open_rejects_file_that_is_no_database() {
    let folder = Folder::new();
    std::fs::create_dir_all(folder.path().parent().unwrap()).unwrap();
    std::fs::write(folder.path(), "this is no database, only text that somebody put here").unwrap();
    corrupt("open", &Database::open(&folder.settings(), common::clock()).await.map(|_| ()));
    let in_the_way = StorageSettings::new(format!("sqlite://{}/below.db", folder.path().display()));
    let refused = Database::open(&in_the_way, common::clock()).await.map(|_| ());
    assert!(matches!(refused, Err(StoreError::Unavailable(_))), "{refused:?}");
}

#[tokio::test]
async fn created_files_are_private_for_any_path() {
    let folder = tempfile::TempDir::new().unwrap();
    let odd = folder.path().join("with space/ünï 100% ?#&'").join("a b.db");
    let url = format!("sqlite://{}", odd.display().to_string().replace('%', "%25").replace('?', "%3F"));
    let database = open(&StorageSettings::new(url)).await;
    SeaOrmWorkspaceRepository::new(database.clone()).insert(&workspace(1), &common::audit()).await.unwrap();
    assert!(odd.is_file());
    #[cfg(unix)]
    {
        use std::os::unix::fs::PermissionsExt;
        let mode = |path: &std::path::Path| std::fs::metadata(path).unwrap().permissions().mode() & 0o777;
        assert_eq!(mode(&odd), 0o600);
        assert_eq!(mode(&odd.with_file_name("a b.db-wal")), 0o600);
        assert_eq!(mode(odd.parent().unwrap()), 0o700);
    }
}

#[tokio::test]
async fn unreadable_rows_are_corrupt_and_not_shown() {
    let folder = Folder::new();
    let database = folder.open().await;
    let workspaces = SeaOrmWorkspaceRepository::new(database.clone());
    let keys = SeaOrmApiKeyRepository::new(database.clone());
    let guardrails = SeaOrmGuardrailRepository::new(database.clone());
    let documents = SeaOrmDocumentRepository::new(database.clone());
    let models = SeaOrmModelRepository::new(database.clone());
    let records = Records::over(database.clone());
    workspaces.insert(&workspace(1), &common::audit()).await.unwrap();
    assert!(keys.insert(&key(1, ApiKeyScope::Inference(workspace_id(1))), &common::audit()).await.unwrap());
    assert!(guardrails.insert(&guardrail(1, 1), &common::audit()).await.unwrap());
    documents.reserve(&pending(1, 1, 10), quota(100), None).await.unwrap();
    documents.mark_ready(workspace_id(1), &document_id(1), &"ab".repeat(32), "text/plain").await.unwrap();
    let row = Model::minimal("a/b".parse().unwrap(), Pricing::per_token(Price::ZERO, Price::ZERO));
    assert!(models.apply(&CatalogueChange { upsert: vec![row], remove: vec![] }, 0, &common::audit()).await.unwrap());
    records.record(usage(1, 1)).await.unwrap();

    for damage in [
        "UPDATE workspaces SET name = ''",
        "UPDATE api_keys SET limit_pico = 1, limit_reset = 'yearly'",
        "UPDATE guardrails SET name = char(7)",
        "UPDATE documents SET created_at = 'yesterday'",
        "UPDATE models SET content = '{'",
        "UPDATE usage_records SET prompt_price = 'cheap'",
    ] {
        folder.execute(damage).await;
    }
    corrupt("workspace", &workspaces.find(workspace_id(1)).await);
    corrupt("key", &ApiKeyRepository::find(&keys, &key_id(1).into()).await);
    corrupt("guardrail", &guardrails.find(guardrail_id(1)).await);
    corrupt("document", &documents.find(workspace_id(1), &document_id(1)).await);
    corrupt("model", &models.list().await);
    corrupt("usage", &records.find(&decision_id(1)).await);

    folder.execute("UPDATE models SET content = '{\"id\":\"secret-value\"}'").await;
    let told = models.list().await.unwrap_err();
    assert!(!format!("{told:?}").contains("secret-value"), "{told:?}");
    folder.execute("PRAGMA ignore_check_constraints = ON; UPDATE api_keys SET scope = 'management'").await;
    corrupt("a key whose kind is in doubt grants nothing", &KeyGrants::find(&keys, &hash(1)).await);
    folder.execute("DELETE FROM change_feed").await;
    corrupt("version of the catalogue", &models.version().await);
    corrupt("a change that cannot be numbered", &keys.delete(key_id(1), &common::audit()).await);
    folder.execute("DELETE FROM changes").await;
    corrupt("change feed", &SeaOrmChangeFeed::new(database.clone()).changes_since(None).await);
    folder.execute("DROP TABLE usage_records").await;
    corrupt("a table that is not there", &records.find(&decision_id(1)).await);
}

/// The database itself enforces the invariants, for every writer.
#[tokio::test]
async fn schema_rejects_invalid_rows() {
    let folder = Folder::new();
    let database = folder.open().await;
    SeaOrmWorkspaceRepository::new(database).default_or_insert(&workspace(1), &common::audit()).await.unwrap();
    let pool = folder.raw().await;
    for (what, sql) in [
        ("a second default", "INSERT INTO workspaces SELECT 'x', name, NULL, 1, 0, NULL, 0, 0 FROM workspaces"),
        ("negative storage", "UPDATE workspaces SET storage_used_bytes = -1"),
        ("a negative number of documents", "UPDATE workspaces SET document_count = -1"),
        (
            "a key that manages and belongs to a workspace",
            "INSERT INTO api_keys SELECT x'00', '', '', 'management', id, 0, 0, NULL, NULL, NULL, NULL, 0 FROM workspaces",
        ),
        (
            "a ready document without its digest",
            "INSERT INTO documents SELECT 'x', id, 'ready', 'f', 0, NULL, NULL, 0 FROM workspaces",
        ),
    ] {
        assert!(sea_orm::sqlx::query(sql).execute(&pool).await.is_err(), "{what}");
    }
}
