//! The contract of the catalogue.
#![expect(clippy::unwrap_used, reason = "a test fails by panicking")]

use std::collections::HashSet;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex};

use adapters_cache::LiveCatalogue;
use async_trait::async_trait;
use domain::audit::AuditDraft;
use domain::error::StoreError;
use domain::model::{CatalogueChange, Model, ModelRepository};
use domain::testing::contract::{CatalogueSource, Catalogues};

/// Stored rows that a test sets.
#[derive(Default)]
struct FixedRows(Mutex<Vec<Model>>);

#[async_trait]
impl ModelRepository for FixedRows {
    async fn list(&self) -> Result<Vec<Model>, StoreError> {
        Ok(self.0.lock().unwrap().clone())
    }

    async fn version(&self) -> Result<u64, StoreError> {
        Err(StoreError::unavailable("not asked"))
    }

    async fn apply(&self, _: &CatalogueChange, _: u64, _: &AuditDraft) -> Result<bool, StoreError> {
        Err(StoreError::unavailable("not asked"))
    }
}

/// The rows of a live catalogue, which is reloaded as after a change in the feed.
struct LiveRows {
    rows: Arc<FixedRows>,
    catalogue: Arc<LiveCatalogue>,
    version: AtomicU64,
}

#[async_trait]
impl CatalogueSource for LiveRows {
    async fn replace(&self, rows: Vec<Model>) {
        *self.rows.0.lock().unwrap() = rows;
        let version = self.version.fetch_add(1, Ordering::SeqCst) + 1;
        self.catalogue.reload_if_changed(version).await.unwrap();
    }
}

async fn live_catalogue() -> Catalogues {
    let rows = Arc::new(FixedRows::default());
    let catalogue = LiveCatalogue::load(Arc::clone(&rows) as _, 0, Vec::new(), HashSet::new()).await.unwrap();
    let catalogue = Arc::new(catalogue);
    let source = LiveRows { rows, catalogue: Arc::clone(&catalogue), version: AtomicU64::new(0) };
    Catalogues { catalogue, source: Arc::new(source), keep: Box::new(()) }
}

domain::catalogue_contract!(
    #[tokio::test]
    crate::live_catalogue
);
