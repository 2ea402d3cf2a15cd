//! The open connections: their number, the state of each, and their drain.

use std::collections::HashMap;
use std::sync::atomic::{AtomicU8, AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::task::Context;

use futures_util::task::AtomicWaker;
use tokio::sync::Notify;

/// The state of a connection.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[repr(u8)]
pub(super) enum State {
    /// No byte of the next request was read.
    Idle = 0,
    /// The first byte of a request was read, the end of its head was not.
    ReadingHead = 1,
    /// A request is being served, or the connection is being closed.
    InRequest = 2,
}

/// How many connections are in each state.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct ConnectionCounts {
    /// No byte of the next request was read.
    pub idle: usize,
    /// The first byte of a request was read, the end of its head was not.
    pub reading_head: usize,
    /// A request is being served, or the connection is being closed.
    pub in_request: usize,
}

impl ConnectionCounts {
    /// All open connections.
    pub fn open(&self) -> usize {
        self.idle + self.reading_head + self.in_request
    }
}

// The phases of a server; 0 is the first.
const DRAINING: u8 = 1;
const CLOSING_IDLE: u8 = 2;

/// The open connections of a server. Clones share them.
#[derive(Debug, Clone, Default)]
pub struct Connections(Arc<Shared>);

#[derive(Debug, Default)]
struct Shared {
    open: Mutex<HashMap<u64, Arc<Entry>>>,
    next_id: AtomicU64,
    phase: AtomicU8,
    closed: Notify,
}

#[derive(Debug, Default)]
struct Entry {
    state: AtomicU8,
    waker: AtomicWaker,
}

impl Connections {
    /// Counts the open connections by their state.
    pub fn counts(&self) -> ConnectionCounts {
        let mut counts = ConnectionCounts::default();
        for entry in self.open().values() {
            match entry.state.load(Ordering::Relaxed) {
                state if state == State::Idle as u8 => counts.idle += 1,
                state if state == State::ReadingHead as u8 => counts.reading_head += 1,
                _ => counts.in_request += 1,
            }
        }
        counts
    }

    /// From now on every answer carries `Connection: close` and its connection is closed. Idle connections stay open,
    /// and new ones are accepted for as long as the server listens.
    pub fn begin_drain(&self) {
        self.0.phase.fetch_max(DRAINING, Ordering::AcqRel);
    }

    /// Begins the drain and closes idle connections, now and whenever one becomes idle. A connection with a byte of a
    /// request, read or waiting in the socket, is served first.
    pub fn close_idle(&self) {
        self.0.phase.fetch_max(CLOSING_IDLE, Ordering::AcqRel);
        let entries: Vec<_> = self.open().values().map(Arc::clone).collect();
        for entry in entries {
            entry.waker.wake();
        }
    }

    /// Resolves when no connection is open.
    pub async fn closed(&self) {
        loop {
            let closed = self.0.closed.notified();
            tokio::pin!(closed);
            // Registered before the count is read, so that the last close between the two is not missed.
            closed.as_mut().enable();
            if self.open().is_empty() {
                return;
            }
            closed.await;
        }
    }

    pub(super) fn is_draining(&self) -> bool {
        self.0.phase.load(Ordering::Acquire) >= DRAINING
    }

    /// Registers an accepted connection until the result is dropped.
    pub(super) fn register(&self) -> OpenConnection {
        let id = self.0.next_id.fetch_add(1, Ordering::Relaxed);
        let entry = Arc::<Entry>::default();
        self.open().insert(id, Arc::clone(&entry));
        OpenConnection { connections: self.clone(), id, entry }
    }

    fn open(&self) -> MutexGuard<'_, HashMap<u64, Arc<Entry>>> {
        self.0.open.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// One open connection in [`Connections`].
pub(super) struct OpenConnection {
    connections: Connections,
    id: u64,
    entry: Arc<Entry>,
}

impl OpenConnection {
    pub(super) fn set(&self, state: State) {
        self.entry.state.store(state as u8, Ordering::Relaxed);
    }

    pub(super) fn is_draining(&self) -> bool {
        self.connections.is_draining()
    }

    /// True once idle connections are to be closed; until then the task is woken when that changes.
    pub(super) fn poll_closing(&self, cx: &Context<'_>) -> bool {
        self.entry.waker.register(cx.waker());
        self.connections.0.phase.load(Ordering::Acquire) == CLOSING_IDLE
    }
}

impl Drop for OpenConnection {
    fn drop(&mut self) {
        let mut open = self.connections.open();
        open.remove(&self.id);
        if open.is_empty() {
            self.connections.0.closed.notify_waiters();
        }
    }
}

#[cfg(test)]
mod tests {
    use std::future::poll_fn;
    use std::task::Poll;

    use super::*;

    #[tokio::test]
    async fn counts_follow_the_states_of_registered_connections() {
        let connections = Connections::default();
        let [idle, reading, serving] = [0; 3].map(|_| connections.register());
        reading.set(State::ReadingHead);
        serving.set(State::InRequest);
        assert_eq!(connections.counts(), ConnectionCounts { idle: 1, reading_head: 1, in_request: 1 });
        drop((idle, reading));
        assert_eq!(connections.counts().open(), 1);
    }

    #[tokio::test]
    async fn closed_resolves_when_the_last_connection_is_dropped() {
        let connections = Connections::default();
        connections.closed().await;
        let open = connections.register();
        let mut closed = std::pin::pin!(connections.closed());
        assert!(futures_util::poll!(&mut closed).is_pending());
        drop(open);
        closed.await;
    }

    #[tokio::test]
    async fn close_idle_wakes_connections_and_begin_drain_does_not() {
        let connections = Connections::default();
        let open = connections.register();
        connections.begin_drain();
        assert!(connections.is_draining());
        let closing = poll_fn(|cx| if open.poll_closing(cx) { Poll::Ready(()) } else { Poll::Pending });
        tokio::join!(closing, async { connections.close_idle() });
    }
}
