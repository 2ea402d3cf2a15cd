use std::sync::{Arc, Mutex};

use async_trait::async_trait;
use chrono::TimeDelta;
use futures_util::FutureExt as _;

use super::*;
use crate::api_key::{ApiKey, ApiKeyName, ApiKeyRepository, ApiKeyScope};
use crate::audit::{Actor, AuditDraft, AuditLog};
use crate::authority::{Authority, ManagementScope};
use crate::budget::{Ledger, UsageCharge, WorkspaceBudgets};
use crate::change::Change;
use crate::change_feed::ChangeFeed;
use crate::edit::Edit;
use crate::error::{ErrorKind, StoreError};
use crate::ids::{OutboxId, WorkspaceId};
use crate::json::Json;
use crate::observability::{
    Delivery, DeliveryError, DeliveryErrorKind, Destination, DestinationRepository, MessageSender,
    MockDestinationRepository, Outbox,
};
use crate::rate::RateLimits;
use crate::secret::{ApiKeyHash, SecretString};
use crate::system::Clock;
use crate::testing::contract::usage_record;
use crate::testing::{FixedClock, FixedSecrets, MemoryStore, SequentialIds};
use crate::usage::OutboxMessage;
use crate::version::IfMatch;
use crate::workspace::{Workspace, WorkspaceName, WorkspaceRepository, WorkspaceSlug};

mod origin_change;

const SECRET: &str = "a secret of sufficient length";

/// A sender with a scripted answer, which records its calls.
#[derive(Default)]
struct Receiver {
    refuses: Mutex<Option<DeliveryErrorKind>>,
    called: Mutex<Vec<Destination>>,
}

#[async_trait]
impl MessageSender for Receiver {
    async fn send(&self, to: &Destination, delivery: &Delivery) -> Result<(), DeliveryError> {
        assert!(delivery.is_test && delivery.ids.len() == 1 && delivery.traces.is_empty());
        self.called.lock().unwrap().push(to.clone());
        match *self.refuses.lock().unwrap() {
            Some(kind) => {
                Err(DeliveryError { reason: "it answered with status 401".to_owned(), kind, retry_after: None })
            }
            None => Ok(()),
        }
    }
}

struct Fixture {
    store: MemoryStore,
    receiver: Arc<Receiver>,
    ports: ManageDestinations,
}

fn audit() -> AuditDraft {
    AuditDraft::done(&Actor::system(), "test.change", "subject", Json::object([]))
}

fn workspace(number: u64) -> WorkspaceId {
    WorkspaceId::from_uuid(SequentialIds::uuid(number))
}

fn hash(number: u64) -> ApiKeyHash {
    FixedSecrets::secret(number).hash()
}

impl Fixture {
    /// Creates two workspaces (the first is the default), a key in each, and a management key.
    async fn new() -> Self {
        let (store, clock) = (MemoryStore::new(), FixedClock::default());
        for number in [1, 2] {
            let workspace = Workspace {
                id: workspace(number),
                name: WorkspaceName::try_new("one").unwrap(),
                slug: WorkspaceSlug::of_name(&format!("w {number}")),
                description: None,
                owner_id: None,
                is_default: number == 1,
                suspended: false,
                credit: None,
                budgets: WorkspaceBudgets::default(),
                rates: RateLimits::default(),
                default_guardrail_id: None,
                storage_used_bytes: 0,
                created_at: clock.now(),
                updated_at: None,
            };
            if number == 1 {
                store.workspaces().default_or_insert(&workspace, &audit()).await.unwrap();
            } else {
                store.workspaces().insert(&workspace, false, &audit()).await.unwrap();
            }
        }
        let scopes = [
            ApiKeyScope::Inference(workspace(1)),
            ApiKeyScope::Inference(workspace(2)),
            ApiKeyScope::Management(ManagementScope::UNRESTRICTED),
        ];
        for (number, scope) in (1..).zip(scopes) {
            let secret = FixedSecrets::secret(number);
            let key = ApiKey {
                id: SequentialIds::key(number),
                hash: secret.hash(),
                label: secret.label(),
                name: ApiKeyName::try_new("key").unwrap(),
                scope,
                disabled: false,
                expires_at: None,
                limit: None,
                rates: RateLimits::default(),
                guardrail_id: None,
                users: crate::api_key::KeyUsers::default(),
                previous_secret: None,
                created_at: clock.now(),
                updated_at: None,
            };
            assert!(store.api_keys().insert(&key, &audit()).await.unwrap().is_inserted());
        }
        let receiver = Arc::new(Receiver::default());
        let ports = ManageDestinations {
            destinations: store.destinations(),
            workspaces: store.workspaces(),
            keys: store.api_keys(),
            sender: Arc::clone(&receiver) as Arc<dyn MessageSender>,
            clock: Arc::new(clock),
            ids: Arc::new(SequentialIds::default()),
        };
        Self { store, receiver, ports }
    }

