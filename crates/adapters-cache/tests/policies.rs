//! Changes of guardrails are applied in time, and a guardrail is never lost.
#![expect(clippy::unwrap_used, reason = "a helper of a test may fail the test")]

use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use adapters_cache::{CachedPolicies, ChangeWatcher, StalenessBounds};
use async_trait::async_trait;
use chrono::DateTime;
use domain::api_key::{ApiKeyHash, GrantScope, InferenceKey, KeyGrant, KeyGrants, KeyReference};
use domain::audit::{Actor, AuditDraft};
use domain::change_feed::{Change, ChangeFeed, ChangePosition, ChangeSubject, Changes};
use domain::error::{ErrorKind, StoreError};
use domain::guardrail::{
    ContentFilter, FilterAction, Guardrail, GuardrailName, GuardrailPolicies, GuardrailRepository, GuardrailRules,
    GuardrailVersion, Policy,
};
use domain::ids::{GuardrailId, WorkspaceId};
use domain::rate::RateLimits;
use domain::system::Clock;
use domain::testing::SequentialIds;

const STALE: Duration = Duration::from_millis(800);
const MAX_STALE: Duration = Duration::from_secs(30);
const KEY: ApiKeyHash = ApiKeyHash::from_bytes([7; 32]);

/// One fake for guardrails, grants, the change feed and the clock.
#[derive(Default)]
struct World {
    changes: Mutex<Vec<Change>>,
    guardrails: Mutex<Vec<Guardrail>>,
    /// The current guardrails of the key; `None` if the key does not exist.
    grant: Mutex<Option<(Option<GuardrailId>, Option<GuardrailId>)>>,
    away: Mutex<bool>,
    slow: Mutex<Duration>,
    reads: AtomicUsize,
    now: Mutex<Duration>,
}

impl World {
    fn check(&self) -> Result<(), StoreError> {
        if *self.away.lock().unwrap() { Err(StoreError::unavailable("away")) } else { Ok(()) }
    }

    /// Changes a guardrail, and appends the change to the feed.
    fn change(&self, number: u64, change: impl FnOnce(&mut Vec<Guardrail>)) {
        change(&mut self.guardrails.lock().unwrap());
        self.write(ChangeSubject::Guardrail(id(number)));
    }

    /// Appends a change to the feed.
    fn write(&self, subject: ChangeSubject) {
        let mut changes = self.changes.lock().unwrap();
        let number = changes.len() as u64 + 1;
        changes.push(Change { position: ChangePosition { number, mark: 7 }, subject });
    }

    fn reads(&self) -> usize {
        self.reads.load(Ordering::SeqCst)
    }

    fn pass(&self, time: Duration) {
        *self.now.lock().unwrap() += time;
    }
}

#[async_trait]
impl ChangeFeed for World {
    async fn changes_since(&self, last: Option<ChangePosition>) -> Result<Changes, StoreError> {
        self.check()?;
        let changes = self.changes.lock().unwrap();
        let newest = changes.last().map_or(ChangePosition { number: 0, mark: 0 }, |change| change.position);
        let since = |last: ChangePosition| changes.iter().filter(move |row| row.position.number > last.number);
        Ok(last.map_or(Changes::StartOver(newest), |last| Changes::Continued(since(last).copied().collect())))
    }
}

#[async_trait]
impl KeyGrants for World {
    async fn find(&self, hash: &ApiKeyHash) -> Result<Option<Arc<KeyGrant>>, StoreError> {
        self.check()?;
        let Some((workspace_guardrail_id, guardrail_id)) = *self.grant.lock().unwrap() else { return Ok(None) };
        let scope = GrantScope::Inference {
            workspace_id: WorkspaceId::from_uuid(SequentialIds::uuid(1)),
            workspace_suspended: false,
            owner_id: None,
            guardrail_id,
            workspace_guardrail_id,
            limited: false,
            rates: RateLimits::default(),
            workspace_rates: RateLimits::default(),
        };
        Ok(Some(Arc::new(KeyGrant {
            id: SequentialIds::key(1),
            hash: *hash,
            disabled: false,
            expires_at: None,
            scope,
        })))
    }
}

