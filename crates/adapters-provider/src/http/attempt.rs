//! One attempt's bounds in time.

use std::time::Duration;

use domain::decision::CallerPresence;
use domain::routing::{AttemptFailure, AttemptFailureKind};

/// Runs `work` until it ends, the caller leaves or `timeout` passes. In the last two cases the work is dropped, and
/// with it its connection or stream, so that the other side learns of it.
pub(crate) async fn within<T>(
    timeout: Duration,
    caller: &dyn CallerPresence,
    work: impl Future<Output = Result<T, AttemptFailure>> + Send,
) -> Result<T, AttemptFailure> {
    tokio::select! {
        biased;
        () = caller.left() => Err(AttemptFailure::new(AttemptFailureKind::CallerGone, "the caller left")),
        done = work => done,
        () = tokio::time::sleep(timeout) => {
            Err(AttemptFailure::new(AttemptFailureKind::TimedOut, "the provider did not answer in time"))
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use async_trait::async_trait;
    use domain::decision::StaysToTheEnd;
    use std::future::{pending, ready};

    struct Gone;

    #[async_trait]
    impl CallerPresence for Gone {
        async fn left(&self) {}
    }

    #[tokio::test]
    async fn work_for_nobody_is_given_up() {
        let end = within(Duration::from_secs(9), &Gone, ready(Ok(1))).await;
        assert_eq!(end.unwrap_err().kind, AttemptFailureKind::CallerGone);
    }

    #[tokio::test]
    async fn work_that_takes_too_long_is_given_up() {
        let end = within::<()>(Duration::from_millis(5), &StaysToTheEnd, pending()).await;
        assert_eq!(end.unwrap_err().kind, AttemptFailureKind::TimedOut);
    }

    #[tokio::test]
    async fn work_that_is_done_counts_even_without_time() {
        assert_eq!(within(Duration::ZERO, &StaysToTheEnd, ready(Ok(1))).await.unwrap(), 1);
    }
}
