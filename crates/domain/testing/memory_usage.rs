//! Usage in memory.

use std::collections::{BTreeMap, HashMap};

use async_trait::async_trait;
use chrono::{DateTime, Utc};

use super::memory_state::{State, SumName};
use super::memory_store::MemoryUsage;
use crate::error::StoreError;
use crate::ids::{ApiKeyId, DecisionId, WorkspaceId};
use crate::money::Usd;
use crate::usage::{UsageFilter, UsageGroup, UsageRecord, UsageRepository, UsageSum, UsageSumQuery, UsageTotals};

fn sum_name(record: &UsageRecord) -> SumName {
    let UsageRecord { workspace_id, api_key, model, provider, .. } = record;
    (record.charged_at.date_naive(), *workspace_id, *api_key, model.to_string(), provider.clone())
}

fn totals(record: &UsageRecord) -> UsageTotals {
    let UsageRecord { input_tokens, output_tokens, cost, .. } = *record;
    UsageTotals { requests: 1, input_tokens, output_tokens, cost }
}

impl State {
    /// Adds a record in place of the one with its id, and corrects the sums.
    pub(super) fn replace_record(&mut self, record: UsageRecord) -> Result<(), StoreError> {
        if let Some(place) = self.usage.iter().position(|stored| stored.id == record.id) {
            let replaced = self.usage.remove(place);
            let sum = self.usage_sums.entry(sum_name(&replaced)).or_default();
            sum.requests -= 1;
            sum.input_tokens -= replaced.input_tokens;
            sum.output_tokens -= replaced.output_tokens;
            sum.cost = Usd::from_pico(sum.cost.pico() - replaced.cost.pico());
        }
        let sum = self.usage_sums.entry(sum_name(&record)).or_default();
        *sum = sum.checked_add(totals(&record))?;
        self.usage.push(record);
        Ok(())
    }
}

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

    async fn sum(&self, query: &UsageSumQuery, limit: u64) -> Result<Vec<UsageSum>, StoreError> {
        let state = self.0.state();
        let of_record = |record: &UsageRecord| (sum_name(record), record.user.clone(), totals(record));
        let parts: Vec<(SumName, Option<String>, UsageTotals)> = if query.needs_records() {
            state.usage.iter().map(of_record).collect()
        } else {
            state.usage_sums.iter().map(|(name, totals)| (name.clone(), None, *totals)).collect()
        };
        let is = |filter: &Option<String>, value: Option<&str>| filter.is_none() || filter.as_deref() == value;
        let mut rows: BTreeMap<Vec<Option<String>>, UsageSum> = BTreeMap::new();
        for ((day, workspace_id, api_key, model, provider), user, totals) in parts {
            let is_wanted = (query.since..query.until).contains(&day)
                && query.workspaces.as_ref().is_none_or(|ids| ids.contains(&workspace_id))
                && query.api_key.is_none_or(|key| key == api_key)
                && is(&query.model, Some(&model))
                && is(&query.provider, Some(&provider))
                && is(&query.user, user.as_deref());
            if !is_wanted || totals.requests == 0 {
                continue;
            }
            let mut row = UsageSum::default();
            for group in &query.groups {
                match group {
                    UsageGroup::Day => row.day = Some(day),
                    UsageGroup::Workspace => row.workspace_id = Some(workspace_id),
                    UsageGroup::Key => row.api_key = Some(api_key),
                    UsageGroup::Model => row.model = Some(model.clone()),
                    UsageGroup::Provider => row.provider = Some(provider.clone()),
                    UsageGroup::User => row.user.clone_from(&user),
                }
            }
            let workspace = row.workspace_id.and_then(|id| state.workspaces.iter().find(|own| own.id == id));
            row.workspace_name = workspace.map(|workspace| workspace.name.as_str().to_owned());
            let key = row.api_key.and_then(|id| state.keys.get(&id));
            row.key_name = key.map(|stored| stored.key.name.as_str().to_owned());
            let sum = rows.entry(group_names(&row, &query.groups)).or_insert(row);
            sum.totals = sum.totals.checked_add(totals)?;
        }
        if let Some(after) = &query.after {
            let after = group_names(after, &query.groups);
            rows.retain(|name, _| *name > after);
        }
        Ok(rows.into_values().take(usize::try_from(limit).unwrap_or(usize::MAX)).collect())
    }

    async fn last_use(&self, keys: &[ApiKeyId]) -> Result<HashMap<ApiKeyId, DateTime<Utc>>, StoreError> {
        let mut last = HashMap::new();
        for record in self.0.state().usage.iter().filter(|record| keys.contains(&record.api_key)) {
            let newest = last.entry(record.api_key).or_insert((record.charged_at, record.created_at));
            *newest = (record.charged_at, record.created_at).max(*newest);
        }
        Ok(last.into_iter().map(|(key, (_, created_at))| (key, created_at)).collect())
    }

    async fn recorded_bytes(&self, workspace_id: WorkspaceId) -> Result<u64, StoreError> {
        Ok(self.0.state().ledger.recorded_bytes(workspace_id, self.0.now()))
    }
}

/// Returns the members of a row by which rows are ordered.
fn group_names(row: &UsageSum, groups: &[UsageGroup]) -> Vec<Option<String>> {
    let name = |group: &UsageGroup| match group {
        UsageGroup::Day => row.day.map(|day| day.to_string()),
        UsageGroup::Workspace => row.workspace_id.map(|id| id.to_string()),
        UsageGroup::Key => row.api_key.map(|id| id.to_string()),
        UsageGroup::Model => row.model.clone(),
        UsageGroup::Provider => row.provider.clone(),
        UsageGroup::User => row.user.clone(),
    };
    groups.iter().map(name).collect()
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
