//! Identical requests in flight share one call to a provider.

use std::collections::HashMap;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::task::{Context, Poll, Waker};

use async_trait::async_trait;
use futures_util::FutureExt;
use futures_util::future::{BoxFuture, Shared, WeakShared};
use sha2::{Digest, Sha256};

use super::money::Funds;
use super::router::Routed;
use crate::decision::{Attachments, CallerPresence, Coalescing, DecisionRequest, QuestionKind, Questions};
use crate::guardrail::Policy;
use crate::ids::WorkspaceId;
use crate::model::ModelId;
use crate::money::Usd;
use crate::usage::UsageShare;

/// What makes requests identical: a digest over the workspace, the model and everything that reaches a provider or
/// decides which one, or at which price.
pub(super) type CallKey = [u8; 32];

/// The key of a request, whose inquiry is the one that will be sent. `prices_differ` tells that what has no price is
/// treated otherwise than for those who are not limited.
pub(super) fn key(
    workspace: WorkspaceId,
    policy: Option<&Policy>,
    route: (&ModelId, bool),
    request: &DecisionRequest,
) -> CallKey {
    let mut pieces = Pieces(Sha256::new());
    let inquiry = &request.inquiry;
    let (model, prices_differ) = route;
    pieces.add(workspace.uuid().as_bytes());
    let guardrails = policy.map(Policy::guardrails).unwrap_or_default();
    pieces.count(guardrails.len());
    for guardrail in guardrails {
        pieces.add(guardrail.id.uuid().as_bytes());
        pieces.add(&guardrail.version.to_le_bytes());
    }
    pieces.add(&[u8::from(prices_differ)]);
    pieces.add(model.as_str().as_bytes());
    pieces.add(request.model.as_bytes());
    pieces.add_all(request.fallback_models.iter().map(String::as_bytes));
    // Preferences and forms hold nothing of the caller's text but provider names.
    pieces.add(format!("{:?} {:?} {}", request.preferences, inquiry.state_form, request.partial).as_bytes());
    pieces.add(inquiry.questions.json.text().as_bytes());
    pieces.add(&booleans(&inquiry.questions));
    pieces.add_all(inquiry.state.iter().map(|state| state.text().as_bytes()));
    match &inquiry.attachments {
        Attachments::None => pieces.add(b"none"),
        Attachments::InState => pieces.add(b"in state"),
        Attachments::Images(images) => {
            pieces.add(b"images");
            pieces.add(images.text().as_bytes());
        }
        Attachments::Assets(assets) => {
            pieces.add(b"assets");
            for asset in assets {
                pieces.add(asset.name.as_bytes());
                pieces.add(asset.entry.text().as_bytes());
                pieces.add_all(asset.media_type.iter().map(String::as_bytes));
                pieces.add(&asset.data);
            }
        }
    }
    pieces.0.finalize().into()
}

/// Bytes to digest, each piece after its length and each list after its count, so that no two requests run into the
/// same bytes.
struct Pieces(Sha256);

impl Pieces {
    fn count(&mut self, count: usize) {
        self.0.update(u64::try_from(count).unwrap_or(u64::MAX).to_le_bytes());
    }

    fn add(&mut self, piece: &[u8]) {
        self.count(piece.len());
        self.0.update(piece);
    }

    fn add_all<'a>(&mut self, pieces: impl ExactSizeIterator<Item = &'a [u8]>) {
        self.count(pieces.len());
        for piece in pieces {
            self.add(piece);
        }
    }
}

/// What the text of questions does not tell: which options stand for booleans.
fn booleans(questions: &Questions) -> Vec<u8> {
    let typed = questions.typed.iter().flatten();
    let options = typed.filter_map(|question| match &question.kind {
        QuestionKind::Choice { options } => Some(options),
        _ => None,
    });
    options.flatten().map(|option| option.boolean.map_or(2, u8::from)).collect()
}

/// Which share of a call's cost a request bears.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Share {
    index: usize,
    of: usize,
}

impl Share {
    /// All of it.
    pub(super) const WHOLE: Self = Self { index: 0, of: 1 };

    /// Shares differ by a picodollar at most and sum to the whole.
    pub(super) fn of(self, cost: Usd) -> Usd {
        let of = i64::try_from(self.of.max(1)).unwrap_or(i64::MAX);
        let index = i64::try_from(self.index).unwrap_or(i64::MAX);
        let (each, rest) = (cost.pico() / of, cost.pico() % of);
        Usd::from_pico(each + i64::from(index < rest))
    }

    pub(super) fn recorded(self) -> UsageShare {
        let count = |count: usize| u32::try_from(count).unwrap_or(u32::MAX);
        UsageShare { index: count(self.index), of: count(self.of) }
    }
}

type Call = BoxFuture<'static, (Arc<Routed>, usize)>;
type Calls = Arc<Mutex<HashMap<CallKey, Joinable>>>;

