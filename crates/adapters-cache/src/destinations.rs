//! The destinations of every workspace, replaced as a whole.

use std::collections::HashMap;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use arc_swap::ArcSwap;
use domain::error::StoreError;
use domain::ids::WorkspaceId;
use domain::observability::{Destination, DestinationRepository, Destinations};
use tokio_util::sync::CancellationToken;

use crate::ChangeWatcher;

type ByWorkspace = HashMap<WorkspaceId, Arc<[Destination]>>;

/// Holds the current destinations; a reload replaces them for later readers.
pub struct LiveDestinations {
    repository: Arc<dyn DestinationRepository>,
    snapshot: ArcSwap<ByWorkspace>,
    version: AtomicU64,
}

impl LiveDestinations {
    /// Loads the destinations. `version` is the watcher's version, read before
    /// ([`ChangeWatcher::destinations_version`]).
    ///
    /// # Errors
    /// The store cannot be read.
    pub async fn load(repository: Arc<dyn DestinationRepository>, version: u64) -> Result<Self, StoreError> {
        let loaded = Self { repository, snapshot: ArcSwap::default(), version: AtomicU64::new(0) };
        loaded.reload(version).await?;
        Ok(loaded)
    }

    /// Reloads after each change that the watcher sees, until cancelled. A failed load is retried in the next cycle and
    /// logged once.
    pub async fn follow(&self, watcher: &ChangeWatcher, every: Duration, cancelled: CancellationToken) {
        let mut away = false;
        loop {
            let version = watcher.destinations_version();
            if version != self.version.load(Ordering::Acquire) {
                match self.reload(version).await {
                    Ok(()) => away = false,
                    Err(error) if !away => {
                        away = true;
                        let error = &error as &dyn std::error::Error;
                        tracing::warn!(error, "trace destinations not readable, retrying");
                    }
                    Err(_) => {}
                }
            }
            tokio::select! {
                () = cancelled.cancelled() => return,
                () = tokio::time::sleep(every) => {}
            }
        }
    }

    /// Reloads; `version` must have been read before.
    async fn reload(&self, version: u64) -> Result<(), StoreError> {
        let mut by_workspace: HashMap<WorkspaceId, Vec<Destination>> = HashMap::new();
        for destination in self.repository.list(None).await? {
            by_workspace.entry(destination.workspace_id).or_default().push(destination);
        }
        let shared = by_workspace.into_iter().map(|(id, own)| (id, Arc::from(own)));
        self.snapshot.store(Arc::new(shared.collect()));
        self.version.store(version, Ordering::Release);
        Ok(())
    }
}

impl Destinations for LiveDestinations {
    fn for_workspace(&self, workspace_id: WorkspaceId) -> Option<Arc<[Destination]>> {
        self.snapshot.load().get(&workspace_id).cloned()
    }
}
