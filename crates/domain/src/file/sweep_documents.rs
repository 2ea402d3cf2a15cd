//! What interrupted promotions left behind is removed here.

use std::sync::Arc;
use std::time::Duration;

use chrono::{DateTime, TimeDelta, Utc};

use super::DocumentRepository;
use crate::container::{BlobKey, BlobMeta, BlobStore};
use crate::error::StoreError;
use crate::ids::DocumentId;
use crate::system::Clock;

/// What one sweep removed.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct SweepReport {
    /// Documents that had been pending for longer than the grace period.
    pub pending_documents: usize,
    /// Objects that no document had.
    pub orphan_objects: usize,
    /// Half-written files of the blob store.
    pub partial_files: u64,
    /// Idempotency claims that nobody can use any more.
    pub claims: u64,
}

/// Removes pending documents and orphan objects that are older than the grace period. Safe to run on many replicas
/// at once, and while promotions run: the grace period MUST be longer than the longest copy.
pub struct SweepDocuments {
    documents: Arc<dyn DocumentRepository>,
    blobs: Arc<dyn BlobStore>,
    clock: Arc<dyn Clock>,
    grace: Duration,
}

/// Objects looked at in one go.
const PAGE: usize = 500;

impl SweepDocuments {
    /// Wires the ports; `grace` is how old something must be to count as left behind.
    pub fn new(
        documents: Arc<dyn DocumentRepository>,
        blobs: Arc<dyn BlobStore>,
        clock: Arc<dyn Clock>,
        grace: Duration,
    ) -> Self {
        Self { documents, blobs, clock, grace }
    }

    /// One sweep over everything.
    pub async fn execute(&self) -> Result<SweepReport, StoreError> {
        let now = self.clock.now();
        let cutoff = now - TimeDelta::from_std(self.grace).unwrap_or(TimeDelta::MAX);
        let stale = self.documents.abandon_stale(cutoff).await?;
        for pending in &stale {
            self.blobs.delete(&BlobKey::document(pending.workspace_id, &pending.id)).await?;
        }
        Ok(SweepReport {
            pending_documents: stale.len(),
            orphan_objects: self.sweep_orphans(cutoff).await?,
            partial_files: self.blobs.sweep_partial(self.grace).await?,
            claims: self.documents.forget_claims(now - TimeDelta::hours(24)).await?,
        })
    }

    async fn sweep_orphans(&self, cutoff: DateTime<Utc>) -> Result<usize, StoreError> {
        let mut removed = 0;
        let mut after: Option<BlobKey> = None;
        loop {
            let page = self.blobs.list(BlobKey::DOCUMENTS, after.as_ref(), PAGE).await?;
            let Some(last) = page.last() else { return Ok(removed) };
            after = Some(last.key.clone());
            let old: Vec<(&BlobMeta, DocumentId)> = page
                .iter()
                .filter(|object| object.modified_at < cutoff)
                .filter_map(|object| object.key.document_id().map(|id| (object, id)))
                .collect();
            let ids: Vec<DocumentId> = old.iter().map(|(_, id)| id.clone()).collect();
            let unknown = self.documents.unknown(&ids).await?;
            for (object, _) in old.iter().filter(|(_, id)| unknown.contains(id)) {
                self.blobs.delete(&object.key).await?;
                removed += 1;
            }
        }
    }
}
