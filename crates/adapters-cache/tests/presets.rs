//! Cached presets follow the change feed.
#![expect(clippy::unwrap_used, reason = "a helper of a test may fail the test")]

use std::sync::Arc;
use std::time::Duration;

use adapters_cache::{CachedPresets, ChangeWatcher, StalenessBounds};
use domain::authority::Authority;
use domain::change::Change;
use domain::ids::WorkspaceId;
use domain::json::Json;
use domain::model::{Model, Pricing};
use domain::preset::{ManagePresets, PresetChange, PresetConfig, PresetSlug, PresetStatus, Presets};
use domain::testing::{FixedClock, MemoryCatalogue, MemoryStore, SequentialIds};
use domain::workspace::CreateWorkspace;

struct Setup {
    manage: ManagePresets,
    watcher: Arc<ChangeWatcher>,
    cached: CachedPresets,
    workspace: WorkspaceId,
}

impl Setup {
    async fn new() -> Self {
        let (store, ids) = (MemoryStore::new(), Arc::new(SequentialIds::default()));
        let clock = Arc::new(FixedClock::default());
        let create = CreateWorkspace::new(store.workspaces(), clock.clone(), ids.clone());
        let workspace = create.default(&Authority::system()).await.unwrap().id;
        let bounds = StalenessBounds { recheck_after: Duration::from_millis(900), max_stale: Duration::ZERO };
        let watcher = Arc::new(ChangeWatcher::new(store.changes(), clock.clone(), bounds));
        watcher.refresh().await.unwrap();
        let cached = CachedPresets::new(store.presets(), Arc::clone(&watcher), 10);
        let row =
            Model::minimal("a/b".parse().unwrap(), Pricing::per_token("0".parse().unwrap(), "0".parse().unwrap()));
        let catalogue = Arc::new(MemoryCatalogue::new(vec![row]));
        let manage = ManagePresets { presets: store.presets(), workspaces: store.workspaces(), catalogue, clock, ids };
        Self { manage, watcher, cached, workspace }
    }

    async fn add(&self, slug: &str) {
        let text = r#"{"model":"a/b","questions":{"q":{"type":"noul","instructions":"?"}}}"#;
        let config = PresetConfig::read(&Json::parse(text).unwrap()).unwrap();
        self.manage.add_version(&Change::plain(&Authority::system()), None, slug, &config).await.unwrap();
    }

    /// Returns the designated version and the status of the cached preset.
    async fn found(&self, slug: &str) -> Option<(u32, PresetStatus)> {
        let found = self.cached.find_designated(self.workspace, &PresetSlug::try_new(slug).unwrap()).await.unwrap();
        found.map(|found| (found.version.number, found.preset.status))
    }
}

#[tokio::test]
async fn changed_preset_is_read_again_and_others_stay() {
    let setup = Setup::new().await;
    assert_eq!(setup.found("one").await, None);
    for slug in ["one", "two"] {
        setup.add(slug).await;
        assert_eq!(setup.found(slug).await, Some((1, PresetStatus::Active)), "an unknown preset is not cached");
    }
    setup.add("one").await;
    assert_eq!(setup.found("one").await, Some((1, PresetStatus::Active)), "the watcher has not looked yet");
    setup.watcher.refresh().await.unwrap();
    assert_eq!(setup.found("one").await, Some((2, PresetStatus::Active)));
    assert_eq!(setup.found("two").await, Some((1, PresetStatus::Active)));
    let disabled = PresetChange { status: Some(PresetStatus::Disabled), ..PresetChange::default() };
    setup.manage.update(&Change::plain(&Authority::system()), None, "two", &disabled).await.unwrap();
    setup.watcher.refresh().await.unwrap();
    assert_eq!(setup.found("two").await, Some((1, PresetStatus::Disabled)));
    let other = WorkspaceId::from_uuid(SequentialIds::uuid(77));
    assert!(setup.cached.find_designated(other, &PresetSlug::try_new("one").unwrap()).await.unwrap().is_none());
}
