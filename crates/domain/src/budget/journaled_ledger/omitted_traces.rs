//! The count of records without their trace.

use std::sync::atomic::Ordering;
use std::time::Duration;

use super::calls::lock;
use super::sync::{AtomicU64, Mutex};

/// The time between two log lines.
const LOG_EVERY: Duration = Duration::from_mins(1);

/// Counts records without their trace.
#[derive(Debug)]
pub(super) struct OmittedTraces {
    count: AtomicU64,
    /// The monotonic time of the last log line.
    logged_at: Mutex<Option<Duration>>,
}

impl Default for OmittedTraces {
    fn default() -> Self {
        Self { count: AtomicU64::new(0), logged_at: Mutex::new(None) }
    }
}

impl OmittedTraces {
    pub(super) fn count(&self) -> u64 {
        self.count.load(Ordering::Relaxed)
    }

    /// Counts a record. Returns true once a minute, to log it.
    pub(super) fn add(&self, now: Duration) -> bool {
        self.count.fetch_add(1, Ordering::Relaxed);
        let mut logged_at = lock(&self.logged_at);
        if logged_at.is_some_and(|at| now.saturating_sub(at) < LOG_EVERY) {
            return false;
        }
        *logged_at = Some(now);
        true
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn omitted_traces_are_logged_once_a_minute() {
        let traces = OmittedTraces::default();
        let second = Duration::from_secs;
        let logged: Vec<bool> = [100, 100, 159, 160, 219].map(|at| traces.add(second(at))).into();
        assert_eq!((logged, traces.count()), (vec![true, false, false, true, false], 5));
    }
}
