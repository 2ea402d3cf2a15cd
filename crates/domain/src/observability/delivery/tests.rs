use std::collections::HashMap;
use std::sync::{Arc, Mutex};
use std::time::Duration;

use async_trait::async_trait;
use chrono::{DateTime, Utc};
use futures_util::FutureExt as _;
use tokio::sync::Semaphore;

use super::*;
use crate::audit::{AuditDraft, AuditLog};
use crate::authority::Authority;
use crate::budget::{Ledger, UsageCharge};
use crate::change::Change;
use crate::error::{ErrorKind, StoreError};
use crate::ids::{DestinationId, OutboxId, WorkspaceId};
use crate::observability::{
    DeadLetterRetry, Delivery, DeliveryError, DeliveryErrorKind, Destination, DestinationInsert, DestinationKind,
    DestinationRepository, DueMessage, MessageSender, MockDestinationRepository, MockOutbox, Outbox, OutboxStatus,
};
use crate::system::{Clock, Randomness, TimeSource};
use crate::testing::contract::usage_record;
use crate::testing::{FixedClock, ManualTimer, MemoryOutbox, MemoryStore, SequentialIds};
use crate::usage::OutboxMessage;
use crate::version::IfMatch;
use crate::workspace::{CreateWorkspace, WorkspaceChange};

/// Scripted failures by destination. Other destinations accept everything.
#[derive(Default)]
struct Receivers {
    faults: Mutex<HashMap<DestinationId, (DeliveryErrorKind, Option<Duration>)>>,
    /// Bodies with this text are rejected.
    poison: Mutex<Option<String>>,
    sent: Mutex<Vec<(DestinationId, Vec<OutboxId>)>>,
}

#[async_trait]
impl MessageSender for Receivers {
    async fn send(&self, to: &Destination, delivery: &Delivery) -> Result<(), DeliveryError> {
        self.sent.lock().unwrap().push((to.id, delivery.ids.clone()));
        let fault = self.faults.lock().unwrap().get(&to.id).copied();
        let poisoned = self
            .poison
            .lock()
            .unwrap()
            .as_ref()
            .is_some_and(|text| delivery.traces.iter().any(|trace| trace.text().contains(text)));
        let fault = if poisoned { Some((DeliveryErrorKind::Body, None)) } else { fault };
        fault.map_or(Ok(()), |(kind, retry_after)| Err(DeliveryError { reason: "no".to_owned(), kind, retry_after }))
    }
}

/// Always draws the same number.
struct FixedRandomness(u64);

impl Randomness for FixedRandomness {
    fn next_u64(&self) -> u64 {
        self.0
    }
}

struct Fixture {
    store: MemoryStore,
    receivers: Arc<Receivers>,
    clock: FixedClock,
    known: Vec<Destination>,
}

fn id(number: u64) -> DestinationId {
    DestinationId::from_uuid(SequentialIds::uuid(number))
}

fn destination(number: u64) -> Destination {
    Destination {
        id: id(number),
        workspace_id: WorkspaceId::from_uuid(SequentialIds::uuid(1)),
        name: "one".to_owned(),
        kind: DestinationKind::Webhook,
        url: "https://example.org".to_owned(),
        headers: Vec::new(),
        signing_secret: None,
        enabled: true,
        privacy_mode: true,
        sampling: 10_000,
        api_key_ids: Some(vec![SequentialIds::key(1)]),
        created_at: chrono::DateTime::<Utc>::UNIX_EPOCH,
        updated_at: None,
    }
}

