//! A ledger that continues under another process id when the store no longer accepts its own.

use std::pin::pin;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, PoisonError, RwLock};
use std::time::Duration;

use async_trait::async_trait;
use futures_util::future::{Either, select};
use futures_util::lock::Mutex as AsyncMutex;

use super::calls::{ChargeError, journal_failed};
use super::{JournaledLedger, LedgerSettings, RecoverJournals};
use crate::budget::entries::Entry;
use crate::budget::{
    BudgetStore, Hold, HoldRequest, JournalEntry, JournalFactory, KeySpend, Ledger, LedgerReader, LimitExceeded,
    LimitStatus, Payer, ProcessState, UsageCharge, UsageJournal, UsageJournalError, UsageJournalStatus,
};
use crate::error::StoreError;
use crate::ids::{ApiKeyId, DecisionId, ProcessId, WorkspaceId};
use crate::money::Usd;
use crate::system::TimeSource;
use crate::usage::AttemptRecord;

/// The time between two rounds of background work.
const TICK: Duration = Duration::from_millis(50);
/// The pause between two rounds while entries are left to fold, for requests that wait for a draw.
const FOLD_PAUSE: Duration = Duration::from_millis(1);
/// The time between two log lines during an outage of the store.
const LOG_EVERY: Duration = Duration::from_mins(1);
/// The time between two attempts to close the ledger at the end.
const CLOSE_RETRY: Duration = Duration::from_millis(250);

/// The collaborators of a [`RenewingLedger`].
#[derive(Clone)]
pub struct RenewingLedgerPorts {
    /// The store of allowances.
    pub store: Arc<dyn BudgetStore>,
    /// Creates the journals.
    pub journals: Arc<dyn JournalFactory>,
    /// The clock and the timer of this process.
    pub time: TimeSource,
    /// Reads the amounts in the store.
    pub limits: Arc<dyn LedgerReader>,
    /// Recovers sealed journals.
    pub recover: Arc<RecoverJournals>,
}

/// The ledger of a running server: a [`JournaledLedger`], replaced by another one when the store no longer accepts it.
///
/// A process is superseded if another process recovered its journal after a long pause, or if the store was replaced by
/// an older one. It then continues with an empty journal, a new process id and no allowances. The previous journal is
/// sealed and recovered like that of a dead process: everything that the store lacks is folded again, and open requests
/// are charged by their upper bounds. Their real charges go to the new journal and replace these.
pub struct RenewingLedger {
    ports: RenewingLedgerPorts,
    settings: LedgerSettings,
    current: RwLock<Arc<JournaledLedger>>,
    renewals: AtomicU64,
    /// Holds of limited requests that failed.
    failed_holds: AtomicU64,
    /// True while the store has not taken the declaration that it is older than this process.
    must_declare: AtomicBool,
    /// Held while the entries of a sealed journal move to the new one.
    renewal: AsyncMutex<()>,
}

impl RenewingLedger {
    /// Creates the first journal.
    ///
    /// # Errors
    /// The journal cannot be created.
    pub async fn start(ports: RenewingLedgerPorts, settings: LedgerSettings) -> Result<Self, UsageJournalError> {
        let first = new_ledger(&ports, settings).await?;
        let current = RwLock::new(Arc::new(first));
        Ok(Self {
            ports,
            settings,
            current,
            renewals: AtomicU64::new(0),
            failed_holds: AtomicU64::new(0),
            must_declare: AtomicBool::new(false),
            renewal: AsyncMutex::new(()),
        })
    }

    /// Returns the current process id. Its journal and its allowances have it.
    pub fn process(&self) -> ProcessId {
        self.current().process()
    }

    /// Returns the status of the current journal.
    pub fn journal_status(&self) -> UsageJournalStatus {
        self.current().journal_status()
    }

    /// Returns the number of open requests.
    pub fn open_calls(&self) -> usize {
        self.current().open_calls()
    }

    /// Returns the number of records without their trace since the last renewal.
    pub fn omitted_traces(&self) -> u64 {
        self.current().omitted_traces()
    }

    /// Returns the number of renewals.
    pub fn renewals(&self) -> u64 {
        self.renewals.load(Ordering::Relaxed)
    }

    /// Returns the number of holds of limited requests that failed without being rejected by a limit.
    pub fn failed_holds(&self) -> u64 {
        self.failed_holds.load(Ordering::Relaxed)
    }

