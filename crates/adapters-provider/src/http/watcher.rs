//! The task that closes the idle connections of a pool when their peers do, or when their time is over.

use std::pin::Pin;
use std::sync::Weak;
use std::task::{Context, Poll};

use hyper::rt::Executor;
use hyper_util::rt::TokioExecutor;
use tokio::time::{Instant, Sleep, sleep_until};

/// Idle connections.
pub(super) trait Watched: Send + Sync + 'static {
    /// Closes connections that their peers have closed or that have expired, and has the others wake that context.
    /// Returns when the next one expires; `None` ends the watcher.
    fn inspect(&self, cx: &mut Context<'_>, watcher: u64) -> Option<Instant>;

    /// The watcher has ended, maybe with its runtime.
    fn forget_watcher(&self, watcher: u64);
}

/// Watches until nothing is left. Idle connections wake it; it then looks at all of them, because few close at a time.
struct Watch<W: Watched> {
    pool: Weak<W>,
    number: u64,
    timer: Pin<Box<Sleep>>,
}

/// Starts a watcher with that number on the runtime of the caller.
pub(super) fn start(pool: Weak<impl Watched>, number: u64) {
    TokioExecutor::new().execute(Watch { pool, number, timer: Box::pin(sleep_until(Instant::now())) });
}

impl<W: Watched> Future for Watch<W> {
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

impl<W: Watched> Drop for Watch<W> {
    fn drop(&mut self) {
        if let Some(pool) = self.pool.upgrade() {
            pool.forget_watcher(self.number);
        }
    }
}
