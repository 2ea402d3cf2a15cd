//! The format of timestamps.

use chrono::{DateTime, SecondsFormat, Utc};

/// Formats a timestamp as RFC 3339 in UTC, to the millisecond.
pub fn time(at: DateTime<Utc>) -> String {
    at.to_rfc3339_opts(SecondsFormat::Millis, true)
}