/// Calls that others may join. It owns none of them: a call that nobody waits for any more is dropped, and its entry
/// with it.
#[derive(Default)]
pub(super) struct InFlight(Calls);

struct Joinable {
    call: WeakShared<Call>,
    everyone: Arc<Everyone>,
}

impl InFlight {
    /// Joins the call of that key, or makes it by `run`, which is told of everyone who waits for it. The call goes on as
    /// long as anyone is there, whoever began it; once all have left nobody can join it. A call that may come to more
    /// than the guest has reserved is not joined.
    pub(super) async fn join<R, F>(
        &self,
        key: CallKey,
        way: Coalescing,
        caller: &Arc<dyn CallerPresence>,
        guest: Guest,
        run: F,
    ) -> Joined<F>
    where
        F: FnOnce(Arc<Everyone>) -> R + Send,
        R: Future<Output = Routed> + Send + 'static,
    {
        let (mut call, mut seat) = match self.seat(key, guest, run) {
            Ok(seated) => seated,
            Err((needed, run)) => return Joined::Not { needed, run },
        };
        let mut left = Some(caller.left());
        let ended = std::future::poll_fn(|context| {
            let mut polled = call.poll_unpin(context);
            if polled.is_pending() && left.as_mut().is_some_and(|left| left.poll_unpin(context).is_ready()) {
                left = None;
                seat.leave();
                // The record is still written, so the end is awaited; if all have left, it comes at once.
                polled = call.poll_unpin(context);
            }
            // Looked at last: who was put out has no share in the call, even where that has ended in the same moment.
            if seat.is_put_out(context) { Poll::Ready(None) } else { polled.map(Some) }
        });
        let Some((routed, of)) = ended.await else { return Joined::PutOut };
        let index = seat.everyone.collect();
        let share = if way == Coalescing::Shared { Share { index, of } } else { Share::WHOLE };
        Joined::Ended(routed, share)
    }

    fn seat<R, F>(&self, key: CallKey, guest: Guest, run: F) -> Result<(Shared<Call>, Seat), (Usd, F)>
    where
        F: FnOnce(Arc<Everyone>) -> R,
        R: Future<Output = Routed> + Send + 'static,
    {
        let Guest { funds, needed } = guest;
        let mut calls = lock(&self.0);
        let found =
            calls.get(&key).and_then(|joinable| Some((joinable.call.upgrade()?, Arc::clone(&joinable.everyone))));
        if let (Some((_, everyone)), Some(funds)) = (&found, &funds) {
            let needed = lock(&everyone.presence).needed;
            if funds.amount() < needed {
                return Err((needed, run));
            }
        }
        let (call, everyone) = found.unwrap_or_else(|| {
            let everyone = Arc::new(Everyone::default());
            lock(&everyone.presence).needed = needed;
            let running = run(Arc::clone(&everyone));
            let entry = Entry { calls: Arc::clone(&self.0), key, everyone: Arc::clone(&everyone) };
            let call = async move {
                let routed = Arc::new(running.await);
                (routed, entry.close())
            };
            let call = call.boxed().shared();
            if let Some(weak) = call.downgrade() {
                calls.insert(key, Joinable { call: weak, everyone: Arc::clone(&everyone) });
            }
            (call, everyone)
        });
        let number = lock(&everyone.presence).seat(funds);
        Ok((call, Seat { calls: Arc::clone(&self.0), key, everyone, number }))
    }
}

/// A call's entry among the calls in flight. It goes when the call ends, panics or is dropped.
struct Entry {
    calls: Calls,
    key: CallKey,
    everyone: Arc<Everyone>,
}

impl Entry {
    /// From here on nobody can join, so the count of those who share the call is final.
    fn close(self) -> usize {
        let mut calls = lock(&self.calls);
        remove(&mut calls, &self.key, &self.everyone);
        let waiting = lock(&self.everyone.presence).seats.len();
        drop(calls);
        waiting
    }
}

impl Drop for Entry {
    fn drop(&mut self) {
        remove(&mut lock(&self.calls), &self.key, &self.everyone);
    }
}

/// Takes a call's own entry away, and no later one of the same key.
fn remove(calls: &mut HashMap<CallKey, Joinable>, key: &CallKey, everyone: &Arc<Everyone>) {
    if calls.get(key).is_some_and(|joinable| Arc::ptr_eq(&joinable.everyone, everyone)) {
        calls.remove(key);
    }
}

/// A request's place among those who wait for one call. Dropped, it no longer counts.
struct Seat {
    calls: Calls,
    key: CallKey,
    everyone: Arc<Everyone>,
    number: u64,
}

impl Seat {
    fn leave(&mut self) {
        let number = self.number;
        self.change(|presence| {
            for seated in presence.seats.iter_mut().filter(|seated| seated.number == number) {
                seated.has_left = true;
            }
        });
    }

