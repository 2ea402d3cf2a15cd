//! Documents in memory.

use async_trait::async_trait;
use chrono::{DateTime, Utc};

use super::memory_state::{State, StoredClaim, StoredDocument};
use super::memory_store::MemoryDocuments;
use crate::audit::AuditDraft;
use crate::error::StoreError;
use crate::file::{
    ClaimState, Document, DocumentPage, DocumentQuota, DocumentRepository, IdempotencyClaim, PendingDocument,
    Reservation,
};
use crate::ids::{DocumentId, WorkspaceId};

impl StoredDocument {
    fn holds(&self) -> (WorkspaceId, u64) {
        match self {
            Self::Pending(document) => (document.workspace_id, document.charged_bytes),
            Self::Ready(document, charged_bytes) => (document.workspace_id, *charged_bytes),
        }
    }
}

impl State {
    pub(super) fn used_bytes(&self, workspace_id: WorkspaceId) -> u64 {
        self.documents
            .values()
            .map(StoredDocument::holds)
            .filter(|(owner, _)| *owner == workspace_id)
            .map(|(_, bytes)| bytes)
            .sum()
    }

    fn document_count(&self, workspace_id: WorkspaceId) -> u64 {
        self.documents.values().filter(|stored| stored.holds().0 == workspace_id).count() as u64
    }

    fn claim_state(&self, claim: &IdempotencyClaim) -> ClaimState {
        let found = self.claims.get(&(claim.api_key, claim.operation, claim.key.clone()));
        let Some(stored) = found.filter(|stored| stored.made_at >= claim.not_before) else { return ClaimState::Free };
        if stored.subject != claim.subject {
            return ClaimState::Reused;
        }
        match self.documents.get(&stored.document) {
            Some(StoredDocument::Ready(document, _)) => ClaimState::Done(document.clone()),
            Some(StoredDocument::Pending(_)) => ClaimState::InProgress,
            None => ClaimState::Free,
        }
    }

    /// Removes a document and its claims.
    fn remove_document(&mut self, id: &DocumentId) {
        self.documents.remove(id);
        self.claims.retain(|_, claim| claim.document != *id);
    }

    fn pending(&self, workspace_id: WorkspaceId, id: &DocumentId) -> Option<PendingDocument> {
        match self.documents.get(id) {
            Some(StoredDocument::Pending(document)) if document.workspace_id == workspace_id => Some(document.clone()),
            _ => None,
        }
    }
}

#[async_trait]
impl DocumentRepository for MemoryDocuments {
    async fn claim_state(&self, claim: &IdempotencyClaim) -> Result<ClaimState, StoreError> {
        Ok(self.0.state().claim_state(claim))
    }

