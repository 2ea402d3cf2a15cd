//! Work that continues after its client disconnects.

use std::future::Future;
use std::panic::AssertUnwindSafe;
use std::pin::{Pin, pin};
use std::task::{Context, Poll};
use std::time::Duration;

use domain::error::ErrorKind;
use domain::ids::RequestId;
use domain::usage::RejectionReason;
use futures_util::FutureExt;
use futures_util::future::BoxFuture;
use tokio::runtime::Handle;
use tokio::time::{Instant, timeout, timeout_at};
use tokio_util::sync::CancellationToken;
use tokio_util::task::TaskTracker;
use tokio_util::task::task_tracker::TaskTrackerToken;

use super::access_log::REQUEST_ID;
use super::admission::InFlightPermit;
use super::error::ApiError;

/// A timer that fires later than this indicates a paused process.
const PAUSE_THRESHOLD: Duration = Duration::from_millis(250);
/// The extra time for work whose deadline passed during a pause.
const PAUSE_GRACE: Duration = Duration::from_millis(500);

/// The error message of work that exceeds its deadline.
const DEADLINE_MESSAGE: &str = "The gateway's database did not answer in time. A call to a provider that was made \
                                for this request is still charged; see Retry-After before you repeat it";

/// Work that may outlive its client connection.
pub(crate) type Work<T> = BoxFuture<'static, Result<T, ApiError>>;

/// Boxes a future without an intermediate copy. A future that holds a whole request has many kilobytes.
pub(crate) fn box_in_place<T, F>(make: impl FnOnce() -> F) -> Work<T>
where
    F: Future<Output = Result<T, ApiError>> + Send + 'static,
{
    let work: Box<F> = Box::write(Box::new_uninit(), make());
    Box::into_pin(work)
}

/// Continues work after its client disconnects. The runtime outlives every connection, and the shutdown waits for the
/// tracker.
#[derive(Debug, Clone)]
pub(crate) struct DetachOnDisconnect {
    tasks: TaskTracker,
    runtime: Handle,
}

impl DetachOnDisconnect {
    pub(crate) fn new(tasks: TaskTracker, runtime: Handle) -> Self {
        Self { tasks, runtime }
    }

    /// Runs `work` inline, without a task, while the client stays connected. On a disconnect the server drops the
    /// handler. Then `disconnected` is cancelled, and `work` continues to its end in a tracked task.
    /// `permit` is held until that end.
    ///
    /// Logs a failure of detached work, because the edge no longer can.
    pub(crate) fn run_detachable<'a, T: Send + 'static>(
        &'a self,
        work: Work<T>,
        disconnected: CancellationToken,
        permit: Option<InFlightPermit>,
        request_id: &'a RequestId,
    ) -> DetachableWork<'a, T> {
        // The tracker counts the work from now on, not only once it is detached.
        DetachableWork {
            work: Some(work),
            disconnected,
            permit,
            request_id,
            detach: self,
            _counted: self.tasks.token(),
        }
    }
}

/// The future of [`DetachOnDisconnect::run_detachable`].
pub(crate) struct DetachableWork<'a, T: Send + 'static> {
    work: Option<Work<T>>,
    disconnected: CancellationToken,
    permit: Option<InFlightPermit>,
    request_id: &'a RequestId,
    detach: &'a DetachOnDisconnect,
    _counted: TaskTrackerToken,
}

impl<T: Send + 'static> DetachableWork<'_, T> {
    /// Waits for the work, or returns 503 after `limit`. The work then continues as after a disconnect.
    pub(crate) async fn with_deadline(self, limit: Duration) -> Result<T, ApiError> {
        let deadline = Instant::now() + limit;
        let mut work = pin!(self);
        if let Ok(end) = timeout_at(deadline, work.as_mut()).await {
            return end;
        }
        // A process that was paused first reads the data that arrived during the pause.
        if deadline.elapsed() > PAUSE_THRESHOLD
            && let Ok(end) = timeout(PAUSE_GRACE, work.as_mut()).await
        {
            return end;
        }
        let cause =
            "limits.request_timeout_ms passed while waiting for the store; the request continues in the background";
        Err(ApiError::from_kind(ErrorKind::Unavailable)
            .reason(RejectionReason::StoreTimeout)
            .message(DEADLINE_MESSAGE)
            .caused_by(cause))
    }
}

impl<T: Send + 'static> Future for DetachableWork<'_, T> {
    type Output = Result<T, ApiError>;

