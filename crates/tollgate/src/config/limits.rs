//! `[limits]` and `[retention]`

use std::time::Duration;

use api_actix::{AdmissionSettings, PROCESSING_COPIES};
use domain::rate::RateLimits;
use domain::retention::RetentionPolicy;
use serde::Deserialize;

use super::section::Section;
use super::values::{Millis, Positive, PositiveMillis, Within};
use super::{ConfigError, LimitsConfig};

const MIB: u64 = 1024 * 1024;
/// The default memory for bodies, unless this many of the largest bodies need more.
const DEFAULT_BODY_MEMORY: usize = 256 << 20;
const DEFAULT_LARGEST_BODIES: usize = 8;

type PerMinute = Within<u32, 1, 4_294_967_295>;

/// The keys of `[limits]`.
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
pub struct RawLimits {
    max_json_bytes: Option<Positive<usize>>,
    max_file_bytes: Option<Positive<u64>>,
    workspace_quota_bytes: Option<u64>,
    workspace_record_bytes_per_day: Option<u64>,
    requests_per_minute: Option<PerMinute>,
    tokens_per_minute: Option<PerMinute>,
    workspace_requests_per_minute: Option<PerMinute>,
    workspace_tokens_per_minute: Option<PerMinute>,
    max_in_flight: Option<Positive<usize>>,
    body_memory_bytes: Option<Positive<usize>>,
    request_timeout_ms: Option<PositiveMillis>,
}

/// Checks `[limits]`.
pub fn limits(section: &Section<RawLimits>) -> Result<LimitsConfig, ConfigError> {
    let max_json_bytes = section.max_json_bytes.map_or(8 << 20, Positive::get);
    let record_bytes = section.workspace_record_bytes_per_day.unwrap_or(1_024 * MIB);
    let rates = |requests: Option<PerMinute>, tokens: Option<PerMinute>| RateLimits {
        requests_per_minute: requests.map(Within::get),
        tokens_per_minute: tokens.map(Within::get),
    };
    Ok(LimitsConfig {
        max_json_bytes,
        max_file_bytes: section.max_file_bytes.map_or(100 * MIB, Positive::get),
        workspace_quota_bytes: section.workspace_quota_bytes.unwrap_or(10_240 * MIB),
        workspace_record_bytes_per_day: Some(record_bytes).filter(|bytes| *bytes > 0),
        key_rates: rates(section.requests_per_minute, section.tokens_per_minute),
        workspace_rates: rates(section.workspace_requests_per_minute, section.workspace_tokens_per_minute),
        admission: admission(section, max_json_bytes)?,
        request_timeout: section.request_timeout_ms.map_or(Duration::from_mins(1), Millis::get),
    })
}

/// Checks the limits on concurrent operations and on their bodies. A key or a workspace gets half of the whole.
fn admission(section: &Section<RawLimits>, max_json_bytes: usize) -> Result<AdmissionSettings, ConfigError> {
    let max_in_flight = section.max_in_flight.map_or(4_096, Positive::get);
    let half = (max_in_flight / 2).max(1);
    let default_memory = DEFAULT_BODY_MEMORY.max(max_json_bytes.saturating_mul(DEFAULT_LARGEST_BODIES));
    let body_memory = section.body_memory_bytes.map_or(default_memory, Positive::get);
    // Decompression takes less: compressed, decompressed, and the window of zstd.
    let least = max_json_bytes.saturating_mul(PROCESSING_COPIES).saturating_mul(2);
    if body_memory < least {
        let fault = format!(
            "gives {body_memory} bytes and must give at least {least}: twice {PROCESSING_COPIES} times \
             limits.max_json_bytes, so that a workspace's half holds the largest body while it is read and processed"
        );
        return Err(section.fault("body_memory_bytes", fault));
    }
    Ok(AdmissionSettings {
        max_in_flight,
        max_in_flight_per_key: half,
        max_in_flight_per_workspace: half,
        body_memory_bytes: body_memory,
        body_memory_bytes_per_workspace: body_memory / 2,
    })
}

/// The keys of `[retention]`.
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
pub struct RawRetention {
    usage_days: Option<Within<u64, { RetentionPolicy::MIN_USAGE_DAYS }, { RetentionPolicy::MAX_DAYS }>>,
    usage_sums_days: Option<Within<u64, { RetentionPolicy::MIN_USAGE_DAYS }, { RetentionPolicy::MAX_DAYS }>>,
    evidence_days: Option<Within<u64, 1, { RetentionPolicy::MAX_DAYS }>>,
    audit_days: Option<Within<u64, 1, { RetentionPolicy::MAX_DAYS }>>,
    dead_letter_days: Option<Within<u64, 1, { RetentionPolicy::MAX_DAYS }>>,
}

/// Returns the time that rows are kept; without a key they are kept for ever, sums of usage for three years, or as long
/// as usage records, and evidence for 90 days.
pub fn retention(section: &Section<RawRetention>) -> Result<RetentionPolicy, ConfigError> {
    let days = |days: u64| Duration::from_hours(24 * days);
    let usage_days = section.usage_days.map(Within::get);
    let sums_days = section.usage_sums_days.map(Within::get);
    if let Some((sums, records)) = sums_days.zip(usage_days).filter(|(sums, records)| sums < records) {
        let fault =
            format!("is {sums} and must be at least retention.usage_days, {records}: sums outlive their records");
        return Err(section.fault("usage_sums_days", fault));
    }
    let default_days = RetentionPolicy::DEFAULT_SUMS_DAYS.max(usage_days.unwrap_or(0));
    Ok(RetentionPolicy {
        usage_records: usage_days.map(days),
        usage_sums: Some(days(sums_days.unwrap_or(default_days))),
        evidence: Some(days(section.evidence_days.map_or(RetentionPolicy::DEFAULT_EVIDENCE_DAYS, Within::get))),
        audit_entries: section.audit_days.map(Within::get).map(days),
        dead_letters: section.dead_letter_days.map(Within::get).map(days),
    })
}
