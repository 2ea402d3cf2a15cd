//! Identical requests in flight share one call to a provider.

use std::collections::HashMap;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::task::{Poll, Waker};

use async_trait::async_trait;
use futures_util::FutureExt;
use futures_util::future::{BoxFuture, Either, Shared, select};
use sha2::{Digest, Sha256};

use super::router::Routed;
use crate::decision::{Attachments, CallerPresence, Coalescing, DecisionRequest};
use crate::ids::WorkspaceId;
use crate::model::ModelId;
use crate::money::Usd;
use crate::usage::UsageShare;

/// What makes requests identical: a digest over the workspace, the model and everything that reaches a provider or
/// decides which one.
pub(super) type CallKey = [u8; 32];

/// The key of a request.
pub(super) fn key(workspace: WorkspaceId, model: &ModelId, request: &DecisionRequest) -> CallKey {
    let mut digest = Sha256::new();
    // Each piece after its length, so that no two requests run into the same bytes.
    let mut add = |piece: &[u8]| {
        digest.update(u64::try_from(piece.len()).unwrap_or(u64::MAX).to_le_bytes());
        digest.update(piece);
    };
    let inquiry = &request.inquiry;
    add(workspace.uuid().as_bytes());
    add(model.as_str().as_bytes());
    add(request.model.as_bytes());
    for model in &request.fallback_models {
        add(model.as_bytes());
    }
    // Preferences and forms hold nothing of the caller's text but provider names.
    add(format!("{:?} {:?} {}", request.preferences, inquiry.state_form, request.partial).as_bytes());
    add(inquiry.questions.json.text().as_bytes());
    let booleans = inquiry.questions.typed.iter().flatten().map(|question| format!("{:?}", question.kind));
    add(booleans.collect::<String>().as_bytes());
    match &inquiry.state {
        Some(state) => add(state.text().as_bytes()),
        None => add(b""),
    }
    add(&[u8::from(inquiry.state.is_some())]);
    match &inquiry.attachments {
        Attachments::None => add(b"none"),
        Attachments::InState => add(b"in state"),
        Attachments::Images(images) => add(images.text().as_bytes()),
        Attachments::Assets(assets) => {
            for asset in assets {
                add(asset.name.as_bytes());
                add(asset.entry.text().as_bytes());
                add(asset.media_type.as_deref().unwrap_or_default().as_bytes());
                add(&asset.data);
            }
        }
    }
    digest.finalize().into()
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

/// Calls that others may join.
#[derive(Default)]
pub(super) struct InFlight(Arc<Mutex<HashMap<CallKey, Joined>>>);

type SharedCall = Shared<BoxFuture<'static, (Arc<Routed>, usize)>>;

#[derive(Clone)]
struct Joined {
    call: SharedCall,
    everyone: Arc<Everyone>,
}

impl InFlight {
    /// Joins the call of that key, or makes it by `run`, which is told of the presence of everyone who waits for it.
    /// The call goes on as long as anyone is there, whoever began it.
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
        let (joined, index) = {
            let mut calls = lock(&self.0);
            let joined = calls.entry(key).or_insert_with(|| {
                let everyone = Arc::new(Everyone::default());
                let call = run(Arc::clone(&everyone) as Arc<dyn CallerPresence>);
                let (calls, counted) = (Arc::clone(&self.0), Arc::clone(&everyone));
                let call = async move {
                    let routed = Arc::new(call.await);
                    // From here on nobody can join, so the count is final.
                    let mut calls = lock(&calls);
                    calls.remove(&key);
                    (routed, counted.joined.load(Ordering::SeqCst))
                };
                Joined { call: call.boxed().shared(), everyone }
            });
            let index = joined.everyone.joined.fetch_add(1, Ordering::SeqCst);
            (joined.clone(), index)
        };
        let Joined { call, everyone } = joined;
        let (routed, of) = match select(call, caller.left()).await {
            Either::Left((done, _)) => done,
            Either::Right(((), call)) => {
                everyone.leave();
                // The record is still written, so the end is awaited; if all have left, it comes at once.
                call.await
            }
        };
        let share = if way == Coalescing::Shared { Share { index, of } } else { Share::WHOLE };
        (routed, share)
    }
}

/// Everyone who waits for one call. They have left when each of them has.
#[derive(Default)]
struct Everyone {
    joined: AtomicUsize,
    gone: AtomicUsize,
    /// Of each attempt that asks; there may be several at a time.
    wakers: Mutex<Vec<Waker>>,
}

impl Everyone {
    fn leave(&self) {
        self.gone.fetch_add(1, Ordering::SeqCst);
        for waker in std::mem::take(&mut *lock(&self.wakers)) {
            waker.wake();
        }
    }
}

#[async_trait]
impl CallerPresence for Everyone {
    async fn left(&self) {
        std::future::poll_fn(|context| {
            let mut wakers = lock(&self.wakers);
            if self.gone.load(Ordering::SeqCst) >= self.joined.load(Ordering::SeqCst) {
                return Poll::Ready(());
            }
            if !wakers.iter().any(|known| known.will_wake(context.waker())) {
                wakers.push(context.waker().clone());
            }
            Poll::Pending
        })
        .await;
    }
}

fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}
