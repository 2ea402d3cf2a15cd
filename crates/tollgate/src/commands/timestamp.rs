//! Timestamps in options.

use anyhow::Context as _;
use chrono::{DateTime, NaiveDate, NaiveTime, Utc};

/// Parses an RFC 3339 time, or a date as its beginning in UTC.
///
/// # Errors
/// The text is neither; the error names the option.
pub fn parse_timestamp(option: &str, text: &str) -> anyhow::Result<DateTime<Utc>> {
    if let Ok(day) = text.parse::<NaiveDate>() {
        return Ok(day.and_time(NaiveTime::MIN).and_utc());
    }
    let at = DateTime::parse_from_rfc3339(text).with_context(|| {
        format!(
            "{option} {text:?} is neither a date nor an RFC 3339 time, for example 2027-01-31 or 2027-01-31T00:00:00Z"
        )
    })?;
    Ok(at.with_timezone(&Utc))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn timestamp_is_date_or_time() {
        let read = |text: &str| parse_timestamp("--since", text).unwrap().to_rfc3339();
        assert_eq!(read("2027-01-31"), "2027-01-31T00:00:00+00:00");
        assert_eq!(read("2027-01-31T12:30:00.5+02:00"), "2027-01-31T10:30:00.500+00:00");
        for bad in ["", "yesterday", "2027-02-30", "2027-01-31T00:00:00"] {
            let message = parse_timestamp("--since", bad).unwrap_err().to_string();
            assert!(message.contains("--since") && message.contains("neither"), "{message}");
        }
    }
}
