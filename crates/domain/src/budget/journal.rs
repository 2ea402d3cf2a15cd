//! The journal of a process: the append-only file in which holds and charges become durable.

use std::sync::Arc;

use async_trait::async_trait;

use crate::ids::ProcessId;
use crate::system::Soon;

/// The kind of a journal entry.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[repr(u8)]
pub enum EntryKind {
    /// A request is about to be sent to providers: its payer, its counters and the bounds of its attempts.
    Sent = 1,
    /// More attempts of a request that was sent.
    Increased = 2,
    /// The charge of a request.
    Charged = 3,
    /// The end of a request for which nothing is charged.
    Released = 4,
    /// The end of the journal: the process stopped in order.
    Closed = 5,
}

impl EntryKind {
    /// Returns the kind with this number.
    pub fn from_number(number: u8) -> Option<Self> {
        [Self::Sent, Self::Increased, Self::Charged, Self::Released, Self::Closed]
            .into_iter()
            .find(|kind| *kind as u8 == number)
    }
}

/// A stored entry of a journal.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct JournalEntry {
    /// Its number, from 1.
    pub sequence: u64,
    /// The number of its kind.
    pub kind: u8,
    /// Its payload.
    pub payload: Arc<[u8]>,
}

/// The status of a journal.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct UsageJournalStatus {
    /// Entries that are not folded.
    pub unfolded_entries: u64,
    /// The bytes of their payloads.
    pub unfolded_bytes: u64,
    /// The most unfolded bytes.
    pub max_bytes: u64,
    /// The number of the last entry; 0 before the first.
    pub last_sequence: u64,
    /// The number of the last synced entry, up to which entries survive a power loss.
    pub synced_sequence: u64,
    /// False while the disk fails: entries wait in memory, or new ones are rejected because there is no room.
    pub is_writable: bool,
}

/// An error of a journal.
#[derive(Debug, thiserror::Error)]
pub enum UsageJournalError {
    /// The journal is full; the entry was not appended.
    #[error("the journal is full: {unfolded_bytes} bytes wait for the store, the limit is {max_bytes}")]
    Full {
        /// The bytes of unfolded entries and of reservations.
        unfolded_bytes: u64,
        /// The bound.
        max_bytes: u64,
    },
    /// The entry is too large; it was not appended.
    #[error("a journal entry of {bytes} bytes is larger than {max_bytes}")]
    TooLarge {
        /// The size of the payload.
        bytes: usize,
        /// The bound.
        max_bytes: usize,
    },
    /// The disk or the store of the journal failed, as its error says; the entry was not appended.
    #[error(transparent)]
    Unavailable(Box<dyn std::error::Error + Send + Sync>),
    /// The entry was appended and is not stored yet; it is written once the disk or the store works again.
    #[error("the journal entry {sequence} is not stored yet")]
    Retained {
        /// The number of the entry.
        sequence: u64,
        /// The error of the disk or the store.
        source: Box<dyn std::error::Error + Send + Sync>,
    },
    /// The journal was sealed: its process continues with another one. The entry was not appended, or is among those
    /// that the seal returned.
    #[error("the journal was sealed")]
    Sealed,
}

/// Appends to the journal of the living process and reads unfolded entries.
///
/// # Contract
/// - Entries are numbered from 1 without gaps, in the order of the calls.
/// - An entry that was appended survives the death of the process.
/// - `append_sent` reserves `reserve` bytes for the entry that will end the request, so that a full disk never prevents
///   the charge of an answer; `append_end` does not fail within its reserved bytes.
/// - An append that fails with another error than [`UsageJournalError::Retained`] changes nothing. A retained entry
///   keeps its number and is written before any later one.
/// - `unfolded` returns the oldest synced entries after the last folded one, in order: at least one entry, even above
///   `max_bytes`.
/// - `remove_folded` with a number that was folded before changes nothing.
/// - `remove_segments` keeps the newest entry, and every entry that is unfolded or not below `keep_from`, readable
///   after the end of the process.
/// - `seal` ends the journal while its process lives: it becomes a journal of [`OrphanedJournals`]. Later appends and
///   pending waits fail with [`UsageJournalError::Sealed`]. Every entry is readable by the recovery or returned by the
///   seal, never both. A second seal returns no entries.
#[async_trait]
pub trait UsageJournal: Send + Sync {
    /// Returns the process that owns the journal.
    fn process(&self) -> ProcessId;

