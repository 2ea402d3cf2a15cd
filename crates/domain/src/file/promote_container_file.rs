//! Promotes a container file to a document.

use std::sync::Arc;
use std::time::Duration;

use chrono::TimeDelta;

use super::{
    ClaimState, Document, DocumentQuota, DocumentRepository, IdempotencyClaim, MediaTypes, PendingDocument,
    PromoteError, Reservation,
};
use crate::api_key::InferenceKey;
use crate::container::{BlobKey, BlobStore, ContainerId, ContainerPath, CopyOutcome};
use crate::error::StoreError;
use crate::system::{IdGenerator, TimeSource};

/// The limits on files and on the documents of a workspace.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct StorageLimits {
    /// The highest size in bytes of a promoted file.
    pub max_file_bytes: u64,
    /// The limits on the documents of a workspace.
    pub quota: DocumentQuota,
    /// The minimum number of bytes that a document counts against the quota, so that empty files are limited too.
    pub min_charged_bytes: u64,
}

/// The ports of [`PromoteContainerFile`].
pub struct PromoteContainerFilePorts {
    /// Stores documents.
    pub documents: Arc<dyn DocumentRepository>,
    /// Stores their content.
    pub blobs: Arc<dyn BlobStore>,
    /// Detects media types.
    pub media_types: Arc<dyn MediaTypes>,
    /// The clock, and the timer of the polls for a call with the same idempotency key.
    pub time: TimeSource,
    /// Generates ids.
    pub ids: Arc<dyn IdGenerator>,
}

/// Copies a file from a container's sandbox prefix to the workspace's documents, so that it outlives the container.
///
/// Quota is reserved before any byte is copied, the copy gets the document's own name, and only then the document
/// becomes visible. A crash in between leaves a pending document that [`super::SweepDocuments`] removes.
pub struct PromoteContainerFile {
    ports: PromoteContainerFilePorts,
    limits: StorageLimits,
}

/// The lifetime of an idempotency key in hours.
const IDEMPOTENCY_HOURS: i64 = 24;
/// The number of attempts to copy a file that changes during the copy.
const COPY_ATTEMPTS: usize = 3;
/// The interval of the polls for a call with the same idempotency key.
const CLAIM_POLL: Duration = Duration::from_millis(50);
/// The longest wait for that call.
const CLAIM_WAIT: Duration = Duration::from_mins(1);

impl PromoteContainerFile {
    /// Wires the ports.
    pub fn new(ports: PromoteContainerFilePorts, limits: StorageLimits) -> Self {
        Self { ports, limits }
    }

    /// Creates a new document on each call. A retry with the same `idempotency_key` within 24 hours gets the document
    /// of the first call.
    pub async fn execute(
        &self,
        caller: &InferenceKey,
        container_id: &str,
        file_id: &str,
        idempotency_key: Option<&str>,
    ) -> Result<Document, PromoteError> {
        let container: ContainerId = container_id.parse()?;
        let path = ContainerPath::from_file_id(file_id)?;
        let claim = idempotency_key
            .map(|key| {
                Ok::<_, PromoteError>(IdempotencyClaim {
                    api_key: caller.id(),
                    operation: "promote",
                    key: key.parse()?,
                    subject: format!("{container}/{}", path.as_str()),
                    not_before: self.ports.time.now() - TimeDelta::hours(IDEMPOTENCY_HOURS),
                })
            })
            .transpose()?;
        let work = Promotion {
            caller,
            source: BlobKey::container_file(caller.workspace_id(), &container, &path),
            path,
            claim,
        };
        let waiting_since = self.ports.time.monotonic();
        loop {
            if let Some(claim) = &work.claim {
                match self.ports.documents.claim_state(claim).await? {
                    ClaimState::Free => {}
                    ClaimState::Done(document) => return Ok(document),
                    ClaimState::Reused => return Err(PromoteError::IdempotencyKeyReused),
                    ClaimState::InProgress => {
                        self.wait(waiting_since).await?;
                        continue;
                    }
                }
            }
            if let Some(document) = self.promote(&work).await? {
                return Ok(document);
            }
        }
    }

    async fn wait(&self, since: Duration) -> Result<(), PromoteError> {
        if self.ports.time.monotonic().saturating_sub(since) > CLAIM_WAIT {
            return Err(PromoteError::StillInProgress);
        }
        self.ports.time.sleep(CLAIM_POLL).await;
        Ok(())
    }

