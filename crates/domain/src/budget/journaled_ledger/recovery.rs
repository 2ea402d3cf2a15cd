//! Recovery of journals whose processes died.

use std::collections::{HashMap, HashSet};
use std::sync::Arc;

use super::super::entries::{Entry, SentEntry};
use super::super::{
    BudgetStore, BudgetStoreError, FoldEntry, FoldRequest, Hold, HoldRequest, OrphanedJournal, OrphanedJournals,
    ProcessState, ProcessStatus, RemainingAllowances, UsageCharge, UsageJournalError, abandoned_record,
};
use super::calls::lock;
use super::keeper::journal_failed;
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
}

/// The parts of a journal that recovery needs.
struct Found {
    /// Charges after the last folded entry, with their numbers.
    charges: Vec<(u64, FoldEntry)>,
    /// Open requests.
    open: Vec<SentEntry>,
    last: u64,
    /// True if charges may be missing.
    is_incomplete: bool,
    gaps: u64,
}

impl RecoverJournals {
    /// Wires the ports. `unknown` decides the charge of open requests.
    pub fn new(store: Arc<dyn BudgetStore>, journals: Arc<dyn OrphanedJournals>, unknown: UnknownUsage) -> Self {
        Self { store, journals, unknown, done: Mutex::default() }
    }

    /// Makes the next call read the journals again that were recovered before: the store may lack what was folded.
    pub fn restart(&self) {
        lock(&self.done).clear();
    }

    /// Recovers the journals of all dead processes. A journal that fails is logged and left for the next call.
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
                    report.add(one);
                }
                Err(error) => {
                    let error: &dyn std::error::Error = &error;
                    tracing::error!(process.id = %process, error, "journal of a dead process not recovered");
                }
            }
        }
        Ok(report)
    }

    async fn recover(&self, journal: &dyn OrphanedJournal) -> Result<RecoveryReport, StoreError> {
        let process = journal.process();
        let status = self.status(process).await?;
        let found = read(journal, status).await.map_err(journal_failed)?;
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
        report.folded = found.charges.len() as u64;
        let (charged, released) = self.abandon(found.open);
        (report.abandoned, report.released) = (charged.len() as u64, released);
        let behind = (found.last + 1..).zip(charged);
        let entries: Vec<(u64, FoldEntry)> = found.charges.into_iter().chain(behind).collect();
        let last = found.last + report.abandoned;
        self.fold(process, status.folded_sequence, entries, last).await?;
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

    async fn fold(
        &self,
        process: ProcessId,
        mut after: u64,
        entries: Vec<(u64, FoldEntry)>,
        last: u64,
    ) -> Result<(), StoreError> {
        let mut entries = entries.into_iter().peekable();
        while after < last {
            let mut batch = Vec::new();
            let mut up_to = after;
            while let Some((sequence, entry)) = entries.next_if(|_| batch.len() < BATCH) {
                up_to = sequence;
                batch.push(entry);
            }
            if entries.peek().is_none() {
                up_to = last;
            }
            let request = FoldRequest { process, after, up_to, entries: batch };
            self.store.fold(&request).await.map_err(|error| match error {
                BudgetStoreError::Store(error) => error,
                other => StoreError::unavailable(other),
            })?;
            after = up_to;
        }
        Ok(())
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

async fn read(journal: &dyn OrphanedJournal, status: ProcessStatus) -> Result<Found, UsageJournalError> {
    let process = journal.process();
    let read = journal.read().await?;
    if !read.gaps.is_empty() {
        journal.quarantine().await?;
    }
    for gap in &read.gaps {
        tracing::error!(process.id = %process, first = gap.first, end = gap.end, reason = gap.reason, "journal gap");
    }
    let mut found = Found {
        charges: Vec::new(),
        open: Vec::new(),
        last: status.folded_sequence,
        is_incomplete: !read.gaps.is_empty(),
        gaps: read.gaps.len() as u64,
    };
    if let Some(first) = read.entries.first().filter(|first| first.sequence > status.folded_sequence + 1) {
        let folded = status.folded_sequence;
        tracing::error!(process.id = %process, first = first.sequence, folded, "journal entries are missing");
        (found.is_incomplete, found.gaps) = (true, found.gaps + 1);
    }
    let last_read = read.entries.last().map_or(0, |last| last.sequence);
    let mut open: HashMap<DecisionId, SentEntry> = HashMap::new();
    let mut is_closed = false;
    for entry in read.entries {
        found.last = found.last.max(entry.sequence);
        match Entry::decode(entry.kind, &entry.payload) {
            Ok(Entry::Sent(sent)) => drop(open.insert(sent.id.clone(), *sent)),
            Ok(Entry::Increased(more)) => {
                if let Some(sent) = open.get_mut(&more.id) {
                    sent.amount = sent.amount.checked_add(more.amount).unwrap_or(Usd::from_pico(i64::MAX));
                    sent.attempts = sent.attempts.iter().cloned().chain(more.attempts).collect();
                }
            }
            Ok(Entry::Charged(charged)) => {
                open.remove(&charged.charge.record.id);
                if entry.sequence > status.folded_sequence {
                    found.charges.push((entry.sequence, *charged));
                }
            }
            Ok(Entry::Released(id)) => drop(open.remove(&id)),
            Ok(Entry::Closed) => is_closed = true,
            Err(error) => {
                tracing::error!(process.id = %process, sequence = entry.sequence, %error, "journal entry not readable");
                (found.is_incomplete, found.gaps) = (true, found.gaps + 1);
            }
        }
    }
    // The newest entries may be lost after a power loss.
    found.is_incomplete |= read.is_of_another_boot && !is_closed;
    found.open = open.into_values().collect();
    found.open.sort_by(|one, other| (one.at, &one.id).cmp(&(other.at, &other.id)));
    found.skip_abandoned(process, status.folded_sequence.saturating_sub(last_read));
    Ok(found)
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

/// Returns the charge of an open request: the upper bound of its attempts.
fn abandoned(sent: SentEntry) -> Option<FoldEntry> {
    let hold = Hold { id: sent.id.clone(), at: sent.at, payer: sent.payer.clone(), amount: sent.amount };
    let request = HoldRequest {
        id: sent.id,
        payer: sent.payer,
        amount: sent.amount,
        is_limited: !sent.counters.is_empty(),
        request_id: sent.request_id,
        requested_model: sent.requested_model,
        client_address: sent.client_address,
        attempts: sent.attempts,
    };
    let record = abandoned_record(&request, &hold)?;
    let borne = record.cost.min(sent.amount);
    let allowances = sent.counters.iter().map(|counter| (*counter, borne)).collect();
    Some(FoldEntry { charge: UsageCharge { record, messages: Vec::new() }, allowances })
}
