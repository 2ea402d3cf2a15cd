//! Cached destinations follow the stored ones.

use std::sync::Arc;
use std::time::Duration;

use adapters_cache::{ChangeWatcher, LiveDestinations, StalenessBounds};
use chrono::DateTime;
use domain::audit::{Actor, AuditDraft};
use domain::authority::Authority;
use domain::change::Change;
use domain::ids::{DestinationId, WorkspaceId};
use domain::json::Json;
use domain::observability::{Destination, DestinationKind, DestinationRepository, Destinations};
use domain::testing::{FixedClock, MemoryStore, SequentialIds};
use domain::workspace::{CreateWorkspace, WorkspaceChange};
use tokio::task::JoinSet;
use tokio_util::sync::CancellationToken;

const EVERY: Duration = Duration::from_millis(250);

fn audit() -> AuditDraft {
    AuditDraft::done(&Actor::system(), "test.change", "subject", Json::object([]))
}

fn destination(workspace_id: WorkspaceId) -> Destination {
    Destination {
        id: DestinationId::from_uuid(SequentialIds::uuid(77)),
        workspace_id,
        name: "one".to_owned(),
        kind: DestinationKind::Webhook,
        url: "https://example.org".to_owned(),
        headers: Vec::new(),
        signing_secret: None,
        enabled: true,
        privacy_mode: false,
        sampling: 10_000,
        api_key_ids: Some(vec![SequentialIds::key(1)]),
        created_at: DateTime::UNIX_EPOCH,
        updated_at: None,
    }
}

#[tokio::test(start_paused = true)]
async fn change_is_visible_after_reload_in_its_workspace_only() {
    let store = MemoryStore::new();
    let (clock, ids) = (FixedClock::default(), SequentialIds::default());
    let make = CreateWorkspace::new(store.workspaces(), Arc::new(clock.clone()), Arc::new(ids));
    let workspace =
        make.execute(&Change::plain(&Authority::system()), &WorkspaceChange::named("one"), false).await.unwrap().id;
    let other =
        make.execute(&Change::plain(&Authority::system()), &WorkspaceChange::named("two"), false).await.unwrap().id;
    let live = Arc::new(LiveDestinations::load(store.destinations(), 0).await.unwrap());
    assert!(live.for_workspace(workspace).is_none());

    let bounds = StalenessBounds { recheck_after: Duration::from_millis(900), max_stale: Duration::ZERO };
    let watcher = Arc::new(ChangeWatcher::new(store.changes(), Arc::new(clock), bounds));
    let cancelled = CancellationToken::new();
    let (following, watching, until) = (Arc::clone(&live), Arc::clone(&watcher), cancelled.clone());
    let mut followers = JoinSet::new();
    followers.spawn(async move { following.follow(&watching, EVERY, until).await });

    store.destinations().insert(&destination(workspace), 5, &audit()).await.unwrap();
    watcher.refresh().await.unwrap();
    tokio::time::sleep(2 * EVERY).await;
    assert_eq!(live.for_workspace(workspace).unwrap().to_vec(), [destination(workspace)]);
    assert!(live.for_workspace(other).is_none());

    store.destinations().delete(destination(workspace).id, destination(workspace).updated_at, &audit()).await.unwrap();
    tokio::time::sleep(2 * EVERY).await;
    assert!(live.for_workspace(workspace).is_some(), "the watcher has not looked yet");
    watcher.refresh().await.unwrap();
    tokio::time::sleep(2 * EVERY).await;
    assert!(live.for_workspace(workspace).is_none());

    cancelled.cancel();
    followers.join_all().await;
}
