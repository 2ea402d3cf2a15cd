//! The wait that a peer asks for over HTTP.

use std::time::Duration;

use chrono::{DateTime, NaiveDateTime, Utc};

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
