//! The idle connections of one thread to one origin.

use std::collections::VecDeque;
use std::pin::Pin;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError, Weak};
use std::task::{Context, Poll, Waker};
use std::time::Duration;

use hyper::rt::Executor;
use hyper_util::rt::TokioExecutor;
use tokio::sync::oneshot;
use tokio::time::{Instant, Sleep, sleep_until};

use crate::connections::{Http1Connection, Http2Connection};

/// A connection that can take a request.
pub(crate) enum PooledConnection {
    Http1(Box<Http1Connection>),
    Http2(Arc<Http2Connection>),
}

/// Idle connections. Those of HTTP/1.1 are taken newest first, so that the rest can expire; an HTTP/2 connection is
/// shared.
pub(crate) struct Pool {
    state: Mutex<State>,
    idle_timeout: Duration,
    max_idle: usize,
    /// The lock on opening a connection that all waiting calls will share.
    pub(crate) opening: tokio::sync::Mutex<()>,
}

#[derive(Default)]
struct State {
    /// Oldest first.
    idle: VecDeque<Box<Http1Connection>>,
    shared: Option<SharedConnection>,
    /// Calls that open a connection, but take one that becomes idle first.
    waiting: VecDeque<oneshot::Sender<Box<Http1Connection>>>,
    watcher: Option<Watcher>,
    watchers: u64,
}

struct SharedConnection {
    connection: Arc<Http2Connection>,
    used: Instant,
}

/// The task that watches the idle connections.
struct Watcher {
    number: u64,
    /// `None` until its first poll.
    waker: Option<Waker>,
}

impl Pool {
    pub(crate) fn new(idle_timeout: Duration, max_idle: usize) -> Self {
        Self { state: Mutex::default(), idle_timeout, max_idle, opening: tokio::sync::Mutex::default() }
    }

    /// Takes the most recently used connection.
    pub(crate) fn take(&self) -> Option<PooledConnection> {
        let (mut state, now) = (self.state(), Instant::now());
        let shared = state.take_shared(now, self.idle_timeout);
        if shared.is_some() {
            return shared;
        }
        while let Some(connection) = state.idle.pop_back() {
            if now < connection.idle_until && connection.is_usable() {
                return Some(PooledConnection::Http1(connection));
            }
        }
        None
    }

    /// Returns the shared connection, if there is one.
    pub(crate) fn take_shared(&self) -> Option<PooledConnection> {
        self.state().take_shared(Instant::now(), self.idle_timeout)
    }

    /// Keeps a connection for the next call, or hands it to a waiting one. Closes it if it cannot take a request.
    pub(crate) fn put(self: &Arc<Self>, mut connection: Box<Http1Connection>) {
        let mut state = self.state();
        // Reads the end of the answer and registers the waker for a close by the peer.
        let waker = state.watcher.as_ref().and_then(|watcher| watcher.waker.as_ref());
        connection.drive(&mut Context::from_waker(waker.unwrap_or(Waker::noop())));
        if !connection.is_usable() {
            return;
        }
        connection.is_reused = true;
        while let Some(waiting) = state.waiting.pop_front() {
            match waiting.send(connection) {
                Ok(()) => return,
                Err(unclaimed) => connection = unclaimed,
            }
        }
        let idle_timeout = connection.keep_alive.map_or(self.idle_timeout, |kept| kept.min(self.idle_timeout));
        if state.idle.len() < self.max_idle && !idle_timeout.is_zero() {
            connection.idle_until = Instant::now() + idle_timeout;
            state.idle.push_back(connection);
            self.watch(&mut state);
        }
    }

    /// Shares a new connection among all calls. Returns the shared connection, and true if it existed already.
    pub(crate) fn share(self: &Arc<Self>, connection: Arc<Http2Connection>) -> (Arc<Http2Connection>, bool) {
        let mut state = self.state();
        let now = Instant::now();
        if let Some(shared) = &state.shared
            && shared.is_usable(now, self.idle_timeout)
        {
            return (Arc::clone(&shared.connection), true);
        }
        state.shared = Some(SharedConnection { connection: Arc::clone(&connection), used: now });
        self.watch(&mut state);
        (connection, false)
    }

