//! Cached data is dropped when it changes.
#![expect(clippy::unwrap_used, reason = "a helper of a test may fail the test")]

use std::collections::{HashMap, HashSet};
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use adapters_cache::{CachedKeyGrants, ChangeWatcher, Freshness, LiveCatalogue, StalenessBounds};
use async_trait::async_trait;
use domain::api_key::{GrantCache, GrantScope, KeyGrant, KeyGrants};
use domain::audit::AuditDraft;
use domain::authority::ManagementScope;
use domain::change_feed::{Change, ChangeFeed, ChangePosition, ChangeSubject, Changes};
use domain::error::{ErrorKind, StoreError};
use domain::ids::{GuardrailId, WorkspaceId};
use domain::model::{Catalogue, CatalogueChange, Model, ModelRepository, Pricing};
use domain::money::Price;
use domain::rate::RateLimits;
use domain::secret::ApiKeyHash;
use domain::system::Clock;
use domain::testing::SequentialIds;

/// One fake for the key repository, the model repository, the change feed and the clock.
#[derive(Default)]
struct FakeStore {
    changes: Mutex<Vec<Change>>,
    disabled: Mutex<bool>,
    /// Keys with this first byte belong to a workspace, all others are management keys.
    workspaces: Mutex<HashMap<u8, WorkspaceId>>,
    away: Mutex<bool>,
    look_ups: Mutex<Vec<ApiKeyHash>>,
    slow: Mutex<Duration>,
    feed_reads: AtomicUsize,
    feed_hangs: Mutex<bool>,
    now: Mutex<Duration>,
    rows: Mutex<Vec<Model>>,
}

impl FakeStore {
    fn check(&self) -> Result<(), StoreError> {
        if *self.away.lock().unwrap() { Err(StoreError::unavailable("away")) } else { Ok(()) }
    }

    fn pass(&self, time: Duration) {
        *self.now.lock().unwrap() += time;
    }

    /// Appends a change to the feed.
    fn change(&self, subject: ChangeSubject) {
        let mut changes = self.changes.lock().unwrap();
        let number = changes.len() as u64 + 1;
        changes.push(Change { position: ChangePosition { number, mark: 7 }, subject });
    }

    /// Replaces the feed by another one with a number of other changes.
    fn restore(&self, count: usize, mark: i64) {
        self.changes.lock().unwrap().clear();
        for _ in 0..count {
            self.change(ChangeSubject::Destinations);
        }
        self.changes.lock().unwrap().iter_mut().for_each(|change| change.position.mark = mark);
    }

    /// Returns the keys that were looked up since the last call.
    fn take_look_ups(&self) -> Vec<ApiKeyHash> {
        std::mem::take(&mut *self.look_ups.lock().unwrap())
    }
}

#[async_trait]
impl KeyGrants for FakeStore {
    async fn find(&self, hash: &ApiKeyHash) -> Result<Option<Arc<KeyGrant>>, StoreError> {
        self.look_ups.lock().unwrap().push(*hash);
        self.check()?;
        let disabled = *self.disabled.lock().unwrap();
        let slow = *self.slow.lock().unwrap();
        tokio::time::sleep(slow).await;
        if hash.bytes()[0] == 0 {
            return Ok(None);
        }
        let scope = match self.workspaces.lock().unwrap().get(&hash.bytes()[0]) {
            None => GrantScope::Management(ManagementScope::UNRESTRICTED),
            Some(workspace_id) => GrantScope::Inference {
                workspace_id: *workspace_id,
                workspace_suspended: false,
                owner_id: None,
                guardrail_id: None,
                workspace_guardrail_id: None,
                limited: false,
                rates: RateLimits::default(),
                workspace_rates: RateLimits::default(),
            },
        };
        Ok(Some(Arc::new(KeyGrant { id: SequentialIds::key(1), hash: *hash, disabled, expires_at: None, scope })))
    }
}

#[async_trait]
impl ChangeFeed for FakeStore {
    async fn changes_since(&self, last: Option<ChangePosition>) -> Result<Changes, StoreError> {
        self.feed_reads.fetch_add(1, Ordering::SeqCst);
        let hangs = *self.feed_hangs.lock().unwrap();
        if hangs {
            std::future::pending::<()>().await;
        }
        self.check()?;
        let first = Change { position: ChangePosition { number: 0, mark: 0 }, subject: ChangeSubject::Everything };
        let all: Vec<Change> = [first].into_iter().chain(self.changes.lock().unwrap().iter().copied()).collect();
        let newest = all[all.len() - 1].position;
        let after = |last: ChangePosition| all.into_iter().filter(|row| row.position.number >= last.number).collect();
        let continued = last.and_then(|last| Changes::from_feed(last, after(last)));
        Ok(continued.unwrap_or(Changes::StartOver(newest)))
    }
}

