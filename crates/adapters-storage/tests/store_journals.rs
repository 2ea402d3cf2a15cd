//! Journals in the store: what waits for a transaction, adoption of silent processes, and their late charges.
#![expect(clippy::unwrap_used, reason = "a test fails by panicking")]

mod common;

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use adapters_storage::{
    AdoptionSettings, Database, SeaOrmBudgetStore, SeaOrmLedgerReports, SeaOrmUsageRepository, StorageSettings,
    StoreJournal, StoreJournalSettings, StoreJournals,
};
use async_trait::async_trait;
use common::{Folder, at, clock, open_by, replicas};
use domain::budget::{
    BudgetStore, EntryKind, JournalFactory, Ledger, LedgerMaintenance, LedgerSettings, OrphanedJournals, ProcessState,
    RecoverJournals, RemainingAllowances, RenewingLedger, RenewingLedgerPorts, UsageCharge, UsageJournal,
    UsageJournalError,
};
use domain::ids::ProcessId;
use domain::testing::contract::{hold_request, insert_payer, limit_payer, usage_record};
use domain::testing::{FixedClock, JournalContent, create_time_without_timer};
use domain::usage::{UnknownUsage, UsageOutcome, UsageRepository};
use rstest::rstest;
use tokio_util::task::TaskTracker;
use uuid::Uuid;

const ADOPTION: AdoptionSettings =
    AdoptionSettings { adopt_after: Duration::from_secs(15), heartbeat: Duration::from_secs(4) };
const SETTINGS: StoreJournalSettings =
    StoreJournalSettings { max_bytes: 1 << 20, max_payload_bytes: 64 << 10, kept_bytes: 1 << 20 };

/// A database that can be opened several times, as by several replicas.
struct Store {
    clock: FixedClock,
    settings: StorageSettings,
    tasks: TaskTracker,
    _server: Option<test_servers::Postgres>,
    _folder: Folder,
}

#[derive(Clone, Copy)]
enum Kind {
    Sqlite,
    Postgres,
}

impl Store {
    async fn new(kind: Kind) -> Self {
        let folder = Folder::new();
        let server = match kind {
            Kind::Sqlite => None,
            Kind::Postgres => Some(test_servers::Postgres::start().unwrap()),
        };
        let settings = match &server {
            None => folder.settings(),
            Some(server) => {
                StorageSettings { use_server_clock: false, ..StorageSettings::new(server.create_database().unwrap()) }
            }
        };
        open_by(&settings, clock()).await.close().await;
        Self { clock: FixedClock::at(at(0)), settings, tasks: TaskTracker::new(), _server: server, _folder: folder }
    }

    async fn open(&self) -> Database {
        Database::open(&self.settings, Arc::new(self.clock.clone())).await.unwrap()
    }

    async fn journal(&self, number: u128) -> StoreJournal {
        let (journal, writing) = StoreJournal::create(self.open().await, process(number), SETTINGS).await.unwrap();
        self.tasks.spawn(writing);
        journal
    }

    /// Returns the journals that a process can adopt.
    async fn orphans(&self, own: u128) -> StoreJournals {
        let clock = Arc::new(self.clock.clone());
        StoreJournals::new(self.open().await, clock, ADOPTION, move || Some(process(own)))
    }

    async fn budget(&self) -> SeaOrmBudgetStore {
        SeaOrmBudgetStore::new(self.open().await)
    }

    async fn state(&self, number: u128) -> ProcessState {
        self.budget().await.process(process(number)).await.unwrap().unwrap().state
    }

    /// Shows the store that a process lives.
    async fn show_alive(&self, number: u128) {
        let budget = self.budget().await;
        let number_of_calls = budget.process(process(number)).await.unwrap().unwrap().number;
        let request = domain::budget::ReturnRequest {
            process: process(number),
            number: number_of_calls + 1,
            amounts: Vec::new(),
            answered: Some(domain::system::Clock::now(&self.clock)),
        };
        budget.return_allowances(&request).await.unwrap();
    }

