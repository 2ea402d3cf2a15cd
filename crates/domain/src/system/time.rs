//! A clock and a timer that belong together.

use std::future::Future;
use std::pin::Pin;
use std::sync::Arc;
use std::time::Duration;

use chrono::{DateTime, Utc};

use super::{Clock, Timer};

/// Tells the time and waits.
#[derive(Clone)]
pub struct TimeSource {
    /// Tells the time.
    pub clock: Arc<dyn Clock>,
    /// Waits.
    pub timer: Arc<dyn Timer>,
}

impl TimeSource {
    /// The wall clock, in UTC.
    pub fn now(&self) -> DateTime<Utc> {
        self.clock.now()
    }

    /// The time since some fixed moment of this process.
    pub fn monotonic(&self) -> Duration {
        self.clock.monotonic()
    }

    /// Returns the time left of `limit`, which began at the monotonic time `began`; zero where it is over.
    pub fn time_left(&self, began: Duration, limit: Duration) -> Duration {
        limit.saturating_sub(self.monotonic().saturating_sub(began))
    }

    /// Returns after `duration`, not before.
    pub fn sleep(&self, duration: Duration) -> Pin<Box<dyn Future<Output = ()> + Send + '_>> {
        self.timer.sleep(duration)
    }
}
