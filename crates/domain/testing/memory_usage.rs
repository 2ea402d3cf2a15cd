//! Usage in memory.

use std::collections::HashMap;

use async_trait::async_trait;
use chrono::{DateTime, Utc};

use super::memory_store::MemoryUsage;
use crate::error::StoreError;
use crate::ids::{ApiKeyId, DecisionId, WorkspaceId};
use crate::usage::{UsageFilter, UsageRecord, UsageRepository};

#[async_trait]
impl UsageRepository for MemoryUsage {
    async fn find(&self, id: &DecisionId) -> Result<Option<UsageRecord>, StoreError> {
        Ok(self.0.state().usage.iter().find(|record| record.id == *id).cloned())
    }

    async fn list(&self, filter: &UsageFilter, limit: u64) -> Result<Vec<UsageRecord>, StoreError> {
        let state = self.0.state();
        let mut records: Vec<UsageRecord> =
            state.usage.iter().filter(|record| wanted(record, filter)).cloned().collect();
        let time = |record: &UsageRecord| filter.time.of(record);
        records.sort_by(|a, b| (time(b), &b.id).cmp(&(time(a), &a.id)));
        records.truncate(usize::try_from(limit).unwrap_or(usize::MAX));
        Ok(records)
    }

    async fn last_use(&self, keys: &[ApiKeyId]) -> Result<HashMap<ApiKeyId, DateTime<Utc>>, StoreError> {
        let mut last = HashMap::new();
        for record in self.0.state().usage.iter().filter(|record| keys.contains(&record.api_key)) {
            let newest = last.entry(record.api_key).or_insert(record.created_at);
            *newest = record.created_at.max(*newest);
        }
        Ok(last)
    }

    async fn recorded_bytes(&self, workspace_id: WorkspaceId) -> Result<u64, StoreError> {
        Ok(self.0.state().ledger.recorded_bytes(workspace_id, self.0.now()))
    }
}

fn wanted(record: &UsageRecord, filter: &UsageFilter) -> bool {
    let time = filter.time.of(record);
    filter.workspace_id.is_none_or(|id| record.workspace_id == id)
        && filter.api_key.is_none_or(|key| record.api_key == key)
        && filter.provider.as_ref().is_none_or(|provider| record.provider == *provider)
        && filter.outcome.is_none_or(|outcome| record.outcome == outcome)
        && filter.since.is_none_or(|since| time >= since)
        && filter.until.is_none_or(|until| time < until)
        && filter.after.as_ref().is_none_or(|(at, id)| (time, &record.id) < (*at, id))
}
