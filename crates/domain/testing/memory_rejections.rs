//! Counts of rejected requests in memory.

use std::cmp::Reverse;
use std::collections::HashMap;

use async_trait::async_trait;
use chrono::{DateTime, TimeDelta, Utc};

use super::memory_store::MemoryRejections;
use crate::error::StoreError;
use crate::usage::{RejectionCount, RejectionFilter, RejectionStore, RejectionSum, hour_of};

impl MemoryRejections {
    fn matching_rejections(&self, filter: &RejectionFilter) -> Vec<RejectionCount> {
        let state = self.0.state();
        let counts = state.rejections.iter().map(|((rejection, hour), count)| (*rejection, *hour, *count)).filter(
            |(rejection, hour, _)| {
                filter.workspaces.as_ref().is_none_or(|ids| rejection.workspace_id.is_some_and(|id| ids.contains(&id)))
                    && filter.api_key.is_none_or(|key| rejection.api_key == key)
                    && filter.since.is_none_or(|since| *hour >= hour_of(since))
                    && filter.until.is_none_or(|until| *hour < until)
            },
        );
        counts.map(|(rejection, hour, count)| RejectionCount { rejection, hour, count }).collect()
    }
}

#[async_trait]
impl RejectionStore for MemoryRejections {
    async fn add(&self, counts: &[RejectionCount]) -> Result<(), StoreError> {
        let mut state = self.0.state();
        for count in counts {
            let stored = state.rejections.entry((count.rejection, count.hour)).or_default();
            *stored = stored.saturating_add(count.count);
        }
        Ok(())
    }

    async fn list(&self, filter: &RejectionFilter, limit: u64) -> Result<Vec<RejectionCount>, StoreError> {
        let mut counts = self.matching_rejections(filter);
        counts.sort_by_key(|count| {
            let rejection = count.rejection;
            (Reverse(count.hour), Reverse(count.count), rejection.api_key, rejection.status, rejection.reason.as_str())
        });
        counts.truncate(usize::try_from(limit).unwrap_or(usize::MAX));
        Ok(counts)
    }

    async fn sum(&self, filter: &RejectionFilter) -> Result<Vec<RejectionSum>, StoreError> {
        let mut sums = HashMap::new();
        for RejectionCount { rejection, hour, count } in self.matching_rejections(filter) {
            let (status, reason) = (rejection.status, rejection.reason);
            let sum =
                sums.entry((status, reason)).or_insert(RejectionSum { status, reason, count: 0, last_hour: hour });
            sum.count = sum.count.saturating_add(count);
            sum.last_hour = sum.last_hour.max(hour);
        }
        let mut sums: Vec<RejectionSum> = sums.into_values().collect();
        sums.sort_by_key(|sum| (Reverse(sum.count), sum.status, sum.reason));
        Ok(sums)
    }

    async fn prune(&self, before: DateTime<Utc>, limit: u64) -> Result<u64, StoreError> {
        let mut state = self.0.state();
        let is_old = |hour: DateTime<Utc>| hour + TimeDelta::hours(1) <= before;
        let most = usize::try_from(limit).unwrap_or(usize::MAX);
        let old: Vec<_> = state.rejections.keys().filter(|(_, hour)| is_old(*hour)).take(most).copied().collect();
        for key in &old {
            state.rejections.remove(key);
        }
        Ok(old.len() as u64)
    }
}
