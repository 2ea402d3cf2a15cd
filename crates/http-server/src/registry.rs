//! The open connections: their count, states, connection limit and drain.

use std::future::poll_fn;
use std::sync::atomic::{AtomicBool, AtomicU8, AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::task::{Context, Poll};
use std::time::Duration;

use tokio::sync::Notify;
use tokio::time::{Instant, sleep};

use super::settings::Preemption;
use super::slots::{Entry, Slots, State};

/// The number of connections in each state.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct ConnectionCounts {
    /// Accepted, waiting for a free slot.
    pub waiting: usize,
    /// No byte of the next request has been read.
    pub idle: usize,
    /// The first byte of a request has been read, but not the end of its head.
    pub reading_head: usize,
    /// A request is being served, or the connection is closing.
    pub in_request: usize,
}

impl ConnectionCounts {
    /// Returns the number of all open connections.
    pub fn open(&self) -> usize {
        self.waiting + self.idle + self.reading_head + self.in_request
    }
}

// The phases of a server; 0 is the initial one.
const DRAINING: u8 = 1;
const CLOSING_IDLE: u8 = 2;

/// The action of an idle connection.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum IdleAction {
    Stay,
    /// Close, to free the slot for a waiting connection.
    Yield,
    /// Close, because the server stops.
    Close,
}

/// The open connections of a server. Clones share their state.
#[derive(Debug, Clone)]
pub struct Connections(Arc<Shared>);

#[derive(Debug)]
struct Shared {
    slots: Mutex<Slots>,
    /// The same as [`Slots::is_crowded`], readable without the lock.
    crowded: AtomicBool,
    phase: AtomicU8,
    next_id: AtomicU64,
    evictions: AtomicU64,
    closed: Notify,
    preemption: Preemption,
    began: Instant,
}

impl Connections {
    /// Creates a registry that serves at most `limit` connections at a time.
    pub fn new(limit: usize, preemption: Preemption) -> Self {
        Self(Arc::new(Shared {
            slots: Mutex::new(Slots::new(limit, preemption)),
            crowded: AtomicBool::new(false),
            phase: AtomicU8::new(0),
            next_id: AtomicU64::new(0),
            evictions: AtomicU64::new(0),
            closed: Notify::new(),
            preemption,
            began: Instant::now(),
        }))
    }

    /// Returns the maximum number of connections served at a time.
    pub fn limit(&self) -> usize {
        self.slots().limit()
    }

    /// Returns the number of connections closed so far to free a slot.
    pub fn evictions(&self) -> u64 {
        self.0.evictions.load(Ordering::Relaxed)
    }

    /// Counts the open connections by state.
    pub fn counts(&self) -> ConnectionCounts {
        let mut counts = ConnectionCounts::default();
        for entry in self.slots().open() {
            let count = match entry {
                entry if entry.is(State::Waiting) => &mut counts.waiting,
                entry if entry.is(State::Idle) => &mut counts.idle,
                entry if entry.is(State::ReadingHead) => &mut counts.reading_head,
                _ => &mut counts.in_request,
            };
            *count += 1;
        }
        counts
    }

    /// Makes every response carry `Connection: close` and closes its connection. Idle connections stay open, and new
    /// ones are accepted while the server listens.
    pub fn begin_drain(&self) {
        self.0.phase.fetch_max(DRAINING, Ordering::AcqRel);
    }

    /// Begins the drain and closes connections as they become idle. A connection with request bytes, read or in the
    /// socket, is served first. A connection without a request so far gets a short grace period.
    pub fn close_idle(&self) {
        self.0.phase.fetch_max(CLOSING_IDLE, Ordering::AcqRel);
        let entries: Vec<_> = self.slots().open().map(Arc::clone).collect();
        for entry in entries {
            entry.waker.wake();
        }
    }

    /// Resolves when no connection is open.
    pub async fn closed(&self) {
        loop {
            let closed = self.0.closed.notified();
            tokio::pin!(closed);
            // Enabled before the count is read, so that a close between the two is not missed.
            closed.as_mut().enable();
            if self.slots().is_empty() {
                return;
            }
            closed.await;
        }
    }

    /// Resolves when no connection is open and none was accepted for `period`.
    pub async fn unused_for(&self, period: Duration) {
        loop {
            self.closed().await;
            let since = self.slots().last_accepted.map_or(Duration::MAX, |at| at.elapsed());
            match period.checked_sub(since) {
                None | Some(Duration::ZERO) => return,
                Some(rest) => sleep(rest).await,
            }
        }
    }

