//! A lazily armed timer.

use std::future::Future;
use std::pin::Pin;
use std::task::{Context, Poll, ready};

use tokio::time::{Instant, Sleep, sleep_until};

/// A reusable timer. Moving the deadline later costs nothing until the armed timer fires.
#[derive(Default)]
pub(super) struct Deadline {
    sleep: Option<Pin<Box<Sleep>>>,
}

impl Deadline {
    /// Resolves once `at` has passed.
    pub(super) fn poll_until(&mut self, cx: &mut Context<'_>, at: Instant) -> Poll<()> {
        let sleep = self.sleep.get_or_insert_with(|| Box::pin(sleep_until(at)));
        loop {
            if sleep.deadline() > at {
                sleep.as_mut().reset(at);
            }
            ready!(sleep.as_mut().poll(cx));
            if sleep.deadline() >= at {
                return Poll::Ready(());
            }
            sleep.as_mut().reset(at);
        }
    }
}

#[cfg(test)]
mod tests {
    use std::future::poll_fn;
    use std::time::Duration;

    use super::*;

    #[tokio::test(start_paused = true)]
    async fn deadline_resolves_at_requested_time_when_rearmed() {
        let began = Instant::now();
        let at = |seconds| began + Duration::from_secs(seconds);
        let mut deadline = Deadline::default();
        assert!(futures_util::poll!(poll_fn(|cx| deadline.poll_until(cx, at(10)))).is_pending());
        poll_fn(|cx| deadline.poll_until(cx, at(30))).await;
        assert_eq!(began.elapsed().as_secs(), 30);
        assert!(futures_util::poll!(poll_fn(|cx| deadline.poll_until(cx, at(90)))).is_pending());
        poll_fn(|cx| deadline.poll_until(cx, at(40))).await;
        assert_eq!(began.elapsed().as_secs(), 40);
        poll_fn(|cx| deadline.poll_until(cx, at(20))).await;
        assert_eq!(began.elapsed().as_secs(), 40);
    }
}