    /// Promotes once. Returns `None` if a concurrent call took the claim first.
    async fn promote(&self, work: &Promotion<'_>) -> Result<Option<Document>, PromoteError> {
        for _ in 0..COPY_ATTEMPTS {
            let meta = self.ports.blobs.stat(&work.source).await?.ok_or(PromoteError::NotFound)?;
            let (file_bytes, max_bytes) = (meta.size_bytes, self.limits.max_file_bytes);
            if file_bytes > max_bytes {
                return Err(PromoteError::TooLarge { file_bytes, max_bytes });
            }
            let pending = PendingDocument {
                id: self.ports.ids.document_id(),
                workspace_id: work.caller.workspace_id(),
                filename: work.path.as_str().to_owned(),
                size_bytes: file_bytes,
                charged_bytes: file_bytes.max(self.limits.min_charged_bytes),
                created_at: self.ports.time.now(),
            };
            let quota = self.limits.quota;
            match self.ports.documents.reserve(&pending, quota, work.claim.as_ref()).await? {
                Reservation::Reserved => {}
                Reservation::QuotaExceeded { used_bytes } => {
                    let (quota_bytes, charged_bytes) = (quota.bytes, pending.charged_bytes);
                    return Err(PromoteError::QuotaExceeded { quota_bytes, used_bytes, file_bytes, charged_bytes });
                }
                Reservation::TooManyDocuments { documents } => {
                    return Err(PromoteError::TooManyDocuments { max_documents: quota.documents, documents });
                }
                // The files of a deleted workspace are not found either.
                Reservation::UnknownWorkspace => return Err(PromoteError::NotFound),
                Reservation::Claimed(_) => return Ok(None),
            }
            match self.copy_and_finish(work, &pending).await {
                Ok(Some(document)) => return Ok(Some(document)),
                Ok(None) => self.roll_back(&pending).await,
                Err(error) => {
                    self.roll_back(&pending).await;
                    return Err(error);
                }
            }
        }
        Err(PromoteError::SourceChanged)
    }

    /// Copies the bytes of a pending document and makes it ready. Returns `None` if the source changed during the copy.
    async fn copy_and_finish(
        &self,
        work: &Promotion<'_>,
        pending: &PendingDocument,
    ) -> Result<Option<Document>, PromoteError> {
        let target = BlobKey::document(pending.workspace_id, &pending.id);
        let copied = match self.ports.blobs.copy(&work.source, &target, pending.size_bytes).await? {
            CopyOutcome::Copied(copied) => copied,
            CopyOutcome::SourceGone => return Err(PromoteError::NotFound),
            CopyOutcome::SourceChanged => return Ok(None),
            CopyOutcome::SourceLinked { links } => return Err(PromoteError::HardLinked { links }),
        };
        let media_type = self.ports.media_types.detect(&copied.head, &pending.filename);
        self.ports
            .documents
            .mark_ready(pending.workspace_id, &pending.id, &copied.sha256, &media_type)
            .await?
            .map(Some)
            .ok_or_else(|| StoreError::unavailable("the copy took longer than the sweeper's grace period").into())
    }

    /// Rolls back the quota and the bytes. Anything that fails here is left to the sweeper.
    async fn roll_back(&self, pending: &PendingDocument) {
        // The row goes first: without it, nothing can make the document visible any more.
        match self.ports.documents.abandon(pending.workspace_id, &pending.id).await {
            // The document was swept together with its bytes, or a commit succeeded without a reply and made it ready.
            // Its bytes must not be deleted here.
            Ok(false) => {}
            Ok(true) => {
                let target = BlobKey::document(pending.workspace_id, &pending.id);
                if let Err(error) = self.ports.blobs.delete(&target).await {
                    tracing::warn!(document.id = %pending.id, error = &error as &dyn std::error::Error, "abandoned copy not removed; left to the sweeper");
                }
            }
            Err(error) => {
                tracing::warn!(document.id = %pending.id, error = &error as &dyn std::error::Error, "pending document not removed; left to the sweeper");
            }
        }
    }
}

/// The parsed arguments of one call.
struct Promotion<'a> {
    caller: &'a InferenceKey,
    source: BlobKey,
    path: ContainerPath,
    claim: Option<IdempotencyClaim>,
}

#[cfg(test)]
mod tests;
