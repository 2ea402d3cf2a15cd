//! The journal of a process: the append-only file in which holds and charges become durable.

use std::sync::Arc;

use async_trait::async_trait;

use crate::ids::ProcessId;

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
    /// The kind of that number.
    pub fn from_number(number: u8) -> Option<Self> {
        [Self::Sent, Self::Increased, Self::Charged, Self::Released, Self::Closed]
            .into_iter()
            .find(|kind| *kind as u8 == number)
    }
}

/// An entry of a journal as it was written.
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
    /// The most bytes that may be unfolded.
    pub max_bytes: u64,
    /// The number of the last entry; 0 before the first.
    pub last_sequence: u64,
    /// The number up to which everything survives a loss of power.
    pub synced_sequence: u64,
    /// False while entries wait in memory because the disk takes none.
    pub is_writable: bool,
}

/// An error of a journal.
#[derive(Debug, thiserror::Error)]
pub enum UsageJournalError {
    /// There is no room; nothing was taken in.
    #[error("the journal is full: {unfolded_bytes} bytes wait for the store, the limit is {max_bytes}")]
    Full {
        /// The bytes of unfolded entries and of reservations.
        unfolded_bytes: u64,
        /// The bound.
        max_bytes: u64,
    },
    /// The entry is larger than an entry may be; nothing was taken in.
    #[error("a journal entry of {bytes} bytes is larger than {max_bytes}")]
    TooLarge {
        /// The size of the payload.
        bytes: usize,
        /// The bound.
        max_bytes: usize,
    },
    /// The journal takes no entry now; nothing was taken in.
    #[error("the journal cannot be written")]
    Unavailable(#[source] Box<dyn std::error::Error + Send + Sync>),
    /// The entry was taken in and is not on the disk; it will be written as soon as the disk takes it.
    #[error("the journal entry {sequence} waits for the disk")]
    Retained {
        /// The number of the entry.
        sequence: u64,
        /// The error of the system.
        source: Box<dyn std::error::Error + Send + Sync>,
    },
}

/// Appends to the journal of the living process and reads what is not folded.
///
/// # Contract
/// - Entries are numbered from 1 without gaps, in the order of the calls.
/// - An entry that was appended survives the death of the process.
/// - `append_sent` keeps `reserve` bytes free for the entry that will end the request, so that a full disk never comes
///   between an answer and its charge; `append_end` does not fail for want of room where it was reserved.
/// - An append that fails with another error than [`UsageJournalError::Retained`] changes nothing. A retained entry keeps
///   its number and is written before any later one.
/// - `unfolded` returns the oldest synced entries behind the last folded one, in order: at most so many, and at least one
///   where `max_bytes` is less than its size.
/// - `remove_folded` with a number that was folded before changes nothing.
/// - `remove_segments` leaves the newest entry, and every one that is unfolded or not below `keep_from`, readable after
///   the process.
#[cfg_attr(feature = "mock", mockall::automock)]
#[async_trait]
pub trait UsageJournal: Send + Sync {
    /// The process whose journal it is.
    fn process(&self) -> ProcessId;

    /// Appends an entry and keeps `reserve` bytes of payload free.
    fn append_sent(&self, kind: EntryKind, payload: &[u8], reserve: usize) -> Result<u64, UsageJournalError>;

    /// Appends an entry for which `reserved` bytes of payload were kept free. They are free again.
    fn append_end(&self, kind: EntryKind, payload: &[u8], reserved: usize) -> Result<u64, UsageJournalError>;

    /// Resolves when an entry is as durable as an answer promises: at once where entries are synced beside requests.
    async fn wait_durable(&self, sequence: u64) -> Result<(), UsageJournalError>;

    /// Resolves when an entry survives a loss of power.
    async fn wait_synced(&self, sequence: u64) -> Result<(), UsageJournalError>;

    /// The oldest synced entries that are not folded. May read the disk.
    fn unfolded(&self, max_entries: usize, max_bytes: usize) -> Result<Vec<JournalEntry>, UsageJournalError>;

    /// Forgets the entries up to a number: they are in the store.
    fn remove_folded(&self, up_to: u64);

    /// Removes old segments whose entries are folded and below `keep_from`, the number of the oldest open request.
    fn remove_segments(&self, keep_from: u64) -> Result<usize, UsageJournalError>;

    /// The status of the journal.
    fn status(&self) -> UsageJournalStatus;
}

/// A part of a journal that cannot be read.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct JournalGap {
    /// The reason, in a few words.
    pub reason: String,
    /// The first missing number and the first one behind the gap; equal where no number is known to be missing.
    pub first: u64,
    /// The first number behind the gap.
    pub end: u64,
}

/// The journal of a process that died, as far as it can be read.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct OrphanedEntries {
    /// The entries, in order.
    pub entries: Vec<JournalEntry>,
    /// The parts that are missing.
    pub gaps: Vec<JournalGap>,
    /// True where the machine was started anew since entries were written: unsynced ones may be missing.
    pub is_of_another_boot: bool,
}

/// The journal of a process that is dead: nobody else has it while this value lives.
#[cfg_attr(feature = "mock", mockall::automock)]
pub trait OrphanedJournal: Send + Sync {
    /// The process.
    fn process(&self) -> ProcessId;

    /// Reads all kept entries.
    fn read(&self) -> Result<OrphanedEntries, UsageJournalError>;

    /// Copies unreadable parts to the quarantine folder.
    fn quarantine(&self) -> Result<(), UsageJournalError>;

    /// The journal was recovered: space that is not used is given back.
    fn finish(&self) -> Result<(), UsageJournalError>;

    /// Removes the journal where it was last written longer ago than it is to be kept; false where it stays.
    fn remove_if_old(&self) -> Result<bool, UsageJournalError>;
}

/// Finds journals of dead processes.
///
/// # Contract
/// - A journal is found once its process is dead, and by one caller at a time.
/// - Its entries are all that were appended and whose segments were not removed, in order; without the end that was not
///   synced, where the machine was started anew. A part that is missing between two entries is a gap.
#[cfg_attr(feature = "mock", mockall::automock)]
pub trait OrphanedJournals: Send + Sync {
    /// True where the journal of a process is on this machine, whether the process lives or not. May read the disk.
    fn contains(&self, process: ProcessId) -> Result<bool, UsageJournalError>;

    /// The journals that no living process has. May read the disk.
    fn find(&self) -> Result<Vec<Box<dyn OrphanedJournal>>, UsageJournalError>;
}