    async fn create(&self, fields: &DestinationFields) -> Result<Destination, DestinationError> {
        self.ports.create(&Change::plain(&Authority::system()), None, fields).await
    }

    async fn update(&self, one: &Destination, fields: &DestinationFields) -> Result<Destination, DestinationError> {
        self.ports.update(&Change::plain(&Authority::system()), &one.id.to_string(), fields).await
    }

    fn calls(&self) -> usize {
        self.receiver.called.lock().unwrap().len()
    }
}

fn webhook() -> DestinationFields {
    DestinationFields {
        name: Some("hook".to_owned()),
        kind: Some("webhook".to_owned()),
        url: Some("https://example.org/in?token=t0ken".to_owned()),
        headers: Some(vec![("X-Key".to_owned(), "h1dden".to_owned())]),
        secret: Edit::Set(SECRET.to_owned()),
        ..DestinationFields::default()
    }
}

fn headers<const N: usize>(all: [(&str, &str); N]) -> Vec<(String, String)> {
    all.map(|(name, value)| (name.to_owned(), value.to_owned())).into()
}

fn fault(result: Result<Destination, DestinationError>) -> String {
    let error = result.unwrap_err();
    assert_eq!(error.kind(), ErrorKind::InvalidRequest, "{error}");
    error.to_string()
}

#[tokio::test]
async fn create_tests_then_adds_to_default_workspace() {
    let fixture = Fixture::new().await;
    let made = fixture.create(&webhook()).await.unwrap();
    assert_eq!((made.workspace_id, made.sampling, made.enabled, made.privacy_mode), (workspace(1), 10_000, true, true));
    assert_eq!(made.headers, [("x-key".to_owned(), SecretString::new("h1dden"))]);
    assert_eq!(*fixture.receiver.called.lock().unwrap(), std::slice::from_ref(&made));
    let found = fixture.store.destinations().find(made.id).await.unwrap();
    assert_eq!(found, Some(made));
    let elsewhere = fixture
        .ports
        .clone()
        .create(&Change::plain(&Authority::system()), Some(workspace(2)), &webhook())
        .await
        .unwrap();
    assert_eq!(elsewhere.workspace_id, workspace(2));
    let nowhere = fixture.ports.create(&Change::plain(&Authority::system()), Some(workspace(9)), &webhook()).await;
    assert!(matches!(nowhere, Err(DestinationError::UnknownWorkspace)));
}

