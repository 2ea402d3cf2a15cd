//! Where documents are kept, and how media types are told.

use async_trait::async_trait;
use chrono::{DateTime, Utc};

use super::{Document, DocumentQuota, IdempotencyClaim, PendingDocument};
use crate::error::StoreError;
use crate::ids::{DocumentId, WorkspaceId};

/// What an idempotency claim meets.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum ClaimState {
    /// Nobody has used the key.
    Free,
    /// A call with the same key and subject is under way.
    InProgress,
    /// A call with the same key and subject made this document.
    Done(Document),
    /// The key was used for another subject.
    Reused,
}

/// How a reservation ended.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Reservation {
    /// The pending document holds its quota, and the claim, where there is one, is taken.
    Reserved,
    /// There is no room; nothing was changed.
    QuotaExceeded {
        /// The bytes that documents count now.
        used_bytes: u64,
    },
    /// There are as many documents as there may be; nothing was changed.
    TooManyDocuments {
        /// The workspace's documents, pending ones included.
        documents: u64,
    },
    /// The claim is not free (never [`ClaimState::Free`] here); nothing was changed.
    Claimed(ClaimState),
}

/// Keeps documents.
///
/// # Contract
/// - Every method is one transaction.
/// - The charged bytes and the number of pending and ready documents of a workspace together MUST never exceed the
///   quota given to `reserve`, however many run at once.
/// - A document that `mark_ready` returns MUST survive the loss of power.
/// - A pending document is returned by no method that returns documents.
/// - Of two `reserve` calls with the same free claim, one MUST get `Reserved` and the other `Claimed`.
/// - A claim ends with its pending document (`abandon`, `abandon_stale`), so that failures are not remembered; it is
///   completed in the transaction of `mark_ready`.
#[cfg_attr(feature = "mock", mockall::automock)]
#[cfg_attr(feature = "mock", allow(clippy::ref_option_ref, reason = "mockall's own expansion"))]
#[async_trait]
pub trait DocumentRepository: Send + Sync {
    /// What the claim meets now.
    async fn claim_state(&self, claim: &IdempotencyClaim) -> Result<ClaimState, StoreError>;

    /// Adds a pending document and takes its charged bytes from the workspace's quota.
    async fn reserve<'a>(
        &self,
        document: &PendingDocument,
        quota: DocumentQuota,
        claim: Option<&'a IdempotencyClaim>,
    ) -> Result<Reservation, StoreError>;

    /// Makes a pending document ready and visible. `None` where it is not pending any more (swept).
    async fn mark_ready(
        &self,
        workspace_id: WorkspaceId,
        id: &DocumentId,
        sha256: &str,
        media_type: &str,
    ) -> Result<Option<Document>, StoreError>;

    /// Removes a pending document and returns its bytes to the quota; true where it was pending.
    async fn abandon(&self, workspace_id: WorkspaceId, id: &DocumentId) -> Result<bool, StoreError>;

    /// Abandons every document that has been pending since before `before`; returns them.
    async fn abandon_stale(&self, before: DateTime<Utc>) -> Result<Vec<PendingDocument>, StoreError>;

    /// One ready document of the workspace.
    async fn find(&self, workspace_id: WorkspaceId, id: &DocumentId) -> Result<Option<Document>, StoreError>;

    /// Those of `ids` that no document, pending or ready, has.
    async fn unknown(&self, ids: &[DocumentId]) -> Result<Vec<DocumentId>, StoreError>;

    /// Bytes that the workspace's documents count, pending ones included; zero where there is no such workspace.
    async fn used_bytes(&self, workspace_id: WorkspaceId) -> Result<u64, StoreError>;

    /// Forgets claims made before `before`; returns how many.
    async fn forget_claims(&self, before: DateTime<Utc>) -> Result<u64, StoreError>;
}

/// Tells media types.
///
/// # Contract
/// - The content decides; the extension only tells apart what content cannot (CSV from plain text). A file whose
///   extension contradicts its content gets the type of its content.
/// - Never fails: what is not recognised is `application/octet-stream`.
#[cfg_attr(feature = "mock", mockall::automock)]
pub trait MediaTypes: Send + Sync {
    /// The media type of a file that begins with `head` and is called `filename`.
    fn detect(&self, head: &[u8], filename: &str) -> String;
}
