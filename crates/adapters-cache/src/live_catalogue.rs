//! The current snapshot of the catalogue, replaced as a whole.

use std::collections::HashSet;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use arc_swap::ArcSwap;
use domain::error::StoreError;
use domain::model::{Catalogue, CatalogueSnapshot, Model, ModelRepository, SANDBOX_AUTHOR};

/// Holds the current snapshot; a reload replaces it for later readers.
pub struct LiveCatalogue {
    models: Arc<dyn ModelRepository>,
    overlay: Vec<Model>,
    hide_sandbox: bool,
    snapshot: ArcSwap<CatalogueSnapshot>,
    version: AtomicU64,
}

impl LiveCatalogue {
    /// Loads the catalogue.
    ///
    /// `version` is the watcher's version, read before ([`crate::ChangeWatcher::catalogue_version`]), or any value
    /// without a watcher. `overlay` contains rows for models with configured endpoints; each is added if the stored
    /// rows lack it. With `hide_sandbox` the sandbox's rows are omitted.
    ///
    /// # Errors
    /// The stored rows cannot be read.
    pub async fn load(
        models: Arc<dyn ModelRepository>,
        version: u64,
        overlay: Vec<Model>,
        hide_sandbox: bool,
    ) -> Result<Self, StoreError> {
        let catalogue = Self {
            models,
            overlay,
            hide_sandbox,
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

    async fn reload(&self, version: u64) -> Result<(), StoreError> {
        let mut rows = self.models.list().await?;
        if self.hide_sandbox {
            rows.retain(|row| row.id.author() != SANDBOX_AUTHOR);
        }
        let lacking = {
            let known: HashSet<&str> =
                rows.iter().flat_map(|row| [row.id.as_str(), row.canonical_slug.as_str()]).collect();
            self.overlay.iter().filter(|row| !known.contains(row.id.as_str())).cloned().collect::<Vec<_>>()
        };
        rows.extend(lacking);
        self.snapshot.store(Arc::new(CatalogueSnapshot::build(rows)));
        self.version.store(version, Ordering::Release);
        Ok(())
    }
}

impl Catalogue for LiveCatalogue {
    fn snapshot(&self) -> Arc<CatalogueSnapshot> {
        self.snapshot.load_full()
    }
}
