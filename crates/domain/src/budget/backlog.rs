//! Settlements that the store did not take, until it does.

use std::collections::VecDeque;
use std::future::poll_fn;
use std::sync::atomic::{AtomicU32, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::task::Poll;

use futures_util::task::AtomicWaker;

use super::Settlement;
use crate::error::StoreError;
use crate::ids::DecisionId;
use crate::money::Usd;

/// How much may wait.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct BacklogBounds {
    /// Settlements that wait from which on nothing more is sent to any provider; with 0 nothing ever is.
    pub accepting: usize,
    /// Settlements that may wait. What is beyond `accepting` is for requests that are on their way already, so that as
    /// many as can be are enough for none to be lost.
    pub most: usize,
    /// Bytes of traces that may wait. What is beyond them waits without its trace and its messages.
    pub trace_bytes: usize,
}

impl BacklogBounds {
    /// 1,024 settlements, room for so many more that are on their way, and 64 MiB of traces.
    pub fn new(in_flight: usize) -> Self {
        const ACCEPTING: usize = 1_024;
        Self { accepting: ACCEPTING, most: in_flight.saturating_add(ACCEPTING), trace_bytes: 64 << 20 }
    }

    /// For a store that takes nothing: nothing may be used that could not be charged.
    pub fn nothing() -> Self {
        Self { accepting: 0, ..Self::new(0) }
    }
}

/// How a backlog stands, and what became of it since it was made.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct BacklogStanding {
    /// Settlements that wait.
    pub waiting: u64,
    /// Those that waited and were charged.
    pub written: u64,
    /// Those that nobody will charge: there was no room, the store holds what does not go with them, or the process
    /// ended first.
    pub lost: u64,
}

/// Keeps settlements in memory while the store is away. What was used is then charged later, instead of by a bound or
/// never. Who can put something there holds it; [`super::SettleBacklog`] writes it, until nobody holds it any more.
#[derive(Debug)]
pub struct Backlog {
    shared: Arc<Shared>,
}

impl Backlog {
    /// An empty one.
    pub fn new(bounds: BacklogBounds) -> Self {
        Self { shared: Arc::new(Shared { bounds, state: Mutex::default(), changed: AtomicWaker::new() }) }
    }

    /// True where what is sent to a provider now can wait for the store, should it have to.
    pub(crate) fn accepts(&self) -> bool {
        self.shared.state().waiting.len() < self.shared.bounds.accepting
    }

    /// Keeps what the store did not take because of `error`, and says so in the log. `reserved` is what its request had
    /// reserved.
    pub(crate) fn keep(&self, settlement: Settlement, reserved: Option<Usd>, error: &StoreError) {
        let unwritten = Unwritten::new(settlement, reserved);
        let shared = &self.shared;
        let mut state = shared.state();
        let is_doubtful = matches!(error, StoreError::Corrupt(_)) && unwritten.may_be_tried_again();
        let is_crowded = is_doubtful && state.doubtful() >= DOUBTFUL;
        if state.is_over || is_crowded || state.waiting.len() >= shared.bounds.most {
            state.standing.lost += 1;
            let reason = match (state.is_over, is_crowded) {
                (true, _) => ENDS,
                (false, true) => CORRUPT,
                (false, false) => "too many wait already",
            };
            drop(state);
            unwritten.tell_of_loss(reason);
            return;
        }
        let whole = state.trace_bytes.saturating_add(unwritten.trace_bytes) <= shared.bounds.trace_bytes;
        let unwritten = if whole { unwritten } else { unwritten.without_trace() };
        state.trace_bytes = state.trace_bytes.saturating_add(unwritten.trace_bytes);
        let unwritten = Arc::new(unwritten);
        state.waiting.push_back(Arc::clone(&unwritten));
        let waiting = state.waiting.len();
        drop(state);
        shared.changed.wake();
        let (record, error) = (&unwritten.settlement.record, error as &dyn std::error::Error);
        tracing::error!(
            decision.id = %record.id,
            cost_usd = %record.cost,
            waiting,
            with_trace = whole,
            error,
            "a settlement could not be written: it is kept in memory and is written when the store is back"
        );
    }

    /// How it stands, to be asked at any time. It does not count as holding it.
    pub fn watch(&self) -> impl Fn() -> BacklogStanding + Clone + Send + Sync + 'static {
        let shared = Arc::clone(&self.shared);
        move || shared.standing()
    }

    pub(super) fn shared(&self) -> Arc<Shared> {
        Arc::clone(&self.shared)
    }
}

impl Drop for Backlog {
    fn drop(&mut self) {
        self.shared.state().is_closed = true;
        self.shared.changed.wake();
    }
}

/// Why what waits is lost in the end.
const ENDS: &str = "the process ends";
/// Likewise, of what the store took for corrupt to the end.
pub(super) const CORRUPT: &str = "what the store holds does not go with it";
/// How often the store may take a settlement for corrupt: about ten minutes where nothing else waits. A table that is
/// missing for a moment reads like that, and so does a row that nobody will ever mend.
pub(super) const CORRUPT_TRIES: u32 = 64;
/// Most of those that wait so, so that one bad row does not use up the room of all.
const DOUBTFUL: usize = 128;

