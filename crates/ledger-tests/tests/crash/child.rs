//! The crashing process: it recovers the journals of others, works, stops in order, and cleans up.

use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

use adapters_journal::{
    Durability, JournalPorts, JournalSettings, LocalDisk, LocalJournal, LocalJournalSettings, LocalJournals,
};
use async_trait::async_trait;
use domain::audit::AuditDraft;
use domain::budget::{
    BudgetSignals, BudgetStore, BudgetStoreError, CounterLimits, DrawReply, DrawRequest, EntryKind, FoldRequest,
    JournalEntry, JournaledLedger, Ledger, LedgerSettings, LiveProcess, Payer, ProcessStatus, RecoverJournals,
    RemainingAllowances, ReturnRequest, UsageCharge, UsageJournal, UsageJournalError, UsageJournalStatus,
};
use domain::error::StoreError;
use domain::ids::ProcessId;
use domain::json::Json;
use domain::system::Soon;
use domain::testing::contract::{hold_request, usage_record};
use domain::testing::create_time_without_timer;
use domain::usage::UnknownUsage;

use crate::machine::{clock, open_database, stores};
use crate::points::{reach, write_down};
use crate::scene::process;

/// The amount of each hold and the cost of each charge, in picodollars.
pub const HOLD: i64 = 40;
pub const COST: i64 = 11;

/// Runs every step in the order of a process's life.
pub async fn run(folder: &Path) {
    let clock = clock();
    let database = open_database(&folder.join("tollgate.db"), &clock).await;
    let stores = stores(&database, &clock);
    let store: Arc<dyn BudgetStore> = Arc::new(MortalStore(Arc::clone(&stores.budget)));
    let root = folder.join("journals");
    let store_id = database.id().await.unwrap();
    let recover = |keep| {
        let journals = LocalJournals::new(&root, store_id, keep);
        RecoverJournals::new(Arc::clone(&store), Arc::new(journals), UnknownUsage::Bound)
    };
    recover(Duration::from_hours(1)).execute().await.unwrap();
    // Small segments, and syncs on the single working thread.
    let settings = JournalSettings {
        segment_bytes: 16 << 10,
        max_payload_bytes: 4 << 10,
        sync_interval: None,
        ..JournalSettings::default()
    };
    let local = LocalJournalSettings { store: store_id, durability: Durability::Written, keep: Duration::ZERO };
    let ports = JournalPorts { disk: Arc::new(LocalDisk), clock: Arc::new(clock.clone()) };
    let journal = LocalJournal::create(&root, process(3), local, settings, &ports).unwrap();
    let ledger = JournaledLedger::new(
        Arc::clone(&store),
        Arc::new(MortalJournal(journal)),
        create_time_without_timer(&clock),
        Arc::clone(&stores.limits),
        LedgerSettings { limits_recheck: Duration::ZERO, ..LedgerSettings::default() },
    );
    for round in 0..3 {
        work(&ledger, 1000 + 10 * round).await;
        // Idle allowances are returned, old segments removed.
        clock.advance(Duration::from_secs(61));
        ledger.tick().await.unwrap();
    }
    ledger.close().await.unwrap();
    drop(ledger);
    recover(Duration::ZERO).execute().await.unwrap();
}

/// Runs four requests: one is released, one increases its hold, all others are charged.
async fn work(ledger: &JournaledLedger, first: u128) {
    for number in first..first + 4 {
        write_down(&format!("holds {number}"));
        ledger.reserve(hold_request(number, HOLD)).await.unwrap().unwrap();
        write_down(&format!("held {number}"));
        ledger.tick().await.unwrap();
    }
    let id = |number| hold_request(number, HOLD).id;
    ledger
        .increase(&id(first + 1), hold_request(first, HOLD).amount, &hold_request(first, HOLD).attempts)
        .await
        .unwrap()
        .unwrap();
    write_down(&format!("releases {first}"));
    ledger.release(&id(first)).await.unwrap();
    for number in first + 1..first + 4 {
        let mut record = usage_record(number, COST);
        record.trace = Some(Json::string(&"x".repeat(3000)));
        ledger.settle(&UsageCharge::new(record)).await.unwrap();
        write_down(&format!("charged {number}"));
        if number == first + 2 {
            ledger.flush().await.unwrap();
        }
    }
}

