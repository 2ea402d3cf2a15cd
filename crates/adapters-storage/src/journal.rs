//! Usage journals in the store, for processes without a disk of their own.
//!
//! A process appends to memory, and one task writes all waiting entries in one transaction. A request is sent, and an
//! answer leaves, after the transaction with its entry. Each transaction requires that the store lists the process as
//! live; any other process may adopt a silent one and then has all its entries.

mod entries;
mod orphans;
mod writer;

use std::sync::{Arc, Mutex};
use std::time::Duration;

use async_trait::async_trait;
use domain::budget::{EntryKind, JournalEntry, UsageJournal, UsageJournalError, UsageJournalStatus};
use domain::error::StoreError;
use domain::ids::ProcessId;
use domain::system::Soon;
use sea_orm::ConnectionTrait;
use tokio::sync::{Notify, watch};
use tokio::time::timeout;

use self::entries::Tail;
use self::writer::{Progress, Shared};
use crate::budget::processes;
use crate::convert::millis;
use crate::database::Database;

pub use self::orphans::{AdoptionSettings, StoreJournals};
pub use self::writer::StoreJournalSettings;

/// Removes the entries of a process that has ended.
pub(crate) async fn remove_entries(transaction: &impl ConnectionTrait, process: ProcessId) -> Result<(), StoreError> {
    entries::remove(transaction, process, None).await
}

/// The longest wait for a transaction with an entry. After it the caller gets an error; the entry is still written.
const WRITE_WITHIN: Duration = Duration::from_secs(5);

/// The journal of the running process in the store.
pub struct StoreJournal {
    shared: Arc<Shared>,
}

impl StoreJournal {
    /// Registers a process with a journal in the store. Its entries are written by the returned task, which ends after
    /// the journal is dropped or sealed.
    ///
    /// # Errors
    /// The store failed.
    pub async fn create(
        database: Database,
        process: ProcessId,
        settings: StoreJournalSettings,
    ) -> Result<(Self, impl Future<Output = ()> + Send + 'static), StoreError> {
        let transaction = database.begin().await?;
        processes::register(&transaction, process, true, millis(database.now())).await?;
        transaction.commit().await?;
        let shared = Arc::new(Shared {
            database,
            process,
            settings,
            tail: Mutex::new(Tail::new(settings.kept_bytes)),
            progress: watch::Sender::default(),
            work: Notify::new(),
        });
        let writing = writer::run(Arc::clone(&shared));
        Ok((Self { shared }, writing))
    }

    /// Waits for the transaction with an entry. With `fails_early`, the next failed transaction ends the wait.
    async fn wait_stored(&self, sequence: u64, fails_early: bool) -> Result<(), UsageJournalError> {
        let mut progress = self.shared.progress.subscribe();
        let failures = progress.borrow().failures;
        let is_over = |found: &Progress| {
            found.stored >= sequence || found.is_sealed || (fails_early && found.failures > failures)
        };
        let found = match timeout(WRITE_WITHIN, progress.wait_for(is_over)).await {
            Ok(Ok(found)) => *found,
            // The sender lives as long as the journal.
            Ok(Err(_)) => return Err(UsageJournalError::Sealed),
            Err(_) => *self.shared.progress.borrow(),
        };
        if found.stored >= sequence {
            Ok(())
        } else if found.is_sealed {
            Err(UsageJournalError::Sealed)
        } else {
            Err(UsageJournalError::Retained { sequence, source: "the store does not accept journal entries".into() })
        }
    }
}

#[async_trait]
impl UsageJournal for StoreJournal {
    fn process(&self) -> ProcessId {
        self.shared.process
    }

    fn append_sent(&self, kind: EntryKind, payload: &[u8], reserve: usize) -> Result<u64, UsageJournalError> {
        let shared = &*self.shared;
        shared.check_size(payload.len().max(reserve))?;
        let mut tail = shared.tail();
        if tail.is_sealed {
            return Err(UsageJournalError::Sealed);
        }
        if tail.is_failing {
            return Err(UsageJournalError::Unavailable("the store does not accept journal entries".into()));
        }
        let max_bytes = shared.settings.max_bytes;
        let unfolded_bytes = tail.unfolded_bytes() + tail.reserved() + (payload.len() + reserve) as u64;
        if unfolded_bytes > max_bytes {
            return Err(UsageJournalError::Full { unfolded_bytes, max_bytes });
        }
        tail.reserve(reserve);
        Ok(shared.push(&mut tail, kind, payload))
    }

    fn append_end(&self, kind: EntryKind, payload: &[u8], reserved: usize) -> Result<u64, UsageJournalError> {
        let shared = &*self.shared;
        shared.check_size(payload.len())?;
        let mut tail = shared.tail();
        if tail.is_sealed {
            return Err(UsageJournalError::Sealed);
        }
        tail.release(reserved);
        Ok(shared.push(&mut tail, kind, payload))
    }

    fn wait_sendable(&self, sequence: u64) -> Soon<'_, Result<(), UsageJournalError>> {
        Soon::Right(Box::pin(self.wait_stored(sequence, true)))
    }

    fn wait_durable(&self, sequence: u64) -> Soon<'_, Result<(), UsageJournalError>> {
        Soon::Right(Box::pin(self.wait_stored(sequence, false)))
    }

    async fn wait_synced(&self, sequence: u64) -> Result<(), UsageJournalError> {
        self.wait_stored(sequence, true).await
    }

    fn unfolded(&self, max_entries: usize, max_bytes: usize) -> Result<Vec<JournalEntry>, UsageJournalError> {
        Ok(self.shared.tail().unfolded(max_entries, max_bytes))
    }

    fn remove_folded(&self, up_to: u64) {
        self.shared.tail().remove_folded(up_to);
    }

    fn remove_segments(&self, keep_from: u64) -> Result<usize, UsageJournalError> {
        let removable = self.shared.tail().set_removable_below(keep_from);
        if removable > 0 {
            self.shared.work.notify_one();
        }
        Ok(removable)
    }

    fn status(&self) -> UsageJournalStatus {
        let tail = self.shared.tail();
        UsageJournalStatus {
            unfolded_entries: tail.unfolded_entries(),
            unfolded_bytes: tail.unfolded_bytes(),
            max_bytes: self.shared.settings.max_bytes,
            last_sequence: tail.last_sequence(),
            synced_sequence: tail.stored(),
            is_writable: !tail.is_failing,
        }
    }

    async fn seal(&self) -> Vec<JournalEntry> {
        let kept = self.shared.tail().seal();
        self.shared.progress.send_modify(|progress| progress.is_sealed = true);
        self.shared.work.notify_one();
        kept
    }
}

impl Drop for StoreJournal {
    fn drop(&mut self) {
        self.shared.tail().is_sealed = true;
        self.shared.work.notify_one();
    }
}
