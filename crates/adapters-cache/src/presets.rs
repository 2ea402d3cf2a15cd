//! Cached presets.

use std::sync::Arc;

use async_trait::async_trait;
use domain::error::StoreError;
use domain::ids::WorkspaceId;
use domain::preset::{DesignatedPreset, PresetRepository, PresetSlug, Presets};

use crate::shared_fills::SharedFills;
use crate::watcher::{Changed, DropChanged};
use crate::{ChangeWatcher, Freshness};

/// Finds presets in memory, else in the repository; concurrent look-ups of one preset share one read.
///
/// A change drops the preset that it names, and pending reads that began earlier. Unknown presets are not cached.
pub struct CachedPresets {
    repository: Arc<dyn PresetRepository>,
    watcher: Arc<ChangeWatcher>,
    found: Arc<Found>,
}

type Found = SharedFills<(WorkspaceId, PresetSlug), Arc<DesignatedPreset>>;

impl DropChanged for Found {
    fn drop_changed(&self, changed: &Changed) {
        match changed {
            Changed::Everything => self.drop_where(|_, _| true),
            Changed::Named { presets, .. } if presets.is_empty() => {}
            Changed::Named { presets, .. } => self.drop_where(|_, found| presets.contains(&found.preset.id)),
        }
    }
}

impl CachedPresets {
    /// Creates the cache; `capacity` is the largest number of cached presets.
    pub fn new(repository: Arc<dyn PresetRepository>, watcher: Arc<ChangeWatcher>, capacity: u64) -> Self {
        let found = Arc::new(Found::new(capacity));
        watcher.attach(Arc::clone(&found) as Arc<dyn DropChanged>);
        Self { repository, watcher, found }
    }
}

#[async_trait]
impl Presets for CachedPresets {
    async fn find_designated(
        &self,
        workspace_id: WorkspaceId,
        slug: &PresetSlug,
    ) -> Result<Option<Arc<DesignatedPreset>>, StoreError> {
        // Read before the look-up: all changes up to now have been dropped by then.
        let freshness = self.watcher.freshness().await?;
        let name = (workspace_id, slug.clone());
        if let Some(found) = self.found.get(&name) {
            return Ok(Some(found));
        }
        // A preset that is missing in a partially unavailable store may exist.
        if freshness == Freshness::Stale {
            self.watcher.refresh().await?;
        }
        let look_up = async { Ok(self.repository.find(workspace_id, slug).await?.map(Arc::new)) };
        self.found.fill(name, look_up).await
    }
}