fn message(number: u64, destination: u64) -> OutboxMessage {
    let payload = crate::json::Json::parse(&format!(r#"{{"resourceSpans":["m{number}."]}}"#)).unwrap();
    OutboxMessage { id: OutboxId::from_uuid(SequentialIds::uuid(number)), destination_id: id(destination), payload }
}

impl Fixture {
    fn new() -> Self {
        let clock = FixedClock::default();
        let store = MemoryStore::new().with_clock(clock.clone());
        Self { store, receivers: Arc::default(), clock, known: vec![destination(1), destination(2)] }
    }

    /// Stores the destinations, with messages for them.
    async fn put(&self, messages: Vec<OutboxMessage>) {
        let (clock, ids) = (Arc::new(self.clock.clone()), Arc::new(SequentialIds::default()));
        let create = CreateWorkspace::new(self.store.workspaces(), clock, ids);
        let by = Authority::system();
        let made = create.execute(&Change::plain(&by), &WorkspaceChange::named("one"), false).await;
        let audit = AuditDraft::change(by.actor(), "test", "test", None, None);
        for known in self.known.iter().filter(|_| made.is_ok()) {
            assert_eq!(known.workspace_id, made.as_ref().unwrap().id);
            let added = self.store.destinations().insert(known, u64::MAX, &audit).await.unwrap();
            assert_eq!(added, DestinationInsert::Added);
        }
        let record = usage_record(1, 7);
        self.store.ledger().settle(&UsageCharge { messages, ..UsageCharge::new(record) }).await.unwrap();
    }

    fn deliver(&self, settings: DeliverySettings) -> (DeliverOutbox, ManualTimer) {
        self.deliver_from(self.store.outbox(), settings)
    }

    fn deliver_from(&self, outbox: Arc<dyn Outbox>, settings: DeliverySettings) -> (DeliverOutbox, ManualTimer) {
        let known = self.known.clone();
        let mut destinations = MockDestinationRepository::new();
        destinations.expect_find().returning(move |id| Ok(known.iter().find(|one| one.id == id).cloned()));
        let stored = self.store.destinations();
        destinations.expect_resume().returning(move |id| stored.resume(id).now_or_never().unwrap());
        let timer = ManualTimer::new(self.clock.clone());
        let ports = DeliverOutboxPorts {
            outbox,
            destinations: Arc::new(destinations) as Arc<dyn DestinationRepository>,
            sender: Arc::clone(&self.receivers) as Arc<dyn MessageSender>,
            time: TimeSource { clock: Arc::new(self.clock.clone()), timer: Arc::new(timer.clone()) },
            random: Arc::new(FixedRandomness(1_000)),
        };
        (DeliverOutbox::new(ports, settings), timer)
    }

    /// Runs the delivery for a time of the clock, which moves as soon as all tasks wait.
    async fn run(&self, settings: DeliverySettings, long: Duration) {
        self.run_with(self.deliver(settings).0, long).await;
    }

    async fn run_with(&self, deliver: DeliverOutbox, long: Duration) {
        let until = self.clock.monotonic() + long;
        let clock = self.clock.clone();
        let stopped = std::future::poll_fn(move |context| {
            if clock.monotonic() >= until {
                return std::task::Poll::Ready(());
            }
            context.waker().wake_by_ref();
            std::task::Poll::Pending
        });
        deliver.run(stopped).await;
    }

    fn attempts(&self, destination: u64) -> usize {
        self.receivers.sent.lock().unwrap().iter().filter(|(to, _)| *to == id(destination)).count()
    }

    fn fail(&self, destination: u64, kind: DeliveryErrorKind, asked: Option<Duration>) {
        self.receivers.faults.lock().unwrap().insert(id(destination), (kind, asked));
    }

    async fn left(&self) -> (u64, u64) {
        let status = self.store.outbox().status().await.unwrap();
        (status.pending, status.dead)
    }
}

/// An outbox behind a pool of one connection with a fair queue.
struct OneConnection {
    store: Arc<MemoryOutbox>,
    connection: Semaphore,
}

impl OneConnection {
    async fn hold<T>(&self, work: impl Future<Output = Result<T, StoreError>>) -> Result<T, StoreError> {
        let held = self.connection.acquire().await;
        tokio::task::yield_now().await;
        let done = work.await;
        drop(held);
        done
    }
}

#[async_trait]
impl Outbox for OneConnection {
    async fn due(&self, now: DateTime<Utc>, except: &[DestinationId]) -> Result<Vec<DestinationId>, StoreError> {
        self.hold(self.store.due(now, except)).await
    }

    async fn pause(&self, destination: &Destination, until: DateTime<Utc>) -> Result<(), StoreError> {
        self.hold(self.store.pause(destination, until)).await
    }

    async fn take(
        &self,
        destination: DestinationId,
        now: DateTime<Utc>,
        lease: Duration,
        most: u64,
        bytes: usize,
    ) -> Result<Vec<DueMessage>, StoreError> {
        self.hold(self.store.take(destination, now, lease, most, bytes)).await
    }

    async fn delivered(&self, ids: &[OutboxId]) -> Result<(), StoreError> {
        self.hold(self.store.delivered(ids)).await
    }

    async fn failed(&self, ids: &[OutboxId], next: Option<DateTime<Utc>>, reason: &str) -> Result<(), StoreError> {
        self.hold(self.store.failed(ids, next, reason)).await
    }

    async fn postponed(&self, ids: &[OutboxId], next: DateTime<Utc>) -> Result<(), StoreError> {
        self.hold(self.store.postponed(ids, next)).await
    }

    async fn discard(&self, destination: DestinationId, before: DateTime<Utc>) -> Result<u64, StoreError> {
        self.hold(self.store.discard(destination, before)).await
    }

    async fn status(&self) -> Result<OutboxStatus, StoreError> {
        self.hold(self.store.status()).await
    }

    async fn retry_dead_letters(&self, retry: &DeadLetterRetry, now: DateTime<Utc>) -> Result<Option<u64>, StoreError> {
        self.hold(self.store.retry_dead_letters(retry, now)).await
    }

    async fn prune(&self, before: DateTime<Utc>, limit: u64) -> Result<u64, StoreError> {
        self.hold(self.store.prune(before, limit)).await
    }
}

fn settings() -> DeliverySettings {
    DeliverySettings::new(Duration::from_secs(10))
}

const MINUTE: Duration = Duration::from_mins(1);

#[tokio::test]
async fn run_delivers_all_messages_in_batches() {
    let fixture = Fixture::new();
    fixture.put((1..=40).map(|number| message(number, 1)).chain([message(50, 2)]).collect()).await;
    fixture.run(settings(), MINUTE).await;
    assert_eq!(fixture.left().await, (0, 0));
    assert_eq!((fixture.attempts(1), fixture.attempts(2)), (2, 1), "32 messages and 8");
    let sent = fixture.receivers.sent.lock().unwrap();
    let mut ids: Vec<OutboxId> = sent.iter().flat_map(|(_, ids)| ids.clone()).collect();
    ids.sort_unstable();
    ids.dedup();
    assert_eq!(ids.len(), 41);
}

#[tokio::test]
async fn unreachable_destination_is_retried_with_backoff_until_dead_letter() {
    let fixture = Fixture::new();
    fixture.fail(1, DeliveryErrorKind::Receiver, None);
    fixture.put(vec![message(1, 1), message(2, 2)]).await;
    fixture.run(settings(), Duration::from_secs(6)).await;
    // After 0, 1 and 3 seconds.
    assert_eq!(fixture.attempts(1), 3);
    assert_eq!(fixture.left().await, (1, 0), "the other one has its message");
    fixture.run(settings(), Duration::from_hours(2)).await;
    assert_eq!(fixture.attempts(1), 12);
    assert_eq!(fixture.left().await, (0, 1));
    fixture.receivers.faults.lock().unwrap().clear();
    let retry =
        RetryDeadLetters::new(fixture.store.outbox(), fixture.store.destinations(), Arc::new(fixture.clock.clone()));
    let by = Authority::system();
    let retry = async |number| retry.execute(&Change::plain(&by), id(number)).await;
    assert_eq!(retry(1).await.unwrap(), 1);
    let retries = async || {
        let entries = fixture.store.audit_log().newest(9).await.unwrap();
        let retries = entries.iter().filter(|entry| entry.action == "destination.retry");
        retries.map(|entry| entry.details.text().to_owned()).collect::<Vec<_>>()
    };
    assert_eq!(retries().await, [r#"{"retried_count":1}"#]);
    assert_eq!(retry(1).await.unwrap(), 0, "there is none any more");
    assert_eq!(retry(7).await.unwrap_err().kind(), ErrorKind::NotFound);
    assert_eq!(retries().await.len(), 1, "what changes nothing leaves no entry");
    fixture.run(settings(), MINUTE).await;
    assert_eq!(fixture.left().await, (0, 0));
}

/// The version is compared with that of the transaction, also when the destination is changed after it was read.
#[tokio::test]
async fn retry_of_concurrently_changed_destination_is_decided_again() {
    let by = Authority::system();
    let before = destination(1);
    let after = Destination { updated_at: Some(before.created_at), ..before.clone() };
    let named = IfMatch::Versions(vec![before.version()]);
    let (met, any) = (Change::conditional(&by, Some(named)), Change::conditional(&by, Some(IfMatch::Any)));
    for (change, expected) in [(met, Err(ErrorKind::PreconditionFailed)), (any, Ok(3)), (Change::plain(&by), Ok(3))] {
        let mut found = vec![after.clone(), before.clone()];
        let mut destinations = MockDestinationRepository::new();
        destinations.expect_find().returning(move |_| Ok(found.pop()));
        let (mut outbox, current) = (MockOutbox::new(), after.clone());
        outbox
            .expect_retry_dead_letters()
            .returning(move |retry, _| Ok((retry.seen.as_ref() == Some(&current)).then_some(3)));
        let retry = RetryDeadLetters::new(Arc::new(outbox), Arc::new(destinations), Arc::new(FixedClock::default()));
        let result = retry.execute(&change, before.id).await.map_err(|error| error.kind());
        assert_eq!(result, expected);
    }
}

#[tokio::test]
async fn new_messages_wait_while_destination_is_unreachable() {
    let fixture = Fixture::new();
    fixture.fail(1, DeliveryErrorKind::Receiver, None);
    fixture.put((1..=200).map(|number| message(number, 1)).collect()).await;
    fixture.run(settings(), MINUTE).await;
    assert!(fixture.attempts(1) <= 7, "{} attempts in a minute, however much waits", fixture.attempts(1));
    fixture.receivers.faults.lock().unwrap().clear();
    fixture.run(settings(), Duration::from_mins(10)).await;
    assert_eq!(fixture.left().await, (0, 0));
}

#[tokio::test]
async fn delivery_respects_retry_after() {
    let fixture = Fixture::new();
    fixture.fail(1, DeliveryErrorKind::Receiver, Some(Duration::from_secs(100)));
    fixture.put(vec![message(1, 1)]).await;
    fixture.run(settings(), Duration::from_secs(95)).await;
    assert_eq!(fixture.attempts(1), 1);
    fixture.run(settings(), Duration::from_secs(10)).await;
    assert_eq!(fixture.attempts(1), 2);
}

/// One server was told to wait, and the store knows it; a resumed destination is served at once.
#[tokio::test]
async fn pause_is_shared_and_ends_when_destination_is_resumed() {
    let fixture = Fixture::new();
    fixture.fail(1, DeliveryErrorKind::Receiver, Some(Duration::from_mins(50)));
    fixture.put(vec![message(1, 1)]).await;
    fixture.run(settings(), Duration::from_secs(1)).await;
    fixture.put(vec![message(2, 1)]).await;
    fixture.run(settings(), MINUTE).await;
    assert_eq!(fixture.attempts(1), 1, "another server, or the same one after a restart, waits as well");
    fixture.receivers.faults.lock().unwrap().clear();
    fixture.store.destinations().resume(id(1)).await.unwrap();
    fixture.run(settings(), Duration::from_secs(1)).await;
    assert_eq!((fixture.attempts(1), fixture.left().await), (2, (0, 0)), "both messages in one delivery");
}

#[tokio::test]
async fn rejected_body_does_not_block_other_messages() {
    let fixture = Fixture::new();
    *fixture.receivers.poison.lock().unwrap() = Some("m3.".to_owned());
    fixture.put((1..=10).map(|number| message(number, 1)).collect()).await;
    fixture.run(settings(), MINUTE).await;
    assert_eq!(fixture.left().await, (1, 0), "only that one waits");
    fixture.run(settings(), Duration::from_hours(2)).await;
    assert_eq!(fixture.left().await, (0, 1));
}

#[tokio::test]
async fn disallowed_address_becomes_dead_letter_at_once() {
    let fixture = Fixture::new();
    fixture.fail(1, DeliveryErrorKind::Address, None);
    fixture.put(vec![message(1, 1)]).await;
    fixture.run(settings(), MINUTE).await;
    assert_eq!((fixture.attempts(1), fixture.left().await), (1, (0, 1)));
}

#[tokio::test]
async fn disabled_destination_keeps_messages_and_deleted_one_drops_them() {
    let mut fixture = Fixture::new();
    fixture.known = vec![Destination { enabled: false, ..destination(1) }];
    fixture.put(vec![message(1, 1), message(2, 2)]).await;
    // Only messages older than the check of their destination are discarded.
    fixture.clock.advance(Duration::from_secs(1));
    fixture.run(settings(), MINUTE).await;
    assert_eq!((fixture.attempts(1), fixture.attempts(2)), (0, 0));
    assert_eq!(fixture.left().await, (1, 0));
    fixture.known = vec![destination(1)];
    fixture.run(settings(), MINUTE).await;
    assert_eq!((fixture.attempts(1), fixture.left().await), (1, (0, 0)));
}

#[tokio::test]
async fn operators_collector_comes_from_settings_only() {
    let fixture = Fixture::new();
    let to_operator = OutboxMessage { destination_id: Destination::OPERATORS, ..message(1, 1) };
    fixture.put(vec![to_operator]).await;
    fixture.run(settings(), MINUTE).await;
    assert_eq!(fixture.left().await, (1, 0), "another process may know it");
    let own = Destination { id: Destination::OPERATORS, ..destination(9) };
    fixture.run(DeliverySettings { operators: Some(own), ..settings() }, MINUTE).await;
    assert_eq!(fixture.left().await, (0, 0));
}

#[tokio::test]
async fn operators_messages_are_discarded_after_an_hour_without_collector() {
    let fixture = Fixture::new();
    fixture.put(vec![OutboxMessage { destination_id: Destination::OPERATORS, ..message(1, 1) }]).await;
    fixture.run(settings(), Duration::from_mins(62)).await;
    assert_eq!(fixture.left().await, (0, 0));
}

/// A delivery that holds the connection and is not polled would block the query for due destinations forever.
#[tokio::test]
async fn deliveries_progress_while_due_query_is_pending() {
    let mut fixture = Fixture::new();
    fixture.known = (1..=9).map(destination).collect();
    fixture.put((1..=90).map(|number| message(number, 1 + number % 9)).collect()).await;
    let outbox = OneConnection { store: fixture.store.outbox(), connection: Semaphore::new(1) };
    let (deliver, _) = fixture.deliver_from(Arc::new(outbox), settings());
    let run = fixture.run_with(deliver, MINUTE);
    tokio::time::timeout(Duration::from_secs(20), run).await.unwrap();
    assert_eq!(fixture.left().await, (0, 0));
}

/// An outbox that lists due destinations, and fails to hand out their messages.
struct FailsToTake {
    store: Arc<MemoryOutbox>,
    takes: std::sync::atomic::AtomicU32,
}

#[async_trait]
impl Outbox for FailsToTake {
    async fn due(&self, now: DateTime<Utc>, except: &[DestinationId]) -> Result<Vec<DestinationId>, StoreError> {
        self.store.due(now, except).await
    }

    async fn pause(&self, _: &Destination, _: DateTime<Utc>) -> Result<(), StoreError> {
        unreachable!("nothing is tried here")
    }

    async fn take(
        &self,
        _: DestinationId,
        _: DateTime<Utc>,
        _: Duration,
        _: u64,
        _: usize,
    ) -> Result<Vec<DueMessage>, StoreError> {
        let takes = self.takes.fetch_add(1, std::sync::atomic::Ordering::Relaxed);
        assert!(takes < 100, "the failing outbox is asked without a pause");
        Err(StoreError::unavailable("away"))
    }

    async fn delivered(&self, _: &[OutboxId]) -> Result<(), StoreError> {
        unreachable!("nothing is delivered here")
    }

    async fn failed(&self, _: &[OutboxId], _: Option<DateTime<Utc>>, _: &str) -> Result<(), StoreError> {
        unreachable!("nothing is tried here")
    }

    async fn postponed(&self, _: &[OutboxId], _: DateTime<Utc>) -> Result<(), StoreError> {
        unreachable!("nothing is tried here")
    }

    async fn discard(&self, _: DestinationId, _: DateTime<Utc>) -> Result<u64, StoreError> {
        unreachable!("every destination exists here")
    }

    async fn status(&self) -> Result<OutboxStatus, StoreError> {
        self.store.status().await
    }

    async fn retry_dead_letters(&self, _: &DeadLetterRetry, _: DateTime<Utc>) -> Result<Option<u64>, StoreError> {
        unreachable!("nothing is dead here")
    }

    async fn prune(&self, _: DateTime<Utc>, _: u64) -> Result<u64, StoreError> {
        unreachable!("nothing is pruned here")
    }
}

#[tokio::test]
async fn delivery_pauses_when_outbox_keeps_failing() {
    let fixture = Fixture::new();
    fixture.put(vec![message(1, 1)]).await;
    let outbox = Arc::new(FailsToTake { store: fixture.store.outbox(), takes: 0.into() });
    let (deliver, _) = fixture.deliver_from(Arc::clone(&outbox) as Arc<dyn Outbox>, settings());
    fixture.run_with(deliver, MINUTE).await;
    let takes = outbox.takes.load(std::sync::atomic::Ordering::Relaxed);
    // One a second, which is the initial delay.
    assert!((30..=61).contains(&takes), "{takes} in a minute");
    assert_eq!((fixture.attempts(1), fixture.left().await), (0, (1, 0)), "nothing is lost");
}

#[test]
fn wait_doubles_up_to_maximum_with_jitter_in_upper_half() {
    let settings = settings();
    let whole = |failures| settings.wait(failures, None, 1_000).as_millis();
    assert_eq!([1, 2, 3, 9, 10, 40].map(whole), [1_000, 2_000, 4_000, 256_000, 300_000, 300_000]);
    assert_eq!(settings.wait(3, None, 0), Duration::from_secs(2));
    assert_eq!(settings.wait(1, Some(Duration::from_secs(7)), 0), Duration::from_secs(7));
    assert_eq!(settings.wait(4, Some(Duration::from_secs(1)), 0), Duration::from_secs(4));
    assert_eq!(settings.wait(1, Some(Duration::from_hours(99)), 0), Duration::from_hours(1));
    assert!(settings.lease > Duration::from_secs(10), "longer than a delivery takes");
}