#[tokio::test]
async fn create_names_invalid_field_before_test_delivery() {
    let fixture = Fixture::new().await;
    let with = |change: fn(&mut DestinationFields)| {
        let mut fields = webhook();
        change(&mut fields);
        fields
    };
    let many = |fields: &mut DestinationFields| {
        fields.headers = Some((0..21).map(|n| (format!("x-{n}"), "v".to_owned())).collect());
    };
    for (fields, expected) in [
        (with(|f| f.name = None), "name is required"),
        (with(|f| f.name = Some(String::new())), "name must have"),
        (with(|f| f.name = Some("x".repeat(101))), "name must have"),
        (with(|f| f.name = Some("a\nb".to_owned())), "name must have"),
        (with(|f| f.kind = None), "type is required"),
        (with(|f| f.kind = Some("s3".to_owned())), "type must be otel-collector or webhook"),
        (with(|f| f.url = None), "config.url is required"),
        (with(|f| f.url = Some("ftp://s3cret".to_owned())), "config.url must begin"),
        (with(|f| f.url = Some(format!("http://h/?{MASK}"))), "config.url has a masked query, but no query is stored"),
        (with(|f| f.url = Some(format!("http://h/?a=1&t={MASK}"))), "config.url has a partly masked query"),
        (with(|f| f.secret = Edit::Set("x".repeat(15))), "config.secret must have"),
        (with(|f| f.secret = Edit::Set("x".repeat(257))), "config.secret must have"),
        (with(|f| f.secret = Edit::Set(MASK.to_owned())), "config.secret must have"),
        (with(many), "config.headers must have at most 20"),
        (
            with(|f| f.headers = Some(vec![("Host".to_owned(), "s3cret".to_owned())])),
            "config.headers, member 1, is set by the connection",
        ),
        (
            with(|f| f.headers = Some(vec![("x-a".to_owned(), MASK.to_owned())])),
            "has a masked value, but no value is stored",
        ),
        (
            with(|f| f.headers = Some(vec![("x-a".to_owned(), "1".to_owned()), ("X-A".to_owned(), "2".to_owned())])),
            "config.headers, member 2, duplicates an earlier member",
        ),
        (with(|f| f.sampling_rate = Some("0".to_owned())), "sampling_rate must be"),
        (with(|f| f.api_key_hashes = Edit::Set(Vec::new())), "api_key_hashes must have 1 to 100"),
        (with(|f| f.api_key_hashes = Edit::Set(vec!["s3cret".to_owned()])), "api_key_hashes[0] must be the hash"),
        (with(|f| f.api_key_hashes = Edit::Set(vec![hash(2).to_string()])), "which is not an active inference key"),
        (with(|f| f.api_key_hashes = Edit::Set(vec![hash(3).to_string()])), "which is not an active inference key"),
        (with(|f| f.api_key_hashes = Edit::Set(vec![hash(9).to_string()])), "which is not an active inference key"),
    ] {
        let message = fault(fixture.create(&fields).await);
        assert!(message.contains(expected) && !message.contains("s3cret"), "{message}");
    }
    assert_eq!(fixture.calls(), 0);
    let own = with(|f| f.api_key_hashes = Edit::Set(vec![hash(1).to_string(), SequentialIds::key(1).to_string()]));
    assert_eq!(fixture.create(&own).await.unwrap().api_key_ids, Some(vec![SequentialIds::key(1)]), "each once");
}

#[tokio::test]
async fn create_is_rejected_when_test_delivery_fails() {
    let fixture = Fixture::new().await;
    *fixture.receiver.refuses.lock().unwrap() = Some(DeliveryErrorKind::Receiver);
    assert!(fault(fixture.create(&webhook()).await).ends_with("failed: it answered with status 401"));
    assert_eq!(fixture.store.destinations().list(None).await.unwrap(), []);
}

#[tokio::test]
async fn create_is_a_conflict_for_sixth_destination_of_a_kind_without_test_delivery() {
    let fixture = Fixture::new().await;
    for _ in 0..5 {
        fixture.create(&webhook()).await.unwrap();
    }
    assert_eq!(fixture.create(&webhook()).await.unwrap_err().kind(), ErrorKind::Conflict);
    assert_eq!(fixture.calls(), 5);
    let collector = DestinationFields { kind: Some("otel-collector".to_owned()), secret: Edit::Keep, ..webhook() };
    assert!(fixture.create(&collector).await.is_ok());
}

/// Also a disabled destination: it is reached.
#[tokio::test]
async fn passed_test_resumes_destination() {
    let fixture = Fixture::new().await;
    let made = fixture.create(&webhook()).await.unwrap();
    let id = OutboxId::from_uuid(SequentialIds::uuid(1));
    let message = OutboxMessage { id, destination_id: made.id, payload: Json::object([]) };
    let charge = UsageCharge { messages: vec![message], ..UsageCharge::new(usage_record(1, 7)) };
    fixture.store.ledger().settle(&charge).await.unwrap();
    let outbox = fixture.store.outbox();
    let (by, now) = (Authority::system(), made.created_at + TimeDelta::minutes(1));
    outbox.pause(&made, now + TimeDelta::hours(1)).await.unwrap();
    let test = async || fixture.ports.test(&Change::plain(&by), &made.id.to_string()).await;
    *fixture.receiver.refuses.lock().unwrap() = Some(DeliveryErrorKind::Receiver);
    test().await.unwrap_err();
    assert_eq!(outbox.due(now, &[]).await.unwrap(), []);
    *fixture.receiver.refuses.lock().unwrap() = None;
    test().await.unwrap();
    assert_eq!(outbox.due(now, &[]).await.unwrap(), [made.id]);
}

