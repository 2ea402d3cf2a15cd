//! The background threads of the writer: one syncs periodically, one allocates the next segment.

use std::io;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, PoisonError};
use std::thread::{self, JoinHandle, Thread};
use std::time::Duration;

use super::shared::Shared;

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
