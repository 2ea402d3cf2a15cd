//! Whose turn it is to write.

use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};

use tokio::sync::Notify;

/// Who waits for the connection that writes. The ledger keeps it between two batches, for giving it back and taking it
/// again costs as much as a batch; it gives it back as soon as anybody else asks.
#[derive(Default)]
pub(crate) struct Turns {
    waiting: AtomicUsize,
    asked: Notify,
    resting: AtomicBool,
}

/// Somebody who waits for the connection, or uses it for a single statement.
pub(crate) struct Asking<'a>(&'a Turns);

/// The connection is kept and does nothing.
pub(crate) struct Resting<'a>(&'a Turns);

impl Turns {
    /// Says that somebody wants the connection, for as long as what is returned is kept.
    pub(crate) fn ask(&self) -> Asking<'_> {
        self.waiting.fetch_add(1, Ordering::SeqCst);
        self.asked.notify_one();
        Asking(self)
    }

    /// True while somebody wants the connection.
    pub(crate) fn is_wanted(&self) -> bool {
        self.waiting.load(Ordering::SeqCst) > 0
    }

    /// Returns when somebody wants the connection. Only one at a time may wait for this: whoever has it.
    pub(crate) async fn wanted(&self) {
        let _resting = self.rest();
        while !self.is_wanted() {
            // A notice that came before anybody waited for it is kept, so that none is missed.
            self.asked.notified().await;
        }
    }

    /// True while the connection is kept and does nothing.
    pub(crate) fn is_resting(&self) -> bool {
        self.resting.load(Ordering::Relaxed)
    }

    fn rest(&self) -> Resting<'_> {
        self.resting.store(true, Ordering::Relaxed);
        Resting(self)
    }
}

impl Drop for Asking<'_> {
    fn drop(&mut self) {
        self.0.waiting.fetch_sub(1, Ordering::SeqCst);
    }
}

impl Drop for Resting<'_> {
    fn drop(&mut self) {
        self.0.resting.store(false, Ordering::Relaxed);
    }
}