#[async_trait]
impl ModelRepository for FakeStore {
    async fn list(&self) -> Result<Vec<Model>, StoreError> {
        self.check()?;
        Ok(self.rows.lock().unwrap().clone())
    }

    async fn version(&self) -> Result<u64, StoreError> {
        Ok(0)
    }

    async fn apply(&self, _: &CatalogueChange, _: u64, _: &AuditDraft) -> Result<bool, StoreError> {
        Ok(true)
    }
}

impl Clock for FakeStore {
    fn now(&self) -> chrono::DateTime<chrono::Utc> {
        chrono::DateTime::UNIX_EPOCH
    }

    fn monotonic(&self) -> Duration {
        *self.now.lock().unwrap()
    }
}

const KEY: ApiKeyHash = ApiKeyHash::from_bytes([7; 32]);
const OTHER: ApiKeyHash = ApiKeyHash::from_bytes([8; 32]);
const UNKNOWN: ApiKeyHash = ApiKeyHash::from_bytes([0; 32]);
const STALE: Duration = Duration::from_millis(800);

const MAX_STALE: Duration = Duration::from_secs(30);

fn cached() -> (Arc<FakeStore>, Arc<ChangeWatcher>, CachedKeyGrants) {
    cached_for(MAX_STALE)
}

fn cached_for(max_stale: Duration) -> (Arc<FakeStore>, Arc<ChangeWatcher>, CachedKeyGrants) {
    let fake = Arc::new(FakeStore::default());
    fake.pass(Duration::from_secs(1));
    let bounds = StalenessBounds { recheck_after: STALE, max_stale };
    let watcher = Arc::new(ChangeWatcher::new(Arc::clone(&fake) as _, Arc::clone(&fake) as _, bounds));
    let grants = CachedKeyGrants::new(Arc::clone(&fake) as _, Arc::clone(&watcher), 1_000);
    (fake, watcher, grants)
}

#[tokio::test]
async fn grants_are_cached_while_unchanged() {
    let (fake, watcher, grants) = cached();
    for _ in 0..3 {
        assert!(grants.find(&KEY).await.unwrap().is_some());
        watcher.refresh().await.unwrap();
    }
    assert_eq!(fake.take_look_ups().len(), 1);
}

#[tokio::test]
async fn invalidate_applies_change_without_poll() {
    let (fake, _, grants) = cached();
    grants.find(&KEY).await.unwrap();
    *fake.disabled.lock().unwrap() = true;
    fake.change(ChangeSubject::Key(KEY));
    assert!(!grants.find(&KEY).await.unwrap().unwrap().disabled);
    grants.invalidate(&KEY).await.unwrap();
    assert!(grants.find(&KEY).await.unwrap().unwrap().disabled);
    fake.take_look_ups();
    *fake.away.lock().unwrap() = true;
    assert!(grants.invalidate(&KEY).await.is_err());
    *fake.away.lock().unwrap() = false;
    assert!(grants.find(&KEY).await.unwrap().is_some());
    assert_eq!(fake.take_look_ups().len(), 1, "dropped although the feed could not be read");
}

#[tokio::test]
async fn change_elsewhere_is_applied_after_poll_or_recheck() {
    let (fake, watcher, grants) = cached();
    grants.find(&KEY).await.unwrap();
    *fake.disabled.lock().unwrap() = true;
    fake.change(ChangeSubject::Key(KEY));
    assert!(!grants.find(&KEY).await.unwrap().unwrap().disabled, "not polled yet");
    watcher.refresh().await.unwrap();
    assert!(grants.find(&KEY).await.unwrap().unwrap().disabled);

    *fake.disabled.lock().unwrap() = false;
    fake.change(ChangeSubject::Key(KEY));
    fake.pass(STALE + Duration::from_millis(1));
    assert!(!grants.find(&KEY).await.unwrap().unwrap().disabled, "read again without a poll");
}

#[tokio::test]
async fn unreadable_feed_fails_only_after_max_stale() {
    let (fake, _, grants) = cached_for(Duration::ZERO);
    grants.find(&KEY).await.unwrap();
    *fake.away.lock().unwrap() = true;
    assert!(grants.find(&KEY).await.is_ok());
    fake.pass(STALE + Duration::from_millis(1));
    assert_eq!(grants.find(&KEY).await.unwrap_err().kind(), ErrorKind::Unavailable);
    *fake.away.lock().unwrap() = false;
    assert!(grants.find(&KEY).await.is_ok(), "and it recovers");
}