#[tokio::test]
async fn update_keeps_masked_secrets_and_tests_changed_values() {
    let fixture = Fixture::new().await;
    let made = fixture.create(&webhook()).await.unwrap();
    let back = DestinationFields {
        url: Some(made.shown_url()),
        headers: Some(vec![("X-KEY".to_owned(), MASK.to_owned())]),
        secret: Edit::Set(MASK.to_owned()),
        sampling_rate: Some("0.1".to_owned()),
        ..DestinationFields::default()
    };
    let changed = fixture.update(&made, &back).await.unwrap();
    assert_eq!(
        (&changed.url, &changed.headers, &changed.signing_secret),
        (&made.url, &made.headers, &made.signing_secret)
    );
    assert_eq!((changed.sampling, fixture.calls()), (1_000, 1), "nothing about the call is new");
    let first = changed.updated_at.unwrap();
    for (number, fields) in [
        DestinationFields { url: Some("https://example.org/other".to_owned()), ..DestinationFields::default() },
        DestinationFields { headers: Some(Vec::new()), ..DestinationFields::default() },
        DestinationFields { secret: Edit::Set("x".repeat(16)), ..DestinationFields::default() },
    ]
    .into_iter()
    .enumerate()
    {
        fixture.update(&made, &fields).await.unwrap();
        assert_eq!(fixture.calls(), number + 2);
    }
    let last = fixture.store.destinations().find(made.id).await.unwrap().unwrap();
    assert!(last.updated_at.unwrap() > first, "each change has a moment of its own, though the clock stands still");
    assert!(matches!(
        fixture.update(&made, &DestinationFields::default()).await,
        Err(DestinationError::NothingToChange)
    ));
    let other_kind = DestinationFields { kind: Some("otel-collector".to_owned()), ..DestinationFields::default() };
    assert!(fault(fixture.update(&made, &other_kind).await).contains("type cannot be changed"));
}

#[tokio::test]
async fn update_without_effect_writes_nothing() {
    let fixture = Fixture::new().await;
    let hashes = Edit::Set(vec![hash(1).to_string()]);
    let unsorted = Some(headers([("x-b", "2"), ("x-a", "1")]));
    let fields = DestinationFields { api_key_hashes: hashes.clone(), headers: unsorted, ..webhook() };
    let made = fixture.create(&fields).await.unwrap();
    let entries = fixture.store.audit_log().newest(100).await.unwrap().len();
    let newest = fixture.store.changes().changes_since(None).await.unwrap();
    for same in [
        DestinationFields { name: Some("hook".to_owned()), ..DestinationFields::default() },
        DestinationFields { kind: Some("webhook".to_owned()), ..DestinationFields::default() },
        DestinationFields { secret: Edit::Set(MASK.to_owned()), ..DestinationFields::default() },
        DestinationFields { url: Some(made.shown_url()), ..DestinationFields::default() },
        DestinationFields { headers: Some(headers([("x-a", MASK), ("x-b", MASK)])), ..DestinationFields::default() },
        DestinationFields {
            headers: Some(headers([("X-B", "2"), ("x-a", "1")])),
            enabled: Some(true),
            privacy_mode: Some(true),
            sampling_rate: Some("1e0".to_owned()),
            api_key_hashes: hashes,
            ..webhook()
        },
    ] {
        assert_eq!(fixture.update(&made, &same).await.unwrap(), made);
    }
    assert_eq!(fixture.store.audit_log().newest(100).await.unwrap().len(), entries, "no entry in the log");
    assert_eq!(fixture.store.changes().changes_since(None).await.unwrap(), newest, "no change for readers");
    assert_eq!(fixture.calls(), 1, "no test delivery");
    assert_eq!(fixture.store.destinations().find(made.id).await.unwrap(), Some(made));
}

