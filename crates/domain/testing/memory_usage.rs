//! Usage in memory.

use async_trait::async_trait;

use super::memory_store::MemoryUsage;
use crate::error::StoreError;
use crate::ids::{DecisionId, WorkspaceId};
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
        records.sort_by(|a, b| (b.charged_at, &b.id).cmp(&(a.charged_at, &a.id)));
        records.truncate(usize::try_from(limit).unwrap_or(usize::MAX));
        Ok(records)
    }

    async fn count_read(&self, filter: &UsageFilter, limit: u64) -> Result<u64, StoreError> {
        let UsageFilter { workspaces, api_key, since, until, after, .. } = filter.clone();
        let read = UsageFilter { workspaces, api_key, since, until, after, ..UsageFilter::default() };
        let count = self.0.state().usage.iter().filter(|record| wanted(record, &read)).count();
        Ok(limit.min(count as u64))
    }

    async fn recorded_bytes(&self, workspace_id: WorkspaceId) -> Result<u64, StoreError> {
        Ok(self.0.state().ledger.recorded_bytes(workspace_id, self.0.now()))
    }
}

fn wanted(record: &UsageRecord, filter: &UsageFilter) -> bool {
    let is = |filter: &Option<String>, value: Option<&str>| filter.is_none() || filter.as_deref() == value;
    filter.workspaces.as_ref().is_none_or(|ids| ids.contains(&record.workspace_id))
        && filter.api_key.is_none_or(|key| record.api_key == key)
        && is(&filter.model, Some(record.model.as_str()))
        && is(&filter.provider, Some(&record.provider))
        && is(&filter.user, record.user.as_deref())
        && is(&filter.session_id, record.session_id.as_deref())
        && filter.outcome.is_none_or(|outcome| record.outcome == outcome)
        && filter.since.is_none_or(|since| record.charged_at >= since)
        && filter.until.is_none_or(|until| record.charged_at < until)
        && filter.after.as_ref().is_none_or(|(at, id)| (record.charged_at, &record.id) < (*at, id))
}