    fn poll(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Self::Output> {
        // Taken out, so that the task of `drop` never polls work that has panicked or finished.
        let Some(mut work) = self.work.take() else { return Poll::Pending };
        let Poll::Ready(output) = work.as_mut().poll(cx) else {
            self.work = Some(work);
            return Poll::Pending;
        };
        Poll::Ready(output)
    }
}

impl<T: Send + 'static> Drop for DetachableWork<'_, T> {
    fn drop(&mut self) {
        let Some(work) = self.work.take() else { return };
        self.disconnected.cancel();
        let permit = self.permit.take();
        let detached = AssertUnwindSafe(work).catch_unwind().map(|end| {
            drop(permit);
            let panicked = |_| {
                Err(ApiError::from_kind(ErrorKind::Internal)
                    .caused_by("request panicked after its client disconnected"))
            };
            if let Err(error) = end.unwrap_or_else(panicked) {
                error.log(false);
            }
        });
        // The task handle is not needed: the tracker owns the task.
        let detached = REQUEST_ID.scope(self.request_id.clone(), detached);
        drop(self.detach.tasks.spawn_on(detached, &self.detach.runtime));
    }
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;
    use std::sync::atomic::{AtomicBool, Ordering};

    use actix_web::http::StatusCode;
    use tokio::sync::Notify;

    use super::*;

    fn detach() -> DetachOnDisconnect {
        DetachOnDisconnect::new(TaskTracker::new(), Handle::current())
    }

    fn request_id() -> RequestId {
        "r-1".parse().unwrap()
    }

    async fn all_done(detach: &DetachOnDisconnect) {
        detach.tasks.close();
        tokio::time::timeout(Duration::from_secs(10), detach.tasks.wait()).await.unwrap();
    }

    #[tokio::test]
    async fn awaited_work_spawns_no_task() {
        let (detach, disconnected) = (detach(), CancellationToken::new());
        assert_eq!(
            detach
                .run_detachable(box_in_place(|| async { Ok(7) }), disconnected.clone(), None, &request_id())
                .await
                .unwrap(),
            7
        );
        assert!(!disconnected.is_cancelled() && detach.tasks.is_empty());
    }

    #[tokio::test]
    async fn work_continues_after_disconnect_with_cancelled_token() {
        let (detach, disconnected) = (detach(), CancellationToken::new());
        let (go_on, done) = (Arc::new(Notify::new()), Arc::new(AtomicBool::new(false)));
        let work = {
            let (go_on, done, disconnected) = (Arc::clone(&go_on), Arc::clone(&done), disconnected.clone());
            box_in_place(|| async move {
                disconnected.cancelled().await;
                go_on.notified().await;
                done.store(true, Ordering::SeqCst);
                Ok(())
            })
        };
        let id = request_id();
        let mut running = detach.run_detachable(work, disconnected.clone(), None, &id);
        assert!(futures_util::poll!(&mut running).is_pending());
        assert_eq!(detach.tasks.len(), 1);
        drop(running);
        assert!(disconnected.is_cancelled() && !done.load(Ordering::SeqCst));
        go_on.notify_one();
        all_done(&detach).await;
        assert!(done.load(Ordering::SeqCst));
    }

    #[tokio::test(start_paused = true)]
    async fn with_deadline_returns_503_and_work_continues_when_limit_passes() {
        let (detach, disconnected) = (detach(), CancellationToken::new());
        let (go_on, done) = (Arc::new(Notify::new()), Arc::new(AtomicBool::new(false)));
        let work = {
            let (go_on, done) = (Arc::clone(&go_on), Arc::clone(&done));
            box_in_place(|| async move {
                go_on.notified().await;
                done.store(true, Ordering::SeqCst);
                Ok(())
            })
        };
        let limit = Duration::from_secs(3);
        let began = Instant::now();
        let id = request_id();
        let error =
            detach.run_detachable(work, disconnected.clone(), None, &id).with_deadline(limit).await.unwrap_err();
        assert_eq!((error.status(), began.elapsed().as_secs()), (StatusCode::SERVICE_UNAVAILABLE, 3));
        assert!(disconnected.is_cancelled() && !done.load(Ordering::SeqCst));
        go_on.notify_one();
        all_done(&detach).await;
        assert!(done.load(Ordering::SeqCst));
        let prompt =
            detach.run_detachable(box_in_place(|| async { Ok(7) }), disconnected, None, &id).with_deadline(limit).await;
        assert_eq!(prompt.unwrap(), 7);
    }

    #[tokio::test]
    async fn panicked_work_is_not_resumed() {
        let (detach, disconnected) = (detach(), CancellationToken::new());
        let (work, id) = (box_in_place::<(), _>(|| async { panic!("broken") }), request_id());
        let running = detach.run_detachable(work, disconnected.clone(), None, &id);
        assert!(AssertUnwindSafe(running).catch_unwind().await.is_err());
        assert!(!disconnected.is_cancelled());
        all_done(&detach).await;
    }
}
