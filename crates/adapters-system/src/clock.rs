//! The system's clocks.

use std::time::{Duration, Instant};

use async_trait::async_trait;
use chrono::{DateTime, Utc};
use domain::system::{Clock, Timer};

/// The wall clock, and the monotonic time since the creation of this value.
#[derive(Debug, Clone, Copy)]
pub struct SystemClock {
    started: Instant,
}

impl SystemClock {
    /// Starts the monotonic time at zero. Durations of two clocks do not compare: share one per process.
    #[expect(clippy::disallowed_methods, reason = "this is the one place that reads the system's clock")]
    pub fn new() -> Self {
        Self { started: Instant::now() }
    }
}

impl Default for SystemClock {
    fn default() -> Self {
        Self::new()
    }
}

impl Clock for SystemClock {
    #[expect(clippy::disallowed_methods, reason = "this is the one place that reads the system's clock")]
    fn now(&self) -> DateTime<Utc> {
        Utc::now()
    }

    fn monotonic(&self) -> Duration {
        self.started.elapsed()
    }
}

/// A timer over tokio. Needs a tokio runtime with its time driver.
#[derive(Debug, Clone, Copy, Default)]
pub struct TokioTimer;

#[async_trait]
impl Timer for TokioTimer {
    async fn sleep(&self, duration: Duration) {
        tokio::time::sleep(duration).await;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test]
    async fn sleep_advances_both_clocks() {
        let clock = SystemClock::new();
        let (wall, monotonic) = (clock.now(), clock.monotonic());
        TokioTimer.sleep(Duration::from_millis(20)).await;
        assert!(clock.monotonic().saturating_sub(monotonic) >= Duration::from_millis(20));
        assert!(clock.now() > wall);
    }

    #[test]
    fn now_matches_system_time() {
        let system = std::time::UNIX_EPOCH.elapsed().unwrap().as_secs();
        let ours = u64::try_from(SystemClock::new().now().timestamp()).unwrap();
        assert!(ours.abs_diff(system) <= 5, "{ours} is not {system}");
    }
}
