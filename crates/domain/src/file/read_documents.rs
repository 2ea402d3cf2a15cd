//! Reads the documents of a workspace.

use std::ops::Range;
use std::sync::Arc;

use super::{Document, DocumentRepository};
use crate::api_key::ContentAccess;
use crate::container::{BlobKey, BlobStore, ByteSource, VerifiedSource};
use crate::cursor::{CursorScope, InvalidCursor};
use crate::error::StoreError;
use crate::ids::{DocumentId, WorkspaceId};

/// Reads documents of one workspace.
pub struct ReadDocuments {
    documents: Arc<dyn DocumentRepository>,
    blobs: Arc<dyn BlobStore>,
}

/// A page of a workspace's documents.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct DocumentList {
    /// The documents, in bytewise order of their ids, which is the order of their promotions.
    pub documents: Vec<Document>,
    /// True if more documents follow.
    pub has_more: bool,
}

impl DocumentList {
    /// Returns the cursor of the next page; `None` at the end.
    pub fn cursor(&self) -> Option<String> {
        let last = self.documents.last().filter(|_| self.has_more)?;
        Some(cursor_scope(last.workspace_id).encode(last.id.as_str()))
    }
}

/// Returns the scope of cursors: all keys of a workspace have the same list.
fn cursor_scope(workspace_id: WorkspaceId) -> CursorScope {
    CursorScope::new("files", [workspace_id.to_string().as_str()])
}

impl ReadDocuments {
    /// Wires the ports.
    pub fn new(documents: Arc<dyn DocumentRepository>, blobs: Arc<dyn BlobStore>) -> Self {
        Self { documents, blobs }
    }

    /// Returns the document that the cursor of a list of this workspace names.
    ///
    /// # Errors
    /// The text is no such cursor.
    pub fn parse_cursor(workspace_id: WorkspaceId, cursor: &str) -> Result<DocumentId, InvalidCursor> {
        cursor_scope(workspace_id).decode(cursor)?.parse().map_err(|_| InvalidCursor)
    }

    /// Returns up to `limit` documents of the workspace whose ids sort after `after`. Pages neither repeat nor skip a
    /// document while others are added or deleted.
    ///
    /// # Errors
    /// A store failed.
    pub async fn list(
        &self,
        workspace_id: WorkspaceId,
        after: Option<&DocumentId>,
        limit: usize,
    ) -> Result<DocumentList, StoreError> {
        let one_more = u64::try_from(limit).unwrap_or(u64::MAX).saturating_add(1);
        let mut documents = self.documents.list(Some(workspace_id), after, one_more).await?;
        let has_more = documents.len() > limit;
        documents.truncate(limit);
        Ok(DocumentList { documents, has_more })
    }

    /// Returns a document. `None` where the workspace has no document of that id; no document has a malformed one.
    ///
    /// # Errors
    /// A store failed.
    pub async fn get(&self, workspace_id: WorkspaceId, id: &str) -> Result<Option<Document>, StoreError> {
        match id.parse() {
            Ok(id) => self.documents.find(workspace_id, &id).await,
            Err(_) => Ok(None),
        }
    }

    /// Opens a document for reading: all of it, or a range of it with at least one byte. `None` where it was deleted
    /// meanwhile. The bytes of a whole document are checked as they are read; see [`VerifiedSource`].
    ///
    /// # Errors
    /// A store failed, or the bytes are missing or have another size.
    pub async fn open(
        &self,
        access: ContentAccess,
        document: &Document,
        range: Option<Range<u64>>,
    ) -> Result<Option<Box<dyn ByteSource>>, StoreError> {
        let Document { id, size_bytes, sha256, .. } = document;
        // The content belongs to the caller's workspace, wherever the record was read.
        let workspace_id = access.workspace_id();
        let is_whole = range.as_ref().is_none_or(|range| *range == (0..*size_bytes));
        let Some(blob) = self.blobs.read(&BlobKey::document(workspace_id, id), range).await? else {
            return match self.documents.find(workspace_id, id).await? {
                None => Ok(None),
                Some(_) => Err(StoreError::Corrupt(format!("the bytes of {id} are missing from the blob store"))),
            };
        };
        if blob.size_bytes != *size_bytes {
            let found = blob.size_bytes;
            return Err(StoreError::Corrupt(format!(
                "{id} has {found} bytes in the blob store instead of {size_bytes}"
            )));
        }
        Ok(Some(if is_whole { Box::new(VerifiedSource::new(blob.source, *size_bytes, sha256)) } else { blob.source }))
    }
}

#[cfg(test)]
mod tests {
    use chrono::DateTime;

    use super::*;
    use crate::container::{MockBlobStore, OpenBlob};
    use crate::file::MockDocumentRepository;
    use crate::testing::MemoryByteSource;

    fn access() -> ContentAccess {
        let id = crate::ids::ApiKeyId::from_uuid(uuid::Uuid::nil());
        ContentAccess::of_key(&crate::api_key::InferenceKey::for_tests(id, workspace(1)))
    }

    fn reader(documents: MockDocumentRepository, blobs: MockBlobStore) -> ReadDocuments {
        ReadDocuments::new(Arc::new(documents), Arc::new(blobs))
    }

