//! Logs failed attempts, with a bound on repeated lines.

use std::collections::HashMap;
use std::sync::{Mutex, PoisonError};
use std::time::Duration;

use crate::routing::{AttemptFailure, AttemptFailureKind, Candidate};

/// The period that [`MAX_LINES`] applies to.
const PERIOD: Duration = Duration::from_secs(10);
/// The most lines of one endpoint, outcome and status within a period.
const MAX_LINES: u32 = 5;

/// Logs each failed attempt as a warning. Repetitions beyond the bound are logged as debug lines; the next warning
/// counts them.
#[derive(Default)]
pub(super) struct FailureLog {
    periods: Mutex<HashMap<FailureKey, Period>>,
}

/// The failures that share a bound: an endpoint's index, an outcome and a status.
type FailureKey = (usize, &'static str, Option<u16>);

/// The current period of one key.
struct Period {
    began: Duration,
    lines: u32,
    suppressed: u64,
}

impl FailureLog {
    /// Logs a failure. `now` is on the monotonic clock.
    pub(super) fn log(&self, candidate: &Candidate, failure: &AttemptFailure, now: Duration) {
        let endpoint = &candidate.endpoint;
        let reported = failure.provider_error.as_deref();
        macro_rules! event {
            ($level:ident, $suppressed:expr) => {
                tracing::$level!(
                    provider.slug = %endpoint.provider,
                    model.id = %candidate.model,
                    upstream.model = &*endpoint.upstream_model,
                    attempt.outcome = failure.kind.as_str(),
                    upstream.status = failure.upstream_status,
                    detail = failure.detail,
                    provider.error_code = reported.and_then(|error| error.code.as_deref()),
                    provider.error_message = reported.and_then(|error| error.message.as_deref()),
                    suppressed = $suppressed,
                    "provider attempt failed"
                )
            };
        }
        // The provider did not cause these.
        if matches!(failure.kind, AttemptFailureKind::ClientDisconnected | AttemptFailureKind::Simulated(_)) {
            event!(info, None::<u64>);
            return;
        }
        if let Some(suppressed) = self.admit((endpoint.index, failure.kind.as_str(), failure.upstream_status), now) {
            event!(warn, (suppressed > 0).then_some(suppressed));
        } else {
            event!(debug, None::<u64>);
        }
    }

    /// Returns the number of lines suppressed in the period before, or `None` if this line exceeds the bound.
    fn admit(&self, key: FailureKey, now: Duration) -> Option<u64> {
        let mut periods = self.periods.lock().unwrap_or_else(PoisonError::into_inner);
        let period = periods.entry(key).or_insert(Period { began: now, lines: 0, suppressed: 0 });
        let suppressed = if now.saturating_sub(period.began) >= PERIOD {
            std::mem::replace(period, Period { began: now, lines: 0, suppressed: 0 }).suppressed
        } else {
            0
        };
        if period.lines < MAX_LINES {
            period.lines += 1;
            Some(suppressed)
        } else {
            period.suppressed += 1;
            None
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn admit_bounds_lines_per_period_and_counts_suppressed_ones() {
        let log = FailureLog::default();
        let key = (0, "http_error", Some(500));
        let admitted = (0..100).filter(|_| log.admit(key, Duration::from_secs(1)).is_some()).count();
        assert_eq!(admitted, 5);
        assert_eq!(log.admit(key, Duration::from_secs(10)), None, "within the period");
        assert_eq!(log.admit(key, Duration::from_secs(11)), Some(96));
        assert_eq!(log.admit(key, Duration::from_secs(11)), Some(0));
    }

    #[test]
    fn admit_bounds_each_endpoint_and_status_separately() {
        let log = FailureLog::default();
        for _ in 0..10 {
            log.admit((0, "http_error", Some(500)), Duration::ZERO);
        }
        assert_eq!(log.admit((0, "http_error", Some(500)), Duration::ZERO), None);
        assert_eq!(log.admit((0, "http_error", Some(404)), Duration::ZERO), Some(0));
        assert_eq!(log.admit((1, "http_error", Some(500)), Duration::ZERO), Some(0));
    }
}
