//! The paused providers of this process, replaced as a whole.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use domain::error::StoreError;
use domain::routing::{PausedProviders, ProviderPauses};

/// Keeps the paused providers of this process as they are stored.
pub struct LivePauses {
    stored: Arc<dyn ProviderPauses>,
    paused: PausedProviders,
    version: AtomicU64,
}

impl LivePauses {
    /// Loads the paused providers. `version` is the watcher's version, read before
    /// ([`crate::ChangeWatcher::providers_version`]).
    ///
    /// # Errors
    /// The store cannot be read.
    pub async fn load(stored: Arc<dyn ProviderPauses>, version: u64) -> Result<Self, StoreError> {
        let live = Self { stored, paused: PausedProviders::default(), version: AtomicU64::new(0) };
        live.reload(version).await?;
        Ok(live)
    }

    /// Returns the paused providers. Clones follow reloads.
    pub fn paused(&self) -> PausedProviders {
        self.paused.clone()
    }

    /// Reloads if `version`, which must have been read before, differs from the current one.
    ///
    /// # Errors
    /// The store cannot be read; the old state stays.
    pub async fn reload_if_changed(&self, version: u64) -> Result<(), StoreError> {
        if self.version.load(Ordering::Acquire) == version { Ok(()) } else { self.reload(version).await }
    }

    async fn reload(&self, version: u64) -> Result<(), StoreError> {
        self.paused.replace(self.stored.list().await?);
        self.version.store(version, Ordering::Release);
        Ok(())
    }
}