    async fn reserve<'a>(
        &self,
        document: &PendingDocument,
        quota: DocumentQuota,
        claim: Option<&'a IdempotencyClaim>,
    ) -> Result<Reservation, StoreError> {
        let mut state = self.0.state();
        if state.workspace(document.workspace_id).is_none() {
            return Ok(Reservation::UnknownWorkspace);
        }
        if let Some(claim) = claim {
            let met = state.claim_state(claim);
            if met != ClaimState::Free {
                return Ok(Reservation::Claimed(met));
            }
        }
        let used_bytes = state.used_bytes(document.workspace_id);
        // A database counts in 63 bits.
        let quota_bytes = quota.bytes.min(i64::MAX.unsigned_abs());
        if used_bytes.checked_add(document.charged_bytes).is_none_or(|sum| sum > quota_bytes) {
            return Ok(Reservation::QuotaExceeded { used_bytes });
        }
        let documents = state.document_count(document.workspace_id);
        if documents >= quota.documents {
            return Ok(Reservation::TooManyDocuments { documents });
        }
        if let Some(claim) = claim {
            let stored = StoredClaim {
                subject: claim.subject.clone(),
                document: document.id.clone(),
                made_at: document.created_at,
            };
            state.claims.insert((claim.api_key, claim.operation, claim.key.clone()), stored);
        }
        state.documents.insert(document.id.clone(), StoredDocument::Pending(document.clone()));
        Ok(Reservation::Reserved)
    }

    async fn mark_ready(
        &self,
        workspace_id: WorkspaceId,
        id: &DocumentId,
        sha256: &str,
        media_type: &str,
    ) -> Result<Option<Document>, StoreError> {
        let mut state = self.0.state();
        let Some(pending) = state.pending(workspace_id, id) else { return Ok(None) };
        let document = Document {
            id: pending.id,
            workspace_id,
            filename: pending.filename,
            media_type: media_type.to_owned(),
            size_bytes: pending.size_bytes,
            sha256: sha256.to_owned(),
            created_at: pending.created_at,
        };
        state.documents.insert(id.clone(), StoredDocument::Ready(document.clone(), pending.charged_bytes));
        Ok(Some(document))
    }

    async fn abandon(&self, workspace_id: WorkspaceId, id: &DocumentId) -> Result<bool, StoreError> {
        let mut state = self.0.state();
        let pending = state.pending(workspace_id, id).is_some();
        if pending {
            state.remove_document(id);
        }
        Ok(pending)
    }

    async fn list_pending(&self) -> Result<Vec<PendingDocument>, StoreError> {
        let pending = |stored: &StoredDocument| match stored {
            StoredDocument::Pending(document) => Some(document.clone()),
            StoredDocument::Ready(..) => None,
        };
        Ok(self.0.state().documents.values().filter_map(pending).collect())
    }

    async fn abandon_stale(&self, before: DateTime<Utc>) -> Result<Vec<PendingDocument>, StoreError> {
        let mut state = self.0.state();
        let abandoned: Vec<PendingDocument> = state
            .documents
            .values()
            .filter_map(|stored| match stored {
                StoredDocument::Pending(document) if document.created_at < before => Some(document.clone()),
                _ => None,
            })
            .collect();
        for document in &abandoned {
            state.remove_document(&document.id);
        }
        Ok(abandoned)
    }

    async fn find(&self, workspace_id: WorkspaceId, id: &DocumentId) -> Result<Option<Document>, StoreError> {
        Ok(match self.0.state().documents.get(id) {
            Some(StoredDocument::Ready(document, _)) if document.workspace_id == workspace_id => Some(document.clone()),
            _ => None,
        })
    }

    async fn list<'a>(
        &self,
        workspace_id: Option<WorkspaceId>,
        after: Option<&'a DocumentId>,
        limit: u64,
    ) -> Result<Vec<Document>, StoreError> {
        let state = self.0.state();
        let mut documents: Vec<Document> = state
            .documents
            .values()
            .filter_map(|stored| match stored {
                StoredDocument::Ready(document, _) => Some(document.clone()),
                StoredDocument::Pending(_) => None,
            })
            .filter(|document| workspace_id.is_none_or(|owner| document.workspace_id == owner))
            .filter(|document| after.is_none_or(|after| document.id > *after))
            .collect();
        documents.sort_by(|one, other| one.id.cmp(&other.id));
        documents.truncate(usize::try_from(limit).unwrap_or(usize::MAX));
        Ok(documents)
    }

    async fn scan<'a>(&self, after: Option<&'a str>, limit: u64) -> Result<DocumentPage, StoreError> {
        let mut documents = self.list(None, None, u64::MAX).await?;
        documents.retain(|document| after.is_none_or(|after| document.id.as_str() > after));
        documents.truncate(usize::try_from(limit).unwrap_or(usize::MAX));
        let last = documents.last().map(|document| document.id.as_str().to_owned());
        Ok(DocumentPage { documents, unreadable: Vec::new(), last })
    }

    async fn delete(
        &self,
        workspace_id: WorkspaceId,
        id: &DocumentId,
        audit: &AuditDraft,
    ) -> Result<Option<Document>, StoreError> {
        let now = self.0.now();
        let mut state = self.0.begin(audit)?;
        let deleted = match state.documents.get(id) {
            Some(StoredDocument::Ready(document, _)) if document.workspace_id == workspace_id => document.clone(),
            _ => return Ok(None),
        };
        state.remove_document(id);
        state.note(audit, now);
        Ok(Some(deleted))
    }

    async fn find_unknown(&self, ids: &[DocumentId]) -> Result<Vec<DocumentId>, StoreError> {
        let state = self.0.state();
        Ok(ids.iter().filter(|id| !state.documents.contains_key(*id)).cloned().collect())
    }

    async fn find_own_workspaces(&self, ids: &[WorkspaceId]) -> Result<Vec<WorkspaceId>, StoreError> {
        let state = self.0.state();
        let is_own = |id: &WorkspaceId| state.workspace(*id).is_some() || state.deleted_workspaces.contains(id);
        Ok(ids.iter().copied().filter(is_own).collect())
    }

    async fn used_bytes(&self, workspace_id: WorkspaceId) -> Result<u64, StoreError> {
        Ok(self.0.state().used_bytes(workspace_id))
    }

    async fn delete_claims(&self, before: DateTime<Utc>) -> Result<u64, StoreError> {
        let mut state = self.0.state();
        let had = state.claims.len();
        state.claims.retain(|_, claim| claim.made_at >= before);
        Ok((had - state.claims.len()) as u64)
    }
}