impl Clock for World {
    fn now(&self) -> DateTime<chrono::Utc> {
        DateTime::UNIX_EPOCH
    }

    fn monotonic(&self) -> Duration {
        *self.now.lock().unwrap()
    }
}

/// The result of methods that these tests do not use.
fn not_asked<T>() -> Result<T, StoreError> {
    Err(StoreError::unavailable("not asked"))
}

#[async_trait]
impl GuardrailRepository for World {
    async fn find(&self, id: GuardrailId) -> Result<Option<Guardrail>, StoreError> {
        self.reads.fetch_add(1, Ordering::SeqCst);
        self.check()?;
        let found = self.guardrails.lock().unwrap().iter().find(|stored| stored.id == id).cloned();
        let slow = *self.slow.lock().unwrap();
        tokio::time::sleep(slow).await;
        Ok(found)
    }

    async fn insert(&self, _: &Guardrail, _: &AuditDraft) -> Result<bool, StoreError> {
        not_asked()
    }

    async fn insert_default(&self, _: &Guardrail, _: &AuditDraft) -> Result<bool, StoreError> {
        not_asked()
    }

    async fn update(&self, _: &Guardrail, _: &AuditDraft) -> Result<bool, StoreError> {
        not_asked()
    }

    async fn update_default(&self, _: &Guardrail, _: bool, _: &AuditDraft) -> Result<bool, StoreError> {
        not_asked()
    }

    async fn list(&self, _: WorkspaceId) -> Result<Vec<Guardrail>, StoreError> {
        not_asked()
    }

    async fn versions(&self, _: GuardrailId) -> Result<Vec<GuardrailVersion>, StoreError> {
        not_asked()
    }

    async fn delete(&self, _: GuardrailId, _: &AuditDraft) -> Result<bool, StoreError> {
        not_asked()
    }

    async fn set_default(&self, _: WorkspaceId, _: Option<GuardrailId>, _: &AuditDraft) -> Result<bool, StoreError> {
        not_asked()
    }

    async fn assign_keys(&self, _: GuardrailId, _: &[KeyReference], _: &Actor) -> Result<Option<u64>, StoreError> {
        not_asked()
    }

    async fn count_keys(&self, _: GuardrailId) -> Result<u64, StoreError> {
        not_asked()
    }
}

fn id(number: u64) -> GuardrailId {
    GuardrailId::from_uuid(SequentialIds::uuid(number))
}

fn guardrail(number: u64, name: &str) -> Guardrail {
    Guardrail {
        id: id(number),
        workspace_id: WorkspaceId::from_uuid(SequentialIds::uuid(1)),
        name: GuardrailName::try_new(name).unwrap(),
        budget: None,
        rules: GuardrailRules::default(),
        version: 1,
        created_at: DateTime::UNIX_EPOCH,
        updated_at: None,
    }
}

/// Returns a key with guardrail 1 of its workspace and its own guardrail 2.
fn key() -> InferenceKey {
    InferenceKey::for_tests(SequentialIds::key(1), WorkspaceId::from_uuid(SequentialIds::uuid(1)))
        .with_hash(KEY)
        .under(Some(id(1)), Some(id(2)))
}

fn cached() -> (Arc<World>, Arc<ChangeWatcher>, CachedPolicies) {
    let world = Arc::new(World::default());
    world.pass(Duration::from_secs(1));
    *world.guardrails.lock().unwrap() = vec![guardrail(1, "workspace"), guardrail(2, "own"), guardrail(3, "other")];
    *world.grant.lock().unwrap() = Some((Some(id(1)), Some(id(2))));
    let bounds = StalenessBounds { recheck_after: STALE, max_stale: MAX_STALE };
    let watcher = Arc::new(ChangeWatcher::new(Arc::clone(&world) as _, Arc::clone(&world) as _, bounds));
    let policies = CachedPolicies::new(Arc::clone(&world) as _, Arc::clone(&world) as _, Arc::clone(&watcher), 100);
    (world, watcher, policies)
}

