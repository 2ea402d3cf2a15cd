//! The stores of documents, and the detection of media types.

use async_trait::async_trait;
use chrono::{DateTime, Utc};

use super::{Document, DocumentPage, DocumentQuota, IdempotencyClaim, PendingDocument};
use crate::audit::AuditDraft;
use crate::error::StoreError;
use crate::ids::{DocumentId, WorkspaceId};

/// The state of an idempotency key.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum ClaimState {
    /// The key is unused.
    Free,
    /// A call with the same key and subject is in progress, or was until its process ended.
    InProgress,
    /// A call with the same key and subject created this document.
    Done(Document),
    /// The key was used with another subject.
    Reused,
}

/// The outcome of a quota reservation.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Reservation {
    /// The pending document was added, and its claim, if any, is taken.
    Reserved,
    /// The quota is exhausted; nothing was changed.
    QuotaExceeded {
        /// The bytes that documents use now.
        used_bytes: u64,
    },
    /// The limit of documents is reached; nothing was changed.
    TooManyDocuments {
        /// The number of documents in the workspace, pending ones included.
        documents: u64,
    },
    /// The workspace does not exist, for example because it was deleted in the meantime; nothing was changed.
    UnknownWorkspace,
    /// The idempotency key is not free (never [`ClaimState::Free`] here); nothing was changed.
    Claimed(ClaimState),
}

/// Stores documents.
///
/// # Contract
/// - Every method is one transaction.
/// - The charged bytes and the number of all documents of a workspace, pending and ready, MUST never exceed the quota
///   given to `reserve`, for any number of concurrent calls.
/// - A document that `mark_ready` returns MUST survive a power loss.
/// - Methods that return documents never return pending ones.
/// - Of two `reserve` calls with the same free claim, one MUST get `Reserved` and the other `Claimed`.
/// - `abandon` and `abandon_stale` delete the claim of the document, so that a failed call can be retried. `mark_ready`
///   completes the claim in its transaction. Of a `mark_ready` and an `abandon` of one document, exactly one has effect,
///   so that a promotion that was taken over cannot complete.
#[cfg_attr(feature = "mock", mockall::automock)]
#[cfg_attr(feature = "mock", allow(clippy::ref_option_ref, reason = "mockall's own expansion"))]
#[async_trait]
pub trait DocumentRepository: Send + Sync {
    /// Returns the state of the claimed key.
    async fn claim_state(&self, claim: &IdempotencyClaim) -> Result<ClaimState, StoreError>;

    /// Adds a pending document and charges it to the workspace's quota.
    async fn reserve<'a>(
        &self,
        document: &PendingDocument,
        quota: DocumentQuota,
        claim: Option<&'a IdempotencyClaim>,
    ) -> Result<Reservation, StoreError>;

    /// Makes a pending document ready and visible. Returns `None` if it is not pending any more because it was abandoned
    /// by another call.
    async fn mark_ready(
        &self,
        workspace_id: WorkspaceId,
        id: &DocumentId,
        sha256: &str,
        media_type: &str,
    ) -> Result<Option<Document>, StoreError>;

    /// Removes a pending document and frees its quota; returns true if it was pending.
    async fn abandon(&self, workspace_id: WorkspaceId, id: &DocumentId) -> Result<bool, StoreError>;

    /// Returns all pending documents.
    async fn list_pending(&self) -> Result<Vec<PendingDocument>, StoreError>;

    /// Abandons and returns every document that has been pending since before `before`.
    async fn abandon_stale(&self, before: DateTime<Utc>) -> Result<Vec<PendingDocument>, StoreError>;

    /// Returns a ready document of the workspace.
    async fn find(&self, workspace_id: WorkspaceId, id: &DocumentId) -> Result<Option<Document>, StoreError>;

    /// Returns up to `limit` ready documents of the workspace, or of all workspaces, whose ids sort after `after`; in bytewise
    /// order of their ids.
    async fn list<'a>(
        &self,
        workspace_id: Option<WorkspaceId>,
        after: Option<&'a DocumentId>,
        limit: u64,
    ) -> Result<Vec<Document>, StoreError>;

    /// Returns up to `limit` documents of all workspaces, without pending ones, whose ids sort after `after`, and those
    /// among them whose rows cannot be read.
    async fn scan<'a>(&self, after: Option<&'a str>, limit: u64) -> Result<DocumentPage, StoreError>;

    /// Deletes a ready document with its claims, returns its bytes to the quota and appends to the audit log. `None`
    /// where the workspace has no such document; nothing is changed then.
    async fn delete(
        &self,
        workspace_id: WorkspaceId,
        id: &DocumentId,
        audit: &AuditDraft,
    ) -> Result<Option<Document>, StoreError>;

    /// Returns those of `ids` that belong to no document, pending or ready.
    async fn find_unknown(&self, ids: &[DocumentId]) -> Result<Vec<DocumentId>, StoreError>;

    /// Returns those of the workspaces that the store has, or had until they were deleted.
    async fn find_own_workspaces(&self, ids: &[WorkspaceId]) -> Result<Vec<WorkspaceId>, StoreError>;

    /// Returns the bytes that the workspace's documents use, pending ones included; zero if the workspace does not
    /// exist.
    async fn used_bytes(&self, workspace_id: WorkspaceId) -> Result<u64, StoreError>;

    /// Deletes claims from before `before`; returns their number.
    async fn delete_claims(&self, before: DateTime<Utc>) -> Result<u64, StoreError>;
}

/// Returns the media type of the file with a name that begins with these bytes.
///
/// # Contract
/// - The content decides. The extension only distinguishes types with the same content (CSV from plain text). A file
///   whose extension contradicts its content gets the type of its content.
/// - It never fails: an unknown type is `application/octet-stream`.
pub type DetectMediaType = fn(head: &[u8], filename: &str) -> String;
