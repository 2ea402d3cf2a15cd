//! Recovery of journals whose processes died.

use std::collections::{HashMap, HashSet};
use std::sync::Arc;

use async_trait::async_trait;

use super::super::bill::abandoned_record;
use super::super::entries::{Entry, SentEntry};
use super::super::{
    BudgetStore, BudgetStoreError, EntrySink, FoldEntry, FoldRequest, JournalEntry, OrphanedJournal, OrphanedJournals,
    ProcessState, ProcessStatus, RemainingAllowances, UsageCharge, UsageJournalError,
};
use super::calls::{journal_failed, lock};
use super::sync::Mutex;
use crate::error::StoreError;
use crate::ids::{DecisionId, ProcessId};
use crate::money::Usd;
use crate::usage::UnknownUsage;

/// The most charges of one transaction.
const BATCH: usize = 512;

/// The result of a recovery.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct RecoveryReport {
    /// Journals that were recovered.
    pub journals: u64,
    /// Charges that were folded.
    pub folded: u64,
    /// Open requests that were charged by their upper bounds.
    pub abandoned: u64,
    /// Open requests that were not charged.
    pub released: u64,
    /// Missing or unreadable parts of journals.
    pub gaps: u64,
}

/// Folds the journals of dead processes, charges their open requests, and ends their allowances.
pub struct RecoverJournals {
    store: Arc<dyn BudgetStore>,
    journals: Arc<dyn OrphanedJournals>,
    unknown: UnknownUsage,
    /// Processes whose journals are recovered.
    done: Mutex<HashSet<ProcessId>>,
    /// Processes whose journals could not be recovered when this was last tried, which is every second.
    failing: Mutex<HashSet<ProcessId>>,
}

/// The state at the end of a journal: what its entries leave open.
struct Survey {
    process: ProcessId,
    /// Open requests.
    open: HashMap<DecisionId, SentEntry>,
    first: Option<u64>,
    last: u64,
    /// Entries that cannot be decoded.
    unreadable: u64,
    is_closed: bool,
}

/// Folds the charges of a journal that are not folded yet, in batches.
struct Folding<'a> {
    store: &'a dyn BudgetStore,
    process: ProcessId,
    /// The last entry that is folded.
    folded: u64,
    /// Charges to fold.
    batch: Vec<FoldEntry>,
    count: u64,
}

/// The parts of a journal that are left when its charges are folded.
struct Found {
    /// Open requests, in order.
    open: Vec<SentEntry>,
    last: u64,
    /// True if charges may be missing.
    is_incomplete: bool,
    gaps: u64,
}

impl RecoverJournals {
    /// Wires the ports. `unknown` decides the charge of open requests.
    pub fn new(store: Arc<dyn BudgetStore>, journals: Arc<dyn OrphanedJournals>, unknown: UnknownUsage) -> Self {
        Self { store, journals, unknown, done: Mutex::default(), failing: Mutex::default() }
    }

    /// Makes the next call read the journals again that were recovered before: the store may lack what was folded.
    pub fn restart(&self) {
        lock(&self.done).clear();
    }

    /// Recovers the journals of all dead processes. A journal that fails is left for the next call, and logged once.
    pub async fn execute(&self) -> Result<RecoveryReport, StoreError> {
        let mut report = RecoveryReport::default();
        for journal in self.journals.find().await.map_err(journal_failed)? {
            let process = journal.process();
            if lock(&self.done).contains(&process) {
                journal.remove_if_old().await.map_err(journal_failed)?;
                continue;
            }
            match self.recover(&*journal).await {
                Ok(one) => {
                    lock(&self.done).insert(process);
                    lock(&self.failing).remove(&process);
                    report.add(one);
                }
                Err(error) if lock(&self.failing).insert(process) => {
                    let error: &dyn std::error::Error = &error;
                    tracing::error!(process.id = %process, error, "journal of a dead process not recovered, retrying");
                }
                Err(_) => {}
            }
        }
        Ok(report)
    }

