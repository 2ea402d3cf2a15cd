//! Single-flight: identical calls in flight share one.

use std::collections::HashMap;
use std::hash::Hash;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::task::{Poll, Waker};

use futures_util::FutureExt;
use futures_util::future::{BoxFuture, Shared, WeakShared};

/// A call with the final count of its participants.
type Call<T> = BoxFuture<'static, (Arc<T>, usize)>;
type Calls<K, T> = Arc<Mutex<HashMap<K, Entry<T>>>>;

/// Calls that others may join, by their keys. It owns none of them: a call without participants is dropped together
/// with its entry.
pub(super) struct SingleFlight<K, T> {
    calls: Calls<K, T>,
}

/// A call that can be joined.
struct Entry<T> {
    call: WeakShared<Call<T>>,
    participants: Arc<Participants>,
}

/// The result of a shared call.
#[derive(Debug)]
pub(super) struct SharedResult<T> {
    pub(super) value: Arc<T>,
    /// A number below `participants`, unique for each participant.
    pub(super) index: usize,
    /// The number of participants, including disconnected clients.
    pub(super) participants: usize,
}

impl<K, T> Default for SingleFlight<K, T> {
    fn default() -> Self {
        Self { calls: Arc::default() }
    }
}

impl<K, T> SingleFlight<K, T>
where
    K: Eq + Hash + Copy + Send + 'static,
    T: Send + Sync + 'static,
{
    /// Joins the call of that key, or makes it by `run`, which receives its participants. The call goes on until it
    /// ends, or until all participants have disconnected; from then on it cannot be joined. A participant that
    /// disconnects still waits for the result.
    pub(super) async fn join<R, F>(
        &self,
        key: K,
        disconnected: impl Future<Output = ()> + Send + Unpin,
        run: F,
    ) -> SharedResult<T>
    where
        F: FnOnce(Arc<Participants>) -> R,
        R: Future<Output = T> + Send + 'static,
    {
        let (mut call, participant) = self.enter(key, run);
        let mut disconnected = Some(disconnected);
        let ended = std::future::poll_fn(|context| {
            let polled = call.poll_unpin(context);
            if polled.is_pending() && disconnected.as_mut().is_some_and(|left| left.poll_unpin(context).is_ready()) {
                disconnected = None;
                participant.disconnect();
                // The last disconnect ends the call.
                return call.poll_unpin(context);
            }
            polled
        });
        let (value, participants) = ended.await;
        SharedResult { value, index: participant.of.take_index(), participants }
    }

    fn enter<R, F>(&self, key: K, run: F) -> (Shared<Call<T>>, Participant<K, T>)
    where
        F: FnOnce(Arc<Participants>) -> R,
        R: Future<Output = T> + Send + 'static,
    {
        let mut calls = lock(&self.calls);
        let found = calls.get(&key).and_then(|entry| Some((entry.call.upgrade()?, Arc::clone(&entry.participants))));
        let (call, of) = found.unwrap_or_else(|| {
            let participants = Arc::new(Participants::default());
            let running = run(Arc::clone(&participants));
            let open = OpenCall { calls: Arc::clone(&self.calls), key, participants: Arc::clone(&participants) };
            let call = async move {
                let value = Arc::new(running.await);
                (value, open.close())
            };
            let call = call.boxed().shared();
            if let Some(weak) = call.downgrade() {
                calls.insert(key, Entry { call: weak, participants: Arc::clone(&participants) });
            }
            (call, participants)
        });
        let number = lock(&of.state).add();
        (call, Participant { calls: Arc::clone(&self.calls), key, of, number })
    }
}

/// The entry of a call in flight. It is removed when the call ends, panics or is dropped.
struct OpenCall<K: Eq + Hash, T> {
    calls: Calls<K, T>,
    key: K,
    participants: Arc<Participants>,
}

impl<K: Eq + Hash, T> OpenCall<K, T> {
    /// Ends the joining, and returns the final count of participants.
    fn close(self) -> usize {
        let mut calls = lock(&self.calls);
        remove(&mut calls, &self.key, &self.participants);
        let count = lock(&self.participants.state).members.len();
        drop(calls);
        count
    }
}

impl<K: Eq + Hash, T> Drop for OpenCall<K, T> {
    fn drop(&mut self) {
        remove(&mut lock(&self.calls), &self.key, &self.participants);
    }
}

/// Removes the entry of a call, and not a later one of the same key.
fn remove<K: Eq + Hash, T>(calls: &mut HashMap<K, Entry<T>>, key: &K, participants: &Arc<Participants>) {
    if calls.get(key).is_some_and(|entry| Arc::ptr_eq(&entry.participants, participants)) {
        calls.remove(key);
    }
}

/// A participant of a call. Dropped, it no longer counts.
struct Participant<K: Eq + Hash, T> {
    calls: Calls<K, T>,
    key: K,
    of: Arc<Participants>,
    number: u64,
}

impl<K: Eq + Hash, T> Participant<K, T> {
    fn disconnect(&self) {
        self.change(|state| {
            for member in state.members.iter_mut().filter(|member| member.number == self.number) {
                member.is_disconnected = true;
            }
        });
    }

    /// Changes the participants. When no connected one is left, atomically removes the call from the joinable ones.
    fn change(&self, change: impl FnOnce(&mut State)) {
        let wakers = {
            let mut calls = lock(&self.calls);
            let mut state = lock(&self.of.state);
            change(&mut state);
            if state.are_all_disconnected() {
                remove(&mut calls, &self.key, &self.of);
                std::mem::take(&mut state.wakers)
            } else {
                Vec::new()
            }
        };
        wakers.into_iter().for_each(Waker::wake);
    }
}

impl<K: Eq + Hash, T> Drop for Participant<K, T> {
    fn drop(&mut self) {
        let number = self.number;
        self.change(|state| state.members.retain(|member| member.number != number));
    }
}

/// The participants of one call.
#[derive(Debug, Default)]
pub(super) struct Participants {
    state: Mutex<State>,
    taken: AtomicUsize,
}

#[derive(Debug, Default)]
struct State {
    members: Vec<Member>,
    /// The number of all participants that joined.
    joined: u64,
    /// Wakes each attempt that waits for a disconnect.
    wakers: Vec<Waker>,
}

#[derive(Debug)]
struct Member {
    number: u64,
    is_disconnected: bool,
}

impl State {
    fn are_all_disconnected(&self) -> bool {
        self.members.iter().all(|member| member.is_disconnected)
    }

    fn add(&mut self) -> u64 {
        self.joined += 1;
        self.members.push(Member { number: self.joined, is_disconnected: false });
        self.joined
    }
}

impl Participants {
    /// Returns once all participants have disconnected.
    pub(super) async fn disconnected(&self) {
        std::future::poll_fn(|context| {
            let mut state = lock(&self.state);
            if state.are_all_disconnected() {
                return Poll::Ready(());
            }
            if !state.wakers.iter().any(|known| known.will_wake(context.waker())) {
                state.wakers.push(context.waker().clone());
            }
            Poll::Pending
        })
        .await;
    }

    /// Returns each number once.
    fn take_index(&self) -> usize {
        self.taken.fetch_add(1, Ordering::Relaxed)
    }
}

fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

#[cfg(test)]
mod tests;