#[tokio::test]
async fn update_is_a_conflict_on_concurrent_change_and_unavailable_when_store_fails() {
    let fixture = Fixture::new().await;
    let made = fixture.create(&webhook()).await.unwrap();
    let renamed = DestinationFields { name: Some("n".to_owned()), ..DestinationFields::default() };
    let mut rival = MockDestinationRepository::new();
    let found = made.clone();
    rival.expect_find().returning(move |_| Ok(Some(found.clone())));
    rival.expect_update().returning(|_, _, _| Ok(false));
    let ports = ManageDestinations { destinations: Arc::new(rival), ..fixture.ports.clone() };
    let id = made.id.to_string();
    let error = ports.update(&Change::plain(&Authority::system()), &id, &renamed).await.unwrap_err();
    assert!(matches!(error, DestinationError::Changed) && error.kind() == ErrorKind::Conflict);
    let mut away = MockDestinationRepository::new();
    away.expect_find().returning(|_| Err(StoreError::unavailable("away")));
    let ports = ManageDestinations { destinations: Arc::new(away), ..fixture.ports.clone() };
    let error = ports.update(&Change::plain(&Authority::system()), &id, &renamed).await.unwrap_err();
    assert_eq!(error.kind(), ErrorKind::Unavailable);
}

#[tokio::test]
async fn update_does_not_move_a_destination() {
    let fixture = Fixture::new().await;
    let made = fixture.create(&webhook()).await.unwrap();
    let to = |workspace_id| DestinationFields {
        name: Some("n".to_owned()),
        workspace_id: Some(workspace_id),
        ..DestinationFields::default()
    };
    let elsewhere = WorkspaceId::from_uuid(uuid::Uuid::from_u128(77));
    let error = fixture.update(&made, &to(elsewhere)).await.unwrap_err();
    assert!(error.kind() == ErrorKind::InvalidRequest && error.to_string().contains("workspace_id"), "{error}");
    assert_eq!(fixture.update(&made, &to(made.workspace_id)).await.unwrap().name, "n");
}

#[tokio::test]
async fn update_applies_to_the_version_of_a_concurrent_change_and_sends_one_test() {
    let fixture = Fixture::new().await;
    let made = fixture.create(&webhook()).await.unwrap();
    let fields =
        DestinationFields { secret: Edit::Set("n3w secret of length".to_owned()), ..DestinationFields::default() };
    let (rival, id) = (Destination { name: "rival".to_owned(), ..made.clone() }, made.id.to_string());
    let (mut found, mut updated) = (vec![rival, made], vec![true, false]);
    let mut destinations = MockDestinationRepository::new();
    destinations.expect_find().times(2).returning(move |_| Ok(found.pop()));
    destinations.expect_update().times(2).returning(move |_, _, _| Ok(updated.pop().unwrap()));
    let ports = ManageDestinations { destinations: Arc::new(destinations), ..fixture.ports.clone() };
    let after = ports.update(&Change::plain(&Authority::system()), &id, &fields).await.unwrap();
    assert_eq!((after.name.as_str(), fixture.calls()), ("rival", 2), "one test at the creation, one of the new secret");
}

#[tokio::test]
async fn unknown_or_malformed_id_is_not_found() {
    let fixture = Fixture::new().await;
    let made = fixture.create(&webhook()).await.unwrap();
    let by = Authority::system();
    assert_eq!(fixture.ports.get(&by, "hook").await.unwrap(), made, "a unique name");
    fixture.create(&webhook()).await.unwrap();
    assert_eq!(fixture.ports.get(&by, "hook").await.unwrap_err().kind(), ErrorKind::Conflict);
    for id in ["nonsense", "", "01990000-0000-7000-8000-00000000ffff"] {
        let get = fixture.ports.get(&Authority::system(), id).await.unwrap_err();
        let delete = fixture.ports.delete(&Change::plain(&Authority::system()), id).await.unwrap_err();
        let test = fixture.ports.test(&Change::plain(&Authority::system()), id).await.unwrap_err();
        assert_eq!([get, delete, test].map(|error| error.kind()), [ErrorKind::NotFound; 3], "{id}");
    }
}