#[tokio::test]
async fn known_key_is_served_until_max_stale_without_feed() {
    let (fake, watcher, grants) = cached();
    grants.find(&KEY).await.unwrap();
    *fake.away.lock().unwrap() = true;
    for _ in 0..3 {
        fake.pass(MAX_STALE / 3);
        assert!(watcher.is_usable());
        assert!(grants.find(&KEY).await.unwrap().is_some());
        assert_eq!(grants.find(&OTHER).await.unwrap_err().kind(), ErrorKind::Unavailable, "a key that is not known");
        assert_eq!(grants.find(&UNKNOWN).await.unwrap_err().kind(), ErrorKind::Unavailable, "and never as unknown");
    }
    fake.pass(Duration::from_millis(1));
    assert!(!watcher.is_usable());
    assert_eq!(grants.find(&KEY).await.unwrap_err().kind(), ErrorKind::Unavailable);
    *fake.away.lock().unwrap() = false;
    *fake.disabled.lock().unwrap() = true;
    fake.change(ChangeSubject::Key(KEY));
    assert!(grants.find(&KEY).await.unwrap().unwrap().disabled, "the changes of the outage count at once");
    assert!(grants.find(&UNKNOWN).await.unwrap().is_none());
}

#[tokio::test]
async fn unknown_key_fails_until_feed_is_readable() {
    let (fake, _, grants) = cached();
    grants.find(&KEY).await.unwrap();
    *fake.away.lock().unwrap() = true;
    fake.pass(STALE + Duration::from_millis(1));
    grants.find(&KEY).await.unwrap();
    fake.take_look_ups();
    assert!(grants.find(&OTHER).await.is_err());
    assert_eq!(fake.take_look_ups(), [], "a store that is half away says nothing of keys");
    *fake.away.lock().unwrap() = false;
    assert!(grants.find(&OTHER).await.unwrap().is_some(), "at once, without a poll");
}

#[tokio::test]
async fn requests_do_not_read_feed_after_recent_failure() {
    let (fake, watcher, grants) = cached();
    grants.find(&KEY).await.unwrap();
    *fake.away.lock().unwrap() = true;
    fake.pass(STALE + Duration::from_millis(1));
    let reads = fake.feed_reads.load(Ordering::SeqCst);
    for _ in 0..10 {
        grants.find(&KEY).await.unwrap();
    }
    assert_eq!(fake.feed_reads.load(Ordering::SeqCst), reads + 1);
    // A process that was paused must not rely on the earlier failure.
    *fake.away.lock().unwrap() = false;
    *fake.disabled.lock().unwrap() = true;
    fake.change(ChangeSubject::Key(KEY));
    fake.pass(Duration::from_secs(3));
    assert!(grants.find(&KEY).await.unwrap().unwrap().disabled);
    assert_eq!(watcher.freshness().await.unwrap(), Freshness::Current);
}

#[tokio::test(start_paused = true)]
async fn hanging_feed_counts_as_unreadable() {
    let (fake, watcher, grants) = cached();
    grants.find(&KEY).await.unwrap();
    *fake.feed_hangs.lock().unwrap() = true;
    fake.pass(STALE + Duration::from_millis(1));
    let began = tokio::time::Instant::now();
    let (known, other, polled) = tokio::join!(grants.find(&KEY), grants.find(&OTHER), watcher.refresh());
    assert!(known.unwrap().is_some() && polled.is_err());
    assert_eq!(other.unwrap_err().kind(), ErrorKind::Unavailable);
    assert!(began.elapsed() <= Duration::from_secs(2), "{:?}", began.elapsed());
}

/// Returns many cached keys of two workspaces.
async fn many_cached(fake: &FakeStore, grants: &CachedKeyGrants) -> [Vec<ApiKeyHash>; 2] {
    let of = |first: u8| (0..100).map(|number| key(first, number)).collect::<Vec<_>>();
    let keys = [of(1), of(2)];
    for first in [1, 2] {
        fake.workspaces.lock().unwrap().insert(first, workspace_id(first.into()));
    }
    for key in keys.iter().flatten() {
        grants.find(key).await.unwrap();
    }
    assert_eq!(fake.take_look_ups().len(), 200);
    keys
}

