//! The connection slots of a server: which connections hold one, wait for one, or are asked to close.

use std::collections::{HashMap, VecDeque};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU8, AtomicU64, Ordering};

use futures_util::task::AtomicWaker;
use tokio::time::Instant;

use super::settings::Preemption;

/// The state of a connection.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[repr(u8)]
pub(super) enum State {
    /// Accepted, waiting for a free slot.
    Waiting = 0,
    /// No byte of the next request has been read.
    Idle = 1,
    /// The first byte of a request has been read, but not the end of its head.
    ReadingHead = 2,
    /// A request is being served, or the connection is closing.
    InRequest = 3,
}

/// The minimum number of candidates that one search collects.
const MIN_CANDIDATES: usize = 64;
/// The divisor for the number of candidates that one search collects: a search visits every connection.
const CANDIDATE_SHARE: usize = 16;

/// One open connection.
#[derive(Debug)]
pub(super) struct Entry {
    id: u64,
    state: AtomicU8,
    /// The time at which the state began, in nanoseconds since the server's start.
    since: AtomicU64,
    /// True if the connection is asked to close for a waiting one.
    yields: AtomicBool,
    pub(super) waker: AtomicWaker,
}

impl Entry {
    pub(super) fn new(id: u64, now: u64) -> Self {
        Self {
            id,
            state: AtomicU8::new(State::Waiting as u8),
            since: AtomicU64::new(now),
            yields: AtomicBool::new(false),
            waker: AtomicWaker::new(),
        }
    }

    // All threads read and write the states and the crowded flag in one order (`SeqCst`). So either a connection that
    // becomes idle sees that another one waits, or the search for candidates finds it.
    pub(super) fn set(&self, state: State, now: u64) {
        self.since.store(now, Ordering::SeqCst);
        self.state.store(state as u8, Ordering::SeqCst);
    }

    pub(super) fn is(&self, state: State) -> bool {
        self.state.load(Ordering::SeqCst) == state as u8
    }

    pub(super) fn yields(&self) -> bool {
        self.yields.load(Ordering::SeqCst)
    }

    /// Withdraws the request to close; returns true if there was one.
    pub(super) fn take_yield(&self) -> bool {
        self.yields() && self.yields.swap(false, Ordering::SeqCst)
    }

    /// Returns the rank and the start of the state of a candidate; `None` if this connection may not be closed.
    fn candidacy(&self, preemption: Preemption) -> Option<(bool, u64)> {
        let is_idle = self.is(State::Idle);
        let eligible = is_idle || (preemption == Preemption::Any && !self.is(State::Waiting));
        (eligible && !self.yields()).then(|| (!is_idle, self.since.load(Ordering::SeqCst)))
    }

    /// Asks a candidate to close; returns false if it is no longer a candidate.
    fn ask_to_yield(&self, candidacy: (bool, u64), preemption: Preemption) -> bool {
        if self.candidacy(preemption) != Some(candidacy) {
            return false;
        }
        self.yields.store(true, Ordering::SeqCst);
        let unchanged = preemption == Preemption::Any || self.is(State::Idle);
        // A connection that has begun to read stays open: either it or this thread withdraws the request.
        if !unchanged && self.take_yield() {
            return false;
        }
        self.waker.wake();
        true
    }
}

/// A connection that may be asked to close, as found by the search.
#[derive(Debug)]
struct Candidate {
    entry: Arc<Entry>,
    candidacy: (bool, u64),
}

/// All open connections of a server.
#[derive(Debug)]
pub(super) struct Slots {
    limit: usize,
    preemption: Preemption,
    open: HashMap<u64, Arc<Entry>>,
    /// The number of connections that hold a slot.
    admitted: usize,
    waiting: VecDeque<Arc<Entry>>,
    /// The number of connections that were asked to close and are still open.
    yielding: usize,
    /// The oldest candidates, oldest first. Connections outside this queue are younger.
    candidates: VecDeque<Candidate>,
    pub(super) last_accepted: Option<Instant>,
}

impl Slots {
    pub(super) fn new(limit: usize, preemption: Preemption) -> Self {
        Self {
            limit,
            preemption,
            open: HashMap::new(),
            admitted: 0,
            waiting: VecDeque::new(),
            yielding: 0,
            candidates: VecDeque::new(),
            last_accepted: None,
        }
    }

    pub(super) fn limit(&self) -> usize {
        self.limit
    }

    pub(super) fn open(&self) -> impl Iterator<Item = &Arc<Entry>> {
        self.open.values()
    }

    pub(super) fn is_empty(&self) -> bool {
        self.open.is_empty()
    }

    pub(super) fn waiting(&self) -> usize {
        self.waiting.len()
    }

    /// Returns true if more connections wait than were asked to close.
    pub(super) fn is_crowded(&self) -> bool {
        self.waiting.len() > self.yielding
    }

    pub(super) fn insert(&mut self, entry: &Arc<Entry>, now: u64) {
        self.open.insert(entry.id, Arc::clone(entry));
        self.waiting.push_back(Arc::clone(entry));
        self.admit(now);
    }

    pub(super) fn remove(&mut self, entry: &Entry, now: u64) {
        self.open.remove(&entry.id);
        if entry.is(State::Waiting) {
            self.waiting.retain(|other| other.id != entry.id);
        } else {
            self.admitted -= 1;
        }
        if entry.take_yield() {
            self.yielding -= 1;
        }
        // Invalidates its earlier entries as a candidate.
        entry.set(State::Waiting, u64::MAX);
        self.admit(now);
    }

    /// Notes that a connection asked to close has begun to read a request instead.
    pub(super) fn decline(&mut self) {
        self.yielding -= 1;
    }

    fn admit(&mut self, now: u64) {
        while self.admitted < self.limit
            && let Some(entry) = self.waiting.pop_front()
        {
            self.admitted += 1;
            entry.set(State::Idle, now);
            entry.waker.wake();
        }
    }

    /// Asks one connection to close for each waiting one, the longest idle first.
    pub(super) fn make_room(&mut self) {
        while self.is_crowded()
            && let Some(Candidate { entry, candidacy }) = self.next_candidate()
        {
            if entry.ask_to_yield(candidacy, self.preemption) {
                self.yielding += 1;
            }
        }
    }

    fn next_candidate(&mut self) -> Option<Candidate> {
        self.candidates.pop_front().or_else(|| {
            self.collect_candidates();
            self.candidates.pop_front()
        })
    }

    fn collect_candidates(&mut self) {
        let candidate = |entry: &Arc<Entry>| {
            let candidacy = entry.candidacy(self.preemption)?;
            Some(Candidate { entry: Arc::clone(entry), candidacy })
        };
        let mut found: Vec<_> = self.open.values().filter_map(candidate).collect();
        let order = |candidate: &Candidate| (candidate.candidacy, candidate.entry.id);
        let wanted = (found.len() / CANDIDATE_SHARE).max(MIN_CANDIDATES);
        if wanted < found.len() {
            found.select_nth_unstable_by_key(wanted, order);
            found.truncate(wanted);
        }
        found.sort_unstable_by_key(order);
        self.candidates = found.into();
    }
}