    /// Lets time pass for a process that looks for orphans every second. The processes in `alive` show that they live.
    async fn pass(&self, orphans: &StoreJournals, seconds: u64, alive: &[u128]) -> Vec<ProcessId> {
        let mut found = Vec::new();
        for second in 0..seconds {
            self.clock.advance(Duration::from_secs(1));
            if second % 3 == 0 {
                for number in alive {
                    self.show_alive(*number).await;
                }
            }
            found.extend(orphans.find().await.unwrap().iter().map(|orphan| orphan.process()));
        }
        found
    }
}

fn process(number: u128) -> ProcessId {
    ProcessId::from_uuid(Uuid::from_u128(number))
}

fn sent(journal: &StoreJournal, payload: &[u8]) -> u64 {
    journal.append_sent(EntryKind::Sent, payload, 100).unwrap()
}

#[rstest]
#[tokio::test]
async fn entries_whose_wait_is_over_are_recovered_by_another_process(
    #[values(Kind::Sqlite, Kind::Postgres)] kind: Kind,
) {
    let store = Store::new(kind).await;
    let journal = store.journal(1).await;
    let (_own, orphans) = (store.journal(2).await, store.orphans(2).await);
    for number in 0..100_u8 {
        let first = sent(&journal, &[number; 40]);
        journal.wait_sendable(first).await.unwrap();
        let end = journal.append_end(EntryKind::Charged, &[number, 1], 100).unwrap();
        journal.wait_durable(end).await.unwrap();
    }
    assert_eq!(journal.status().synced_sequence, 200);
    drop(journal);
    assert!(store.pass(&orphans, 14, &[2]).await.is_empty(), "not before the time is over");
    assert_eq!(store.state(1).await, ProcessState::Live);
    store.clock.advance(Duration::from_secs(1));
    store.show_alive(2).await;
    let mut found = Vec::new();
    for _ in 0..3 {
        store.clock.advance(Duration::from_secs(1));
        found.extend(orphans.find().await.unwrap());
    }
    let [orphan] = &found[..] else { panic!("one journal: {}", found.len()) };
    assert_eq!(store.state(1).await, ProcessState::Adopted);
    let read = JournalContent::of(&**orphan).await.unwrap();
    assert_eq!(read.entries.iter().map(|entry| entry.sequence).collect::<Vec<_>>(), (1..=200).collect::<Vec<_>>());
    assert_eq!(&*read.entries[198].payload, [99; 40]);
    orphan.finish().await.unwrap();
    assert!(JournalContent::of(&**orphan).await.unwrap().entries.is_empty());
}

#[rstest]
#[tokio::test]
async fn living_process_is_not_adopted_and_nobody_is_while_the_finder_cannot_write(
    #[values(Kind::Sqlite, Kind::Postgres)] kind: Kind,
) {
    let store = Store::new(kind).await;
    let _journals = (store.journal(1).await, store.journal(2).await);
    let orphans = store.orphans(2).await;
    assert!(store.pass(&orphans, 60, &[1, 2]).await.is_empty(), "both live");
    assert!(store.pass(&orphans, 60, &[]).await.is_empty(), "the finder shows no sign of life either");
    assert!(store.pass(&orphans, 13, &[2]).await.is_empty(), "the watch starts when the finder can write again");
    assert_eq!(store.pass(&orphans, 10, &[2]).await, [process(1)]);
}

#[rstest]
#[tokio::test]
async fn local_journals_are_not_adopted(#[values(Kind::Sqlite, Kind::Postgres)] kind: Kind) {
    let store = Store::new(kind).await;
    store.budget().await.register(process(1)).await.unwrap();
    let (_own, orphans) = (store.journal(2).await, store.orphans(2).await);
    assert!(store.pass(&orphans, 40, &[2]).await.is_empty());
    assert!(!orphans.contains(process(1)).await.unwrap() && orphans.contains(process(2)).await.unwrap());
}

