//! Promotes a container file to a document.

use std::pin::{Pin, pin};
use std::sync::Arc;
use std::time::Duration;

use chrono::TimeDelta;
use futures_util::future::{Either, select};

use super::{
    ClaimState, DetectMediaType, Document, DocumentQuota, DocumentRepository, IdempotencyClaim, PendingDocument,
    PromoteError, Reservation, RunningPromotions,
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
    pub detect_media_type: DetectMediaType,
    /// The clock, and the timer of the polls for a call with the same idempotency key.
    pub time: TimeSource,
    /// Generates ids.
    pub ids: Arc<dyn IdGenerator>,
    /// The promotions of this process.
    pub running: Arc<RunningPromotions>,
}

/// Copies a file from a container's sandbox prefix to the workspace's documents, so that it outlives the container.
///
/// Quota is reserved before any byte is copied, the copy gets the document's own name, and only then the document
/// becomes visible. A crash in between leaves a pending document of a process that ended, which
/// [`super::ReleaseAbandonedPromotions`] removes on any replica.
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
    /// of the first call, and waits while that one runs: until `wait_ends`, because its client disconnected or the
    /// server stops. A promotion that began is completed or undone.
    pub async fn execute(
        &self,
        caller: &InferenceKey,
        container_id: &str,
        file_id: &str,
        idempotency_key: Option<&str>,
        wait_ends: impl Future<Output = ()> + Send,
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
        let mut wait_ends = pin!(wait_ends);
        loop {
            if let Some(claim) = &work.claim {
                match self.ports.documents.claim_state(claim).await? {
                    ClaimState::Free => {}
                    ClaimState::Done(document) => return Ok(document),
                    ClaimState::Reused => return Err(PromoteError::IdempotencyKeyReused),
                    ClaimState::InProgress => {
                        self.wait(waiting_since, wait_ends.as_mut()).await?;
                        continue;
                    }
                }
            }
            if let Some(document) = self.promote(&work).await? {
                return Ok(document);
            }
        }
    }

    async fn wait(
        &self,
        since: Duration,
        ends: Pin<&mut (impl Future<Output = ()> + Send)>,
    ) -> Result<(), PromoteError> {
        if self.ports.time.monotonic().saturating_sub(since) > CLAIM_WAIT {
            return Err(PromoteError::StillInProgress);
        }
        // `ends` is polled first: the timer of a server that has stopped must not be polled again.
        match select(ends, self.ports.time.sleep(CLAIM_POLL)).await {
            Either::Left(_) => Err(PromoteError::StillInProgress),
            Either::Right(_) => Ok(()),
        }
    }

    /// Promotes once. Returns `None` if another call has the claim.
    async fn promote(&self, work: &Promotion<'_>) -> Result<Option<Document>, PromoteError> {
        let mut end = PromoteError::SourceChanged;
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
                process: self.ports.running.process(),
                created_at: self.ports.time.now(),
            };
            let _running = self.ports.running.begin(&pending.id);
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
                Ok(Copied::Ready(document)) => return Ok(Some(document)),
                Ok(Copied::SourceChanged) => self.roll_back(&pending).await,
                Ok(Copied::TakenOver) => {
                    // Without its row nothing can make this document visible, and no other call has its name.
                    self.delete_copy(&pending).await;
                    end = StoreError::unavailable("the process was silent, and its promotion was abandoned").into();
                }
                Err(error) => {
                    self.roll_back(&pending).await;
                    return Err(error);
                }
            }
        }
        Err(end)
    }

    /// Copies the bytes of a pending document and makes it ready.
    async fn copy_and_finish(&self, work: &Promotion<'_>, pending: &PendingDocument) -> Result<Copied, PromoteError> {
        let target = BlobKey::document(pending.workspace_id, &pending.id);
        let copied = match self.ports.blobs.copy(&work.source, &target, pending.size_bytes).await? {
            CopyOutcome::Copied(copied) => copied,
            CopyOutcome::SourceGone => return Err(PromoteError::NotFound),
            CopyOutcome::SourceChanged => return Ok(Copied::SourceChanged),
            CopyOutcome::SourceLinked { links } => return Err(PromoteError::HardLinked { links }),
        };
        let media_type = (self.ports.detect_media_type)(&copied.head, &pending.filename);
        let documents = &self.ports.documents;
        let ready = documents.mark_ready(pending.workspace_id, &pending.id, &copied.sha256, &media_type).await?;
        Ok(ready.map_or(Copied::TakenOver, Copied::Ready))
    }

    /// Rolls back the quota and the bytes. A row that cannot be removed now is released in the background, and bytes by
    /// the sweeper.
    async fn roll_back(&self, pending: &PendingDocument) {
        // The row goes first: without it, nothing can make the document visible any more.
        match self.ports.documents.abandon(pending.workspace_id, &pending.id).await {
            // The document was abandoned together with its bytes, or a commit succeeded without a reply and made it
            // ready. Its bytes must not be deleted here.
            Ok(false) => {}
            Ok(true) => self.delete_copy(pending).await,
            Err(error) => {
                let error: &dyn std::error::Error = &error;
                tracing::warn!(document.id = %pending.id, error, "pending document not removed, retrying");
            }
        }
    }

    async fn delete_copy(&self, pending: &PendingDocument) {
        let target = BlobKey::document(pending.workspace_id, &pending.id);
        if let Err(error) = self.ports.blobs.delete(&target).await {
            let error: &dyn std::error::Error = &error;
            tracing::warn!(document.id = %pending.id, error, "abandoned copy not removed; left to the sweeper");
        }
    }
}

/// The end of a copy.
enum Copied {
    /// The document is ready.
    Ready(Document),
    /// The source changed during the copy.
    SourceChanged,
    /// Another process abandoned the pending document, because this one was silent.
    TakenOver,
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
