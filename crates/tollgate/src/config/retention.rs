//! `[retention]`

use std::time::Duration;

use domain::retention::RetentionPolicy;
use serde::Deserialize;

use super::section::Section;
use super::values::Within;

/// The keys of `[retention]`.
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
pub struct RawRetention {
    usage_days: Option<Within<u64, { RetentionPolicy::MIN_USAGE_DAYS }, { RetentionPolicy::MAX_DAYS }>>,
    audit_days: Option<Within<u64, 1, { RetentionPolicy::MAX_DAYS }>>,
    dead_letter_days: Option<Within<u64, 1, { RetentionPolicy::MAX_DAYS }>>,
}

/// Returns the time that rows are kept; without a key they are kept for ever.
pub fn retention(section: &Section<RawRetention>) -> RetentionPolicy {
    let days = |days: u64| Duration::from_hours(24 * days);
    RetentionPolicy {
        usage_records: section.usage_days.map(Within::get).map(days),
        audit_entries: section.audit_days.map(Within::get).map(days),
        dead_letters: section.dead_letter_days.map(Within::get).map(days),
    }
}
