//! `[retention]`

use std::time::Duration;

use domain::retention::RetentionPolicy;

use super::ConfigError;
use super::build::within;
use super::entries::Table;

/// Parses the days that rows are kept; without a key they are kept for ever.
pub fn retention(table: &Table) -> Result<RetentionPolicy, ConfigError> {
    let days = |key: &str, least: u64| -> Result<Option<Duration>, ConfigError> {
        let days: Option<u64> = within(table, key, least..=RetentionPolicy::MAX_DAYS)?;
        Ok(days.map(|days| Duration::from_hours(24 * days)))
    };
    Ok(RetentionPolicy {
        usage_records: days("usage_days", RetentionPolicy::MIN_USAGE_DAYS)?,
        audit_entries: days("audit_days", 1)?,
        dead_letters: days("dead_letter_days", 1)?,
    })
}
