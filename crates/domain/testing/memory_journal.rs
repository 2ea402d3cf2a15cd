//! The journal in memory.

use std::collections::BTreeMap;
use std::future::ready;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use async_trait::async_trait;

use crate::budget::{
    EntryKind, EntrySink, JournalDamage, JournalEntry, JournalGap, OrphanedJournal, OrphanedJournals, UsageJournal,
    UsageJournalError, UsageJournalStatus,
};
use crate::ids::ProcessId;
use crate::system::Soon;

/// The bounds of a journal.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct JournalBounds {
    /// The most unfolded and reserved bytes.
    pub max_bytes: u64,
    /// The largest payload, in bytes.
    pub max_payload_bytes: usize,
    /// True if entries are synced on demand only.
    pub is_synced_by_hand: bool,
    /// True if folded entries stay on the disk.
    pub keeps_folded: bool,
}

impl Default for JournalBounds {
    /// 1 MiB of entries of 16 KiB, synced beside requests.
    fn default() -> Self {
        Self { max_bytes: 1 << 20, max_payload_bytes: 16 << 10, is_synced_by_hand: false, keeps_folded: false }
    }
}

/// A journal in memory. Clones share their entries; the process dies with the last of them.
#[derive(Debug, Clone)]
pub struct MemoryJournal {
    process: ProcessId,
    state: Arc<Mutex<State>>,
    /// `None` for the journal of a dead process.
    _life: Option<Arc<Life>>,
}

/// Entries that a recovery gets at a time.
const PART: usize = 3;

/// The content of a journal, as far as it can be read.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct JournalContent {
    /// The entries, in order.
    pub entries: Vec<JournalEntry>,
    /// The missing parts.
    pub damage: JournalDamage,
}

#[async_trait]
impl EntrySink for JournalContent {
    async fn take(&mut self, entries: Vec<JournalEntry>) -> Result<(), UsageJournalError> {
        self.entries.extend(entries);
        Ok(())
    }
}

impl JournalContent {
    /// Reads a whole journal.
    ///
    /// # Errors
    /// It cannot be read.
    pub async fn of(journal: &dyn OrphanedJournal) -> Result<Self, UsageJournalError> {
        let mut content = Self::default();
        content.damage = journal.read(&mut content).await?;
        Ok(content)
    }
}

/// Entries by their numbers.
type Entries = BTreeMap<u64, JournalEntry>;

#[derive(Debug, Default)]
struct State {
    bounds: JournalBounds,
    entries: Entries,
    last: u64,
    synced: u64,
    folded: u64,
    retains: bool,
    reserved: usize,
    damage: JournalDamage,
    phase: Phase,
    /// True while a recovery owns the journal.
    is_taken: bool,
}

/// The phase of a journal. Only one that takes entries is no orphan.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
enum Phase {
    #[default]
    Dead,
    Sealed,
    TakesEntries,
}

#[derive(Debug)]
struct Life(Arc<Mutex<State>>);

impl Drop for Life {
    fn drop(&mut self) {
        let mut state = lock(&self.0);
        if state.phase == Phase::Sealed {
            return;
        }
        // A failing disk loses the entries that wait for it.
        let synced = state.synced;
        if state.retains {
            state.entries.retain(|sequence, _| *sequence <= synced);
        }
        state.phase = Phase::Dead;
    }
}

impl State {
    fn unfolded_bytes(&self) -> u64 {
        self.entries.range(self.folded + 1..).map(|(_, entry)| entry.payload.len() as u64).sum()
    }

    fn append(&mut self, kind: EntryKind, payload: &[u8]) -> Result<u64, UsageJournalError> {
        self.last += 1;
        let sequence = self.last;
        self.entries.insert(sequence, JournalEntry { sequence, kind: kind as u8, payload: payload.into() });
        if self.retains {
            return Err(UsageJournalError::Retained { sequence, source: "the disk takes nothing".into() });
        }
        if !self.bounds.is_synced_by_hand {
            self.synced = sequence;
        }
        Ok(sequence)
    }

    fn check_size(&self, bytes: usize) -> Result<(), UsageJournalError> {
        if self.phase == Phase::Sealed {
            return Err(UsageJournalError::Sealed);
        }
        let max_bytes = self.bounds.max_payload_bytes;
        if bytes > max_bytes { Err(UsageJournalError::TooLarge { bytes, max_bytes }) } else { Ok(()) }
    }

    fn check_room(&self, bytes: usize) -> Result<(), UsageJournalError> {
        let max_bytes = self.bounds.max_bytes;
        let unfolded_bytes = self.unfolded_bytes() + (self.reserved + bytes) as u64;
        if unfolded_bytes > max_bytes { Err(UsageJournalError::Full { unfolded_bytes, max_bytes }) } else { Ok(()) }
    }
}

