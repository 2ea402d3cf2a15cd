//! Work that is not given up when the caller leaves.

use std::future::Future;
use std::panic::AssertUnwindSafe;
use std::pin::Pin;
use std::task::{Context, Poll};

use futures_util::FutureExt;
use tokio::runtime::Handle;
use tokio_util::sync::CancellationToken;
use tokio_util::task::TaskTracker;
use tracing::Instrument;

/// Where work goes on whose caller has left: a runtime that outlives every connection, and the tracker that the
/// shutdown waits for.
#[derive(Debug, Clone)]
pub(crate) struct Afterlife {
    tasks: TaskTracker,
    runtime: Handle,
}

impl Afterlife {
    pub(crate) fn new(tasks: TaskTracker, runtime: Handle) -> Self {
        Self { tasks, runtime }
    }

    /// Runs `work` where it is awaited, without the cost of a task, as long as the caller stays. When the caller
    /// leaves, the server drops the handler; then `left` is cancelled and `work` goes on in a tracked task of its
    /// own, to its end.
    pub(crate) fn outlive<F>(&self, work: F, left: CancellationToken) -> Outlive<F::Output>
    where
        F: Future + Send + 'static,
        F::Output: Send + 'static,
    {
        // Counted by the tracker from the first poll on, not only once it is detached.
        let work = Box::pin(self.tasks.track_future(work.in_current_span()));
        Outlive { work: Some(work), left, afterlife: self.clone() }
    }
}

/// See [`Afterlife::outlive`].
pub(crate) struct Outlive<T: Send + 'static> {
    work: Option<Pin<Box<dyn Future<Output = T> + Send>>>,
    left: CancellationToken,
    afterlife: Afterlife,
}

impl<T: Send + 'static> Future for Outlive<T> {
    type Output = T;

    fn poll(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<T> {
        // Taken out, so that work that panics, or is done, is never polled again by the task of `drop`.
        let Some(mut work) = self.work.take() else { return Poll::Pending };
        let Poll::Ready(output) = work.as_mut().poll(cx) else {
            self.work = Some(work);
            return Poll::Pending;
        };
        Poll::Ready(output)
    }
}

impl<T: Send + 'static> Drop for Outlive<T> {
    fn drop(&mut self) {
        let Some(work) = self.work.take() else { return };
        self.left.cancel();
        let to_the_end = AssertUnwindSafe(work).catch_unwind().map(|end| {
            if end.is_err() {
                tracing::error!("work whose caller had left panicked");
            }
        });
        // The handle of the task is not needed: the tracker holds the task.
        drop(self.afterlife.tasks.spawn_on(to_the_end, &self.afterlife.runtime));
    }
}