#[rstest]
#[tokio::test]
async fn adopted_process_stores_nothing_more_and_its_seal_returns_the_rest(
    #[values(Kind::Sqlite, Kind::Postgres)] kind: Kind,
) {
    let store = Store::new(kind).await;
    let journal = Arc::new(store.journal(1).await);
    let (_own, orphans) = (store.journal(2).await, store.orphans(2).await);
    let first = sent(&journal, b"first");
    journal.wait_sendable(first).await.unwrap();
    assert_eq!(store.pass(&orphans, 20, &[2]).await[..1], [process(1)]);
    let late = journal.append_end(EntryKind::Charged, b"late", 100).unwrap();
    let waiting = TaskTracker::new().spawn({
        let journal = Arc::clone(&journal);
        async move { journal.wait_durable(late).await }
    });
    while journal.status().is_writable {
        tokio::time::sleep(Duration::from_millis(5)).await;
    }
    let rejected = journal.append_sent(EntryKind::Sent, b"next", 0);
    assert!(matches!(rejected, Err(UsageJournalError::Unavailable(_))), "{rejected:?}");
    let returned = journal.seal().await;
    assert!(returned.iter().any(|entry| entry.sequence == late && &*entry.payload == b"late"), "{returned:?}");
    let waited = waiting.await.unwrap();
    assert!(matches!(waited, Err(UsageJournalError::Sealed)), "{waited:?}");
    assert!(matches!(journal.append_end(EntryKind::Charged, b"x", 0), Err(UsageJournalError::Sealed)));
    let orphan = store.open().await;
    let stored = SeaOrmBudgetStore::new(orphan).process(process(1)).await.unwrap().unwrap();
    assert_eq!(stored.state, ProcessState::Adopted);
}

#[rstest]
#[tokio::test]
async fn folded_entries_of_ended_requests_leave_the_store(#[values(Kind::Sqlite, Kind::Postgres)] kind: Kind) {
    let store = Store::new(kind).await;
    let journal = store.journal(1).await;
    for number in 0..10_u8 {
        let end = journal.append_end(EntryKind::Charged, &[number], 0).unwrap();
        journal.wait_durable(end).await.unwrap();
    }
    assert_eq!(journal.unfolded(100, 1 << 20).unwrap().len(), 10);
    journal.remove_folded(8);
    journal.remove_segments(5).unwrap();
    // The next transaction removes them.
    let end = journal.append_end(EntryKind::Charged, b"11", 0).unwrap();
    journal.wait_durable(end).await.unwrap();
    let (_own, orphans) = (store.journal(2).await, store.orphans(2).await);
    drop(journal);
    let mut found = Vec::new();
    for second in 0..20 {
        store.clock.advance(Duration::from_secs(1));
        if second % 3 == 0 {
            store.show_alive(2).await;
        }
        found = orphans.find().await.unwrap();
        if !found.is_empty() {
            break;
        }
    }
    let entries = JournalContent::of(&*found[0]).await.unwrap().entries;
    assert_eq!(entries.iter().map(|entry| entry.sequence).collect::<Vec<_>>(), (5..=11).collect::<Vec<_>>());
}

/// Creates journals in the store for consecutive processes.
struct Journals {
    database: Database,
    tasks: TaskTracker,
    next: AtomicU64,
}

#[async_trait]
impl JournalFactory for Journals {
    async fn create(&self) -> Result<Arc<dyn UsageJournal>, UsageJournalError> {
        let number = self.next.fetch_add(1, Ordering::Relaxed);
        let created = StoreJournal::create(self.database.clone(), process(number.into()), SETTINGS).await;
        let (journal, writing) = created.map_err(|error| UsageJournalError::Unavailable(Box::new(error)))?;
        self.tasks.spawn(writing);
        Ok(Arc::new(journal))
    }
}

