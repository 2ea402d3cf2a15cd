//! Log lines about outages.

use std::time::Duration;

/// The shortest interval between two warnings.
const EVERY: Duration = Duration::from_mins(1);

/// Limits the warnings about outages to one a minute, and announces the end of an outage that was logged.
#[derive(Debug, Default)]
pub(crate) struct OutageLog {
    warned_at: Option<Duration>,
    is_announced: bool,
}

impl OutageLog {
    /// Logs an outage, unless a warning was logged in the last minute.
    pub(crate) fn warn(&mut self, server: &str, error: &str, on_failure: &'static str, now: Duration) {
        if !self.is_due(now) {
            return;
        }
        tracing::warn!(server, error, on_failure, "shared rate limits unavailable");
    }

    /// Logs the end of an outage that was logged.
    pub(crate) fn recover(&mut self, server: &str) {
        if std::mem::take(&mut self.is_announced) {
            tracing::info!(server, "shared rate limits available");
        }
    }

    fn is_due(&mut self, now: Duration) -> bool {
        if self.warned_at.is_some_and(|at| now.saturating_sub(at) < EVERY) {
            return false;
        }
        self.warned_at = Some(now);
        self.is_announced = true;
        true
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn warning_is_due_once_a_minute() {
        let mut log = OutageLog::default();
        let seconds = [0, 1, 59, 60, 61, 119, 120, 500];
        let due: Vec<u64> = seconds.into_iter().filter(|at| log.is_due(Duration::from_secs(*at))).collect();
        assert_eq!(due, [0, 60, 120, 500]);
    }
}
