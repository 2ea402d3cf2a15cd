//! A watch over the write lock of a SQLite file.

use std::sync::{Arc, Mutex, MutexGuard, PoisonError, Weak};
use std::time::Duration;

use tokio::time::Instant;

use super::limits::CallLimits;
use super::sqlite_session::Slot;

/// Notices a write lock that this process holds for longer than any transaction may. It looks whenever a writer fails to
/// get the lock.
#[derive(Default)]
pub(crate) struct WriteLockWatch(Mutex<State>);

#[derive(Default)]
struct State {
    /// The last transaction of this process that got the lock, and its end.
    holder: Option<(Weak<Slot>, Instant)>,
    /// The time since which no writer of this process has got the lock.
    denied_since: Option<Instant>,
}

impl WriteLockWatch {
    /// Records a transaction that got the lock.
    pub(super) fn acquired(&self, slot: &Arc<Slot>, end: Instant) {
        *self.lock() = State { holder: Some((Arc::downgrade(slot), end)), denied_since: None };
    }

    /// Records that a writer did not get the lock. Ends an own transaction that is older than any may be. Returns true
    /// once this has lasted for that long without one: then an idle connection of this process may hold the lock, and
    /// all of them are to be closed.
    pub(crate) fn denied(&self) -> bool {
        let longest = CallLimits::SQLITE.transaction;
        let now = Instant::now();
        let mut state = self.lock();
        if let Some((slot, end)) = &state.holder
            && *end < now
            && let Some(slot) = slot.upgrade()
            // A locked slot is that of a running statement, which has a time limit.
            && let Ok(mut slot) = slot.try_lock()
            && let Some(held) = slot.take()
        {
            held.close();
            log(now.duration_since(*end).saturating_add(longest));
            *state = State::default();
            return false;
        }
        let denied_since = *state.denied_since.get_or_insert(now);
        let denied_for = now.duration_since(denied_since);
        if denied_for < longest {
            return false;
        }
        log(denied_for);
        state.denied_since = Some(now);
        true
    }

    fn lock(&self) -> MutexGuard<'_, State> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

fn log(denied_for: Duration) {
    tracing::warn!(
        denied_for_ms = u64::try_from(denied_for.as_millis()).unwrap_or(u64::MAX),
        "write lock not available for longer than any transaction; writing connections of this process replaced"
    );
}