    /// Returns the number of entries of the current journal that are folded.
    pub fn folded_entries(&self) -> u64 {
        let status = self.journal_status();
        status.last_sequence.saturating_sub(status.unfolded_entries)
    }

    fn current(&self) -> Arc<JournaledLedger> {
        Arc::clone(&self.current.read().unwrap_or_else(PoisonError::into_inner))
    }

    /// Does one round of background work, then renews the ledger if it is superseded. Returns true if entries are left
    /// to fold.
    ///
    /// # Errors
    /// The store failed, or the new journal cannot be created.
    pub async fn tick(&self) -> Result<bool, StoreError> {
        self.declare_older().await?;
        let ledger = self.current();
        let worked = ledger.work().await;
        if ledger.is_superseded() { self.renew(&ledger).await.map(|()| true) } else { worked }
    }

    /// Declares that the store is older than this process, if a renewal found that and the store does not know it yet.
    async fn declare_older(&self) -> Result<(), StoreError> {
        if self.must_declare.load(Ordering::Acquire) {
            self.ports.store.declare_older().await?;
            self.must_declare.store(false, Ordering::Release);
        }
        Ok(())
    }

    /// Replaces a superseded ledger, and has its journal recovered.
    async fn renew(&self, before: &JournaledLedger) -> Result<(), StoreError> {
        // A row that is not live was adopted or lost. Otherwise the store lacks calls of the process.
        let state = self.ports.store.process(before.process()).await?.map(|row| row.state);
        let renewal = self.renewal.lock().await;
        let after = Arc::new(new_ledger(&self.ports, self.settings).await.map_err(journal_failed)?);
        tracing::warn!(
            process.id = %before.process(),
            new_process.id = %after.process(),
            state = state.map_or("unknown", ProcessState::as_str),
            "process no longer accepted by the store; continuing under a new id"
        );
        // First the new ledger: a charge that meets the sealed journal is repeated there.
        *self.current.write().unwrap_or_else(PoisonError::into_inner) = Arc::clone(&after);
        self.renewals.fetch_add(1, Ordering::Relaxed);
        if state.is_none_or(|state| state == ProcessState::Live) {
            self.must_declare.store(true, Ordering::Release);
        }
        let unsaved = before.seal().await;
        append_unsaved(&after, unsaved);
        drop(renewal);
        self.ports.recover.restart();
        self.declare_older().await?;
        if let Err(error) = self.ports.recover.execute().await {
            tracing::warn!(error = &error as &dyn std::error::Error, "sealed journal not recovered, retrying");
        }
        Ok(())
    }

    /// Does background work until `stopped`, then ends the process in the store within `grace`. The next process of
    /// this machine folds entries that are left.
    pub async fn run(&self, stopped: impl Future<Output = ()>, grace: Duration) {
        let time = &self.ports.time;
        let mut stopped = pin!(stopped);
        let mut outage = None;
        loop {
            let worked = self.tick().await;
            let pause = if matches!(worked, Ok(true)) { FOLD_PAUSE } else { TICK };
            outage = self.log_outage(worked.err(), outage);
            match select(&mut stopped, time.sleep(pause)).await {
                Either::Left(_) => break,
                Either::Right(_) => {}
            }
        }
        let ended = async {
            while let Err(error) = self.close().await {
                outage = self.log_outage(Some(error), outage);
                time.sleep(CLOSE_RETRY).await;
            }
        };
        if let Either::Right(_) = select(pin!(ended), time.sleep(grace)).await {
            let unfolded = self.journal_status().unfolded_entries;
            tracing::error!(unfolded, "store did not accept charges; they stay in the journal until the next start");
        }
    }

    /// Folds everything and ends the process in the store. A ledger that turns out to be superseded is renewed first.
    async fn close(&self) -> Result<(), StoreError> {
        let ledger = self.current();
        let closed = ledger.close().await;
        if ledger.is_superseded() {
            self.renew(&ledger).await?;
        }
        closed
    }

    /// Logs an outage of the store once a minute. Takes and returns the time of the last log line.
    fn log_outage(&self, error: Option<StoreError>, logged: Option<Duration>) -> Option<Duration> {
        let Some(error) = error else {
            if logged.is_some() {
                tracing::info!("journal folded again");
            }
            return None;
        };
        let now = self.ports.time.monotonic();
        if logged.is_some_and(|logged| now.saturating_sub(logged) < LOG_EVERY) {
            return logged;
        }
        let unfolded = self.journal_status().unfolded_entries;
        let error: &dyn std::error::Error = &error;
        tracing::warn!(unfolded, error, "journal not folded: store unavailable");
        Some(now)
    }