    /// Appends an entry and reserves `reserve` bytes of payload.
    fn append_sent(&self, kind: EntryKind, payload: &[u8], reserve: usize) -> Result<u64, UsageJournalError>;

    /// Appends an entry and releases its `reserved` bytes of payload.
    fn append_end(&self, kind: EntryKind, payload: &[u8], reserved: usize) -> Result<u64, UsageJournalError>;

    /// Resolves when the request with this first entry may be sent: at once if a written entry survives the process.
    fn wait_sendable(&self, sequence: u64) -> Soon<'_, Result<(), UsageJournalError>>;

    /// Resolves when an entry is durable enough for an answer: at once if entries are synced in the background.
    fn wait_durable(&self, sequence: u64) -> Soon<'_, Result<(), UsageJournalError>>;

    /// Resolves when an entry survives a power loss.
    async fn wait_synced(&self, sequence: u64) -> Result<(), UsageJournalError>;

    /// Returns the oldest synced entries that are not folded. May read the disk.
    fn unfolded(&self, max_entries: usize, max_bytes: usize) -> Result<Vec<JournalEntry>, UsageJournalError>;

    /// Forgets the entries up to a number, which the store has.
    fn remove_folded(&self, up_to: u64);

    /// Removes old segments whose entries are folded and below `keep_from`, the number of the oldest open request.
    fn remove_segments(&self, keep_from: u64) -> Result<usize, UsageJournalError>;

    /// Returns the status of the journal.
    fn status(&self) -> UsageJournalStatus;

    /// Ends the journal. Returns the entries that its recovery cannot read.
    async fn seal(&self) -> Vec<JournalEntry>;
}

/// Creates journals of this process.
#[cfg_attr(feature = "mock", mockall::automock)]
#[async_trait]
pub trait JournalFactory: Send + Sync {
    /// Creates an empty journal with a new process id.
    async fn create(&self) -> Result<Arc<dyn UsageJournal>, UsageJournalError>;
}

/// An unreadable part of a journal.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct JournalGap {
    /// The reason, in a few words.
    pub reason: String,
    /// The first missing number; equal to `end` if no number is known to be missing.
    pub first: u64,
    /// The first number after the gap.
    pub end: u64,
}

/// The parts that the journal of a dead process lacks.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct JournalDamage {
    /// The parts that are missing.
    pub gaps: Vec<JournalGap>,
    /// True if the machine restarted after entries were written: unsynced entries may be missing.
    pub is_of_another_boot: bool,
}

/// Takes the entries of a journal.
#[async_trait]
pub trait EntrySink: Send {
    /// Takes the next entries, in order.
    async fn take(&mut self, entries: Vec<JournalEntry>) -> Result<(), UsageJournalError>;
}

/// The journal of a dead process, owned exclusively while this value lives.
#[async_trait]
pub trait OrphanedJournal: Send + Sync {
    /// Returns the process.
    fn process(&self) -> ProcessId;

    /// Reads all kept entries, some at a time, so that a long journal takes little memory.
    async fn read(&self, sink: &mut dyn EntrySink) -> Result<JournalDamage, UsageJournalError>;

    /// Copies unreadable parts to the quarantine folder.
    async fn quarantine(&self) -> Result<(), UsageJournalError>;

    /// Releases unused disk space of the recovered journal.
    async fn finish(&self) -> Result<(), UsageJournalError>;

    /// Removes the journal if its last write is older than its retention. Returns false if it stays.
    async fn remove_if_old(&self) -> Result<bool, UsageJournalError>;
}

/// Finds journals of dead processes.
///
/// # Contract
/// - A journal is found once its process is dead or has sealed it, and by one caller at a time.
/// - Its entries are all appended entries of remaining segments, in order; after a restart of the machine, unsynced
///   entries at the end may be missing. Missing entries between two others are a gap.
#[cfg_attr(feature = "mock", mockall::automock)]
#[async_trait]
pub trait OrphanedJournals: Send + Sync {
    /// Returns true if the journal of a live or dead process exists here. May read the disk.
    async fn contains(&self, process: ProcessId) -> Result<bool, UsageJournalError>;

    /// Returns the journals of dead processes. May read the disk.
    async fn find(&self) -> Result<Vec<Box<dyn OrphanedJournal>>, UsageJournalError>;
}
