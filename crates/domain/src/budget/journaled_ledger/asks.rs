//! Requests that wait for a draw, and recent rejections.

use std::collections::{HashMap, VecDeque};
use std::future::poll_fn;
use std::sync::Arc;
use std::task::Poll;
use std::time::Duration;

use chrono::{DateTime, Utc};
use futures_util::task::AtomicWaker;

use super::calls::lock;
use super::sync::Mutex;
use crate::budget::allowances::CounterId;
use crate::budget::{LimitExceeded, Payer};
use crate::error::StoreError;
use crate::ids::{ApiKeyId, DecisionId, GuardrailId, WorkspaceId};
use crate::money::Usd;

/// The answer to a request that waited.
pub(super) type Answer = Result<Result<(), LimitExceeded>, StoreError>;

/// A request that lacks allowance.
#[derive(Debug)]
pub(super) struct Ask {
    pub(super) id: DecisionId,
    pub(super) payer: Payer,
    pub(super) at: DateTime<Utc>,
    /// The amount to take in each of the counters.
    pub(super) amount: Usd,
    pub(super) counters: Vec<CounterId>,
    /// True if it increases an open hold.
    pub(super) is_increase: bool,
    state: Mutex<AskState>,
    answered: AtomicWaker,
}

#[derive(Debug)]
enum AskState {
    Waiting,
    Answered(Answer),
    /// The caller has left, or has its answer.
    Over,
}

impl Ask {
    pub(super) fn new(
        id: DecisionId,
        payer: Payer,
        at: DateTime<Utc>,
        (amount, counters): (Usd, Vec<CounterId>),
        is_increase: bool,
    ) -> Arc<Self> {
        let (state, answered) = (Mutex::new(AskState::Waiting), AtomicWaker::new());
        Arc::new(Self { id, payer, at, amount, counters, is_increase, state, answered })
    }

    pub(super) fn amounts(&self) -> Vec<(CounterId, Usd)> {
        self.counters.iter().map(|counter| (*counter, self.amount)).collect()
    }

    pub(super) fn is_waiting(&self) -> bool {
        matches!(*lock(&self.state), AskState::Waiting)
    }

    /// Answers a waiting request. Returns false if its caller has left. `take` holds the amount under the lock: a
    /// caller that leaves at the same time either gets the answer, or no amount is held.
    pub(super) fn answer(&self, take: impl FnOnce() -> Option<Answer>) -> bool {
        let mut state = lock(&self.state);
        if !matches!(*state, AskState::Waiting) {
            return true;
        }
        match take() {
            Some(answer) => {
                *state = AskState::Answered(answer);
                drop(state);
                self.answered.wake();
                true
            }
            None => false,
        }
    }

    /// Waits until the request is answered. Only its own caller waits.
    pub(super) async fn wait_for_answer(&self) {
        poll_fn(|context| {
            self.answered.register(context.waker());
            if self.is_waiting() { Poll::Pending } else { Poll::Ready(()) }
        })
        .await;
    }

    /// Returns the answer, once.
    pub(super) fn take_answer(&self) -> Option<Answer> {
        let mut state = lock(&self.state);
        match std::mem::replace(&mut *state, AskState::Over) {
            AskState::Answered(answer) => Some(answer),
            AskState::Waiting => {
                *state = AskState::Waiting;
                None
            }
            AskState::Over => None,
        }
    }

    /// Records that the caller left. Returns true if an amount was already held for it.
    pub(super) fn leave(&self) -> bool {
        let state = std::mem::replace(&mut *lock(&self.state), AskState::Over);
        matches!(state, AskState::Answered(Ok(Ok(()))))
    }
}

/// The queue of requests that wait, in order of arrival.
#[derive(Debug, Default)]
pub(super) struct AskQueue(Mutex<VecDeque<Arc<Ask>>>);

impl AskQueue {
    pub(super) fn push(&self, ask: Arc<Ask>) {
        lock(&self.0).push_back(ask);
    }

    pub(super) fn has_waiting(&self) -> bool {
        lock(&self.0).iter().any(|ask| ask.is_waiting())
    }

    /// Returns the waiting requests. They stay in the queue, because the request that serves them may leave.
    pub(super) fn waiting(&self) -> Vec<Arc<Ask>> {
        let mut all = lock(&self.0);
        all.retain(|ask| ask.is_waiting());
        all.iter().cloned().collect()
    }
}

/// How long a rejection is repeated from memory. A caller that retries at its limit costs the store one exact answer in
/// that time, and delays no other request.
const REJECTION_REUSE: Duration = Duration::from_millis(50);
/// The most kept payers; above it all are forgotten.
const MAX_PAYERS: usize = 10_000;

type PayerKey = (WorkspaceId, ApiKeyId, Vec<GuardrailId>);

#[derive(Debug)]
struct RecentRejection {
    by: LimitExceeded,
    /// The number of the feed at which the limits were read.
    feed: u64,
    until: Duration,
}

/// Recent exact rejections, by payer.
#[derive(Debug, Default)]
pub(super) struct RecentRejections(Mutex<HashMap<PayerKey, RecentRejection>>);

impl RecentRejections {
    /// Keeps a rejection without holds: the spent amount only grows within a period, so the rejection stays exact.
    pub(super) fn keep(&self, payer: &Payer, by: LimitExceeded, feed: u64, now: Duration) {
        if by.reserved > Usd::ZERO {
            return;
        }
        let mut known = lock(&self.0);
        if known.len() >= MAX_PAYERS {
            known.clear();
        }
        known.insert(key(payer), RecentRejection { by, feed, until: now.saturating_add(REJECTION_REUSE) });
    }

    /// Returns the rejection of a request if the recently spent amount leaves no room for it.
    pub(super) fn find(
        &self,
        payer: &Payer,
        wanted: Usd,
        feed: u64,
        (now, at): (Duration, DateTime<Utc>),
    ) -> Option<LimitExceeded> {
        let known = lock(&self.0);
        let RecentRejection { by, feed: read_at, until } = known.get(&key(payer))?;
        let by = LimitExceeded { wanted, ..*by };
        let is_of_now = feed == *read_at && now < *until && by.resets_at.is_none_or(|end| at < end);
        let exceeds = by.spent.checked_add(wanted).is_none_or(|sum| sum > by.limit);
        (is_of_now && exceeds).then_some(by)
    }
}

fn key(payer: &Payer) -> PayerKey {
    (payer.workspace_id, payer.api_key, payer.guardrails.clone())
}
