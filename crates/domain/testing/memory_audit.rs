//! The audit log in memory.

use async_trait::async_trait;
use chrono::{DateTime, Utc};

use super::memory_store::MemoryAuditLog;
use crate::audit::{AuditAnchor, AuditDraft, AuditEntry, AuditLog, AuditState, RowViolation, StoredAuditEntry};
use crate::error::StoreError;

#[async_trait]
impl AuditLog for MemoryAuditLog {
    async fn append(&self, draft: &AuditDraft) -> Result<AuditEntry, StoreError> {
        Ok(self.0.begin(draft)?.note(draft, self.0.now()))
    }

    async fn read(&self, from: u64, limit: u64) -> Result<Vec<AuditEntry>, StoreError> {
        let limit = usize::try_from(limit).unwrap_or(usize::MAX);
        Ok(self.0.state().audit.iter().filter(|entry| entry.seq >= from).take(limit).cloned().collect())
    }

    async fn read_before(&self, before: u64, limit: u64) -> Result<Vec<AuditEntry>, StoreError> {
        let limit = usize::try_from(limit).unwrap_or(usize::MAX);
        Ok(self.0.state().audit.iter().rev().filter(|entry| entry.seq < before).take(limit).cloned().collect())
    }

    async fn read_stored(&self, after: Option<i64>, limit: u64) -> Result<Vec<StoredAuditEntry>, StoreError> {
        let limit = usize::try_from(limit).unwrap_or(usize::MAX);
        let stored = self.0.state().audit.iter().map(StoredAuditEntry::from).collect::<Vec<_>>();
        Ok(stored.into_iter().filter(|entry| Some(entry.seq) > after).take(limit).collect())
    }

    async fn state(&self) -> Result<Option<AuditState>, StoreError> {
        let state = self.0.state();
        let newest = state.audit.last().map(|entry| AuditAnchor { seq: entry.seq, hash: entry.hash });
        let removed = state.audit.first().map(|entry| AuditAnchor { seq: entry.seq - 1, hash: entry.previous_hash });
        let removed = removed.unwrap_or(AuditAnchor::NONE);
        let newest = newest.unwrap_or(AuditAnchor::NONE);
        Ok(Some(AuditState { newest, removed, removed_count: removed.seq }))
    }

    async fn check_rows(&self, _limit: usize) -> Result<Vec<RowViolation>, StoreError> {
        Ok(Vec::new())
    }

    async fn prune(&self, before: DateTime<Utc>, limit: u64) -> Result<u64, StoreError> {
        let mut state = self.0.state();
        let old = state.audit.iter().take_while(|entry| entry.at < before).count();
        let most = usize::try_from(limit).unwrap_or(usize::MAX);
        let going = old.min(most).min(state.audit.len().saturating_sub(1));
        state.audit.drain(..going);
        Ok(going as u64)
    }
}