    async fn recover(&self, journal: &dyn OrphanedJournal) -> Result<RecoveryReport, StoreError> {
        let process = journal.process();
        let status = self.status(process).await?;
        let found = survey(journal, status).await.map_err(journal_failed)?;
        let is_adjusted = found.is_incomplete && self.unknown == UnknownUsage::Bound;
        let is_ended = match status.state {
            ProcessState::Live | ProcessState::Adopted => false,
            ProcessState::Ended => true,
            // A complete journal that reappears releases the adjustments.
            ProcessState::Lost => is_adjusted,
        };
        if is_ended && found.last <= status.folded_sequence {
            journal.finish().await.map_err(journal_failed)?;
            journal.remove_if_old().await.map_err(journal_failed)?;
            return Ok(RecoveryReport::default());
        }
        let mut report = RecoveryReport { journals: 1, gaps: found.gaps, ..RecoveryReport::default() };
        let mut folding = Folding::new(&*self.store, process, status.folded_sequence);
        if found.last > status.folded_sequence {
            journal.read(&mut folding).await.map_err(journal_failed)?;
        }
        report.folded = folding.count;
        let (charged, released) = self.abandon(found.open);
        (report.abandoned, report.released) = (charged.len() as u64, released);
        for (sequence, entry) in (found.last + 1..).zip(charged) {
            folding.add(sequence, entry).await?;
        }
        folding.finish(found.last + report.abandoned).await?;
        let remaining = if is_adjusted { RemainingAllowances::Adjust } else { RemainingAllowances::Return };
        self.store.end(process, remaining).await?;
        journal.finish().await.map_err(journal_failed)?;
        tracing::warn!(
            process.id = %process,
            folded = report.folded,
            abandoned = report.abandoned,
            released = report.released,
            gaps = report.gaps,
            adjusted = is_adjusted,
            "journal of a dead process recovered"
        );
        Ok(report)
    }

    /// Returns the status of a process. An unknown process was registered after the backup that the store was restored
    /// from.
    async fn status(&self, process: ProcessId) -> Result<ProcessStatus, StoreError> {
        if let Some(status) = self.store.process(process).await? {
            return Ok(status);
        }
        self.store.register(process).await?;
        Ok(ProcessStatus { state: ProcessState::Live, number: 0, folded_sequence: 0 })
    }

    /// Returns the charges of open requests, and the number of requests without a charge.
    fn abandon(&self, open: Vec<SentEntry>) -> (Vec<FoldEntry>, u64) {
        let count = open.len();
        let charged: Vec<FoldEntry> = match self.unknown {
            UnknownUsage::Bound => open.into_iter().filter_map(abandoned).collect(),
            UnknownUsage::Free => Vec::new(),
        };
        let released = count.saturating_sub(charged.len()) as u64;
        (charged, released)
    }
}

impl RecoveryReport {
    fn add(&mut self, other: Self) {
        self.journals += other.journals;
        self.folded += other.folded;
        self.abandoned += other.abandoned;
        self.released += other.released;
        self.gaps += other.gaps;
    }
}

async fn survey(journal: &dyn OrphanedJournal, status: ProcessStatus) -> Result<Found, UsageJournalError> {
    let process = journal.process();
    let mut survey = Survey::new(process);
    let damage = journal.read(&mut survey).await?;
    if !damage.gaps.is_empty() {
        journal.quarantine().await?;
    }
    for gap in &damage.gaps {
        tracing::error!(process.id = %process, first = gap.first, end = gap.end, reason = gap.reason, "journal gap");
    }
    let folded = status.folded_sequence;
    let mut gaps = damage.gaps.len() as u64 + survey.unreadable;
    if let Some(first) = survey.first.filter(|first| *first > folded + 1) {
        tracing::error!(process.id = %process, first, folded, "journal entries are missing");
        gaps += 1;
    }
    let mut open: Vec<SentEntry> = survey.open.into_values().collect();
    open.sort_by(|one, other| (one.at, &one.id).cmp(&(other.at, &other.id)));
    let mut found = Found {
        open,
        last: folded.max(survey.last),
        // The newest entries may be lost after a power loss.
        is_incomplete: gaps > 0 || (damage.is_of_another_boot && !survey.is_closed),
        gaps,
    };
    found.skip_abandoned(process, folded.saturating_sub(survey.last));
    Ok(found)
}

impl Survey {
    fn new(process: ProcessId) -> Self {
        Self { process, open: HashMap::new(), first: None, last: 0, unreadable: 0, is_closed: false }
    }

