//! Identical requests in flight share one call to a provider.

use std::collections::HashMap;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::task::{Poll, Waker};

use async_trait::async_trait;
use futures_util::FutureExt;
use futures_util::future::{BoxFuture, Either, Shared, WeakShared, select};
use sha2::{Digest, Sha256};

use super::router::Routed;
use crate::decision::{Attachments, CallerPresence, Coalescing, DecisionRequest, QuestionKind, Questions};
use crate::ids::WorkspaceId;
use crate::model::ModelId;
use crate::money::Usd;
use crate::usage::UsageShare;

/// What makes requests identical: a digest over the workspace, the model and everything that reaches a provider or
/// decides which one.
pub(super) type CallKey = [u8; 32];

/// The key of a request.
pub(super) fn key(workspace: WorkspaceId, model: &ModelId, request: &DecisionRequest) -> CallKey {
    let mut pieces = Pieces(Sha256::new());
    let inquiry = &request.inquiry;
    pieces.add(workspace.uuid().as_bytes());
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
    /// Joins the call of that key, or makes it by `run`, which is told of the presence of everyone who waits for it.
    /// The call goes on as long as anyone is there, whoever began it; once all have left nobody can join it.
    pub(super) async fn join<R>(
        &self,
        key: CallKey,
        way: Coalescing,
        caller: Arc<dyn CallerPresence>,
        run: impl FnOnce(Arc<dyn CallerPresence>) -> R + Send,
    ) -> (Arc<Routed>, Share)
    where
        R: Future<Output = Routed> + Send + 'static,
    {
        let (call, mut seat) = self.seat(key, run);
        let (routed, of) = match select(call, caller.left()).await {
            Either::Left((done, _)) => done,
            Either::Right(((), call)) => {
                seat.leave();
                // The record is still written, so the end is awaited; if all have left, it comes at once.
                call.await
            }
        };
        let index = seat.everyone.collect();
        let share = if way == Coalescing::Shared { Share { index, of } } else { Share::WHOLE };
        (routed, share)
    }

    fn seat<R>(&self, key: CallKey, run: impl FnOnce(Arc<dyn CallerPresence>) -> R) -> (Shared<Call>, Seat)
    where
        R: Future<Output = Routed> + Send + 'static,
    {
        let mut calls = lock(&self.0);
        let found =
            calls.get(&key).and_then(|joinable| Some((joinable.call.upgrade()?, Arc::clone(&joinable.everyone))));
        let (call, everyone) = found.unwrap_or_else(|| {
            let everyone = Arc::new(Everyone::default());
            let running = run(Arc::clone(&everyone) as Arc<dyn CallerPresence>);
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
        lock(&everyone.presence).waiting += 1;
        (call, Seat { calls: Arc::clone(&self.0), key, everyone, left: false })
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
        let waiting = lock(&self.everyone.presence).waiting;
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
    left: bool,
}

impl Seat {
    fn leave(&mut self) {
        self.left = true;
        self.change(|presence| presence.gone += 1);
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
        let left = usize::from(self.left);
        self.change(|presence| {
            presence.waiting = presence.waiting.saturating_sub(1);
            presence.gone = presence.gone.saturating_sub(left);
        });
    }
}

/// Everyone who waits for one call. They have left when each of them has.
#[derive(Default)]
struct Everyone {
    presence: Mutex<Presence>,
    collected: AtomicUsize,
}

#[derive(Default)]
struct Presence {
    /// Those who wait for the end, to record it if for nothing else.
    waiting: usize,
    /// Those of them whose callers have left.
    gone: usize,
    /// Of each attempt that asks; there may be several at a time.
    wakers: Vec<Waker>,
}

impl Presence {
    fn all_gone(&self) -> bool {
        self.gone >= self.waiting
    }
}

impl Everyone {
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
