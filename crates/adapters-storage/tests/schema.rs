//! The database file, its schema, and unreadable data.
#![expect(clippy::unwrap_used, reason = "a test fails by panicking")]

mod common;

use adapters_storage::{
    Database, SeaOrmApiKeyRepository, SeaOrmChangeFeed, SeaOrmDocumentRepository, SeaOrmGuardrailRepository,
    SeaOrmModelRepository, SeaOrmWorkspaceRepository, StorageSettings,
};
use common::*;
use domain::api_key::{ApiKeyRepository, ApiKeyScope, KeyGrants, LastKeyRule, StoreKeyError};
use domain::authority::ManagementScope;
use domain::change_feed::ChangeFeed;
use domain::error::StoreError;
use domain::file::DocumentRepository;
use domain::guardrail::GuardrailRepository;
use domain::model::{CatalogueChange, Model, ModelRepository, Pricing};
use domain::money::Price;
use domain::workspace::WorkspaceRepository;

fn corrupt<T: std::fmt::Debug>(what: &str, result: &Result<T, StoreError>) {
    assert!(matches!(result, Err(StoreError::Corrupt(_))), "{what}: {result:?}");
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
    SeaOrmWorkspaceRepository::new(database.clone()).insert(&workspace(1), false, &common::audit()).await.unwrap();
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
    workspaces.insert(&workspace(1), false, &common::audit()).await.unwrap();
    assert!(
        keys.insert(&key(1, ApiKeyScope::Inference(workspace_id(1))), &common::audit()).await.unwrap().is_inserted()
    );
    assert!(guardrails.insert(&guardrail(1, 1), false, &common::audit()).await.unwrap());
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
    let second = key(2, ApiKeyScope::Management(ManagementScope::UNRESTRICTED));
    assert!(keys.insert(&second, &common::audit()).await.unwrap().is_inserted());
    corrupt("workspace", &workspaces.find(workspace_id(1)).await);
    corrupt("key", &ApiKeyRepository::find(&keys, &key_id(1).into()).await);
    corrupt("guardrail", &guardrails.find(guardrail_id(1)).await);
    corrupt("document", &documents.find(workspace_id(1), &document_id(1)).await);
    corrupt("model", &models.list().await);
    corrupt("usage", &records.find(&decision_id(1)).await);

    folder.execute("UPDATE models SET content = '{\"id\":\"secret-value\"}'").await;
    let told = models.list().await.unwrap_err();
    assert!(!format!("{told:?}").contains("secret-value"), "{told:?}");
    folder
        .execute(
            "PRAGMA ignore_check_constraints = ON; UPDATE api_keys SET scope = 'management' WHERE scope = 'inference'",
        )
        .await;
    corrupt("a key whose kind is in doubt grants nothing", &KeyGrants::find(&keys, &hash(1)).await);
    folder.execute("DELETE FROM change_feed").await;
    corrupt("version of the catalogue", &models.version().await);
    let deleted = keys.delete(&second, LastKeyRule::Waived, &common::audit()).await;
    assert!(matches!(deleted, Err(StoreKeyError::Store(StoreError::Corrupt(_)))), "not numbered: {deleted:?}");
    folder.execute("DELETE FROM changes").await;
    corrupt("change feed", &SeaOrmChangeFeed::new(database.clone()).changes_since(None).await);
    folder.execute("DROP TABLE usage_records").await;
    corrupt("a table that is not there", &records.find(&decision_id(1)).await);
}

