//! The wait that a provider asks for.

use std::time::Duration;

use chrono::{DateTime, Utc};
use domain::system::{parse_retry_after, parse_retry_after_ms};
use http::HeaderMap;
use http::header::{DATE, HeaderName, RETRY_AFTER};

/// Reads `retry-after-ms`, else `retry-after`. A date is compared with the response's own `date`, so that clock
/// differences do not matter; without one, with `now`.
pub(super) fn retry_after(headers: &HeaderMap, now: DateTime<Utc>) -> Option<Duration> {
    let text = |name: HeaderName| headers.get(name).and_then(|value| value.to_str().ok());
    let milliseconds = text(HeaderName::from_static("retry-after-ms")).and_then(parse_retry_after_ms);
    milliseconds.or_else(|| parse_retry_after(text(RETRY_AFTER)?, text(DATE), now))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn retry_after_prefers_milliseconds_and_the_date_of_the_response() {
        let now = "1999-12-31T23:59:50Z".parse().unwrap();
        let after = |headers: &[(&'static str, &'static str)]| {
            let headers = headers.iter().map(|(name, value)| (HeaderName::from_static(name), value.parse().unwrap()));
            retry_after(&headers.collect(), now).map(|wait| wait.as_millis())
        };
        let until = ("retry-after", "Fri, 31 Dec 1999 23:59:59 GMT");
        assert_eq!(after(&[("retry-after", "7"), ("retry-after-ms", "1500")]), Some(1_500));
        assert_eq!(after(&[("retry-after", "7"), ("retry-after-ms", "soon")]), Some(7_000));
        assert_eq!(after(&[until, ("date", "Fri, 31 Dec 1999 23:59:29 GMT")]), Some(30_000));
        assert_eq!(after(&[until]), Some(9_000));
        assert_eq!(after(&[]), None);
    }
}