    fn workspace(number: u128) -> WorkspaceId {
        WorkspaceId::from_uuid(uuid::Uuid::from_u128(number))
    }

    fn document(number: u32) -> Document {
        Document {
            id: format!("tgfile_{number:032}").parse().unwrap(),
            workspace_id: workspace(1),
            filename: "a".to_owned(),
            media_type: "text/csv".to_owned(),
            size_bytes: 1,
            sha256: String::new(),
            created_at: DateTime::UNIX_EPOCH,
        }
    }

    async fn list(stored: u32, limit: usize) -> DocumentList {
        let mut documents = MockDocumentRepository::new();
        documents.expect_list().return_once(move |owner, after, most| {
            assert_eq!((owner, after), (Some(workspace(1)), None));
            Ok((0..stored).take(usize::try_from(most).unwrap()).map(document).collect())
        });
        reader(documents, MockBlobStore::new()).list(workspace(1), None, limit).await.unwrap()
    }

    #[tokio::test]
    async fn list_has_a_cursor_while_documents_follow() {
        for (stored, limit, shown) in [(0, 2, 0), (1, 2, 1), (2, 2, 2), (3, 2, 2)] {
            let page = list(stored, limit).await;
            assert_eq!(page.documents.len(), shown);
            assert_eq!((page.has_more, page.cursor().is_some()), (stored == 3, stored == 3), "{stored}");
        }
        let cursor = list(3, 2).await.cursor().unwrap();
        assert_eq!(ReadDocuments::parse_cursor(workspace(1), &cursor), Ok(document(1).id));
    }

    #[tokio::test]
    async fn cursor_of_another_list_is_rejected() {
        let cursor = list(3, 2).await.cursor().unwrap();
        assert_eq!(ReadDocuments::parse_cursor(workspace(2), &cursor), Err(InvalidCursor));
        let other = CursorScope::new("audit", [workspace(1).to_string().as_str()]).encode(document(1).id.as_str());
        let no_id = cursor_scope(workspace(1)).encode("x");
        for text in ["", "x", "tgfile_1", "!", &cursor[1..], &"A".repeat(100_000), "_____w", &other, &no_id] {
            assert_eq!(ReadDocuments::parse_cursor(workspace(1), text), Err(InvalidCursor), "{text:.80}");
        }
    }

    #[tokio::test]
    async fn get_asks_the_store_for_well_formed_ids_only() {
        let reader = reader(MockDocumentRepository::new(), MockBlobStore::new());
        for id in ["", "tgfile_", "tgfile_a/b", "tgfile_é", "../x", "or_file_1", "tgfile_a b"] {
            assert_eq!(reader.get(workspace(1), id).await.unwrap(), None, "{id}");
        }
        let mut documents = MockDocumentRepository::new();
        documents.expect_find().withf(|owner, _| *owner == workspace(1)).return_once(|_, _| Ok(Some(document(7))));
        let reader = self::reader(documents, MockBlobStore::new());
        assert_eq!(reader.get(workspace(1), document(7).id.as_str()).await.unwrap(), Some(document(7)));
    }

    const SHA256_OF_ABC: &str = "ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad";

    fn abc() -> Document {
        Document { size_bytes: 3, sha256: SHA256_OF_ABC.to_owned(), ..document(1) }
    }

    fn blob(content: &'static str) -> OpenBlob {
        OpenBlob { size_bytes: content.len() as u64, links: 1, source: MemoryByteSource::new([content]).boxed() }
    }

    /// Opens the document of the bytes `abc` where the store has `found`.
    async fn open(
        found: Option<OpenBlob>,
        range: Option<Range<u64>>,
        is_deleted: bool,
    ) -> Result<Option<Box<dyn ByteSource>>, StoreError> {
        let (mut documents, mut blobs) = (MockDocumentRepository::new(), MockBlobStore::new());
        let (owner, expected) = (access().workspace_id(), range.clone());
        blobs
            .expect_read()
            .withf(move |key, range| *key == BlobKey::document(owner, &document(1).id) && *range == expected)
            .return_once(|_, _| Ok(found));
        documents.expect_find().returning(move |_, _| Ok((!is_deleted).then(abc)));
        reader(documents, blobs).open(access(), &abc(), range).await
    }

    #[tokio::test]
    async fn open_checks_whole_documents() {
        for (content, range, is_right) in [
            ("abc", None, true),
            ("abd", None, false),
            ("abd", Some(0..3), false),
            ("abd", Some(0..1), true),
            ("abd", Some(1..3), true),
        ] {
            let mut source = open(Some(blob(content)), range.clone(), false).await.unwrap().unwrap();
            assert_eq!(source.next().await.is_ok(), is_right, "{content} {range:?}");
        }
    }

    #[tokio::test]
    async fn open_tells_deleted_documents_from_damaged_ones() {
        assert!(open(None, None, true).await.unwrap().is_none());
        for found in [None, Some(blob("ab")), Some(blob("abcd")), Some(blob(""))] {
            let opened = open(found, None, false).await;
            assert!(matches!(opened, Err(StoreError::Corrupt(_))));
        }
    }
}