/// A store that can crash the process before and after each call.
struct MortalStore(Arc<dyn BudgetStore>);

macro_rules! mortal {
    ($name:literal, $call:expr) => {{
        reach(concat!("before ", $name));
        let answer = $call;
        reach(concat!("after ", $name));
        answer
    }};
}

#[async_trait]
impl BudgetStore for MortalStore {
    async fn register(&self, process: ProcessId) -> Result<(), StoreError> {
        mortal!("register", self.0.register(process).await)
    }

    async fn process(&self, process: ProcessId) -> Result<Option<ProcessStatus>, StoreError> {
        mortal!("process", self.0.process(process).await)
    }

    async fn draw(&self, request: &DrawRequest) -> Result<DrawReply, BudgetStoreError> {
        mortal!("draw", self.0.draw(request).await)
    }

    async fn return_allowances(&self, request: &ReturnRequest) -> Result<(), BudgetStoreError> {
        mortal!("return", self.0.return_allowances(request).await)
    }

    async fn fold(&self, request: &FoldRequest) -> Result<(), BudgetStoreError> {
        mortal!("fold", self.0.fold(request).await)
    }

    async fn declare_older(&self) -> Result<(), StoreError> {
        mortal!("declaration of an older store", self.0.declare_older().await)
    }

    async fn end(&self, process: ProcessId, remaining: RemainingAllowances) -> Result<(), StoreError> {
        mortal!("end", self.0.end(process, remaining).await)
    }

    async fn forget(
        &self,
        process: ProcessId,
        remaining: RemainingAllowances,
        audit: &AuditDraft,
    ) -> Result<(), StoreError> {
        mortal!("forget", self.0.forget(process, remaining, audit).await)
    }

    async fn live_processes(&self) -> Result<Vec<LiveProcess>, StoreError> {
        self.0.live_processes().await
    }

    async fn limits(&self, payer: &Payer) -> Result<(Vec<CounterLimits>, u64), StoreError> {
        self.0.limits(payer).await
    }

    async fn signals(&self) -> Result<BudgetSignals, StoreError> {
        self.0.signals().await
    }
}

/// A journal that can crash the process before and after each call. Waiting for a sync syncs.
struct MortalJournal(LocalJournal);

#[async_trait]
impl UsageJournal for MortalJournal {
    fn process(&self) -> ProcessId {
        self.0.process()
    }

    fn append_sent(&self, kind: EntryKind, payload: &[u8], reserve: usize) -> Result<u64, UsageJournalError> {
        mortal!("append of a request", self.0.append_sent(kind, payload, reserve))
    }

    fn append_end(&self, kind: EntryKind, payload: &[u8], reserved: usize) -> Result<u64, UsageJournalError> {
        mortal!("append of an end", self.0.append_end(kind, payload, reserved))
    }

    fn wait_sendable(&self, sequence: u64) -> Soon<'_, Result<(), UsageJournalError>> {
        self.0.wait_sendable(sequence)
    }

    fn wait_durable(&self, sequence: u64) -> Soon<'_, Result<(), UsageJournalError>> {
        self.0.wait_durable(sequence)
    }

    async fn wait_synced(&self, sequence: u64) -> Result<(), UsageJournalError> {
        self.0.sync().unwrap();
        self.0.wait_synced(sequence).await
    }

    fn unfolded(&self, max_entries: usize, max_bytes: usize) -> Result<Vec<JournalEntry>, UsageJournalError> {
        self.0.unfolded(max_entries, max_bytes)
    }

    fn remove_folded(&self, up_to: u64) {
        mortal!("removal of folded entries", self.0.remove_folded(up_to));
    }

    fn remove_segments(&self, keep_from: u64) -> Result<usize, UsageJournalError> {
        self.0.remove_segments(keep_from)
    }

    fn status(&self) -> UsageJournalStatus {
        self.0.status()
    }

    async fn seal(&self) -> Vec<JournalEntry> {
        self.0.seal().await
    }
}
