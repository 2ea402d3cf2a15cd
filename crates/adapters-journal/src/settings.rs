//! The settings and the errors of a journal.

use std::io;
use std::path::PathBuf;
use std::time::Duration;

use thiserror::Error;

/// The settings of a journal.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct JournalSettings {
    /// The size of a segment file, in bytes. Allocated ahead of its use.
    pub segment_bytes: u64,
    /// The largest payload of an entry, in bytes. At least four of them must fit into a segment.
    pub max_payload_bytes: usize,
    /// The longest time from a write to its sync. `None` leaves syncs to [`crate::Journal::sync`].
    pub sync_interval: Option<Duration>,
    /// The pause after a failed sync. Each retry writes the unsynced entries to a new segment.
    pub sync_retry: Duration,
    /// The limit of unfolded entries in memory, in bytes; older ones are read from the disk.
    pub max_memory_bytes: usize,
    /// The limit of unfolded entries on the disk, in bytes; beyond it no new reservation is granted.
    pub max_unfolded_bytes: u64,
}

impl Default for JournalSettings {
    /// Segments of 16 MiB, payloads of 128 KiB, a sync every 50 ms, a retry after 1 s, 8 MiB in memory, 1 GiB unfolded.
    fn default() -> Self {
        Self {
            segment_bytes: 16 << 20,
            max_payload_bytes: 128 << 10,
            sync_interval: Some(Duration::from_millis(50)),
            sync_retry: Duration::from_secs(1),
            max_memory_bytes: 8 << 20,
            max_unfolded_bytes: 1 << 30,
        }
    }
}

/// An error of the journal.
#[derive(Debug, Error)]
pub enum JournalError {
    /// The entry and the ends of pending calls do not fit; no byte was written.
    #[error("the journal is full: {unfolded_bytes} bytes are not folded into the store, the limit is {max_bytes}")]
    Full {
        /// The bytes of unfolded entries and of reservations.
        unfolded_bytes: u64,
        /// The limit.
        max_bytes: u64,
    },
    /// The payload exceeds the limit of an entry; no byte was written.
    #[error("a journal entry of {bytes} bytes is larger than {max_bytes}")]
    TooLarge {
        /// The size of the payload.
        bytes: usize,
        /// The limit.
        max_bytes: usize,
    },
    /// The disk accepts neither entries nor a new segment; the entry was rejected.
    #[error("the journal cannot be written: {0}")]
    Write(io::Error),
    /// The entry stays in memory until the disk accepts it.
    #[error("the journal entry {sequence} waits in memory for the disk: {source}")]
    Retained {
        /// The number of the entry.
        sequence: u64,
        /// The error of the system.
        source: io::Error,
    },
    /// The journal was sealed; the entry was rejected, or returned by the seal.
    #[error("the journal was sealed")]
    Sealed,
    /// The entry was written but may not be on the disk.
    #[error("the journal cannot be synced to the disk")]
    NotSynced,
    /// The folder belongs to a running process.
    #[error("the journal folder {} is locked by a live process", .0.display())]
    Locked(PathBuf),
    /// The folder cannot be created, read or removed.
    #[error("the journal folder {} cannot be used: {source}", path.display())]
    Folder {
        /// The folder or a file in it.
        path: PathBuf,
        /// The error of the system.
        source: io::Error,
    },
}

impl JournalError {
    pub(crate) fn folder(path: impl Into<PathBuf>) -> impl FnOnce(io::Error) -> Self {
        let path = path.into();
        move |source| Self::Folder { path, source }
    }
}
