//! The catalogue's current snapshot, swapped whole.

use std::collections::HashSet;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use arc_swap::ArcSwap;
use domain::error::StoreError;
use domain::model::{Catalogue, CatalogueSnapshot, Model, ModelRepository, SANDBOX_AUTHOR};

/// Hands out the snapshot in force; a reload replaces it for those who ask afterwards.
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
    /// `version` is that of the watcher, read before ([`crate::ChangeWatcher::catalogue_version`]); any where none
    /// follows the feed. `overlay` are rows for models that endpoints are configured for; each is added where the stored rows lack it.
    /// With `hide_sandbox` the sandbox's rows are left out.
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

    /// Loads the rows anew where `version`, which must have been read before, is not the one in force.
    ///
    /// # Errors
    /// The stored rows cannot be read; the old snapshot stays in force.
    pub async fn reload_if_changed(&self, version: u64) -> Result<(), StoreError> {
        if self.version.load(Ordering::Acquire) == version {
            return Ok(());
        }
        self.reload(version).await?;
        let rows = self.snapshot.load().rows().len();
        tracing::info!(catalogue.version = version, catalogue.rows = rows, "the catalogue was reloaded");
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
