//! The current snapshot of the catalogue, replaced as a whole.

use std::collections::HashSet;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use arc_swap::ArcSwap;
use domain::error::StoreError;
use domain::model::{Catalogue, CatalogueSnapshot, Model, ModelId, ModelRepository, Pricing, SANDBOX_AUTHOR};
use domain::money::Price;
use tokio::sync::Mutex;

/// Holds the current snapshot; a reload replaces it for later readers.
pub struct LiveCatalogue {
    models: Arc<dyn ModelRepository>,
    /// Locked during a reload, so that a slow one does not replace the snapshot of a later one.
    configured: Mutex<ConfiguredRows>,
    snapshot: ArcSwap<CatalogueSnapshot>,
    version: AtomicU64,
}

/// The effect of the configuration on the rows.
struct ConfiguredRows {
    overlay: Vec<Model>,
    sandbox: HashSet<ModelId>,
}

impl LiveCatalogue {
    /// Loads the catalogue.
    ///
    /// `version` is the watcher's version, read before ([`crate::ChangeWatcher::catalogue_version`]), or any value
    /// without a watcher. `overlay` contains rows for models with configured endpoints; each is added if the stored
    /// rows lack it. `sandbox` names the sandbox models that are switched on: rows of others are omitted, and theirs
    /// are shown free, as they are.
    ///
    /// # Errors
    /// The stored rows cannot be read.
    pub async fn load(
        models: Arc<dyn ModelRepository>,
        version: u64,
        overlay: Vec<Model>,
        sandbox: HashSet<ModelId>,
    ) -> Result<Self, StoreError> {
        let catalogue = Self {
            models,
            configured: Mutex::new(ConfiguredRows { overlay, sandbox }),
            snapshot: ArcSwap::from_pointee(CatalogueSnapshot::default()),
            version: AtomicU64::new(0),
        };
        catalogue.reload(version).await?;
        Ok(catalogue)
    }

    /// Reloads the rows if `version`, which must have been read before, differs from the current one.
    ///
    /// # Errors
    /// The stored rows cannot be read; the old snapshot stays current.
    pub async fn reload_if_changed(&self, version: u64) -> Result<(), StoreError> {
        if self.version.load(Ordering::Acquire) == version {
            return Ok(());
        }
        self.reload(version).await?;
        let rows = self.snapshot.load().rows().len();
        tracing::info!(catalogue.version = version, catalogue.rows = rows, "catalogue reloaded");
        Ok(())
    }

    /// Replaces the rows of the configuration, as in [`Self::load`], and reloads the rows.
    ///
    /// # Errors
    /// The stored rows cannot be read; the old snapshot and the old rows of the configuration stay current.
    pub async fn reconfigure(&self, overlay: Vec<Model>, sandbox: HashSet<ModelId>) -> Result<(), StoreError> {
        let mut configured = self.configured.lock().await;
        let changed = ConfiguredRows { overlay, sandbox };
        self.snapshot.store(Arc::new(changed.snapshot(self.models.list().await?)));
        *configured = changed;
        Ok(())
    }

    async fn reload(&self, version: u64) -> Result<(), StoreError> {
        let configured = self.configured.lock().await;
        self.snapshot.store(Arc::new(configured.snapshot(self.models.list().await?)));
        self.version.store(version, Ordering::Release);
        Ok(())
    }
}

impl ConfiguredRows {
    fn snapshot(&self, mut rows: Vec<Model>) -> CatalogueSnapshot {
        rows.retain(|row| row.id.author() != SANDBOX_AUTHOR || self.sandbox.contains(&row.id));
        for row in rows.iter_mut().filter(|row| row.id.author() == SANDBOX_AUTHOR) {
            row.pricing = Pricing::per_token(Price::ZERO, Price::ZERO);
        }
        let lacking = {
            let known: HashSet<&str> =
                rows.iter().flat_map(|row| [row.id.as_str(), row.canonical_slug.as_str()]).collect();
            self.overlay.iter().filter(|row| !known.contains(row.id.as_str())).cloned().collect::<Vec<_>>()
        };
        rows.extend(lacking);
        CatalogueSnapshot::build(rows)
    }
}

impl Catalogue for LiveCatalogue {
    fn snapshot(&self) -> Arc<CatalogueSnapshot> {
        self.snapshot.load_full()
    }
}