/// A settlement that waits.
#[derive(Debug)]
pub(super) struct Unwritten {
    pub(super) settlement: Settlement,
    pub(super) reserved: Option<Usd>,
    trace_bytes: usize,
    /// How often the store took it for corrupt.
    refusals: AtomicU32,
}

impl Unwritten {
    fn new(settlement: Settlement, reserved: Option<Usd>) -> Self {
        let payloads = settlement.messages.iter().map(|message| message.payload.text().len());
        let trace = settlement.record.trace.as_ref().map_or(0, |trace| trace.text().len());
        let trace_bytes = payloads.fold(trace, usize::saturating_add);
        Self { settlement, reserved, trace_bytes, refusals: AtomicU32::new(0) }
    }

    /// The store took it for corrupt: true where it is to be asked again nevertheless.
    pub(super) fn may_be_tried_again(&self) -> bool {
        self.refusals.fetch_add(1, Ordering::Relaxed) < CORRUPT_TRIES
    }

    /// The money is worth more than what is told of it.
    fn without_trace(mut self) -> Self {
        self.settlement.messages.clear();
        self.settlement.record.trace = None;
        Self { trace_bytes: 0, ..self }
    }

    /// With what somebody needs to charge it by hand.
    pub(super) fn tell_of_loss(&self, reason: &'static str) {
        let record = &self.settlement.record;
        tracing::error!(
            decision.id = %record.id,
            workspace.id = %record.workspace_id,
            api_key.hash = %record.api_key,
            cost_usd = %record.cost,
            reserved_usd = self.reserved.map(tracing::field::display),
            reason,
            "a settlement is lost: what a provider may bill is charged by what was reserved, or to nobody"
        );
    }
}

/// What a backlog is, for those who fill it and the one who empties it.
#[derive(Debug)]
pub(super) struct Shared {
    bounds: BacklogBounds,
    state: Mutex<State>,
    /// Wakes the one who empties it.
    changed: AtomicWaker,
}

#[derive(Debug, Default)]
struct State {
    waiting: VecDeque<Arc<Unwritten>>,
    trace_bytes: usize,
    /// Its count of what waits is not kept up.
    standing: BacklogStanding,
    is_closed: bool,
    is_urgent: bool,
    /// Nobody writes any more.
    is_over: bool,
}

impl State {
    /// How many wait that the store took for corrupt.
    fn doubtful(&self) -> usize {
        self.waiting.iter().filter(|unwritten| unwritten.refusals.load(Ordering::Relaxed) > 0).count()
    }

    fn remove(&mut self, id: &DecisionId) {
        if let Some(place) = self.waiting.iter().position(|other| other.settlement.record.id == *id)
            && let Some(removed) = self.waiting.remove(place)
        {
            self.trace_bytes = self.trace_bytes.saturating_sub(removed.trace_bytes);
        }
    }
}

impl Shared {
    fn standing(&self) -> BacklogStanding {
        let state = self.state();
        BacklogStanding { waiting: u64::try_from(state.waiting.len()).unwrap_or(u64::MAX), ..state.standing }
    }

    /// Returns true when something waits; false when nothing does nor ever will.
    pub(super) async fn something(&self) -> bool {
        poll_fn(|context| {
            self.changed.register(context.waker());
            let state = self.state();
            match (state.waiting.is_empty(), state.is_closed) {
                (false, _) => Poll::Ready(true),
                (true, true) => Poll::Ready(false),
                (true, false) => Poll::Pending,
            }
        })
        .await
    }

    /// From now on there is not much time left.
    pub(super) fn hurry(&self) {
        self.state().is_urgent = true;
        self.changed.wake();
    }

    /// Returns when there is not much time left.
    pub(super) async fn urgent(&self) {
        poll_fn(|context| {
            self.changed.register(context.waker());
            if self.state().is_urgent { Poll::Ready(()) } else { Poll::Pending }
        })
        .await;
    }

    pub(super) fn is_urgent(&self) -> bool {
        self.state().is_urgent
    }

    /// The first so many of what waits, which go on waiting.
    pub(super) fn first(&self, most: usize) -> Vec<Arc<Unwritten>> {
        self.state().waiting.iter().take(most).cloned().collect()
    }

    /// It was charged. Returns how many wait still.
    pub(super) fn written(&self, id: &DecisionId) -> usize {
        let mut state = self.state();
        state.remove(id);
        state.standing.written += 1;
        state.waiting.len()
    }

    /// Nobody writes any more. Says in the log what is lost by that.
    pub(super) fn give_up(&self) {
        let mut state = self.state();
        state.is_over = true;
        let lost = std::mem::take(&mut state.waiting);
        state.trace_bytes = 0;
        state.standing.lost += u64::try_from(lost.len()).unwrap_or(u64::MAX);
        drop(state);
        for unwritten in lost {
            unwritten.tell_of_loss(ENDS);
        }
    }

    /// Nobody will charge it.
    pub(super) fn lost(&self, id: &DecisionId) {
        let mut state = self.state();
        state.remove(id);
        state.standing.lost += 1;
    }

    /// It has its turn after all others, so that one that the store never takes is in nobody's way.
    pub(super) fn postpone(&self, id: &DecisionId) {
        let mut state = self.state();
        if let Some(place) = state.waiting.iter().position(|other| other.settlement.record.id == *id)
            && let Some(postponed) = state.waiting.remove(place)
        {
            state.waiting.push_back(postponed);
        }
    }

    fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}