impl MemoryJournal {
    /// Returns the kinds of all kept entries, in order.
    pub fn kinds(&self) -> Vec<EntryKind> {
        self.state().entries.values().filter_map(|entry| EntryKind::from_number(entry.kind)).collect()
    }

    /// Returns the bytes that are reserved for the ends of requests.
    pub fn reserved_bytes(&self) -> usize {
        self.state().reserved
    }

    /// Sets the most unfolded and reserved bytes.
    pub fn set_max_bytes(&self, max_bytes: u64) {
        self.state().bounds.max_bytes = max_bytes;
    }

    fn state(&self) -> MutexGuard<'_, State> {
        lock(&self.state)
    }
}

#[async_trait]
impl UsageJournal for MemoryJournal {
    fn process(&self) -> ProcessId {
        self.process
    }

    fn append_sent(&self, kind: EntryKind, payload: &[u8], reserve: usize) -> Result<u64, UsageJournalError> {
        let mut state = self.state();
        state.check_size(payload.len().max(reserve))?;
        if state.retains {
            return Err(UsageJournalError::Unavailable("the disk takes nothing".into()));
        }
        state.check_room(payload.len() + reserve)?;
        state.reserved += reserve;
        state.append(kind, payload)
    }

    fn append_end(&self, kind: EntryKind, payload: &[u8], reserved: usize) -> Result<u64, UsageJournalError> {
        let mut state = self.state();
        state.check_size(payload.len())?;
        state.reserved = state.reserved.saturating_sub(reserved);
        state.append(kind, payload)
    }

    fn wait_sendable(&self, _: u64) -> Soon<'_, Result<(), UsageJournalError>> {
        Soon::Left(ready(Ok(())))
    }

    fn wait_durable(&self, _: u64) -> Soon<'_, Result<(), UsageJournalError>> {
        Soon::Left(ready(Ok(())))
    }

    async fn wait_synced(&self, sequence: u64) -> Result<(), UsageJournalError> {
        let mut state = self.state();
        if !state.bounds.is_synced_by_hand && !state.retains {
            state.synced = state.last;
        }
        if state.synced >= sequence { Ok(()) } else { Err(UsageJournalError::Unavailable("not synced".into())) }
    }

    fn unfolded(&self, max_entries: usize, max_bytes: usize) -> Result<Vec<JournalEntry>, UsageJournalError> {
        let state = self.state();
        let waiting = state.entries.range(state.folded + 1..).map(|(_, entry)| entry);
        let mut bytes = 0;
        let mut found: Vec<JournalEntry> = Vec::new();
        for entry in waiting.take_while(|entry| entry.sequence <= state.synced).take(max_entries) {
            bytes += entry.payload.len();
            if bytes > max_bytes && !found.is_empty() {
                break;
            }
            found.push(entry.clone());
        }
        Ok(found)
    }

    fn remove_folded(&self, up_to: u64) {
        let mut state = self.state();
        state.folded = state.folded.max(up_to);
    }

    fn remove_segments(&self, keep_from: u64) -> Result<usize, UsageJournalError> {
        let mut state = self.state();
        if state.bounds.keeps_folded {
            return Ok(0);
        }
        // Each entry is a segment of the fake. The current one stays.
        let keep_from = keep_from.min(state.folded + 1).min(state.last);
        let kept = state.entries.split_off(&keep_from);
        Ok(std::mem::replace(&mut state.entries, kept).len())
    }

    fn status(&self) -> UsageJournalStatus {
        let state = self.state();
        UsageJournalStatus {
            unfolded_entries: state.entries.range(state.folded + 1..).count() as u64,
            unfolded_bytes: state.unfolded_bytes(),
            max_bytes: state.bounds.max_bytes,
            last_sequence: state.last,
            synced_sequence: state.synced,
            is_writable: !state.retains,
        }
    }

    async fn seal(&self) -> Vec<JournalEntry> {
        let mut state = self.state();
        if std::mem::replace(&mut state.phase, Phase::Sealed) == Phase::Sealed {
            return Vec::new();
        }
        let unsaved_after = if state.retains { state.synced } else { state.last };
        state.entries.split_off(&(unsaved_after + 1)).into_values().collect()
    }
}

/// The journals on one machine, of live and dead processes.
#[derive(Debug, Clone)]
pub struct MemoryJournals {
    all: Arc<Mutex<Vec<MemoryJournal>>>,
    backup: Arc<Mutex<Vec<(ProcessId, Entries)>>>,
    keep: Duration,
}

impl Default for MemoryJournals {
    /// Creates a machine without journals, which keeps recovered journals.
    fn default() -> Self {
        Self { all: Arc::default(), backup: Arc::default(), keep: Duration::MAX }
    }
}

