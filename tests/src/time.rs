//! The machine's clock, for timestamps on the command line.

use std::time::SystemTime;

use chrono::{DateTime, SecondsFormat, TimeDelta, Utc};

/// Returns the time in `seconds` seconds, as RFC 3339.
pub fn seconds_from_now(seconds: i64) -> String {
    #[expect(clippy::disallowed_methods, reason = "a test is outside the gateway and has no clock port")]
    let now: DateTime<Utc> = SystemTime::now().into();
    (now + TimeDelta::seconds(seconds)).to_rfc3339_opts(SecondsFormat::Millis, true)
}

/// Returns the milliseconds since the Unix epoch.
///
/// # Errors
/// The machine's clock is before the epoch.
pub fn unix_ms() -> anyhow::Result<u64> {
    #[expect(clippy::disallowed_methods, reason = "a test is outside the gateway and has no clock port")]
    let now: DateTime<Utc> = SystemTime::now().into();
    Ok(u64::try_from(now.timestamp_millis())?)
}
