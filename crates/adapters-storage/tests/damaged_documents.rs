//! Documents beside damaged rows.
#![expect(clippy::unwrap_used, reason = "a test fails by panicking")]

mod common;

use adapters_storage::{SeaOrmDocumentRepository, SeaOrmWorkspaceRepository};
use common::*;
use domain::file::DocumentRepository;
use domain::workspace::WorkspaceRepository;

#[tokio::test]
async fn scan_names_damaged_rows_and_returns_the_others() {
    let folder = Folder::new();
    let database = folder.open().await;
    SeaOrmWorkspaceRepository::new(database.clone()).insert(&workspace(1), false, &audit()).await.unwrap();
    let documents = SeaOrmDocumentRepository::new(database);
    for number in 1..=5 {
        documents.reserve(&pending(number, 1, 10), quota(1_000), None).await.unwrap();
        let ready = documents.mark_ready(workspace_id(1), &document_id(number), &"ab".repeat(32), "text/plain").await;
        assert!(ready.unwrap().is_some());
    }
    for (number, damage) in [(1, "created_at = 'yesterday'"), (3, "workspace_id = 'w'"), (4, "size_bytes = -1")] {
        let id = document_id(number);
        let sql = format!("PRAGMA ignore_check_constraints = ON; UPDATE documents SET {damage} WHERE id = '{id}'");
        folder.execute(&sql).await;
    }
    let page = documents.scan(None, 4).await.unwrap();
    let named: Vec<&str> = page.unreadable.iter().map(|row| row.id.as_str()).collect();
    assert_eq!(named, [1, 3, 4].map(|number| document_id(number).to_string()));
    assert_eq!(page.documents.iter().map(|document| &document.id).collect::<Vec<_>>(), [&document_id(2)]);
    let page = documents.scan(page.last.as_deref(), 4).await.unwrap();
    assert_eq!((page.documents.len(), page.unreadable.len()), (1, 0));
    let page = documents.scan(page.last.as_deref(), 4).await.unwrap();
    assert_eq!(page.last, None);
}
