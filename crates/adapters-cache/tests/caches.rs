//! What is cached dies when it must.
#![expect(clippy::unwrap_used, reason = "a helper of a test may fail the test")]

use std::sync::Arc;
use std::sync::Mutex;
use std::sync::atomic::{AtomicU64, AtomicUsize, Ordering};
use std::time::Duration;

use adapters_cache::{CachedKeyGrants, ChangeWatcher, LiveCatalogue, StalenessBounds};
use async_trait::async_trait;
use domain::api_key::{ApiKeyHash, GrantScope, KeyGrant, KeyGrants};
use domain::audit::AuditDraft;
use domain::change_feed::{ChangeFeed, ChangeVersions};
use domain::error::{ErrorKind, StoreError};
use domain::model::{Catalogue, CatalogueChange, Model, ModelRepository, Pricing};
use domain::money::Price;
use domain::system::Clock;

/// One store that stands for key repository, model repository, change feed and clock.
#[derive(Default)]
struct World {
    keys: AtomicU64,
    catalogue: AtomicU64,
    disabled: Mutex<bool>,
    away: Mutex<bool>,
    look_ups: AtomicUsize,
    slow: Mutex<Duration>,
    feed_reads: AtomicUsize,
    feed_hangs: Mutex<bool>,
    now: Mutex<Duration>,
    rows: Mutex<Vec<Model>>,
}

impl World {
    fn check(&self) -> Result<(), StoreError> {
        if *self.away.lock().unwrap() { Err(StoreError::unavailable("away")) } else { Ok(()) }
    }

    fn pass(&self, time: Duration) {
        *self.now.lock().unwrap() += time;
    }
}

#[async_trait]
impl KeyGrants for World {
    async fn find(&self, hash: &ApiKeyHash) -> Result<Option<Arc<KeyGrant>>, StoreError> {
        self.look_ups.fetch_add(1, Ordering::SeqCst);
        self.check()?;
        let disabled = *self.disabled.lock().unwrap();
        let slow = *self.slow.lock().unwrap();
        tokio::time::sleep(slow).await;
        if hash.bytes()[0] == 0 {
            return Ok(None);
        }
        Ok(Some(Arc::new(KeyGrant { hash: *hash, disabled, expires_at: None, scope: GrantScope::Management })))
    }
}

#[async_trait]
impl ChangeFeed for World {
    async fn versions(&self) -> Result<ChangeVersions, StoreError> {
        self.feed_reads.fetch_add(1, Ordering::SeqCst);
        let hangs = *self.feed_hangs.lock().unwrap();
        if hangs {
            std::future::pending::<()>().await;
        }
        self.check()?;
        let (keys, catalogue) = (self.keys.load(Ordering::SeqCst), self.catalogue.load(Ordering::SeqCst));
        Ok(ChangeVersions { keys, catalogue, ..ChangeVersions::default() })
    }
}

#[async_trait]
impl ModelRepository for World {
    async fn list(&self) -> Result<Vec<Model>, StoreError> {
        self.check()?;
        Ok(self.rows.lock().unwrap().clone())
    }

    async fn apply(&self, _: &CatalogueChange, _: u64, _: &AuditDraft) -> Result<bool, StoreError> {
        Ok(true)
    }
}