/// A scope that cannot be read grants nothing; it never becomes that of all workspaces.
#[tokio::test]
async fn unreadable_management_scope_is_corrupt() {
    let folder = Folder::new();
    let database = folder.open().await;
    let keys = SeaOrmApiKeyRepository::new(database.clone());
    let scope = ApiKeyScope::Management(ManagementScope::UNRESTRICTED);
    assert!(keys.insert(&key(1, scope), &common::audit()).await.unwrap().is_inserted());
    assert!(KeyGrants::find(&keys, &hash(1)).await.unwrap().is_some());
    let many =
        format!("[{}]", (0..101).map(|number| format!("\"{}\"", workspace_id(number))).collect::<Vec<_>>().join(","));
    for workspaces in ["", "null", "[]", "{}", "[1]", "[\"x\"]", "01990000-0000-7000-8000-000000000001", &many] {
        let damage = format!("UPDATE api_keys SET management_workspaces = '{workspaces}'");
        folder.execute(&damage).await;
        corrupt(workspaces, &KeyGrants::find(&keys, &hash(1)).await);
        corrupt(workspaces, &ApiKeyRepository::find(&keys, &key_id(1).into()).await);
    }
    let readable = "UPDATE api_keys SET management_workspaces = NULL";
    folder.execute(readable).await;
    for access in ["NULL", "'all'", "''"] {
        let damage = format!("PRAGMA ignore_check_constraints = ON; UPDATE api_keys SET management_access = {access}");
        folder.execute(&damage).await;
        corrupt(access, &KeyGrants::find(&keys, &hash(1)).await);
    }
}

/// The database itself enforces the invariants, for every writer.
#[tokio::test]
async fn schema_rejects_invalid_rows() {
    let folder = Folder::new();
    let database = folder.open().await;
    SeaOrmWorkspaceRepository::new(database).default_or_insert(&workspace(1), &common::audit()).await.unwrap();
    let pool = folder.raw().await;
    for (what, sql) in [
        (
            "a second default",
            "INSERT INTO workspaces (id, name, slug, is_default, suspended, storage_used_bytes, created_at) \
             SELECT 'x', name, 'x', TRUE, suspended, 0, created_at FROM workspaces",
        ),
        ("negative storage", "UPDATE workspaces SET storage_used_bytes = -1"),
        ("a negative number of documents", "UPDATE workspaces SET document_count = -1"),
        (
            "a key that manages and belongs to a workspace",
            "INSERT INTO api_keys (id, hash, label, name, scope, management_access, workspace_id, disabled, deleted, created_at) \
             SELECT zeroblob(16), x'00', '', '', 'management', 'write', id, FALSE, FALSE, 0 FROM workspaces",
        ),
        (
            "a key with a short id",
            "INSERT INTO api_keys (id, hash, label, name, scope, management_access, disabled, deleted, created_at) \
             VALUES (x'00', x'00', '', '', 'management', 'write', FALSE, FALSE, 0)",
        ),
        (
            "a key without an id",
            "INSERT INTO api_keys (id, hash, label, name, scope, management_access, disabled, deleted, created_at) \
             VALUES (NULL, x'00', '', '', 'management', 'write', FALSE, FALSE, 0)",
        ),
        (
            "two keys with one id",
            "INSERT INTO api_keys (id, hash, label, name, scope, management_access, disabled, deleted, created_at) \
             VALUES (zeroblob(16), x'00', '', '', 'management', 'write', FALSE, FALSE, 0), \
                    (zeroblob(16), x'01', '', '', 'management', 'write', FALSE, FALSE, 0)",
        ),
        (
            "a management key without access",
            "INSERT INTO api_keys (id, hash, label, name, scope, disabled, deleted, created_at) \
             VALUES (zeroblob(16), x'00', '', '', 'management', FALSE, FALSE, 0)",
        ),
        (
            "a management key with unknown access",
            "INSERT INTO api_keys (id, hash, label, name, scope, management_access, disabled, deleted, created_at) \
             VALUES (zeroblob(16), x'00', '', '', 'management', 'all', FALSE, FALSE, 0)",
        ),
        (
            "an inference key with access",
            "INSERT INTO api_keys (id, hash, label, name, scope, workspace_id, management_access, disabled, deleted, \
             created_at) SELECT zeroblob(16), x'00', '', '', 'inference', id, 'read', FALSE, FALSE, 0 FROM workspaces",
        ),
        (
            "a ready document without its digest",
            "INSERT INTO documents (id, workspace_id, state, filename, size_bytes, created_at) \
             SELECT 'x', id, 'ready', 'f', 0, 0 FROM workspaces",
        ),
    ] {
        let error = sea_orm::sqlx::query(sql).execute(&pool).await.unwrap_err().to_string();
        assert!(error.contains("constraint failed"), "{what}: {error}");
    }
}
