//! The parts of the writer that callers and its threads share.

use std::sync::{Condvar, Mutex, MutexGuard, PoisonError};

use domain::system::LineLimit;
use tokio::sync::watch;

use super::chain::Segments;
use super::state::State;
use crate::error::JournalError;
use crate::settings::JournalSettings;

pub(super) struct Shared {
    pub(super) state: Mutex<State>,
    pub(super) segments: Segments,
    pub(super) settings: JournalSettings,
    pub(super) synced: watch::Sender<u64>,
    /// Serialises syncs.
    pub(super) syncing: Mutex<()>,
    /// Wakes the thread that allocates segments.
    pub(super) rotated: Condvar,
    /// Limits the lines about a failing disk.
    pub(super) lines: LineLimit,
}

impl Shared {
    pub(super) fn lock(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    pub(super) fn lock_unsealed(&self) -> Result<MutexGuard<'_, State>, JournalError> {
        let state = self.lock();
        if state.is_sealed { Err(JournalError::Sealed) } else { Ok(state) }
    }

    /// Returns true if a line about this failure may be logged: one a minute.
    pub(super) fn may_log(&self, failure: &str) -> bool {
        self.lines.admits(failure, self.segments.clock.monotonic())
    }

    pub(super) fn write(&self, state: &mut State, kind: u8, payload: &[u8]) -> Result<u64, JournalError> {
        let sequence = state.push(kind, payload);
        let written = state.write_pending(&self.segments);
        if !state.chain.has_prepared() {
            self.rotated.notify_one();
        }
        written.map(|()| sequence).map_err(|source| JournalError::Retained { sequence, source })
    }

    pub(super) fn sync(&self) -> Result<(), JournalError> {
        let _one = self.syncing.lock().unwrap_or_else(PoisonError::into_inner);
        let synced = *self.synced.borrow();
        let (files, last) = {
            let mut state = self.lock();
            if state.next_sync.is_some_and(|next| self.segments.clock.monotonic() < next) {
                return Err(JournalError::NotSynced);
            }
            state.write_pending(&self.segments).map_err(JournalError::Write)?;
            let last = state.last_sequence();
            if last == synced {
                return Ok(());
            }
            (state.chain.begin_sync(), last)
        };
        if let Err(error) = files.iter().try_for_each(|file| file.sync()) {
            if self.may_log("rewrite") {
                tracing::error!(%error, "journal sync failed, writing the unsynced entries to a new segment");
            }
            let mut state = self.lock();
            state.next_sync = Some(self.segments.clock.monotonic() + self.settings.sync_retry);
            state.rewrite_after(synced, &self.segments).map_err(JournalError::Write)?;
            return Err(JournalError::NotSynced);
        }
        self.lock().tail.evict(last, self.settings.max_memory_bytes);
        self.synced.send_replace(last);
        Ok(())
    }
}
