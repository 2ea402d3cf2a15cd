//! Changes of guardrails are applied in time, and a guardrail is never lost.
#![expect(clippy::unwrap_used, reason = "a helper of a test may fail the test")]

use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use adapters_cache::{CachedPolicies, ChangeWatcher, StalenessBounds};
use async_trait::async_trait;
use chrono::DateTime;
use domain::api_key::{GrantScope, InferenceKey, KeyGrant, KeyGrants, KeyReference};
use domain::audit::AuditDraft;
use domain::authority::ManagementScope;
use domain::change_feed::{Change, ChangeFeed, ChangePosition, ChangeSubject, Changes};
use domain::error::{ErrorKind, StoreError};
use domain::guardrail::{
    AssignKeysError, ContentFilter, Guardrail, GuardrailName, GuardrailPolicies, GuardrailRepository, GuardrailRules,
    GuardrailVersion, KeyAssignment, PlacedGuardrail, Policy,
};
use domain::ids::{GuardrailId, WorkspaceId};
use domain::naming::ResourceName;
use domain::rate::RateLimits;
use domain::secret::ApiKeyHash;
use domain::system::Clock;
use domain::testing::SequentialIds;
use domain::testing::contract::{Policies, PolicySource};
use domain::usage::FilterAction;

const STALE: Duration = Duration::from_millis(800);
const MAX_STALE: Duration = Duration::from_secs(30);
const KEY: ApiKeyHash = ApiKeyHash::from_bytes([7; 32]);

/// One fake for guardrails, grants, the change feed and the clock.
#[derive(Default)]
struct FakePorts {
    changes: Mutex<Vec<Change>>,
    guardrails: Mutex<Vec<Guardrail>>,
    /// The current guardrails of the key; `None` if the key does not exist.
    grant: Mutex<Option<(Option<GuardrailId>, Option<GuardrailId>)>>,
    away: Mutex<bool>,
    slow: Mutex<Duration>,
    reads: AtomicUsize,
    now: Mutex<Duration>,
}

impl FakePorts {
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
impl ChangeFeed for FakePorts {
    async fn changes_since(&self, last: Option<ChangePosition>) -> Result<Changes, StoreError> {
        self.check()?;
        let changes = self.changes.lock().unwrap();
        let newest = changes.last().map_or(ChangePosition { number: 0, mark: 0 }, |change| change.position);
        let since = |last: ChangePosition| changes.iter().filter(move |row| row.position.number > last.number);
        Ok(last.map_or(Changes::StartOver(newest), |last| Changes::Continued(since(last).copied().collect())))
    }
}

#[async_trait]
impl KeyGrants for FakePorts {
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

impl Clock for FakePorts {
    fn now(&self) -> DateTime<chrono::Utc> {
        DateTime::UNIX_EPOCH
    }

    fn monotonic(&self) -> Duration {
        *self.now.lock().unwrap()
    }
}

/// The result of methods that these tests do not use.
fn unavailable<T>() -> Result<T, StoreError> {
    Err(StoreError::unavailable("not asked"))
}

#[async_trait]
impl GuardrailRepository for FakePorts {
    async fn find(&self, id: GuardrailId) -> Result<Option<Guardrail>, StoreError> {
        self.reads.fetch_add(1, Ordering::SeqCst);
        self.check()?;
        let found = self.guardrails.lock().unwrap().iter().find(|stored| stored.id == id).cloned();
        let slow = *self.slow.lock().unwrap();
        tokio::time::sleep(slow).await;
        Ok(found)
    }

    async fn insert(&self, _: &Guardrail, _: bool, _: &AuditDraft) -> Result<bool, StoreError> {
        unavailable()
    }

    async fn update(&self, _: &PlacedGuardrail, _: &PlacedGuardrail, _: &AuditDraft) -> Result<bool, StoreError> {
        unavailable()
    }

    async fn list(&self, _: WorkspaceId) -> Result<Vec<Guardrail>, StoreError> {
        unavailable()
    }

    async fn versions(&self, _: GuardrailId, _: u32, _: u64) -> Result<Vec<GuardrailVersion>, StoreError> {
        unavailable()
    }

    async fn delete(&self, _: &PlacedGuardrail, _: &AuditDraft) -> Result<bool, StoreError> {
        unavailable()
    }

    async fn assign_keys<'a>(
        &self,
        _: GuardrailId,
        _: &[KeyReference],
        _: &domain::change::Change<'a, u64>,
    ) -> Result<u64, AssignKeysError> {
        Ok(unavailable()?)
    }

    async fn remove_keys<'a>(
        &self,
        _: GuardrailId,
        _: &[KeyReference],
        _: &domain::change::Change<'a, u64>,
    ) -> Result<u64, AssignKeysError> {
        Ok(unavailable()?)
    }

    async fn find_named(&self, _: &ResourceName, _: &ManagementScope) -> Result<Vec<Guardrail>, StoreError> {
        unreachable!("policies are found by key")
    }

    async fn page(&self, _: &ManagementScope, _: u64, _: u64) -> Result<(Vec<PlacedGuardrail>, u64), StoreError> {
        unreachable!("policies are found by key")
    }