    /// True where the call goes on without this one, for want of money.
    fn is_put_out(&self, context: &Context<'_>) -> bool {
        let mut presence = lock(&self.everyone.presence);
        let own = presence.seats.iter_mut().find(|seated| seated.number == self.number);
        let Some(seated) = own else { return true };
        if !seated.waker.as_ref().is_some_and(|known| known.will_wake(context.waker())) {
            seated.waker = Some(context.waker().clone());
        }
        false
    }

    /// Changes who is there. Where nobody is, the call has nobody to answer and is closed to others in the same
    /// instant.
    fn change(&self, change: impl FnOnce(&mut Presence)) {
        let wakers = {
            let mut calls = lock(&self.calls);
            let mut presence = lock(&self.everyone.presence);
            change(&mut presence);
            if presence.all_gone() {
                remove(&mut calls, &self.key, &self.everyone);
                std::mem::take(&mut presence.wakers)
            } else {
                Vec::new()
            }
        };
        wakers.into_iter().for_each(Waker::wake);
    }
}

impl Drop for Seat {
    fn drop(&mut self) {
        let number = self.number;
        self.change(|presence| presence.seats.retain(|seated| seated.number != number));
    }
}

/// A request that would share a call: what it has reserved, where it is limited, and what the call may come to at first
/// if it begins it.
pub(super) struct Guest {
    pub(super) funds: Option<Arc<Funds>>,
    pub(super) needed: Usd,
}

/// What became of a request that would share a call.
pub(super) enum Joined<F> {
    /// The call has ended.
    Ended(Arc<Routed>, Share),
    /// It goes on, and this request cannot pay for that. It bears nothing of it.
    PutOut,
    /// It has reserved less than the call may come to.
    Not { needed: Usd, run: F },
}

/// Everyone who waits for one call. They have left when each of them has.
#[derive(Default)]
pub(super) struct Everyone {
    presence: Mutex<Presence>,
    collected: AtomicUsize,
}

#[derive(Default)]
struct Presence {
    /// Those who wait for the end, to record it if for nothing else.
    seats: Vec<Seated>,
    /// How many have ever come.
    numbers: u64,
    /// What the call may come to.
    needed: Usd,
    /// Of each attempt that asks; there may be several at a time.
    wakers: Vec<Waker>,
}

struct Seated {
    number: u64,
    /// True where its caller has left.
    has_left: bool,
    /// What it has reserved, where it is limited.
    funds: Option<Arc<Funds>>,
    /// Of its wait for the end.
    waker: Option<Waker>,
}

impl Presence {
    fn all_gone(&self) -> bool {
        self.seats.iter().all(|seated| seated.has_left)
    }

    fn seat(&mut self, funds: Option<Arc<Funds>>) -> u64 {
        self.numbers += 1;
        self.seats.push(Seated { number: self.numbers, has_left: false, funds, waker: None });
        self.numbers
    }
}

impl Everyone {
    /// Those who have reserved less than `to`. From now on nobody comes who has.
    pub(super) fn short_of(&self, to: Usd) -> Vec<Arc<Funds>> {
        let mut presence = lock(&self.presence);
        presence.needed = presence.needed.max(to);
        let limited = presence.seats.iter().filter_map(|seated| seated.funds.as_ref());
        limited.filter(|funds| funds.amount() < to).cloned().collect()
    }

    /// Puts out who cannot pay for what comes next; false, and nothing has changed, where nobody would be left.
    pub(super) fn go_on_without(&self, refused: &[Arc<Funds>]) -> bool {
        let mut presence = lock(&self.presence);
        let cannot_pay = |seated: &Seated| {
            seated.funds.as_ref().is_some_and(|own| refused.iter().any(|funds| Arc::ptr_eq(own, funds)))
        };
        // Who has left pays, but nothing is worth going on with for those alone.
        if !presence.seats.iter().any(|seated| !cannot_pay(seated) && !seated.has_left) {
            return false;
        }
        let (out, stay) = std::mem::take(&mut presence.seats).into_iter().partition(cannot_pay);
        presence.seats = stay;
        drop(presence);
        let out: Vec<Seated> = out;
        out.into_iter().filter_map(|seated| seated.waker).for_each(Waker::wake);
        true
    }

    /// The place of a share: each is given once.
    fn collect(&self) -> usize {
        self.collected.fetch_add(1, Ordering::Relaxed)
    }
}

#[async_trait]
impl CallerPresence for Everyone {
    async fn left(&self) {
        std::future::poll_fn(|context| {
            let mut presence = lock(&self.presence);
            if presence.all_gone() {
                return Poll::Ready(());
            }
            if !presence.wakers.iter().any(|known| known.will_wake(context.waker())) {
                presence.wakers.push(context.waker().clone());
            }
            Poll::Pending
        })
        .await;
    }
}

fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

#[cfg(test)]
mod tests;
