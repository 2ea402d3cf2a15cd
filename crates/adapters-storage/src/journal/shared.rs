//! The parts of a journal that callers and the writing task share.

use std::sync::{Mutex, MutexGuard, PoisonError};

use domain::budget::{EntryKind, JournalEntry, UsageJournalError};
use domain::ids::ProcessId;
use tokio::sync::{Notify, watch};

use super::tail::Tail;
use crate::database::Database;

/// The bounds of a journal in the store.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct StoreJournalSettings {
    /// The most unfolded and reserved bytes.
    pub max_bytes: u64,
    /// The largest payload, in bytes.
    pub max_payload_bytes: usize,
    /// The bytes of the newest charges that stay in memory after they were folded, for a store that is replaced by an
    /// older one.
    pub kept_bytes: usize,
}

/// The parts that callers and the writing task share.
pub(super) struct Shared {
    pub(super) database: Database,
    pub(super) process: ProcessId,
    pub(super) settings: StoreJournalSettings,
    pub(super) tail: Mutex<Tail>,
    pub(super) progress: watch::Sender<Progress>,
    /// Wakes the writing task.
    pub(super) work: Notify,
}

/// The progress of the writing task, for waiting callers.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub(super) struct Progress {
    /// The number of the last stored entry.
    pub(super) stored: u64,
    /// Failed transactions so far.
    pub(super) failures: u64,
    /// True once the journal takes no more entries.
    pub(super) is_sealed: bool,
}

impl Shared {
    pub(super) fn tail(&self) -> MutexGuard<'_, Tail> {
        self.tail.lock().unwrap_or_else(PoisonError::into_inner)
    }

    pub(super) fn check_size(&self, bytes: usize) -> Result<(), UsageJournalError> {
        let max_bytes = self.settings.max_payload_bytes;
        if bytes > max_bytes { Err(UsageJournalError::TooLarge { bytes, max_bytes }) } else { Ok(()) }
    }

    /// Adds an entry and wakes the writing task.
    pub(super) fn push(&self, tail: &mut Tail, kind: EntryKind, payload: &[u8]) -> u64 {
        let sequence = tail.push(kind as u8, payload);
        self.work.notify_one();
        sequence
    }

    pub(super) fn finish(&self, batch: &[JournalEntry], removed_below: Option<u64>) {
        let stored = {
            let mut tail = self.tail();
            tail.is_failing = false;
            if let Some(last) = batch.last() {
                tail.set_stored(last.sequence);
            }
            if let Some(below) = removed_below {
                tail.set_removed_below(below);
            }
            tail.stored()
        };
        self.progress.send_modify(|progress| progress.stored = stored);
    }

    pub(super) fn fail(&self) {
        self.tail().is_failing = true;
        self.progress.send_modify(|progress| progress.failures += 1);
    }
}