    /// Returns the number of connections that wait for a slot.
    pub(crate) fn waiting(&self) -> usize {
        self.slots().waiting()
    }

    /// Returns true once the drain has begun.
    pub fn is_draining(&self) -> bool {
        self.0.phase.load(Ordering::Acquire) >= DRAINING
    }

    /// Registers an accepted connection until the result is dropped.
    pub(super) fn register(&self) -> OpenConnection {
        let id = self.0.next_id.fetch_add(1, Ordering::Relaxed);
        let accepted = Instant::now();
        let now = self.nanos(accepted);
        let entry = Arc::new(Entry::new(id, now));
        let mut slots = self.slots();
        slots.last_accepted = Some(accepted);
        slots.insert(&entry, now);
        self.make_room(&mut slots);
        drop(slots);
        OpenConnection { connections: self.clone(), entry }
    }

    fn make_room(&self, slots: &mut Slots) {
        // Set before the search: a connection that the search finds busy sees the flag when it becomes idle.
        self.0.crowded.store(slots.is_crowded(), Ordering::SeqCst);
        slots.make_room();
        self.0.crowded.store(slots.is_crowded(), Ordering::SeqCst);
    }

    /// Returns nanoseconds since the start; a `u64` holds 584 years of them.
    fn nanos(&self, now: Instant) -> u64 {
        u64::try_from(now.duration_since(self.0.began).as_nanos()).unwrap_or(u64::MAX)
    }

    fn slots(&self) -> MutexGuard<'_, Slots> {
        self.0.slots.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// The registration of one open connection in [`Connections`].
pub(super) struct OpenConnection {
    connections: Connections,
    entry: Arc<Entry>,
}

impl OpenConnection {
    /// Waits for a slot.
    pub(super) async fn wait_for_slot(&self) {
        poll_fn(|cx| {
            self.entry.waker.register(cx.waker());
            if self.entry.is(State::Waiting) { Poll::Pending } else { Poll::Ready(()) }
        })
        .await;
    }

    pub(super) fn set(&self, state: State, now: Instant) {
        let Shared { crowded, preemption, .. } = &*self.connections.0;
        self.entry.set(state, self.connections.nanos(now));
        let declines = state != State::Idle && *preemption == Preemption::Idle && self.entry.take_yield();
        if declines || (state == State::Idle && crowded.load(Ordering::SeqCst)) {
            let mut slots = self.connections.slots();
            if declines {
                slots.decline();
            }
            self.connections.make_room(&mut slots);
        }
    }

    /// Returns true if a connection waits and no idle one can be closed for it.
    pub(super) fn is_crowded(&self) -> bool {
        self.connections.0.crowded.load(Ordering::Relaxed)
    }

    pub(super) fn is_draining(&self) -> bool {
        self.connections.is_draining()
    }

    /// Returns the action of this idle connection; a change wakes its task.
    pub(super) fn idle_action(&self, cx: &Context<'_>) -> IdleAction {
        self.entry.waker.register(cx.waker());
        if self.entry.yields() {
            IdleAction::Yield
        } else if self.connections.0.phase.load(Ordering::Acquire) == CLOSING_IDLE {
            IdleAction::Close
        } else {
            IdleAction::Stay
        }
    }

    /// Resolves when the connection must close in any state.
    pub(super) async fn wait_for_preemption(&self) {
        poll_fn(|cx| {
            self.entry.waker.register(cx.waker());
            let wait_for_preemption = self.connections.0.preemption == Preemption::Any && self.entry.yields();
            if wait_for_preemption { Poll::Ready(()) } else { Poll::Pending }
        })
        .await;
    }
}

impl Drop for OpenConnection {
    fn drop(&mut self) {
        let mut slots = self.connections.slots();
        if self.entry.yields() {
            self.connections.0.evictions.fetch_add(1, Ordering::Relaxed);
        }
        slots.remove(&self.entry, self.connections.nanos(Instant::now()));
        self.connections.make_room(&mut slots);
        if slots.is_empty() {
            self.connections.0.closed.notify_waiters();
        }
    }
}

#[cfg(test)]
#[path = "registry_tests.rs"]
mod tests;
