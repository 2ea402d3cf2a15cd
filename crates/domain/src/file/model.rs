//! Documents, their quota, and the running promotions.

use std::collections::HashSet;
use std::sync::{Mutex, MutexGuard, PoisonError};

use chrono::{DateTime, Utc};

use crate::ids::{ApiKeyId, DocumentId, ProcessId, WorkspaceId};
use crate::repetition::IdempotencyKey;

/// A file in the workspace's durable storage. Every document was promoted from a container and can be downloaded.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Document {
    /// The id.
    pub id: DocumentId,
    /// The owning workspace.
    pub workspace_id: WorkspaceId,
    /// The path of the source file in its container.
    pub filename: String,
    /// The media type, detected from the content and the extension of the file name.
    pub media_type: String,
    /// The size in bytes.
    pub size_bytes: u64,
    /// SHA-256 of the content, as lower-case hex.
    pub sha256: String,
    /// The time at which the promotion began.
    pub created_at: DateTime<Utc>,
}

/// A page of documents, including the rows that cannot be read.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct DocumentPage {
    /// The documents, in bytewise order of their ids.
    pub documents: Vec<Document>,
    /// The rows that cannot be read.
    pub unreadable: Vec<UnreadableDocument>,
    /// The id of the last row, after which the next page begins; `None` if there were no rows.
    pub last: Option<String>,
}

/// A row of a document that cannot be read.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct UnreadableDocument {
    /// The id as it is stored.
    pub id: String,
    /// The column that cannot be read.
    pub problem: String,
}

/// A document whose bytes are not stored yet. It uses quota and is not visible.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct PendingDocument {
    /// The id.
    pub id: DocumentId,
    /// The owning workspace.
    pub workspace_id: WorkspaceId,
    /// The path of the source file in its container.
    pub filename: String,
    /// The size in bytes.
    pub size_bytes: u64,
    /// The bytes that it counts against the quota: its size, or the minimum charge for small files.
    pub charged_bytes: u64,
    /// The process that promotes it. A document without one is left to the sweeper.
    pub process: Option<ProcessId>,
    /// The time at which the promotion began.
    pub created_at: DateTime<Utc>,
}

/// The limits on the documents of one workspace, pending ones included.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct DocumentQuota {
    /// The highest sum of charged bytes.
    pub bytes: u64,
    /// The highest number of documents.
    pub documents: u64,
}

/// The claim of an idempotency key by a call. Keys are scoped to the API key and the operation.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct IdempotencyClaim {
    /// The API key of the caller.
    pub api_key: ApiKeyId,
    /// The operation, such as `promote`.
    pub operation: &'static str,
    /// The caller's key.
    pub key: IdempotencyKey,
    /// The subject of the call. The same key with another subject is an error of the caller.
    pub subject: String,
    /// Claims from before this time are ignored.
    pub not_before: DateTime<Utc>,
}

/// The documents that this process is promoting.
///
/// A pending document of this process that is not listed here is abandoned: its promotion failed, was dropped, or got no
/// answer from the store. [`super::ReleaseAbandonedPromotions`] releases it.
pub struct RunningPromotions {
    process: Box<dyn Fn() -> Option<ProcessId> + Send + Sync>,
    documents: Mutex<HashSet<DocumentId>>,
}

/// A listed promotion. Dropping it removes it from the list.
pub(super) struct RunningPromotion<'a> {
    list: &'a RunningPromotions,
    id: DocumentId,
}

impl RunningPromotions {
    /// Creates an empty list. `process` returns the id that the store knows this process by, if it has one.
    pub fn new(process: impl Fn() -> Option<ProcessId> + Send + Sync + 'static) -> Self {
        Self { process: Box::new(process), documents: Mutex::default() }
    }

    /// Returns the current id of this process.
    pub(super) fn process(&self) -> Option<ProcessId> {
        (self.process)()
    }

    /// Lists a promotion. Must be called before its document is reserved.
    pub(super) fn begin(&self, id: &DocumentId) -> RunningPromotion<'_> {
        self.documents().insert(id.clone());
        RunningPromotion { list: self, id: id.clone() }
    }

    /// Returns true while the document is being promoted.
    pub(super) fn contains(&self, id: &DocumentId) -> bool {
        self.documents().contains(id)
    }

    fn documents(&self) -> MutexGuard<'_, HashSet<DocumentId>> {
        self.documents.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Drop for RunningPromotion<'_> {
    fn drop(&mut self) {
        self.list.documents().remove(&self.id);
    }
}
