//! The parts of the writer that callers and its threads share, and the threads: one syncs periodically, one allocates
//! the next segment.

use std::io;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::thread::{self, JoinHandle, Thread};
use std::time::Duration;

use domain::system::LineLimit;
use tokio::sync::watch;

use super::state::{Segments, State};
use crate::settings::{JournalError, JournalSettings};

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

/// The pause after a failed allocation.
const RETRY_ALLOCATION: Duration = Duration::from_secs(1);

pub(super) struct Threads {
    shared: Arc<Shared>,
    stop: Arc<AtomicBool>,
    handles: Vec<JoinHandle<()>>,
    syncs: Option<Thread>,
}

impl Threads {
    pub(super) fn start(shared: &Arc<Shared>) -> io::Result<Self> {
        let mut threads = Self { shared: Arc::clone(shared), stop: Arc::default(), handles: Vec::new(), syncs: None };
        threads.spawn("journal-segments", allocate_segments)?;
        if let Some(interval) = shared.settings.sync_interval {
            threads.spawn("journal-sync", move |shared, stop| sync_at_interval(shared, stop, interval))?;
            threads.syncs = threads.handles.last().map(|handle| handle.thread().clone());
        }
        Ok(threads)
    }

    /// Ends the pause between two syncs.
    pub(super) fn request_sync(&self) {
        if let Some(thread) = &self.syncs {
            thread.unpark();
        }
    }

    fn spawn(&mut self, name: &str, run: impl FnOnce(&Shared, &AtomicBool) + Send + 'static) -> io::Result<()> {
        let (shared, stop) = (Arc::clone(&self.shared), Arc::clone(&self.stop));
        let handle = thread::Builder::new().name(name.to_owned()).spawn(move || run(&shared, &stop))?;
        self.handles.push(handle);
        Ok(())
    }
}

impl Drop for Threads {
    fn drop(&mut self) {
        {
            // Under the lock, so that a thread that is about to wait gets the notification.
            let _state = self.shared.lock();
            self.stop.store(true, Ordering::Release);
        }
        self.shared.rotated.notify_all();
        for handle in self.handles.drain(..) {
            handle.thread().unpark();
            handle.join().ok();
        }
    }
}

fn sync_at_interval(shared: &Shared, stop: &AtomicBool, interval: Duration) {
    while !stop.load(Ordering::Acquire) {
        if let Err(error) = shared.sync()
            && shared.may_log("sync")
        {
            tracing::error!(%error, "journal not synced");
        }
        thread::park_timeout(interval);
    }
    shared.sync().ok();
}

fn allocate_segments(shared: &Shared, stop: &AtomicBool) {
    let mut state = shared.lock();
    while !stop.load(Ordering::Acquire) {
        if state.chain.has_prepared() && !state.lacks_segment {
            state = shared.rotated.wait(state).unwrap_or_else(PoisonError::into_inner);
            continue;
        }
        let number = state.chain.take_number();
        drop(state);
        let created = shared.segments.create(number);
        state = shared.lock();
        match created {
            Ok(segment) => {
                state.chain.add_prepared(segment, &shared.segments);
                state.lacks_segment = false;
            }
            Err(error) => {
                if shared.may_log("allocation") {
                    tracing::error!(store = "journal", %error, "journal segment not allocated");
                }
                let waited = shared.rotated.wait_timeout(state, RETRY_ALLOCATION);
                state = waited.unwrap_or_else(PoisonError::into_inner).0;
            }
        }
    }
}
