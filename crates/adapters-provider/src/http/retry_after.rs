//! The wait that a provider asks for.

use std::time::Duration;

use chrono::DateTime;
use http::HeaderMap;
use http::header::{DATE, HeaderName, RETRY_AFTER};

/// The longest wait that is accepted.
const MAX_WAIT: Duration = Duration::from_hours(24);

/// Reads `retry-after-ms` (milliseconds), else `retry-after`: seconds, or a date. The date is compared with the
/// response's own `date`, so that clock differences do not matter. At most a day.
pub(super) fn retry_after(headers: &HeaderMap) -> Option<Duration> {
    let text = |name: &HeaderName| headers.get(name).and_then(|value| value.to_str().ok()).map(str::trim);
    let milliseconds = text(&HeaderName::from_static("retry-after-ms")).and_then(|text| positive(text, 0.001));
    let wait = milliseconds.or_else(|| {
        let after = text(&RETRY_AFTER)?;
        positive(after, 1.0).or_else(|| {
            let until = DateTime::parse_from_rfc2822(after).ok()?;
            let now = DateTime::parse_from_rfc2822(text(&DATE)?).ok()?;
            (until - now).to_std().ok()
        })
    })?;
    Some(wait.min(MAX_WAIT))
}

/// Parses a plain decimal number, in units of `unit` seconds.
fn positive(text: &str, unit: f64) -> Option<Duration> {
    let plain = !text.is_empty() && text.bytes().all(|b| b.is_ascii_digit() || b == b'.');
    let seconds = plain.then(|| text.parse::<f64>().ok()).flatten()? * unit;
    Some(Duration::try_from_secs_f64(seconds).unwrap_or(MAX_WAIT))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn after(headers: &[(&'static str, &'static str)]) -> Option<Duration> {
        let headers = headers.iter().map(|(name, value)| (HeaderName::from_static(name), value.parse().unwrap()));
        retry_after(&headers.collect())
    }

    #[test]
    fn retry_after_reads_seconds_and_milliseconds() {
        assert_eq!(after(&[("retry-after", "7")]), Some(Duration::from_secs(7)));
        assert_eq!(after(&[("retry-after", "0.5")]), Some(Duration::from_millis(500)));
        assert_eq!(after(&[("retry-after", "7"), ("retry-after-ms", "1500")]), Some(Duration::from_millis(1500)));
        assert_eq!(after(&[("retry-after", "7"), ("retry-after-ms", "soon")]), Some(Duration::from_secs(7)));
    }

    #[test]
    fn retry_after_compares_date_with_date_header() {
        let until = ("retry-after", "Fri, 31 Dec 1999 23:59:59 GMT");
        assert_eq!(after(&[until, ("date", "Fri, 31 Dec 1999 23:59:29 GMT")]), Some(Duration::from_secs(30)));
        assert_eq!(after(&[until, ("date", "Sat, 01 Jan 2000 00:00:01 GMT")]), None, "the date has passed");
        assert_eq!(after(&[until]), None);
    }

    #[test]
    fn retry_after_is_limited_in_every_notation() {
        let date = ("date", "Sat, 01 Jan 2000 00:00:00 GMT");
        for ten_days in [
            ("retry-after", "864000"),
            ("retry-after", "864000.5"),
            ("retry-after-ms", "864000000"),
            ("retry-after", "Tue, 11 Jan 2000 00:00:00 GMT"),
        ] {
            assert_eq!(after(&[ten_days, date]), Some(MAX_WAIT), "{ten_days:?}");
        }
        assert_eq!(after(&[("retry-after", "86400")]), Some(MAX_WAIT));
        assert_eq!(after(&[("retry-after", "86399")]), Some(Duration::from_secs(86_399)));
    }

    #[test]
    fn retry_after_ignores_invalid_values() {
        assert_eq!(after(&[]), None);
        for odd in ["-1", "soon", "", "1e9", "NaN", "inf", "1.2.3"] {
            assert_eq!(after(&[("retry-after", odd)]), None, "{odd}");
        }
        assert_eq!(after(&[("retry-after", "99999999999999999999999999")]), Some(MAX_WAIT));
    }
}