async fn names(policies: &CachedPolicies, key: &InferenceKey) -> Vec<String> {
    let policy = policies.find(key).await.unwrap();
    let names = |policy: &Policy| policy.guardrails().iter().map(|found| found.name.as_str().to_owned()).collect();
    policy.as_deref().map(names).unwrap_or_default()
}

#[tokio::test]
async fn a_policy_is_made_once_while_nothing_changes() {
    let (world, watcher, policies) = cached();
    let first = policies.find(&key()).await.unwrap().unwrap();
    assert_eq!(first.ids(), [id(1), id(2)], "the workspace's first");
    for _ in 0..3 {
        assert!(Arc::ptr_eq(&first, &policies.find(&key()).await.unwrap().unwrap()));
        watcher.refresh().await.unwrap();
    }
    assert_eq!(world.reads(), 2, "each guardrail once");
}

#[tokio::test]
async fn who_holds_nothing_is_under_nothing_and_nobody_is_asked() {
    let (world, _, policies) = cached();
    *world.away.lock().unwrap() = true;
    assert!(policies.find(&key().under(None, None)).await.unwrap().is_none());
    assert_eq!(world.reads(), 0);
}

#[tokio::test]
async fn each_pair_has_a_policy_of_its_own() {
    let (_, _, policies) = cached();
    assert_eq!(names(&policies, &key()).await, ["workspace", "own"]);
    assert_eq!(names(&policies, &key().under(Some(id(1)), None)).await, ["workspace"]);
    assert_eq!(names(&policies, &key().under(None, Some(id(2)))).await, ["own"]);
    assert_eq!(names(&policies, &key().under(Some(id(3)), Some(id(2)))).await, ["other", "own"]);
    assert_eq!(names(&policies, &key().under(Some(id(3)), Some(id(3)))).await, ["other"], "one that is both");
}

#[tokio::test]
async fn change_is_in_force_after_a_poll_or_when_the_last_one_is_too_old() {
    let (world, watcher, policies) = cached();
    assert_eq!(names(&policies, &key()).await, ["workspace", "own"]);
    world.change(2, |stored| stored[1] = guardrail(2, "changed"));
    assert_eq!(names(&policies, &key()).await, ["workspace", "own"], "not polled yet");
    watcher.refresh().await.unwrap();
    assert_eq!(names(&policies, &key()).await, ["workspace", "changed"]);
    world.change(1, |stored| stored[0] = guardrail(1, "changed as well"));
    world.pass(STALE + Duration::from_millis(1));
    assert_eq!(names(&policies, &key()).await, ["changed as well", "changed"], "read again without a poll");
}

#[tokio::test]
async fn only_policies_of_changed_guardrails_are_made_again() {
    let (world, watcher, policies) = cached();
    let keys = [key(), key().under(Some(id(1)), None), key().under(Some(id(3)), None)];
    let find = async || {
        let mut found = Vec::new();
        for key in &keys {
            found.push(policies.find(key).await.unwrap().unwrap());
        }
        found
    };
    let same = |one: &[Arc<Policy>], two: &[Arc<Policy>]| -> Vec<bool> {
        one.iter().zip(two).map(|(one, two)| Arc::ptr_eq(one, two)).collect()
    };
    let first = find().await;
    for subject in [
        ChangeSubject::Key(KEY),
        ChangeSubject::Workspace(WorkspaceId::from_uuid(SequentialIds::uuid(1))),
        ChangeSubject::Catalogue,
        ChangeSubject::Guardrail(id(9)),
    ] {
        world.write(subject);
    }
    watcher.refresh().await.unwrap();
    assert_eq!(same(&first, &find().await), [true, true, true]);
    world.change(2, |stored| stored[1].rules.description = Some("of the same version".to_owned()));
    watcher.refresh().await.unwrap();
    let second = find().await;
    assert_eq!(same(&first, &second), [false, true, true]);
    assert!(second[0].guardrails()[1].rules.description.is_some());
    world.change(1, |_| {});
    watcher.refresh().await.unwrap();
    let third = find().await;
    assert_eq!(same(&second, &third), [false, false, true]);
    world.write(ChangeSubject::Everything);
    watcher.refresh().await.unwrap();
    assert_eq!(same(&third, &find().await), [false, false, false]);
}