impl Store {
    /// Starts the ledger of a replica, whose processes have the ids from a number on.
    async fn ledger(&self, first: u64) -> (Arc<RenewingLedger>, Arc<RecoverJournals>) {
        let database = self.open().await;
        let budget: Arc<dyn BudgetStore> = Arc::new(SeaOrmBudgetStore::new(database.clone()));
        let orphans = self.orphans(first.into()).await;
        let recover = Arc::new(RecoverJournals::new(Arc::clone(&budget), Arc::new(orphans), UnknownUsage::Bound));
        let ports = RenewingLedgerPorts {
            store: budget,
            journals: Arc::new(Journals {
                database: database.clone(),
                tasks: self.tasks.clone(),
                next: AtomicU64::new(first),
            }),
            time: create_time_without_timer(&self.clock),
            limits: Arc::new(SeaOrmLedgerReports::new(database)),
            recover: Arc::clone(&recover),
        };
        let settings = LedgerSettings { heartbeat: Duration::from_secs(5), ..LedgerSettings::default() };
        (Arc::new(RenewingLedger::start(ports, settings).await.unwrap()), recover)
    }
}

fn charge(number: u128, pico: i64) -> UsageCharge {
    UsageCharge::new(usage_record(number, pico))
}

#[rstest]
#[tokio::test]
async fn paused_process_is_adopted_and_its_late_charge_replaces_the_bound(
    #[values(Kind::Sqlite, Kind::Postgres)] kind: Kind,
) {
    let store = Store::new(kind).await;
    let stores = replicas(&[store.open().await], store.clock.clone());
    insert_payer(&stores).await;
    limit_payer(&stores, Some(1_000)).await;
    let (paused, _) = store.ledger(1).await;
    let (other, recover) = store.ledger(100).await;
    paused.reserve(hold_request(1, 100)).await.unwrap().unwrap();
    paused.settle(&charge(1, 10)).await.unwrap();
    paused.reserve(hold_request(2, 100)).await.unwrap().unwrap();
    for _ in 0..25 {
        store.clock.advance(Duration::from_secs(1));
        other.tick().await.unwrap();
        recover.execute().await.unwrap();
    }
    assert_eq!(store.state(1).await, ProcessState::Ended);
    let usage = SeaOrmUsageRepository::new(store.open().await);
    let record = async |number: u128| usage.find(&usage_record(number, 1).id).await.unwrap();
    assert_eq!(record(1).await.unwrap().cost, usage_record(1, 10).cost, "the charge that was acknowledged");
    assert_eq!(record(2).await.unwrap().outcome, UsageOutcome::Abandoned);
    // The paused process wakes: its charge cannot be stored under its id.
    let second = charge(2, 30);
    let settled = tokio::join!(paused.settle(&second), async {
        while paused.process() == process(1) {
            paused.tick().await.ok();
            tokio::time::sleep(Duration::from_millis(10)).await;
        }
    });
    settled.0.unwrap();
    for _ in 0..3 {
        paused.tick().await.unwrap();
    }
    let late = record(2).await.unwrap();
    assert_eq!((late.outcome, late.cost), (UsageOutcome::Completed, usage_record(2, 30).cost));
    paused.reserve(hold_request(3, 900)).await.unwrap().unwrap();
    let reports = SeaOrmLedgerReports::new(store.open().await);
    assert_eq!(reports.audit().await.unwrap().discrepancies, []);
}

#[tokio::test]
async fn closed_database_rejects_requests_before_they_are_sent() {
    let store = Store::new(Kind::Sqlite).await;
    let database = store.open().await;
    let (journal, writing) = StoreJournal::create(database.clone(), process(1), SETTINGS).await.unwrap();
    store.tasks.spawn(writing);
    database.close().await;
    let first = sent(&journal, b"first");
    let waited = journal.wait_sendable(first).await;
    assert!(matches!(waited, Err(UsageJournalError::Retained { .. })), "{waited:?}");
    assert!(!journal.status().is_writable);
    let rejected = journal.append_sent(EntryKind::Sent, b"second", 0);
    assert!(matches!(rejected, Err(UsageJournalError::Unavailable(_))), "{rejected:?}");
    let unknown = store.budget().await.end(process(1), RemainingAllowances::Return).await;
    unknown.unwrap();
}
