//! Usage in memory.

use async_trait::async_trait;

use super::MemoryStore;
use crate::error::StoreError;
use crate::ids::{DecisionId, WorkspaceId};
use crate::usage::{UsageRecord, UsageRepository};

#[async_trait]
impl UsageRepository for MemoryStore {
    async fn record(&self, record: UsageRecord) -> Result<(), StoreError> {
        let mut state = self.state();
        if state.usage.iter().all(|stored| stored.id != record.id) {
            state.usage.push(record);
        }
        Ok(())
    }

    async fn find(&self, id: &DecisionId) -> Result<Option<UsageRecord>, StoreError> {
        Ok(self.state().usage.iter().find(|record| record.id == *id).cloned())
    }

    async fn list(&self, workspace_id: WorkspaceId, limit: u64) -> Result<Vec<UsageRecord>, StoreError> {
        let state = self.state();
        let mut records: Vec<UsageRecord> =
            state.usage.iter().filter(|record| record.workspace_id == workspace_id).cloned().collect();
        records.sort_by(|a, b| (b.created_at, &b.id).cmp(&(a.created_at, &a.id)));
        records.truncate(usize::try_from(limit).unwrap_or(usize::MAX));
        Ok(records)
    }
}