#[tokio::test]
async fn a_store_that_is_away_is_an_error_and_never_no_policy() {
    let (world, watcher, policies) = cached();
    *world.away.lock().unwrap() = true;
    assert_eq!(policies.find(&key()).await.unwrap_err().kind(), ErrorKind::Unavailable);
    *world.away.lock().unwrap() = false;
    assert_eq!(names(&policies, &key()).await, ["workspace", "own"], "and it recovers");
    *world.away.lock().unwrap() = true;
    assert_eq!(names(&policies, &key()).await, ["workspace", "own"], "what is known is known");
    world.pass(MAX_STALE);
    assert_eq!(names(&policies, &key()).await, ["workspace", "own"]);
    let other = key().under(Some(id(1)), Some(id(3)));
    assert_eq!(policies.find(&other).await.unwrap_err().kind(), ErrorKind::Unavailable, "nothing else is");
    world.pass(Duration::from_millis(1));
    assert_eq!(policies.find(&key()).await.unwrap_err().kind(), ErrorKind::Unavailable, "until it is too old");
    *world.away.lock().unwrap() = false;
    world.change(2, |_| {});
    watcher.refresh().await.unwrap();
    *world.away.lock().unwrap() = true;
    assert_eq!(policies.find(&key()).await.unwrap_err().kind(), ErrorKind::Unavailable, "a change cannot be read");
}

#[tokio::test]
async fn a_guardrail_that_is_gone_is_looked_for_again_by_its_key() {
    let (world, watcher, policies) = cached();
    world.change(2, |stored| stored.retain(|found| found.id != id(2)));
    watcher.refresh().await.unwrap();
    // The key was looked up before its guardrail was deleted; by now it has another one, or none.
    *world.grant.lock().unwrap() = Some((Some(id(1)), Some(id(3))));
    assert_eq!(names(&policies, &key()).await, ["workspace", "other"]);
    *world.grant.lock().unwrap() = Some((Some(id(1)), None));
    assert_eq!(names(&policies, &key()).await, ["workspace"]);
    *world.grant.lock().unwrap() = Some((None, None));
    assert!(policies.find(&key()).await.unwrap().is_none(), "the store says so itself");

    *world.grant.lock().unwrap() = Some((Some(id(1)), Some(id(2))));
    let error = policies.find(&key()).await.unwrap_err();
    assert_eq!(error.kind(), ErrorKind::Unavailable, "it holds what is not there: that is no permission");
    *world.grant.lock().unwrap() = None;
    assert_eq!(policies.find(&key()).await.unwrap_err().kind(), ErrorKind::Unavailable, "the key is gone");
}

#[tokio::test]
async fn filters_that_cannot_be_used_let_nobody_through() {
    let (world, watcher, policies) = cached();
    world.change(2, |stored| {
        let broken = ContentFilter { pattern: "(".to_owned(), action: FilterAction::Block, label: None };
        stored[1].rules.content_filters = vec![broken];
    });
    watcher.refresh().await.unwrap();
    let error = policies.find(&key()).await.unwrap_err();
    assert_eq!(error.kind(), ErrorKind::Internal);
    assert!(matches!(error, StoreError::Corrupt(what) if what.contains(&id(2).to_string())));
}

#[tokio::test(start_paused = true)]
async fn many_askers_ask_once_and_what_a_change_overtakes_is_not_kept() {
    let (world, watcher, policies) = cached();
    *world.slow.lock().unwrap() = Duration::from_millis(100);
    let (asker, other) = (key(), key());
    let (first, second, ()) = tokio::join!(names(&policies, &asker), names(&policies, &other), async {
        tokio::time::sleep(Duration::from_millis(50)).await;
        world.change(1, |stored| stored[0] = guardrail(1, "changed"));
        watcher.refresh().await.unwrap();
    });
    assert_eq!((first, world.reads()), (second, 2), "both by one look");
    assert_eq!(
        names(&policies, &key()).await,
        ["changed", "own"],
        "what was read before the change is not served after it"
    );
}
