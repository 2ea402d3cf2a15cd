//! The limit of repeated log lines.

use std::collections::HashMap;
use std::sync::{Mutex, PoisonError};
use std::time::Duration;

/// The period in which a failure is logged once.
const PERIOD: Duration = Duration::from_mins(1);
/// The most subjects that are remembered. Others are logged each time.
const MAX_SUBJECTS: usize = 256;

/// Limits the log lines about a failure that repeats: one line a minute for each subject, such as a store.
#[derive(Debug, Default)]
pub struct LineLimit(Mutex<HashMap<String, Duration>>);

impl LineLimit {
    /// Returns true if a line about the subject may be written. `now` is on the monotonic clock.
    pub fn admits(&self, subject: &str, now: Duration) -> bool {
        let mut logged = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        if logged.get(subject).is_some_and(|last| now.saturating_sub(*last) < PERIOD) {
            return false;
        }
        if logged.len() >= MAX_SUBJECTS {
            logged.retain(|_, last| now.saturating_sub(*last) < PERIOD);
        }
        if logged.len() < MAX_SUBJECTS {
            logged.insert(subject.to_owned(), now);
        }
        true
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn admits_one_line_a_minute_for_each_subject() {
        let limit = LineLimit::default();
        let at = |subject: &str, seconds| limit.admits(subject, Duration::from_secs(seconds));
        assert!(at("journal", 1) && at("database", 2));
        assert!((2..61).all(|second| !at("journal", second)));
        assert!(!at("database", 61) && at("journal", 61) && at("database", 62) && !at("journal", 62));
    }

    #[test]
    fn number_of_subjects_is_bounded() {
        let limit = LineLimit::default();
        for subject in 0..1_000 {
            assert!(limit.admits(&subject.to_string(), Duration::ZERO));
        }
        assert!(limit.admits("999", Duration::ZERO) && !limit.admits("0", Duration::ZERO));
        assert!(limit.admits("new", PERIOD) && !limit.admits("new", PERIOD));
    }
}