impl MemoryJournals {
    /// Returns the same journals. Recovered ones are kept forever, or with a duration of zero not at all.
    #[must_use]
    pub fn keeping(&self, keep: Duration) -> Self {
        Self { keep, ..self.clone() }
    }

    /// Starts a process with an empty journal.
    pub fn start(&self, process: ProcessId, bounds: JournalBounds) -> MemoryJournal {
        let state = Arc::new(Mutex::new(State { bounds, phase: Phase::TakesEntries, ..State::default() }));
        let journal = MemoryJournal { process, state: Arc::clone(&state), _life: None };
        lock(&self.all).push(journal.clone());
        MemoryJournal { _life: Some(Arc::new(Life(state))), ..journal }
    }

    /// Syncs all entries of a process.
    pub fn sync(&self, process: ProcessId) {
        self.each(|journal, state| {
            if journal.process == process && !state.retains {
                state.synced = state.last;
            }
        });
    }

    /// Sets whether the disk fails. Waiting entries are written once it works again.
    pub fn set_failing(&self, is_failing: bool) {
        self.each(|_, state| state.retains = is_failing);
    }

    /// Simulates a power loss: unsynced entries of dead processes are lost.
    pub fn lose_power(&self) {
        self.each(|_, state| {
            let synced = state.synced;
            state.entries.retain(|sequence, _| *sequence <= synced);
            state.damage.is_of_another_boot = true;
        });
    }

    /// Makes an entry unreadable.
    pub fn damage(&self, process: ProcessId, sequence: u64) {
        self.each(|journal, state| {
            if journal.process == process && state.entries.remove(&sequence).is_some() {
                let gap = JournalGap { reason: "damaged".to_owned(), first: sequence, end: sequence + 1 };
                state.damage.gaps.push(gap);
            }
        });
    }

    /// Copies all journals to a backup.
    pub fn back_up(&self) {
        let mut backup = Vec::new();
        self.each(|journal, state| backup.push((journal.process, state.entries.clone())));
        *lock(&self.backup) = backup;
    }

    /// Restores the journals of dead processes from the backup.
    pub fn restore(&self) {
        for (process, entries) in &*lock(&self.backup) {
            let mut found = false;
            self.each(|journal, state| {
                if journal.process == *process {
                    found = true;
                    state.entries.clone_from(entries);
                }
            });
            if !found {
                let journal = self.start(*process, JournalBounds::default());
                journal.state().entries.clone_from(entries);
            }
        }
    }

    fn each(&self, mut change: impl FnMut(&MemoryJournal, &mut State)) {
        for journal in &*lock(&self.all) {
            change(journal, &mut journal.state());
        }
    }
}

#[async_trait]
impl OrphanedJournals for MemoryJournals {
    async fn contains(&self, process: ProcessId) -> Result<bool, UsageJournalError> {
        Ok(lock(&self.all).iter().any(|journal| journal.process == process))
    }

    async fn find(&self) -> Result<Vec<Box<dyn OrphanedJournal>>, UsageJournalError> {
        let mut found: Vec<Box<dyn OrphanedJournal>> = Vec::new();
        for journal in &*lock(&self.all) {
            let mut state = journal.state();
            if state.phase != Phase::TakesEntries && !std::mem::replace(&mut state.is_taken, true) {
                found.push(Box::new(MemoryOrphan { journal: journal.clone(), journals: self.clone() }));
            }
        }
        Ok(found)
    }
}

/// The journal of a dead process while a recovery owns it.
#[derive(Debug)]
struct MemoryOrphan {
    journal: MemoryJournal,
    journals: MemoryJournals,
}

impl Drop for MemoryOrphan {
    fn drop(&mut self) {
        self.journal.state().is_taken = false;
    }
}

#[async_trait]
impl OrphanedJournal for MemoryOrphan {
    fn process(&self) -> ProcessId {
        self.journal.process
    }

    async fn read(&self, sink: &mut dyn EntrySink) -> Result<JournalDamage, UsageJournalError> {
        let (entries, damage) = {
            let state = self.journal.state();
            (state.entries.values().cloned().collect::<Vec<_>>(), state.damage.clone())
        };
        for part in entries.chunks(PART) {
            sink.take(part.to_vec()).await?;
        }
        Ok(damage)
    }

    async fn quarantine(&self) -> Result<(), UsageJournalError> {
        Ok(())
    }

    async fn finish(&self) -> Result<(), UsageJournalError> {
        Ok(())
    }

    async fn remove_if_old(&self) -> Result<bool, UsageJournalError> {
        if self.journals.keep > Duration::ZERO {
            return Ok(false);
        }
        lock(&self.journals.all).retain(|journal| journal.process != self.journal.process);
        Ok(true)
    }
}

fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}