#[tokio::test]
async fn audit_log_shows_every_change_without_secrets() {
    let fixture = Fixture::new().await;
    let before = fixture.store.audit_log().newest(100).await.unwrap().len();
    let made = fixture.create(&webhook()).await.unwrap();
    let fields =
        DestinationFields { secret: Edit::Set("n3w secret of length".to_owned()), ..DestinationFields::default() };
    fixture.update(&made, &fields).await.unwrap();
    fixture.ports.delete(&Change::plain(&Authority::system()), &made.id.to_string()).await.unwrap();
    let entries = fixture.store.audit_log().newest(100).await.unwrap();
    let entries = &entries[..entries.len() - before];
    let actions: Vec<&str> = entries.iter().rev().map(|entry| entry.action.as_str()).collect();
    assert_eq!(actions, ["destination.create", "destination.update", "destination.delete"]);
    for entry in entries {
        let details = entry.details.text();
        assert!(details.contains("\"origin\":\"https://example.org\""), "{details}");
        for secret in ["t0ken", "h1dden", SECRET, "n3w"] {
            assert!(!details.contains(secret), "{details}");
        }
    }
    assert!(entries[1].details.text().contains("\"config_changed\":true"));
    assert!(!format!("{made:?}").contains("h1dden"));
}

#[test]
fn checked_url_rejects_invalid_urls() {
    for good in [
        "http://h",
        "https://example.org:4318/v1/traces?x=1&y=%20",
        "HTTPS://Example.org/",
        "http://[2001:db8::1]:80/x",
        "http://10.0.0.1:65535",
        "https://h?x",
    ] {
        assert_eq!(checked_url(good).as_deref(), Ok(good));
    }
    let long = format!("http://h/{}", "x".repeat(2048));
    for bad in [
        "",
        "h",
        "//h",
        "http:/h",
        "ftp://h",
        "http://",
        "http:///x",
        "http://?x",
        "http://u@h",
        "http://u:p@h/",
        "http://h#f",
        "http://h/ x",
        "http://h/\"",
        "http://é",
        "http://h:0",
        "http://h:65536",
        "http://h:",
        "http://h:8x",
        "http://[::1",
        "http://[x]",
        "http://[::1]x",
        "http://h\\x",
        "http://h/\n",
        "http://%68",
        &long,
        "é",
    ] {
        assert!(checked_url(bad).is_err(), "{bad}");
    }
}

#[tokio::test]
async fn target_completes_shown_url_masks_and_origin_cuts() {
    let fixture = Fixture::new().await;
    let made = fixture.create(&webhook()).await.unwrap();
    assert_eq!(made.shown_url(), "https://example.org/in?********");
    assert_eq!(made.origin(), "https://example.org");
    assert_eq!(made.target(), made.url);
    for (url, target) in [
        ("http://h:4318", "http://h:4318/v1/traces"),
        ("http://h/", "http://h/v1/traces"),
        ("http://h/otlp", "http://h/otlp"),
        ("http://h?x", "http://h?x"),
    ] {
        let kind = crate::observability::DestinationKind::OtelCollector;
        assert_eq!(Destination { kind, url: url.to_owned(), ..made.clone() }.target(), target);
        assert_eq!(Destination { url: url.to_owned(), ..made.clone() }.target(), url, "a webhook's URL is its own");
    }
}

#[test]
fn checked_header_rejects_reserved_and_invalid_headers() {
    assert_eq!(
        checked_header("Authorization", " Bearer a:b "),
        Ok(("authorization".to_owned(), "Bearer a:b".to_owned()))
    );
    for taken in [
        "Host",
        "content-length",
        "Transfer-Encoding",
        "connection",
        "Proxy-Authorization",
        "X-Tollgate-Signature",
        "x-test-connection",
        "TE",
        "user-agent",
    ] {
        assert!(checked_header(taken, "v").unwrap_err().contains("is set by the connection"), "{taken}");
    }
    let long = "x".repeat(129);
    for name in ["", "a b", "a:b", "é", "a\r", long.as_str()] {
        assert!(checked_header(name, "v").unwrap_err().contains("must be the name"), "{name:?}");
    }
    let long = "x".repeat(4097);
    for value in ["", " ", "é", "a\nb", "a\tb", "\u{7f}", long.as_str()] {
        assert!(checked_header("x-a", value).unwrap_err().contains("must have a value"), "{value:?}");
    }
}

