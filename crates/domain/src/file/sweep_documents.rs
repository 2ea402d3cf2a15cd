//! Removes the remains of interrupted promotions.

use std::collections::BTreeSet;
use std::sync::Arc;
use std::time::Duration;

use chrono::{DateTime, TimeDelta, Utc};

use super::DocumentRepository;
use crate::container::{BlobKey, BlobStore};
use crate::error::StoreError;
use crate::ids::{DocumentId, WorkspaceId};
use crate::system::Clock;

/// The result of one sweep.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct SweepReport {
    /// The number of documents that were pending for longer than the grace period.
    pub pending_documents: usize,
    /// The number of objects without a document.
    pub orphan_objects: usize,
    /// The number of old objects of workspaces that the database never had. They stay.
    pub foreign_objects: usize,
    /// The number of partly written files of the blob store.
    pub partial_files: u64,
    /// The number of expired idempotency claims.
    pub claims: u64,
}

/// Removes pending documents and orphan objects that are older than the grace period. It is safe to run on many
/// replicas and during promotions if the grace period is longer than the longest copy. Objects of workspaces that the
/// database never had belong to another installation on the same store, so they stay.
pub struct SweepDocuments {
    documents: Arc<dyn DocumentRepository>,
    blobs: Arc<dyn BlobStore>,
    clock: Arc<dyn Clock>,
    grace: Duration,
}

/// The number of objects per page of a listing.
const PAGE_SIZE: usize = 500;

impl SweepDocuments {
    /// Wires the ports; `grace` is the age from which on pending documents and unknown objects are removed.
    pub fn new(
        documents: Arc<dyn DocumentRepository>,
        blobs: Arc<dyn BlobStore>,
        clock: Arc<dyn Clock>,
        grace: Duration,
    ) -> Self {
        Self { documents, blobs, clock, grace }
    }

    /// Sweeps all documents and objects.
    pub async fn execute(&self) -> Result<SweepReport, StoreError> {
        let now = self.clock.now();
        let cutoff = now - TimeDelta::from_std(self.grace).unwrap_or(TimeDelta::MAX);
        let pending_documents = self.abandon(cutoff).await?;
        let (orphan_objects, foreign_objects) = self.sweep_orphans(cutoff).await?;
        Ok(SweepReport {
            pending_documents,
            orphan_objects,
            foreign_objects,
            partial_files: self.blobs.sweep_partial(self.grace).await?,
            claims: self.documents.delete_claims(now - TimeDelta::hours(24)).await?,
        })
    }

    async fn abandon(&self, cutoff: DateTime<Utc>) -> Result<usize, StoreError> {
        let stale = self.documents.abandon_stale(cutoff).await?;
        for pending in &stale {
            self.blobs.delete(&BlobKey::document(pending.workspace_id, &pending.id)).await?;
        }
        Ok(stale.len())
    }

    /// Returns the numbers of removed and of foreign objects.
    async fn sweep_orphans(&self, cutoff: DateTime<Utc>) -> Result<(usize, usize), StoreError> {
        let (mut removed, mut foreign) = (0, 0);
        let mut after: Option<BlobKey> = None;
        loop {
            let page = self.blobs.list(BlobKey::DOCUMENTS, after.as_ref(), PAGE_SIZE).await?;
            let Some(last) = page.last() else { return Ok((removed, foreign)) };
            after = Some(last.key.clone());
            let old = page.iter().filter(|object| object.modified_at < cutoff);
            let old: Vec<_> =
                old.filter_map(|object| object.key.of_document().map(|(of, id)| (&object.key, of, id))).collect();
            let workspaces: BTreeSet<WorkspaceId> = old.iter().map(|(_, workspace, _)| *workspace).collect();
            let own = self.documents.find_own_workspaces(&Vec::from_iter(workspaces)).await?;
            let (own, others): (Vec<_>, Vec<_>) =
                old.into_iter().partition(|(_, workspace, _)| own.contains(workspace));
            foreign += others.len();
            let ids: Vec<DocumentId> = own.iter().map(|(.., id)| id.clone()).collect();
            let unknown = self.documents.find_unknown(&ids).await?;
            for (key, ..) in own.iter().filter(|(.., id)| unknown.contains(id)) {
                self.blobs.delete(key).await?;
                removed += 1;
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::container::{BlobMeta, MockBlobStore};
    use crate::file::{MockDocumentRepository, PendingDocument};
    use crate::testing::{FixedClock, SequentialIds};

    const HOUR: Duration = Duration::from_hours(1);

    fn workspace() -> WorkspaceId {
        WorkspaceId::from_uuid(SequentialIds::uuid(1))
    }

    fn document(number: u64) -> DocumentId {
        DocumentId::from_uuid(SequentialIds::uuid(number))
    }

    fn pending(number: u64, created_at: DateTime<Utc>) -> PendingDocument {
        let filename = "a".to_owned();
        PendingDocument {
            id: document(number),
            workspace_id: workspace(),
            filename,
            size_bytes: 1,
            charged_bytes: 1,
            process: None,
            created_at,
        }
    }

    fn key(number: u64) -> BlobKey {
        BlobKey::document(workspace(), &document(number))
    }

    fn sweep(documents: MockDocumentRepository, blobs: MockBlobStore, clock: FixedClock) -> SweepDocuments {
        SweepDocuments::new(Arc::new(documents), Arc::new(blobs), Arc::new(clock), HOUR)
    }

    #[tokio::test]
    async fn execute_removes_objects_older_than_the_grace_period() {
        let clock = FixedClock::default();
        let now = clock.now();
        let mut documents = MockDocumentRepository::new();
        let mut blobs = MockBlobStore::new();
        documents
            .expect_abandon_stale()
            .withf(move |before| *before == now - HOUR)
            .once()
            .returning(move |_| Ok(vec![pending(1, now - HOUR * 2)]));
        let foreign = WorkspaceId::from_uuid(SequentialIds::uuid(9));
        // 2 has no document, 3 has one, 4 is too young to tell, and 5 belongs to another installation.
        let objects = [(key(2), HOUR * 2), (key(3), HOUR * 2), (key(4), HOUR / 2)];
        let objects = objects.into_iter().chain([(BlobKey::document(foreign, &document(5)), HOUR * 2)]);
        let objects: Vec<BlobMeta> =
            objects.map(|(key, age)| BlobMeta { key, size_bytes: 1, modified_at: now - age, links: 1 }).collect();
        blobs
            .expect_list()
            .times(2)
            .returning(move |_, after, _| Ok(if after.is_none() { objects.clone() } else { Vec::new() }));
        documents
            .expect_find_own_workspaces()
            .withf(move |ids| ids == [workspace(), foreign])
            .once()
            .returning(|_| Ok(vec![workspace()]));
        documents
            .expect_find_unknown()
            .withf(|ids| ids == [document(2), document(3)])
            .once()
            .returning(|_| Ok(vec![document(2)]));
        blobs.expect_delete().withf(|at| *at == key(1)).once().returning(|_| Ok(true));
        blobs.expect_delete().withf(|at| *at == key(2)).once().returning(|_| Ok(true));
        blobs.expect_sweep_partial().withf(|age| *age == HOUR).once().returning(|_| Ok(5));
        documents.expect_delete_claims().withf(move |at| *at == now - HOUR * 24).once().returning(|_| Ok(6));
        let report = sweep(documents, blobs, clock).execute().await.unwrap();
        let expected =
            SweepReport { pending_documents: 1, orphan_objects: 1, foreign_objects: 1, partial_files: 5, claims: 6 };
        assert_eq!(report, expected);
    }
}