fn key(first: u8, number: u8) -> ApiKeyHash {
    let mut bytes = [number; 32];
    bytes[0] = first;
    ApiKeyHash::from_bytes(bytes)
}

fn workspace_id(number: u64) -> WorkspaceId {
    WorkspaceId::from_uuid(SequentialIds::uuid(number))
}

#[tokio::test]
async fn change_drops_only_named_keys() {
    let (fake, watcher, grants) = cached();
    let [ours, theirs] = many_cached(&fake, &grants).await;
    let named = |subjects: &[ChangeSubject]| subjects.iter().for_each(|subject| fake.change(*subject));
    let cases: [(&str, Vec<ChangeSubject>, Vec<ApiKeyHash>); 5] = [
        ("a key is created", vec![ChangeSubject::Key(OTHER)], vec![]),
        ("a key is disabled", vec![ChangeSubject::Key(ours[7])], vec![ours[7]]),
        ("two keys change at once", [ours[3], theirs[4]].map(ChangeSubject::Key).into(), vec![ours[3], theirs[4]]),
        (
            "other caches change",
            vec![
                ChangeSubject::Catalogue,
                ChangeSubject::Destinations,
                ChangeSubject::Guardrail(GuardrailId::from_uuid(SequentialIds::uuid(5))),
                ChangeSubject::Workspace(workspace_id(3)),
            ],
            vec![],
        ),
        ("a workspace changes", vec![ChangeSubject::Workspace(workspace_id(2))], theirs.clone()),
    ];
    for (what, subjects, expected) in cases {
        named(&subjects);
        watcher.refresh().await.unwrap();
        for _ in 0..2 {
            for key in ours.iter().chain(&theirs) {
                grants.find(key).await.unwrap();
            }
        }
        assert_eq!(fake.take_look_ups(), expected, "{what}");
    }
    fake.change(ChangeSubject::Everything);
    watcher.refresh().await.unwrap();
    for key in ours.iter().chain(&theirs) {
        grants.find(key).await.unwrap();
    }
    assert_eq!(fake.take_look_ups().len(), 200);
}

#[tokio::test]
async fn restored_store_drops_everything_once() {
    let (fake, watcher, grants) = cached();
    fake.restore(10, 1);
    watcher.refresh().await.unwrap();
    let [ours, _] = many_cached(&fake, &grants).await;
    for (count, mark, what) in [(7, 1, "fewer changes"), (10, 2, "as many"), (12, 3, "more")] {
        fake.restore(count, mark);
        for _ in 0..3 {
            watcher.refresh().await.unwrap();
            for key in &ours {
                grants.find(key).await.unwrap();
            }
        }
        assert_eq!(fake.take_look_ups(), ours, "{what}");
    }
    fake.change(ChangeSubject::Key(ours[1]));
    watcher.refresh().await.unwrap();
    for key in &ours {
        grants.find(key).await.unwrap();
    }
    assert_eq!(fake.take_look_ups(), ours[1..2], "the feed continues");
}

#[tokio::test]
async fn unknown_keys_and_failures_are_not_cached() {
    let (fake, _, grants) = cached();
    assert!(grants.find(&UNKNOWN).await.unwrap().is_none());
    assert!(grants.find(&UNKNOWN).await.unwrap().is_none());
    assert_eq!(fake.take_look_ups().len(), 2);
    *fake.away.lock().unwrap() = true;
    assert!(grants.find(&KEY).await.is_err());
    *fake.away.lock().unwrap() = false;
    assert!(grants.find(&KEY).await.unwrap().is_some());
}

/// The change happens during the look-up, and the look-up ends after the change was seen.
#[tokio::test(start_paused = true)]
async fn look_up_overtaken_by_change_is_not_cached() {
    let (fake, watcher, grants) = cached();
    fake.workspaces.lock().unwrap().insert(KEY.bytes()[0], workspace_id(1));
    watcher.refresh().await.unwrap();
    *fake.slow.lock().unwrap() = Duration::from_millis(100);
    for subject in [ChangeSubject::Key(KEY), ChangeSubject::Workspace(workspace_id(1)), ChangeSubject::Everything] {
        *fake.disabled.lock().unwrap() = false;
        let (first, second, ()) = tokio::join!(grants.find(&KEY), grants.find(&KEY), async {
            tokio::time::sleep(Duration::from_millis(50)).await;
            *fake.disabled.lock().unwrap() = true;
            fake.change(subject);
            watcher.refresh().await.unwrap();
        });
        assert!(!first.unwrap().unwrap().disabled && !second.unwrap().unwrap().disabled, "read before the change");
        assert_eq!(fake.take_look_ups().len(), 1, "both by one look");
        assert!(grants.find(&KEY).await.unwrap().unwrap().disabled, "{subject:?}");
        fake.change(ChangeSubject::Key(KEY));
        watcher.refresh().await.unwrap();
        fake.take_look_ups();
    }
    let (found, ()) = tokio::join!(grants.find(&KEY), async {
        tokio::time::sleep(Duration::from_millis(50)).await;
        fake.change(ChangeSubject::Key(OTHER));
        watcher.refresh().await.unwrap();
    });
    found.unwrap().unwrap();
    grants.find(&KEY).await.unwrap().unwrap();
    assert_eq!(fake.take_look_ups(), [KEY], "a change of another key discards nothing");
}

