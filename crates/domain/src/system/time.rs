//! A clock and its timer.

use std::future::Future;
use std::pin::{Pin, pin};
use std::sync::Arc;
use std::time::Duration;

use chrono::{DateTime, Utc};
use futures_util::future::{Either, select};

use super::{Clock, Timer};

/// Reads the clock and waits.
#[derive(Clone)]
pub struct TimeSource {
    /// The clock.
    pub clock: Arc<dyn Clock>,
    /// The timer.
    pub timer: Arc<dyn Timer>,
}

impl TimeSource {
    /// Returns the wall clock time, in UTC.
    pub fn now(&self) -> DateTime<Utc> {
        self.clock.now()
    }

    /// Returns the time since a fixed time of this process.
    pub fn monotonic(&self) -> Duration {
        self.clock.monotonic()
    }

    /// Returns the rest of `limit`, counted from the monotonic time `began`; zero once it is over.
    pub fn time_left(&self, began: Duration, limit: Duration) -> Duration {
        limit.saturating_sub(self.monotonic().saturating_sub(began))
    }

    /// Returns after `duration`, not before.
    pub fn sleep(&self, duration: Duration) -> Pin<Box<dyn Future<Output = ()> + Send + '_>> {
        self.timer.sleep(duration)
    }

    /// Returns the output of a future, or `None` if it takes longer than `limit`; the future is then dropped.
    pub async fn run_with_timeout<T>(&self, limit: Duration, future: impl Future<Output = T>) -> Option<T> {
        match select(pin!(future), self.sleep(limit)).await {
            Either::Left((output, _)) => Some(output),
            Either::Right(_) => None,
        }
    }
}
