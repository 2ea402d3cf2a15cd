//! Usage in memory.

use async_trait::async_trait;

use super::MemoryStore;
use crate::error::StoreError;
use crate::ids::DecisionId;
use crate::usage::{UsageFilter, UsageRecord, UsageRepository};

#[async_trait]
impl UsageRepository for MemoryStore {
    async fn find(&self, id: &DecisionId) -> Result<Option<UsageRecord>, StoreError> {
        Ok(self.state().usage.iter().find(|record| record.id == *id).cloned())
    }

    async fn list(&self, filter: &UsageFilter, limit: u64) -> Result<Vec<UsageRecord>, StoreError> {
        let state = self.state();
        let mut records: Vec<UsageRecord> =
            state.usage.iter().filter(|record| wanted(record, filter)).cloned().collect();
        records.sort_by(|a, b| (b.created_at, &b.id).cmp(&(a.created_at, &a.id)));
        records.truncate(usize::try_from(limit).unwrap_or(usize::MAX));
        Ok(records)
    }
}

fn wanted(record: &UsageRecord, filter: &UsageFilter) -> bool {
    filter.workspace_id.is_none_or(|id| record.workspace_id == id)
        && filter.api_key.is_none_or(|key| record.api_key == key)
        && filter.provider.as_ref().is_none_or(|provider| record.provider == *provider)
        && filter.outcome.is_none_or(|outcome| record.outcome == outcome)
        && filter.since.is_none_or(|since| record.created_at >= since)
        && filter.until.is_none_or(|until| record.created_at < until)
        && filter.after.as_ref().is_none_or(|(at, id)| (record.created_at, &record.id) < (*at, id))
}