    async fn list_keys(
        &self,
        _: Option<GuardrailId>,
        _: &ManagementScope,
        _: u64,
        _: u64,
    ) -> Result<(Vec<KeyAssignment>, u64), StoreError> {
        unavailable()
    }

    async fn count_keys(&self, _: GuardrailId) -> Result<u64, StoreError> {
        unavailable()
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

fn cached() -> (Arc<FakePorts>, Arc<ChangeWatcher>, CachedPolicies) {
    let fake = Arc::new(FakePorts::default());
    fake.pass(Duration::from_secs(1));
    *fake.guardrails.lock().unwrap() = vec![guardrail(1, "workspace"), guardrail(2, "own"), guardrail(3, "other")];
    *fake.grant.lock().unwrap() = Some((Some(id(1)), Some(id(2))));
    let bounds = StalenessBounds { recheck_after: STALE, max_stale: MAX_STALE };
    let watcher = Arc::new(ChangeWatcher::new(Arc::clone(&fake) as _, Arc::clone(&fake) as _, bounds));
    let policies = CachedPolicies::new(Arc::clone(&fake) as _, Arc::clone(&fake) as _, Arc::clone(&watcher), 100);
    (fake, watcher, policies)
}

#[async_trait]
impl PolicySource for FakePorts {
    fn put(&self, guardrail: Guardrail) {
        let id = guardrail.id;
        let mut guardrails = self.guardrails.lock().unwrap();
        guardrails.retain(|stored| stored.id != id);
        guardrails.push(guardrail);
        drop(guardrails);
        self.write(ChangeSubject::Guardrail(id));
    }

    fn delete(&self, id: GuardrailId) {
        self.guardrails.lock().unwrap().retain(|stored| stored.id != id);
        self.write(ChangeSubject::Guardrail(id));
    }

    fn assign(&self, workspace: Option<GuardrailId>, key: Option<GuardrailId>) {
        *self.grant.lock().unwrap() = Some((workspace, key));
        self.write(ChangeSubject::Key(KEY));
    }

    fn set_available(&self, available: bool) {
        *self.away.lock().unwrap() = !available;
    }

    /// Lets the time pass after which the feed is read again, without a poll.
    async fn show_changes(&self) {
        self.pass(STALE + Duration::from_millis(1));
    }

    async fn expire(&self) {
        self.pass(MAX_STALE + Duration::from_millis(1));
    }
}

async fn cached_policies() -> Policies {
    let (source, _, policies) = cached();
    Policies { policies: Arc::new(policies), source }
}

domain::guardrail_policies_contract!(
    #[tokio::test]
    crate::cached_policies
);

async fn names(policies: &CachedPolicies, key: &InferenceKey) -> Vec<String> {
    let policy = policies.find(key).await.unwrap();
    let names = |policy: &Policy| policy.guardrails().iter().map(|found| found.name.as_str().to_owned()).collect();
    policy.as_deref().map(names).unwrap_or_default()
}

#[tokio::test]
async fn policy_is_compiled_once_while_unchanged() {
    let (fake, watcher, policies) = cached();
    let first = policies.find(&key()).await.unwrap().unwrap();
    assert_eq!(first.ids(), [id(1), id(2)], "the workspace's first");
    for _ in 0..3 {
        assert!(Arc::ptr_eq(&first, &policies.find(&key()).await.unwrap().unwrap()));
        watcher.refresh().await.unwrap();
    }
    assert_eq!(fake.reads(), 2, "each guardrail once");
}

#[tokio::test]
async fn key_without_guardrails_has_no_policy_and_needs_no_read() {
    let (fake, _, policies) = cached();
    *fake.away.lock().unwrap() = true;
    assert!(policies.find(&key().under(None, None)).await.unwrap().is_none());
    assert_eq!(fake.reads(), 0);
}

#[tokio::test]
async fn policies_are_cached_per_pair() {
    let (_, _, policies) = cached();
    assert_eq!(names(&policies, &key()).await, ["workspace", "own"]);
    assert_eq!(names(&policies, &key().under(Some(id(1)), None)).await, ["workspace"]);
    assert_eq!(names(&policies, &key().under(None, Some(id(2)))).await, ["own"]);
    assert_eq!(names(&policies, &key().under(Some(id(3)), Some(id(2)))).await, ["other", "own"]);
    assert_eq!(names(&policies, &key().under(Some(id(3)), Some(id(3)))).await, ["other"], "one that is both");
}

#[tokio::test]
async fn change_is_applied_after_poll_or_recheck() {
    let (fake, watcher, policies) = cached();
    assert_eq!(names(&policies, &key()).await, ["workspace", "own"]);
    fake.change(2, |stored| stored[1] = guardrail(2, "changed"));
    assert_eq!(names(&policies, &key()).await, ["workspace", "own"], "not polled yet");
    watcher.refresh().await.unwrap();
    assert_eq!(names(&policies, &key()).await, ["workspace", "changed"]);
    fake.change(1, |stored| stored[0] = guardrail(1, "changed as well"));
    fake.pass(STALE + Duration::from_millis(1));
    assert_eq!(names(&policies, &key()).await, ["changed as well", "changed"], "read again without a poll");
}

#[tokio::test]
async fn change_drops_only_policies_of_its_guardrail() {
    let (fake, watcher, policies) = cached();
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
        fake.write(subject);
    }
    watcher.refresh().await.unwrap();
    assert_eq!(same(&first, &find().await), [true, true, true]);
    fake.change(2, |stored| stored[1].rules.description = Some("of the same version".to_owned()));
    watcher.refresh().await.unwrap();
    let second = find().await;
    assert_eq!(same(&first, &second), [false, true, true]);
    assert!(second[0].guardrails()[1].rules.description.is_some());
    fake.change(1, |_| {});
    watcher.refresh().await.unwrap();
    let third = find().await;
    assert_eq!(same(&second, &third), [false, false, true]);
    fake.write(ChangeSubject::Everything);
    watcher.refresh().await.unwrap();
    assert_eq!(same(&third, &find().await), [false, false, false]);
}

#[tokio::test]
async fn unavailable_store_is_error_and_never_no_policy() {
    let (fake, watcher, policies) = cached();
    *fake.away.lock().unwrap() = true;
    assert_eq!(policies.find(&key()).await.unwrap_err().kind(), ErrorKind::Unavailable);
    *fake.away.lock().unwrap() = false;
    assert_eq!(names(&policies, &key()).await, ["workspace", "own"], "and it recovers");
    *fake.away.lock().unwrap() = true;
    assert_eq!(names(&policies, &key()).await, ["workspace", "own"], "what is known is known");
    fake.pass(MAX_STALE);
    assert_eq!(names(&policies, &key()).await, ["workspace", "own"]);
    let other = key().under(Some(id(1)), Some(id(3)));
    assert_eq!(policies.find(&other).await.unwrap_err().kind(), ErrorKind::Unavailable, "nothing else is");
    fake.pass(Duration::from_millis(1));
    assert_eq!(policies.find(&key()).await.unwrap_err().kind(), ErrorKind::Unavailable, "until it is too old");
    *fake.away.lock().unwrap() = false;
    fake.change(2, |_| {});
    watcher.refresh().await.unwrap();
    *fake.away.lock().unwrap() = true;
    assert_eq!(policies.find(&key()).await.unwrap_err().kind(), ErrorKind::Unavailable, "a change cannot be read");
}

#[tokio::test]
async fn deleted_guardrail_reads_key_again() {
    let (fake, watcher, policies) = cached();
    fake.change(2, |stored| stored.retain(|found| found.id != id(2)));
    watcher.refresh().await.unwrap();
    // The key was looked up before its guardrail was deleted; by now it has another one, or none.
    *fake.grant.lock().unwrap() = Some((Some(id(1)), Some(id(3))));
    assert_eq!(names(&policies, &key()).await, ["workspace", "other"]);
    *fake.grant.lock().unwrap() = Some((Some(id(1)), None));
    assert_eq!(names(&policies, &key()).await, ["workspace"]);
    *fake.grant.lock().unwrap() = Some((None, None));
    assert!(policies.find(&key()).await.unwrap().is_none(), "the store says so itself");

    *fake.grant.lock().unwrap() = Some((Some(id(1)), Some(id(2))));
    let error = policies.find(&key()).await.unwrap_err();
    assert_eq!(error.kind(), ErrorKind::Unavailable, "it holds what is not there: that is no permission");
    *fake.grant.lock().unwrap() = None;
    assert_eq!(policies.find(&key()).await.unwrap_err().kind(), ErrorKind::Unavailable, "the key is gone");
}

#[tokio::test]
async fn invalid_filters_reject_requests() {
    let (fake, watcher, policies) = cached();
    fake.change(2, |stored| {
        let broken = ContentFilter { pattern: "(".to_owned(), action: FilterAction::Block, label: None };
        stored[1].rules.content_filters = vec![broken];
    });
    watcher.refresh().await.unwrap();
    let error = policies.find(&key()).await.unwrap_err();
    assert_eq!(error.kind(), ErrorKind::Internal);
    assert!(matches!(error, StoreError::Corrupt(what) if what.contains(&id(2).to_string())));
}

#[tokio::test(start_paused = true)]
async fn concurrent_look_ups_share_read_and_discard_overtaken_one() {
    let (fake, watcher, policies) = cached();
    *fake.slow.lock().unwrap() = Duration::from_millis(100);
    let (asker, other) = (key(), key());
    let (first, second, ()) = tokio::join!(names(&policies, &asker), names(&policies, &other), async {
        tokio::time::sleep(Duration::from_millis(50)).await;
        fake.change(1, |stored| stored[0] = guardrail(1, "changed"));
        watcher.refresh().await.unwrap();
    });
    assert_eq!((first, fake.reads()), (second, 2), "both by one look");
    assert_eq!(
        names(&policies, &key()).await,
        ["changed", "own"],
        "what was read before the change is not served after it"
    );
}
