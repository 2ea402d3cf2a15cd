//! The task that closes the idle connections of a pool when their peers close them or when they expire.

use std::pin::Pin;
use std::sync::Weak;
use std::task::{Context, Poll};

use hyper::rt::Executor;
use hyper_util::rt::TokioExecutor;
use tokio::time::{Instant, Sleep, sleep_until};

/// A pool of idle connections.
pub(super) trait WatchedPool: Send + Sync + 'static {
    /// Removes closed and expired connections, and registers the waker with the others. Returns the next expiry; `None`
    /// ends the watcher.
    fn inspect(&self, cx: &mut Context<'_>, watcher: u64) -> Option<Instant>;

    /// Notes that the watcher has ended, possibly with its runtime.
    fn forget_watcher(&self, watcher: u64);
}

/// The watcher task. Idle connections wake it; it then checks all of them, because few close at a time.
struct WatcherTask<W: WatchedPool> {
    pool: Weak<W>,
    number: u64,
    timer: Pin<Box<Sleep>>,
}

/// Starts a watcher with this number on the current runtime.
pub(super) fn start(pool: Weak<impl WatchedPool>, number: u64) {
    TokioExecutor::new().execute(WatcherTask { pool, number, timer: Box::pin(sleep_until(Instant::now())) });
}

impl<W: WatchedPool> Future for WatcherTask<W> {
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

impl<W: WatchedPool> Drop for WatcherTask<W> {
    fn drop(&mut self) {
        if let Some(pool) = self.pool.upgrade() {
            pool.forget_watcher(self.number);
        }
    }
}