#[test]
fn sampling_rate_is_exact_decimal() {
    for (text, parts) in
        [("1", 10_000), ("1.0000", 10_000), ("0.0001", 1), ("1e-4", 1), ("0.5", 5_000), ("0.3333", 3_333)]
    {
        assert_eq!(url::parse_sampling_rate(text), Some(parts), "{text}");
    }
    for text in ["0", "-0.5", "1.0001", "2", "0.00001", "0.12345", "1e-5", "x", "", "9e99"] {
        assert_eq!(url::parse_sampling_rate(text), None, "{text}");
    }
    assert_eq!([1, 2_500, 10_000].map(url::format_sampling_rate), ["0.0001", "0.25", "1"]);
}

#[tokio::test]
async fn destination_is_deleted_although_its_settings_cannot_be_read() {
    let fixture = Fixture::new().await;
    let made = fixture.create(&webhook()).await.unwrap();
    let mut unreadable = MockDestinationRepository::new();
    let (named, store) = (made.named(), fixture.store.destinations());
    unreadable.expect_names().returning(move |_| Ok(vec![named.clone()]));
    unreadable.expect_find().returning(|_| Err(StoreError::unavailable("the key is lost")));
    unreadable.expect_delete().returning(move |id, seen, audit| store.delete(id, seen, audit).now_or_never().unwrap());
    let ports = ManageDestinations { destinations: Arc::new(unreadable), ..fixture.ports.clone() };
    let by = Authority::system();
    let stale = Some(IfMatch::Versions(Vec::new()));
    let refused = ports.delete(&Change::conditional(&by, stale), &made.name).await.unwrap_err();
    assert_eq!(refused.kind(), ErrorKind::PreconditionFailed);
    ports.delete(&Change::plain(&by), &made.name).await.unwrap();
    assert_eq!(fixture.store.destinations().list(None).await.unwrap(), []);
    let entry = &fixture.store.audit_log().newest(1).await.unwrap()[0];
    let expected = format!(r#"{{"before":{{"workspace_id":"{}","name":"{}"}}}}"#, made.workspace_id, made.name);
    assert_eq!((entry.action.as_str(), entry.details.text()), ("destination.delete", expected.as_str()));
}

#[tokio::test]
async fn change_of_another_version_fails_and_changes_nothing() {
    let fixture = Fixture::new().await;
    let made = fixture.create(&webhook()).await.unwrap();
    let renamed = DestinationFields { name: Some("b".to_owned()), ..DestinationFields::default() };
    let after = fixture.update(&made, &renamed).await.unwrap();
    assert_ne!(made.version(), after.version());
    let (by, id) = (Authority::system(), made.id.to_string());
    let entries = fixture.store.audit_log().newest(100).await.unwrap().len();
    let stale = Some(IfMatch::Versions(vec![made.version()]));
    let updated = fixture.ports.update(&Change::conditional(&by, stale.clone()), &id, &renamed).await.map(drop);
    let deleted = fixture.ports.delete(&Change::conditional(&by, stale), &id).await;
    for outcome in [updated, deleted] {
        assert_eq!(outcome.unwrap_err().kind(), ErrorKind::PreconditionFailed);
    }
    assert_eq!(fixture.ports.get(&by, &id).await.unwrap(), after);
    assert_eq!(fixture.store.audit_log().newest(100).await.unwrap().len(), entries);
    let current = Some(IfMatch::Versions(vec![after.version()]));
    fixture.ports.delete(&Change::conditional(&by, current), &id).await.unwrap();
}

#[tokio::test]
async fn webhook_without_secret_is_unsigned() {
    let fixture = Fixture::new().await;
    let made = fixture.create(&DestinationFields { secret: Edit::Keep, ..webhook() }).await.unwrap();
    assert_eq!(made.signing_secret, None);
    let signed = fixture.create(&webhook()).await.unwrap();
    let unsigned = DestinationFields { secret: Edit::Clear, ..DestinationFields::default() };
    assert_eq!(fixture.update(&signed, &unsigned).await.unwrap().signing_secret, None);
}
