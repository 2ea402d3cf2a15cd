//! `[throttling]`.

use std::time::Duration;

use domain::routing::HealthPolicy;
use serde::Deserialize;

use super::fixed_point::parse_thousandths;
use super::section::Section;
use super::values::{Millis, Within};
use super::{ConfigError, ThrottlingConfig};

const HOUR_MS: u64 = 3_600_000;

/// The keys of `[throttling]`.
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
pub struct RawThrottling {
    window_ms: Option<Millis<1_000, HOUR_MS>>,
    accept_multiplier: Option<String>,
    min_requests: Option<Within<u32, 1, 100_000>>,
    timeout_weight: Option<Within<u32, 1, 100>>,
    max_backoff_ms: Option<Millis<0, HOUR_MS>>,
    auth_backoff_ms: Option<Millis<0, HOUR_MS>>,
    probe_interval_ms: Option<Millis<1, HOUR_MS>>,
    max_workspaces: Option<Within<usize, 1, 10_000>>,
    pause_tolerance_ms: Option<Millis<50, 60_000>>,
}

/// Checks `[throttling]`.
pub fn throttling(section: &Section<RawThrottling>) -> Result<ThrottlingConfig, ConfigError> {
    let shipped = HealthPolicy::default();
    let policy = HealthPolicy {
        throttle_window: section.window_ms.map_or(shipped.throttle_window, Millis::get),
        accept_multiplier: accept_multiplier(section)?.unwrap_or(shipped.accept_multiplier),
        min_requests: section.min_requests.map_or(shipped.min_requests, Within::get),
        timeout_weight: section.timeout_weight.map_or(shipped.timeout_weight, Within::get),
        max_backoff: section.max_backoff_ms.map_or(shipped.max_backoff, Millis::get),
        auth_backoff: section.auth_backoff_ms.map_or(shipped.auth_backoff, Millis::get),
        probe_interval: section.probe_interval_ms.map_or(shipped.probe_interval, Millis::get),
        max_workspaces: section.max_workspaces.map_or(shipped.max_workspaces, Within::get),
        ..shipped
    };
    let pause_tolerance = section.pause_tolerance_ms.map_or(Duration::from_millis(500), Millis::get);
    Ok(ThrottlingConfig { policy, pause_tolerance })
}

fn accept_multiplier(section: &Section<RawThrottling>) -> Result<Option<f64>, ConfigError> {
    let Some(text) = &section.accept_multiplier else { return Ok(None) };
    let multiplier = parse_thousandths(text).filter(|thousandths| (1_000..=100_000).contains(thousandths));
    let expected = "must be a decimal number from 1 to 100 with at most three digits after the point";
    let multiplier = multiplier.ok_or_else(|| section.fault("accept_multiplier", expected))?;
    Ok(Some(f64::from(multiplier) / 1_000.0))
}
