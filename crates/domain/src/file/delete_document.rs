//! Deletes a durable document.

use std::sync::Arc;

use super::{Document, DocumentRepository};
use crate::audit::{Actor, AuditDraft};
use crate::container::{BlobKey, BlobStore};
use crate::error::StoreError;
use crate::ids::{DocumentId, WorkspaceId};
use crate::json::ObjectWriter;

/// Deletes documents: first the row, then the bytes.
pub struct DeleteDocument {
    pub(crate) documents: Arc<dyn DocumentRepository>,
    pub(crate) blobs: Arc<dyn BlobStore>,
}

impl DeleteDocument {
    /// Wires the ports.
    pub fn new(documents: Arc<dyn DocumentRepository>, blobs: Arc<dyn BlobStore>) -> Self {
        Self { documents, blobs }
    }

    /// Deletes a document and returns it. `None` where the workspace has no such document.
    ///
    /// Bytes that cannot be deleted, or that a process leaves that ends between the row and the bytes, are an object
    /// without a document, which the sweeper removes.
    ///
    /// # Errors
    /// The store of documents failed; nothing was deleted.
    pub async fn execute(
        &self,
        workspace_id: WorkspaceId,
        id: &DocumentId,
        actor: &Actor,
    ) -> Result<Option<Document>, StoreError> {
        let Some(document) = self.documents.find(workspace_id, id).await? else { return Ok(None) };
        let details = ObjectWriter::new()
            .text("filename", &document.filename)
            .shown("size_bytes", document.size_bytes)
            .text("sha256", &document.sha256)
            .finish();
        let audit = AuditDraft::done(actor, "document.delete", format!("document {id}"), details);
        let Some(deleted) = self.documents.delete(workspace_id, id, &audit).await? else { return Ok(None) };
        if let Err(error) = self.blobs.delete(&BlobKey::document(workspace_id, id)).await {
            let error: &(dyn std::error::Error + 'static) = &error;
            tracing::warn!(document.id = %id, error, "bytes of a deleted document not removed; left to the sweeper");
        }
        Ok(Some(deleted))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::container::MockBlobStore;
    use crate::file::MockDocumentRepository;
    use chrono::DateTime;

    fn document() -> Document {
        Document {
            id: "tgfile_00000000000000000000000000000001".parse().unwrap(),
            workspace_id: "01990000-0000-7000-8000-000000000001".parse().unwrap(),
            filename: "a\"b.csv".to_owned(),
            media_type: "text/csv".to_owned(),
            size_bytes: 7,
            sha256: "ab".repeat(32),
            created_at: DateTime::UNIX_EPOCH,
        }
    }

    async fn delete(documents: MockDocumentRepository, blobs: MockBlobStore) -> Result<Option<Document>, StoreError> {
        let Document { id, workspace_id, .. } = document();
        DeleteDocument::new(Arc::new(documents), Arc::new(blobs)).execute(workspace_id, &id, &Actor::system()).await
    }

    #[tokio::test]
    async fn delete_removes_row_then_bytes_and_is_audited() {
        let (mut documents, mut blobs) = (MockDocumentRepository::new(), MockBlobStore::new());
        documents.expect_find().return_once(|_, _| Ok(Some(document())));
        documents
            .expect_delete()
            .withf(|_, _, audit| {
                audit.action == "document.delete" && audit.details.text().contains(r#""filename":"a\"b.csv""#)
            })
            .return_once(|_, _, _| Ok(Some(document())));
        blobs.expect_delete().withf(|key| key.as_str().starts_with("documents/")).once().return_once(|_| Ok(true));
        assert_eq!(delete(documents, blobs).await.unwrap(), Some(document()));
    }

    #[tokio::test]
    async fn delete_leaves_bytes_when_no_row_was_deleted() {
        let mut documents = MockDocumentRepository::new();
        documents.expect_find().return_once(|_, _| Ok(None));
        assert_eq!(delete(documents, MockBlobStore::new()).await.unwrap(), None);

        let mut documents = MockDocumentRepository::new();
        documents.expect_find().return_once(|_, _| Ok(Some(document())));
        documents.expect_delete().return_once(|_, _, _| Ok(None));
        assert_eq!(delete(documents, MockBlobStore::new()).await.unwrap(), None, "deleted by another call meanwhile");
    }

    #[tokio::test]
    async fn delete_succeeds_when_the_bytes_are_left_to_the_sweeper() {
        let (mut documents, mut blobs) = (MockDocumentRepository::new(), MockBlobStore::new());
        documents.expect_find().return_once(|_, _| Ok(Some(document())));
        documents.expect_delete().return_once(|_, _, _| Ok(Some(document())));
        blobs.expect_delete().return_once(|_| Err(StoreError::unavailable("away")));
        assert_eq!(delete(documents, blobs).await.unwrap(), Some(document()), "a repeated call would find nothing");
    }

    #[tokio::test]
    async fn delete_fails_when_the_row_cannot_be_deleted() {
        let mut documents = MockDocumentRepository::new();
        documents.expect_find().return_once(|_, _| Ok(Some(document())));
        documents.expect_delete().return_once(|_, _, _| Err(StoreError::unavailable("locked")));
        assert!(delete(documents, MockBlobStore::new()).await.is_err());
    }
}