    /// Appends a charge to the current journal, or to the next one if that was sealed.
    fn append_charge(&self, charge: &UsageCharge) -> Result<(Arc<JournaledLedger>, u64), StoreError> {
        loop {
            let ledger = self.current();
            match ledger.append_charge(charge) {
                Ok(sequence) => return Ok((ledger, sequence)),
                Err(ChargeError::Sealed) if !Arc::ptr_eq(&ledger, &self.current()) => {}
                Err(error) => return Err(error.into_store_error()),
            }
        }
    }
}

async fn new_ledger(
    ports: &RenewingLedgerPorts,
    settings: LedgerSettings,
) -> Result<JournaledLedger, UsageJournalError> {
    let journal = ports.journals.create().await?;
    let (store, time) = (Arc::clone(&ports.store), ports.time.clone());
    Ok(JournaledLedger::new(store, journal, time, Arc::clone(&ports.limits), settings))
}

/// Appends charges that the recovery of their journal cannot read.
fn append_unsaved(ledger: &JournaledLedger, entries: Vec<JournalEntry>) {
    for entry in entries {
        match Entry::decode(entry.kind, &entry.payload) {
            Ok(Entry::Charged(charged)) => {
                if let Err(error) = ledger.append_charge(&charged.charge).map_err(ChargeError::into_store_error) {
                    let error: &dyn std::error::Error = &error;
                    tracing::error!(decision.id = %charged.charge.record.id, error, "charge lost: its journal was sealed");
                }
            }
            // A request that was not saved was not sent, and one that was is charged by its bound.
            Ok(_) => {}
            Err(error) => tracing::error!(sequence = entry.sequence, %error, "journal entry not readable"),
        }
    }
}

#[async_trait]
impl Ledger for RenewingLedger {
    async fn reserve(&self, request: HoldRequest) -> Result<Result<Hold, LimitExceeded>, StoreError> {
        let is_limited = request.is_limited;
        let reserved = self.current().hold(request).await;
        if is_limited && reserved.is_err() {
            self.failed_holds.fetch_add(1, Ordering::Relaxed);
        }
        reserved
    }

    async fn increase(
        &self,
        id: &DecisionId,
        more: Usd,
        attempts: &[AttemptRecord],
    ) -> Result<Result<(), LimitExceeded>, StoreError> {
        let ledger = self.current();
        if !ledger.is_open(id) {
            return Err(StoreError::unavailable("the hold belongs to a journal that was sealed"));
        }
        ledger.increase(id, more, attempts).await
    }

    async fn settle(&self, charge: &UsageCharge) -> Result<(), StoreError> {
        let (ledger, sequence) = self.append_charge(charge)?;
        match ledger.journal.wait_durable(sequence).await {
            Ok(()) => Ok(()),
            Err(UsageJournalError::Sealed) => {
                // The charge was not saved, so the seal has moved it to the current journal.
                drop(self.renewal.lock().await);
                let journal: Arc<dyn UsageJournal> = Arc::clone(&self.current().journal);
                journal.wait_durable(journal.status().last_sequence).await.map_err(journal_failed)
            }
            Err(error) => Err(journal_failed(error)),
        }
    }

    async fn release(&self, id: &DecisionId) -> Result<(), StoreError> {
        self.current().release(id).await
    }
}

#[async_trait]
impl LedgerReader for RenewingLedger {
    async fn limit_statuses(&self, payer: &Payer) -> Result<Vec<LimitStatus>, StoreError> {
        self.current().limit_statuses(payer).await
    }

    async fn workspace_limit_statuses(&self, id: WorkspaceId) -> Result<Vec<LimitStatus>, StoreError> {
        self.current().workspace_limit_statuses(id).await
    }

    async fn key_spend(&self, keys: &[(WorkspaceId, ApiKeyId)]) -> Result<Vec<KeySpend>, StoreError> {
        self.current().key_spend(keys).await
    }

    async fn store_pending(&self) -> Result<(), StoreError> {
        self.current().store_pending().await
    }
}