fn row(id: &str) -> Model {
    Model::minimal(id.parse().unwrap(), Pricing::per_token(Price::ZERO, Price::ZERO))
}

fn ids(catalogue: &LiveCatalogue) -> Vec<String> {
    catalogue.snapshot().rows().iter().map(|row| row.id.to_string()).collect()
}

#[tokio::test]
async fn catalogue_reloads_when_version_changes() {
    let fake = Arc::new(FakeStore::default());
    *fake.rows.lock().unwrap() = vec![row("a/one"), row("sandbox/x")];
    let overlay = vec![row("a/one"), row("a/own")];
    let sandbox = HashSet::from(["sandbox/x".parse().unwrap()]);
    let catalogue = LiveCatalogue::load(Arc::clone(&fake) as _, 0, overlay.clone(), sandbox).await.unwrap();
    assert_eq!(
        ids(&catalogue),
        ["a/one", "sandbox/x", "a/own"],
        "configured models that the catalogue lacks get a row"
    );
    let before = catalogue.snapshot();

    *fake.rows.lock().unwrap() = vec![row("a/two")];
    catalogue.reload_if_changed(0).await.unwrap();
    assert!(Arc::ptr_eq(&before, &catalogue.snapshot()), "nothing changed, nothing was read");
    catalogue.reload_if_changed(1).await.unwrap();
    assert_eq!(ids(&catalogue), ["a/two", "a/one", "a/own"]);
    assert_eq!(before.rows().len(), 3, "an old snapshot stays as it was");

    *fake.away.lock().unwrap() = true;
    assert!(catalogue.reload_if_changed(2).await.is_err());
    assert_eq!(ids(&catalogue).len(), 3, "the old one stays in force");

    *fake.away.lock().unwrap() = false;
}

#[tokio::test]
async fn catalogue_has_free_rows_of_enabled_sandbox_models_only() {
    let fake = Arc::new(FakeStore::default());
    let priced = Pricing::per_token("0.00000004".parse().unwrap(), Price::ZERO);
    let rows = ["sandbox/x", "sandbox/y", "a/one"];
    *fake.rows.lock().unwrap() =
        rows.into_iter().map(|id| Model::minimal(id.parse().unwrap(), priced.clone())).collect();
    let sandbox = HashSet::from(["sandbox/x".parse().unwrap()]);
    let catalogue = LiveCatalogue::load(Arc::clone(&fake) as _, 0, Vec::new(), sandbox).await.unwrap();
    assert_eq!(ids(&catalogue), ["sandbox/x", "a/one"]);
    let shown: Vec<String> = catalogue.snapshot().rows().iter().map(|row| row.pricing.prompt.to_string()).collect();
    assert_eq!(shown, ["0", "0.00000004"]);
}

#[tokio::test]
async fn watcher_counts_changes_of_the_catalogue_and_of_destinations() {
    let (fake, watcher, _) = cached();
    watcher.refresh().await.unwrap();
    let versions = || (watcher.catalogue_version(), watcher.destinations_version());
    let mut before = versions();
    for (subject, catalogue, destinations) in [
        (ChangeSubject::Key(KEY), false, false),
        (ChangeSubject::Catalogue, true, false),
        (ChangeSubject::Destinations, false, true),
        (ChangeSubject::Everything, true, true),
    ] {
        fake.change(subject);
        assert_eq!(versions(), before, "not read yet");
        watcher.refresh().await.unwrap();
        assert_eq!((versions().0 != before.0, versions().1 != before.1), (catalogue, destinations), "{subject:?}");
        before = versions();
        watcher.refresh().await.unwrap();
        assert_eq!(versions(), before);
    }
}