    /// Returns a receiver of the next connection that becomes idle.
    pub(crate) fn wait(&self) -> oneshot::Receiver<Box<Http1Connection>> {
        let (sender, receiver) = oneshot::channel();
        let mut state = self.state();
        state.waiting.retain(|waiting| !waiting.is_closed());
        state.waiting.push_back(sender);
        receiver
    }

    fn watch(self: &Arc<Self>, state: &mut State) {
        if state.watcher.is_none() {
            state.watchers += 1;
            state.watcher = Some(Watcher { number: state.watchers, waker: None });
            let timer = Box::pin(sleep_until(Instant::now()));
            TokioExecutor::new().execute(WatcherTask { pool: Arc::downgrade(self), number: state.watchers, timer });
        }
    }

    /// Returns true if it has no connection, also none in use.
    pub(crate) fn is_unused(self: &Arc<Self>) -> bool {
        let state = self.state();
        state.idle.is_empty() && state.shared.is_none() && Arc::strong_count(self) == 1
    }

    fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Removes closed and expired connections, and registers the waker with the others. Returns the next expiry; `None`
    /// ends the watcher.
    fn inspect(&self, cx: &mut Context<'_>, number: u64) -> Option<Instant> {
        let mut state = self.state();
        let now = Instant::now();
        let timeout = self.idle_timeout;
        state.idle.retain_mut(|connection| {
            connection.drive(cx);
            connection.is_usable() && now < connection.idle_until
        });
        state.shared.take_if(|shared| !shared.is_usable(now, timeout));
        let shared_until = state.shared.as_ref().map(|shared| shared.used + timeout);
        let next = state.idle.iter().map(|connection| connection.idle_until).chain(shared_until).min();
        state.watcher = next.map(|_| Watcher { number, waker: Some(cx.waker().clone()) });
        next
    }
}

impl State {
    fn take_shared(&mut self, now: Instant, idle_timeout: Duration) -> Option<PooledConnection> {
        let shared = self.shared.as_mut()?;
        if shared.is_usable(now, idle_timeout) {
            shared.used = now;
            return Some(PooledConnection::Http2(Arc::clone(&shared.connection)));
        }
        self.shared = None;
        None
    }
}

impl SharedConnection {
    fn is_usable(&self, now: Instant, idle_timeout: Duration) -> bool {
        now.duration_since(self.used) < idle_timeout && self.connection.is_usable()
    }
}

impl Drop for Pool {
    /// Wakes the watcher, which then ends.
    fn drop(&mut self) {
        if let Some(waker) = self.state().watcher.take().and_then(|watcher| watcher.waker) {
            waker.wake();
        }
    }
}

/// The task that closes idle connections when their peers close them or when they expire. Idle connections wake it; it
/// then checks all of them, because few close at a time.
struct WatcherTask {
    pool: Weak<Pool>,
    number: u64,
    timer: Pin<Box<Sleep>>,
}

impl Future for WatcherTask {
    type Output = ();

    fn poll(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<()> {
        loop {
            let Some(pool) = self.pool.upgrade() else { return Poll::Ready(()) };
            let Some(next) = pool.inspect(cx, self.number) else { return Poll::Ready(()) };
            if self.timer.deadline() != next {
                self.timer.as_mut().reset(next);
            }
            if self.timer.as_mut().poll(cx).is_pending() {
                return Poll::Pending;
            }
        }
    }
}

impl Drop for WatcherTask {
    /// Notes that the watcher has ended, possibly with its runtime.
    fn drop(&mut self) {
        if let Some(pool) = self.pool.upgrade() {
            pool.state().watcher.take_if(|watcher| watcher.number == self.number);
        }
    }
}
