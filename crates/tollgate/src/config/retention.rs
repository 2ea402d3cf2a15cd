//! `[retention]`

use std::time::Duration;

use super::build::within;
use super::entries::Table;
use super::{ConfigError, RetentionConfig};

/// A hundred years.
const LONGEST: u64 = 36_525;
/// Records count in the month that they were charged in, so that a whole one must be there.
const SHORTEST_USAGE: u64 = 32;

/// For how many days rows are kept; a key that is not there is for ever.
pub fn retention(table: &Table) -> Result<RetentionConfig, ConfigError> {
    let days = |key: &str, least: u64| -> Result<Option<Duration>, ConfigError> {
        let days: Option<u64> = within(table, key, least..=LONGEST)?;
        Ok(days.map(|days| Duration::from_hours(24 * days)))
    };
    Ok(RetentionConfig {
        usage: days("usage_days", SHORTEST_USAGE)?,
        audit: days("audit_days", 1)?,
        dead_letters: days("dead_letter_days", 1)?,
    })
}
