//! The paused providers of a process follow the stored ones.

use std::sync::Arc;
use std::time::Duration;

use adapters_cache::{ChangeWatcher, LivePauses, StalenessBounds};
use domain::audit::{Actor, AuditDraft};
use domain::json::Json;
use domain::routing::{ProviderPauses, ProviderSlug};
use domain::testing::{FixedClock, MemoryStore};

#[tokio::test]
async fn pause_is_in_force_after_the_feed_is_read_and_after_a_start() {
    let store = MemoryStore::new();
    let bounds = StalenessBounds { recheck_after: Duration::from_millis(900), max_stale: Duration::ZERO };
    let watcher = ChangeWatcher::new(store.changes(), Arc::new(FixedClock::default()), bounds);
    watcher.refresh().await.unwrap();
    let live = LivePauses::load(store.provider_pauses(), watcher.providers_version()).await.unwrap();
    let (paused, provider) = (live.paused(), "one".parse::<ProviderSlug>().unwrap());
    let audit = AuditDraft::done(&Actor::system(), "test.change", "subject", Json::object([]));
    for is_paused in [true, false, true] {
        assert!(store.provider_pauses().set(&provider, is_paused, &audit).await.unwrap());
        live.reload_if_changed(watcher.providers_version()).await.unwrap();
        assert_ne!(paused.contains(&provider), is_paused, "the watcher has not looked yet");
        watcher.refresh().await.unwrap();
        live.reload_if_changed(watcher.providers_version()).await.unwrap();
        assert_eq!(paused.contains(&provider), is_paused);
    }
    let restarted = LivePauses::load(store.provider_pauses(), 0).await.unwrap();
    assert!(restarted.paused().contains(&provider));
}
