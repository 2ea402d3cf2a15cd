//! The task that writes the entries of a journal, and the parts that it shares with callers.

use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use domain::budget::{EntryKind, JournalEntry, ProcessState, UsageJournalError};
use domain::error::StoreError;
use domain::ids::ProcessId;
use domain::system::LineLimit;
use tokio::sync::{Notify, watch};

use super::entries::{self, Tail};
use crate::budget::processes;
use crate::database::Database;

/// The most entries and bytes of one transaction.
const MAX_ENTRIES: usize = 1024;
const MAX_BYTES: usize = 1 << 20;
/// The pauses after failed transactions: the first, doubled up to the last.
const FIRST_RETRY: Duration = Duration::from_millis(20);
const LAST_RETRY: Duration = Duration::from_secs(1);

/// Writes entries until the journal is sealed.
pub(super) async fn run(shared: Arc<Shared>) {
    let mut retry = FIRST_RETRY;
    let lines = LineLimit::default();
    loop {
        let (batch, removable) = {
            let tail = shared.tail();
            if tail.is_sealed {
                return;
            }
            (tail.unstored(MAX_ENTRIES, MAX_BYTES), tail.removable_below())
        };
        if batch.is_empty() && removable.is_none() {
            shared.work.notified().await;
            continue;
        }
        match write(&shared, &batch, removable).await {
            Ok(()) => {
                retry = FIRST_RETRY;
                shared.finish(&batch, removable);
            }
            Err(error) => {
                if lines.admits("write", shared.database.monotonic()) {
                    let error: &dyn std::error::Error = &error;
                    tracing::error!(process.id = %shared.process, error, "journal entries not stored, retrying");
                }
                shared.fail();
                tokio::time::sleep(retry).await;
                retry = (retry * 2).min(LAST_RETRY);
            }
        }
    }
}

/// Stores entries and removes others in one transaction.
///
/// # Errors
/// The store failed, or does not list the process as live.
async fn write(shared: &Shared, batch: &[JournalEntry], removable_below: Option<u64>) -> Result<(), StoreError> {
    let transaction = shared.database.begin().await?;
    let row = processes::find(&transaction, shared.process).await?.ok_or_else(|| not_live(shared.process))?;
    if processes::status(&row)?.state != ProcessState::Live {
        return Err(not_live(shared.process));
    }
    entries::insert(&transaction, shared.process, batch).await?;
    if let Some(below) = removable_below {
        entries::remove(&transaction, shared.process, Some(below)).await?;
    }
    transaction.commit().await
}

fn not_live(process: ProcessId) -> StoreError {
    StoreError::unavailable(format!("the store does not list the process {process} as live"))
}

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
