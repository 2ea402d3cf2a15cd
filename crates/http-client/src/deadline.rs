//! Deadlines that read what has arrived.

use std::pin::pin;
use std::time::Duration;

use tokio::time::{Instant, sleep_until};

/// Times that I/O is polled after a deadline: once for the socket, and more for the tasks between it and the work.
const FINAL_POLLS: usize = 8;
/// A timer that fires this late was delayed, and the I/O with it.
const LATE_TIMER: Duration = Duration::from_millis(20);
/// The longest time for pending I/O after a delayed timer.
const MAX_GRACE: Duration = Duration::from_millis(250);

/// Runs `work` until it ends or `timeout` passes; `None` then. Data that has arrived is read before the deadline is
/// declared: after a pause of the process every timer has expired, while answers wait in the sockets.
pub async fn before_deadline<T>(timeout: Duration, work: impl Future<Output = T>) -> Option<T> {
    run_until(Instant::now().checked_add(timeout), work).await
}

/// Runs `work` like [`before_deadline`], up to a time; `None` is no deadline.
pub async fn run_until<T>(deadline: Option<Instant>, work: impl Future<Output = T>) -> Option<T> {
    let mut work = pin!(work);
    tokio::select! {
        biased;
        done = &mut work => return Some(done),
        () = expiry(deadline) => {}
    }
    let late = deadline.map(|deadline| Instant::now().saturating_duration_since(deadline)).unwrap_or_default();
    if late >= LATE_TIMER {
        return tokio::time::timeout(late.min(MAX_GRACE), work).await.ok();
    }
    for _ in 0..FINAL_POLLS {
        tokio::select! {
            biased;
            done = &mut work => return Some(done),
            // Returns after the driver has polled the sockets.
            () = tokio::task::yield_now() => {}
        }
    }
    None
}

async fn expiry(deadline: Option<Instant>) {
    match deadline {
        Some(deadline) => sleep_until(deadline).await,
        None => std::future::pending().await,
    }
}
