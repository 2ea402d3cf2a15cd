//! Times, delays and rates.

use std::collections::HashMap;
use std::future::Future;
use std::pin::{Pin, pin};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use chrono::{DateTime, NaiveDateTime, Utc};
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

/// The longest wait that is accepted.
const MAX_WAIT: Duration = Duration::from_hours(24);
/// The obsolete forms of HTTP dates: RFC 9110, section 5.6.7.
const OBSOLETE_DATES: [&str; 2] = ["%A, %d-%b-%y %H:%M:%S GMT", "%a %b %e %H:%M:%S %Y"];

/// Parses the value of `Retry-After`: seconds, or an HTTP date, which is compared with the peer's own `Date` or else with
/// `now`. At most a day; `None` for other values and for a date that has passed.
pub fn parse_retry_after(value: &str, date: Option<&str>, now: DateTime<Utc>) -> Option<Duration> {
    let value = value.trim();
    let wait = parse_decimal(value, 1.0).or_else(|| {
        let now = date.and_then(|date| parse_http_date(date.trim())).unwrap_or(now);
        (parse_http_date(value)? - now).to_std().ok()
    })?;
    Some(wait.min(MAX_WAIT))
}

/// Parses the value of `retry-after-ms`: milliseconds, at most a day.
pub fn parse_retry_after_ms(value: &str) -> Option<Duration> {
    parse_decimal(value.trim(), 0.001).map(|wait| wait.min(MAX_WAIT))
}

/// Parses a plain decimal number, in units of `unit` seconds.
fn parse_decimal(text: &str, unit: f64) -> Option<Duration> {
    let is_plain = !text.is_empty() && text.bytes().all(|b| b.is_ascii_digit() || b == b'.');
    let seconds = is_plain.then(|| text.parse::<f64>().ok()).flatten()? * unit;
    Some(Duration::try_from_secs_f64(seconds).unwrap_or(MAX_WAIT))
}

fn parse_http_date(text: &str) -> Option<DateTime<Utc>> {
    let obsolete = || OBSOLETE_DATES.iter().find_map(|form| NaiveDateTime::parse_from_str(text, form).ok());
    DateTime::parse_from_rfc2822(text).ok().map(Into::into).or_else(|| Some(obsolete()?.and_utc()))
}

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
    use rstest::rstest;

    /// Fri, 31 Dec 1999 23:59:29 GMT
    const NOW: i64 = 946_684_769;

    fn parse(value: &str, date: Option<&str>) -> Option<u64> {
        let wait = parse_retry_after(value, date, DateTime::from_timestamp(NOW, 0).unwrap())?;
        u64::try_from(wait.as_millis()).ok()
    }

    #[rstest]
    #[case("7", Some(7_000))]
    #[case(" 0.5 ", Some(500))]
    #[case::date("Fri, 31 Dec 1999 23:59:59 GMT", Some(30_000))]
    #[case::rfc_850("Friday, 31-Dec-99 23:59:59 GMT", Some(30_000))]
    #[case::asctime("Fri Dec 31 23:59:59 1999", Some(30_000))]
    #[case::passed("Fri, 31 Dec 1999 23:59:00 GMT", None)]
    #[case::too_long("864000", Some(86_400_000))]
    #[case::too_long("Tue, 11 Jan 2000 00:00:00 GMT", Some(86_400_000))]
    #[case::too_long("99999999999999999999999999", Some(86_400_000))]
    #[case::invalid("-1", None)]
    #[case::invalid("soon", None)]
    #[case::invalid("", None)]
    #[case::invalid("1e9", None)]
    #[case::invalid("NaN", None)]
    #[case::invalid("1.2.3", None)]
    fn parse_retry_after_reads_seconds_and_dates(#[case] value: &str, #[case] expected: Option<u64>) {
        assert_eq!(parse(value, None), expected);
    }

    #[test]
    fn parse_retry_after_compares_date_with_that_of_the_peer() {
        let until = "Sat, 01 Jan 2000 12:00:30 GMT";
        assert_eq!(parse(until, Some("Sat, 01 Jan 2000 12:00:00 GMT")), Some(30_000));
        assert_eq!(parse(until, Some("Saturday, 01-Jan-00 12:00:31 GMT")), None);
        assert_eq!(parse(until, Some("now")), Some(43_261_000), "an invalid date is ignored");
    }

    #[test]
    fn parse_retry_after_ms_reads_milliseconds() {
        assert_eq!(parse_retry_after_ms("1500"), Some(Duration::from_millis(1_500)));
        assert_eq!(parse_retry_after_ms("864000000"), Some(MAX_WAIT));
        assert_eq!(parse_retry_after_ms("soon"), None);
    }
}

#[cfg(test)]
mod retry_after_tests {
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