impl Clock for World {
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

fn cached() -> (Arc<World>, Arc<ChangeWatcher>, CachedKeyGrants) {
    cached_for(MAX_STALE)
}

fn cached_for(max_stale: Duration) -> (Arc<World>, Arc<ChangeWatcher>, CachedKeyGrants) {
    let world = Arc::new(World::default());
    world.pass(Duration::from_secs(1));
    let bounds = StalenessBounds { recheck_after: STALE, max_stale };
    let watcher = Arc::new(ChangeWatcher::new(Arc::clone(&world) as _, Arc::clone(&world) as _, bounds));
    let grants = CachedKeyGrants::new(Arc::clone(&world) as _, Arc::clone(&watcher), 100);
    (world, watcher, grants)
}

#[tokio::test]
async fn a_key_is_looked_up_once_while_nothing_changes() {
    let (world, watcher, grants) = cached();
    for _ in 0..3 {
        assert!(grants.find(&KEY).await.unwrap().is_some());
        watcher.refresh().await.unwrap();
    }
    assert_eq!(world.look_ups.load(Ordering::SeqCst), 1);
}

#[tokio::test]
async fn a_change_elsewhere_is_seen_after_a_poll_or_at_the_latest_when_the_counters_are_stale() {
    let (world, watcher, grants) = cached();
    grants.find(&KEY).await.unwrap();
    *world.disabled.lock().unwrap() = true;
    world.keys.fetch_add(1, Ordering::SeqCst);
    assert!(!grants.find(&KEY).await.unwrap().unwrap().disabled, "not polled yet");
    watcher.refresh().await.unwrap();
    assert!(grants.find(&KEY).await.unwrap().unwrap().disabled);

    *world.disabled.lock().unwrap() = false;
    world.keys.fetch_add(1, Ordering::SeqCst);
    world.pass(STALE + Duration::from_millis(1));
    assert!(!grants.find(&KEY).await.unwrap().unwrap().disabled, "read again without a poll");
}

#[tokio::test]
async fn a_feed_that_cannot_be_read_is_an_error_once_the_counters_are_stale_and_not_before() {
    let (world, _, grants) = cached_for(Duration::ZERO);
    grants.find(&KEY).await.unwrap();
    *world.away.lock().unwrap() = true;
    assert!(grants.find(&KEY).await.is_ok());
    world.pass(STALE + Duration::from_millis(1));
    assert_eq!(grants.find(&KEY).await.unwrap_err().kind(), ErrorKind::Unavailable);
    *world.away.lock().unwrap() = false;
    assert!(grants.find(&KEY).await.is_ok(), "and it recovers");
}

#[tokio::test]
async fn known_key_is_served_until_max_stale_while_the_feed_cannot_be_read() {
    let (world, watcher, grants) = cached();
    grants.find(&KEY).await.unwrap();
    *world.away.lock().unwrap() = true;
    for _ in 0..3 {
        world.pass(MAX_STALE / 3);
        assert!(watcher.is_usable());
        assert!(grants.find(&KEY).await.unwrap().is_some());
        assert_eq!(grants.find(&OTHER).await.unwrap_err().kind(), ErrorKind::Unavailable, "a key that is not known");
        assert_eq!(grants.find(&UNKNOWN).await.unwrap_err().kind(), ErrorKind::Unavailable, "and never as unknown");
    }
    world.pass(Duration::from_millis(1));
    assert!(!watcher.is_usable());
    assert_eq!(grants.find(&KEY).await.unwrap_err().kind(), ErrorKind::Unavailable);
    *world.away.lock().unwrap() = false;
    *world.disabled.lock().unwrap() = true;
    world.keys.fetch_add(1, Ordering::SeqCst);
    assert!(grants.find(&KEY).await.unwrap().unwrap().disabled, "the changes of the outage count at once");
    assert!(grants.find(&UNKNOWN).await.unwrap().is_none());
}

#[tokio::test]
async fn key_that_is_not_known_is_looked_up_only_once_the_feed_is_read_again() {
    let (world, _, grants) = cached();
    grants.find(&KEY).await.unwrap();
    *world.away.lock().unwrap() = true;
    world.pass(STALE + Duration::from_millis(1));
    grants.find(&KEY).await.unwrap();
    let look_ups = world.look_ups.load(Ordering::SeqCst);
    assert!(grants.find(&OTHER).await.is_err());
    assert_eq!(world.look_ups.load(Ordering::SeqCst), look_ups, "a store that is half away says nothing of keys");
    *world.away.lock().unwrap() = false;
    assert!(grants.find(&OTHER).await.unwrap().is_some(), "at once, without a poll");
}

#[tokio::test]
async fn requests_leave_a_feed_that_failed_a_moment_ago_to_the_poll() {
    let (world, watcher, grants) = cached();
    grants.find(&KEY).await.unwrap();
    *world.away.lock().unwrap() = true;
    world.pass(STALE + Duration::from_millis(1));
    let reads = world.feed_reads.load(Ordering::SeqCst);
    for _ in 0..10 {
        grants.find(&KEY).await.unwrap();
    }
    assert_eq!(world.feed_reads.load(Ordering::SeqCst), reads + 1);
    // A process that was paused does not go by what it met before.
    *world.away.lock().unwrap() = false;
    *world.disabled.lock().unwrap() = true;
    world.keys.fetch_add(1, Ordering::SeqCst);
    world.pass(Duration::from_secs(3));
    assert!(grants.find(&KEY).await.unwrap().unwrap().disabled);
    assert!(!watcher.keys_version().await.unwrap().is_stale);
}

#[tokio::test(start_paused = true)]
async fn feed_that_hangs_is_one_that_cannot_be_read() {
    let (world, watcher, grants) = cached();
    grants.find(&KEY).await.unwrap();
    *world.feed_hangs.lock().unwrap() = true;
    world.pass(STALE + Duration::from_millis(1));
    let began = tokio::time::Instant::now();
    let (known, other, polled) = tokio::join!(grants.find(&KEY), grants.find(&OTHER), watcher.refresh());
    assert!(known.unwrap().is_some() && polled.is_err());
    assert_eq!(other.unwrap_err().kind(), ErrorKind::Unavailable);
    assert!(began.elapsed() <= Duration::from_secs(2), "{:?}", began.elapsed());
}

#[tokio::test]
async fn store_that_was_restored_from_a_backup_is_followed_although_its_counters_fell() {
    let (world, watcher, grants) = cached();
    world.keys.store(10, Ordering::SeqCst);
    watcher.refresh().await.unwrap();
    grants.find(&KEY).await.unwrap();
    world.keys.store(7, Ordering::SeqCst);
    *world.disabled.lock().unwrap() = true;
    watcher.refresh().await.unwrap();
    assert!(grants.find(&KEY).await.unwrap().unwrap().disabled, "the backup says so");
    *world.disabled.lock().unwrap() = false;
    world.keys.store(8, Ordering::SeqCst);
    watcher.refresh().await.unwrap();
    assert!(!grants.find(&KEY).await.unwrap().unwrap().disabled, "a change below the highest counter");
    world.keys.store(10, Ordering::SeqCst);
    *world.disabled.lock().unwrap() = true;
    watcher.refresh().await.unwrap();
    assert!(grants.find(&KEY).await.unwrap().unwrap().disabled, "nothing from before the restore is found again");
}

#[tokio::test]
async fn unknown_keys_and_failures_are_not_kept() {
    let (world, _, grants) = cached();
    assert!(grants.find(&UNKNOWN).await.unwrap().is_none());
    assert!(grants.find(&UNKNOWN).await.unwrap().is_none());
    assert_eq!(world.look_ups.load(Ordering::SeqCst), 2);
    *world.away.lock().unwrap() = true;
    assert!(grants.find(&KEY).await.is_err());
    *world.away.lock().unwrap() = false;
    assert!(grants.find(&KEY).await.unwrap().is_some());
}

#[tokio::test(start_paused = true)]
async fn many_askers_ask_once_and_a_look_up_overtaken_by_a_change_is_not_kept() {
    let (world, watcher, grants) = cached();
    *world.slow.lock().unwrap() = Duration::from_millis(100);
    let (first, second, ()) = tokio::join!(grants.find(&KEY), grants.find(&KEY), async {
        tokio::time::sleep(Duration::from_millis(50)).await;
        *world.disabled.lock().unwrap() = true;
        world.keys.fetch_add(1, Ordering::SeqCst);
        watcher.refresh().await.unwrap();
    });
    assert!(!first.unwrap().unwrap().disabled && !second.unwrap().unwrap().disabled, "read before the change");
    assert_eq!(world.look_ups.load(Ordering::SeqCst), 1);
    assert!(
        grants.find(&KEY).await.unwrap().unwrap().disabled,
        "what was read before the change is not served after it"
    );
}

fn row(id: &str) -> Model {
    Model::minimal(id.parse().unwrap(), Pricing::per_token(Price::ZERO, Price::ZERO))
}

fn ids(catalogue: &LiveCatalogue) -> Vec<String> {
    catalogue.snapshot().rows().iter().map(|row| row.id.to_string()).collect()
}

#[tokio::test]
async fn the_catalogue_is_swapped_whole_when_its_counter_moves() {
    let world = Arc::new(World::default());
    *world.rows.lock().unwrap() = vec![row("a/one"), row("sandbox/x")];
    let overlay = vec![row("a/one"), row("a/own")];
    let catalogue = LiveCatalogue::load(Arc::clone(&world) as _, &*world, overlay.clone(), false).await.unwrap();
    assert_eq!(
        ids(&catalogue),
        ["a/one", "sandbox/x", "a/own"],
        "configured models that the catalogue lacks get a row"
    );
    let before = catalogue.snapshot();

    *world.rows.lock().unwrap() = vec![row("a/two")];
    catalogue.reload_if_changed(0).await.unwrap();
    assert!(Arc::ptr_eq(&before, &catalogue.snapshot()), "nothing changed, nothing was read");
    catalogue.reload_if_changed(1).await.unwrap();
    assert_eq!(ids(&catalogue), ["a/two", "a/one", "a/own"]);
    assert_eq!(before.rows().len(), 3, "an old snapshot stays as it was");

    *world.away.lock().unwrap() = true;
    assert!(catalogue.reload_if_changed(2).await.is_err());
    assert_eq!(ids(&catalogue).len(), 3, "the old one stays in force");

    *world.away.lock().unwrap() = false;
    *world.rows.lock().unwrap() = vec![row("sandbox/x")];
    let without = LiveCatalogue::load(Arc::clone(&world) as _, &*world, Vec::new(), true).await.unwrap();
    assert!(ids(&without).is_empty());
}
