//! The places of a server's connections: who has one, who waits for one, and who gives way.

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
    /// Accepted; every place is taken.
    Waiting = 0,
    /// No byte of the next request was read.
    Idle = 1,
    /// The first byte of a request was read, the end of its head was not.
    ReadingHead = 2,
    /// A request is being served, or the connection is being closed.
    InRequest = 3,
}

/// The fewest connections that one search for candidates collects.
const MIN_CANDIDATES: usize = 64;
/// The part of all candidates that one search collects: it looks at every connection.
const CANDIDATE_SHARE: usize = 16;

/// One open connection.
#[derive(Debug)]
pub(super) struct Entry {
    id: u64,
    state: AtomicU8,
    /// Nanoseconds since the server's start at which the state began.
    since: AtomicU64,
    /// The connection is asked to close for one that waits.
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

    // The states of connections and the flag of those that wait are read and written in one order by all threads:
    // either a connection that becomes idle learns that another one waits, or the search for candidates finds it.
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

    /// Takes the request to close back; true where there was one.
    pub(super) fn take_yield(&self) -> bool {
        self.yields() && self.yields.swap(false, Ordering::SeqCst)
    }

    /// The order in which connections give way, and the time since when; `None` where this one does not.
    fn candidacy(&self, preemption: Preemption) -> Option<(bool, u64)> {
        let is_idle = self.is(State::Idle);
        let eligible = is_idle || (preemption == Preemption::Any && !self.is(State::Waiting));
        (eligible && !self.yields()).then(|| (!is_idle, self.since.load(Ordering::SeqCst)))
    }

    /// Asks a candidate to close; false where it is none any more.
    fn ask_to_yield(&self, candidacy: (bool, u64), preemption: Preemption) -> bool {
        if self.candidacy(preemption) != Some(candidacy) {
            return false;
        }
        self.yields.store(true, Ordering::SeqCst);
        let unchanged = preemption == Preemption::Any || self.is(State::Idle);
        // One that has begun to read meanwhile stays open: it, or this thread, takes the request back.
        if !unchanged && self.take_yield() {
            return false;
        }
        self.waker.wake();
        true
    }
}

/// A connection that may be asked to give way, as it was when it was found.
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
    /// Those that do not wait.
    admitted: usize,
    waiting: VecDeque<Arc<Entry>>,
    /// Those that are asked to close and have not.
    yielding: usize,
    /// The oldest of those that may be asked, oldest first. Those that are not in it are younger.
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

    /// True where connections wait for which no other one was asked to close.
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
        // Whatever was noted of it as a candidate does not hold any more.
        entry.set(State::Waiting, u64::MAX);
        self.admit(now);
    }

    /// A connection that was asked to close has begun to read a request instead.
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

    /// Asks as many connections to close as are waited for, those first that have been idle for longest.
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