    fn note(&mut self, entry: &JournalEntry) {
        self.first.get_or_insert(entry.sequence);
        self.last = entry.sequence;
        match Entry::decode(entry.kind, &entry.payload) {
            Ok(Entry::Sent(sent)) => drop(self.open.insert(sent.id.clone(), *sent)),
            Ok(Entry::Increased(more)) => {
                if let Some(sent) = self.open.get_mut(&more.id) {
                    sent.amount = sent.amount.checked_add(more.amount).unwrap_or(Usd::from_pico(i64::MAX));
                    sent.attempts = sent.attempts.iter().cloned().chain(more.attempts).collect();
                }
            }
            Ok(Entry::Charged(charged)) => drop(self.open.remove(&charged.charge.record.id)),
            Ok(Entry::Released(id)) => drop(self.open.remove(&id)),
            Ok(Entry::Closed) => self.is_closed = true,
            Err(error) => {
                let sequence = entry.sequence;
                tracing::error!(process.id = %self.process, sequence, %error, "journal entry not readable");
                self.unreadable += 1;
            }
        }
    }
}

#[async_trait]
impl EntrySink for Survey {
    async fn take(&mut self, entries: Vec<JournalEntry>) -> Result<(), UsageJournalError> {
        for entry in &entries {
            self.note(entry);
        }
        Ok(())
    }
}

impl<'a> Folding<'a> {
    fn new(store: &'a dyn BudgetStore, process: ProcessId, folded: u64) -> Self {
        Self { store, process, folded, batch: Vec::new(), count: 0 }
    }

    /// Adds a charge, and folds a batch that is full.
    async fn add(&mut self, sequence: u64, entry: FoldEntry) -> Result<(), StoreError> {
        self.batch.push(entry);
        if self.batch.len() < BATCH { Ok(()) } else { self.fold(sequence).await }
    }

    /// Folds the rest. `last` is the number of the last entry.
    async fn finish(mut self, last: u64) -> Result<(), StoreError> {
        if self.folded < last { self.fold(last).await } else { Ok(()) }
    }

    async fn fold(&mut self, up_to: u64) -> Result<(), StoreError> {
        let (after, entries) = (self.folded, std::mem::take(&mut self.batch));
        let request = FoldRequest { process: self.process, after, up_to, entries };
        self.store.fold(&request).await.map_err(|error| match error {
            BudgetStoreError::Store(error) => error,
            other => StoreError::unavailable(other),
        })?;
        self.folded = up_to;
        Ok(())
    }
}

#[async_trait]
impl EntrySink for Folding<'_> {
    async fn take(&mut self, entries: Vec<JournalEntry>) -> Result<(), UsageJournalError> {
        for entry in entries {
            // The survey named entries that cannot be decoded.
            if entry.sequence > self.folded
                && let Ok(Entry::Charged(charged)) = Entry::decode(entry.kind, &entry.payload)
            {
                self.add(entry.sequence, *charged)
                    .await
                    .map_err(|error| UsageJournalError::Unavailable(Box::new(error)))?;
                self.count += 1;
            }
        }
        Ok(())
    }
}

impl Found {
    /// Skips charges of open requests that an interrupted recovery has folded: they are numbered after the last entry.
    /// If the store has folded more, the journal is a copy older than the store.
    fn skip_abandoned(&mut self, process: ProcessId, folded_behind: u64) {
        match usize::try_from(folded_behind) {
            Ok(folded) if folded <= self.open.len() => drop(self.open.drain(..folded)),
            _ => {
                tracing::error!(process.id = %process, missing = folded_behind, "the newest journal entries are missing");
                (self.is_incomplete, self.gaps) = (true, self.gaps + 1);
            }
        }
    }
}

/// Returns the charge of an open request: the upper bound of the attempts that had begun.
fn abandoned(sent: SentEntry) -> Option<FoldEntry> {
    let (amount, counters) = (sent.amount, sent.counters.clone());
    let record = abandoned_record(sent)?;
    let borne = record.cost.min(amount);
    let allowances = counters.into_iter().map(|counter| (counter, borne)).collect();
    Some(FoldEntry { charge: UsageCharge::new(record), allowances })
}
