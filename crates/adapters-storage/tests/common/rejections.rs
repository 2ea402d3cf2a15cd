//! The store of rejected requests with several processes.

use std::sync::atomic::{AtomicUsize, Ordering};

use adapters_storage::{Database, SeaOrmRejectionStore};
use async_trait::async_trait;
use chrono::{DateTime, Utc};
use domain::error::StoreError;
use domain::usage::{RejectionCount, RejectionFilter, RejectionStore, RejectionSum};

/// Several handles of the store, used in turn.
pub struct RejectionStores {
    each: Vec<SeaOrmRejectionStore>,
    next: AtomicUsize,
}

impl RejectionStores {
    pub fn over(handles: &[Database]) -> Self {
        Self { each: handles.iter().cloned().map(SeaOrmRejectionStore::new).collect(), next: AtomicUsize::new(0) }
    }

    fn next(&self) -> &SeaOrmRejectionStore {
        &self.each[self.next.fetch_add(1, Ordering::Relaxed) % self.each.len()]
    }
}

#[async_trait]
impl RejectionStore for RejectionStores {
    async fn add(&self, counts: &[RejectionCount]) -> Result<(), StoreError> {
        self.next().add(counts).await
    }

    async fn list(&self, filter: &RejectionFilter, limit: u64) -> Result<Vec<RejectionCount>, StoreError> {
        self.next().list(filter, limit).await
    }

    async fn sum(&self, filter: &RejectionFilter) -> Result<Vec<RejectionSum>, StoreError> {
        self.next().sum(filter).await
    }

    async fn prune(&self, before: DateTime<Utc>, limit: u64) -> Result<u64, StoreError> {
        self.next().prune(before, limit).await
    }
}
