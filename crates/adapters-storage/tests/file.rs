//! A database file that is removed or replaced while open.
#![expect(clippy::unwrap_used, reason = "a test fails by panicking")]

mod common;

use adapters_storage::{SeaOrmApiKeyRepository, SeaOrmChangeFeed, SeaOrmDocumentRepository, SeaOrmWorkspaceRepository};
use common::*;
use domain::api_key::{ApiKeyRepository, ApiKeyScope};
use domain::change_feed::ChangeFeed;
use domain::error::StoreError;
use domain::file::{DocumentRepository, Reservation};
use domain::system::HealthProbe;
use domain::workspace::WorkspaceRepository;

fn unavailable<T: std::fmt::Debug>(what: &str, result: &Result<T, StoreError>) {
    assert!(matches!(result, Err(StoreError::Unavailable(_))), "{what}: {result:?}");
}

#[tokio::test]
async fn store_is_unavailable_while_database_file_is_removed_or_replaced() {
    let folder = Folder::new();
    let database = folder.open().await;
    let workspaces = SeaOrmWorkspaceRepository::new(database.clone());
    let documents = SeaOrmDocumentRepository::new(database.clone());
    let feed = SeaOrmChangeFeed::new(database.clone());
    let records = Records::over(database.clone());
    workspaces.insert(&workspace(1), false, &audit()).await.unwrap();
    let keys = SeaOrmApiKeyRepository::new(database.clone());
    assert!(keys.insert(&key(1, ApiKeyScope::Inference(workspace_id(1))), &audit()).await.unwrap().is_inserted());
    let before = workspaces.list().await.unwrap().len();
    let aside = folder.path().with_extension("aside");
    for replaced in [false, true] {
        documents.reserve(&pending(7, 1, 1), quota(1_000), None).await.unwrap();
        std::fs::rename(folder.path(), &aside).unwrap();
        if replaced {
            std::fs::copy(&aside, folder.path()).unwrap();
        }
        unavailable("probe", &database.probe().await);
        unavailable("feed", &feed.changes_since(None).await);
        unavailable("read", &workspaces.list().await);
        unavailable("write", &workspaces.insert(&workspace(9), false, &audit()).await);
        unavailable("record", &records.record(usage(1, 1)).await);
        let ready = documents.mark_ready(workspace_id(1), &document_id(7), &"ab".repeat(32), "text/plain").await;
        unavailable("promotion", &ready);
        let told = database.probe().await.unwrap_err();
        let sentence = std::error::Error::source(&told).map_or_else(|| told.to_string(), ToString::to_string);
        assert!(sentence.contains("was removed or replaced"), "{sentence}");
        std::fs::rename(&aside, folder.path()).unwrap();
        database.probe().await.unwrap();
        assert_eq!(workspaces.list().await.unwrap().len(), before, "nothing was written");
        assert!(documents.abandon(workspace_id(1), &document_id(7)).await.unwrap(), "it is still pending");
    }
    assert_eq!(documents.reserve(&pending(8, 1, 1), quota(1_000), None).await.unwrap(), Reservation::Reserved);
    let ready = documents.mark_ready(workspace_id(1), &document_id(8), &"ab".repeat(32), "text/plain").await;
    assert!(ready.unwrap().is_some());
}
