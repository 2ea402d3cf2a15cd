//! `[throttling]`.

use std::time::Duration;

use domain::routing::HealthPolicy;

use super::build::within;
use super::entries::Table;
use super::fixed_point::parse_thousandths;
use super::{ConfigError, ThrottlingConfig};

const HOUR_MS: u64 = 3_600_000;

/// `[throttling]`
pub fn throttling(table: &Table) -> Result<ThrottlingConfig, ConfigError> {
    let shipped = HealthPolicy::default();
    let time = |key: &str, least: u64, default: Duration| -> Result<Duration, ConfigError> {
        Ok(within(table, key, least..=HOUR_MS)?.map_or(default, Duration::from_millis))
    };
    let policy = HealthPolicy {
        throttle_window: time("window_ms", 1_000, shipped.throttle_window)?,
        accept_multiplier: match table.text("accept_multiplier") {
            None => shipped.accept_multiplier,
            Some(text) => parse_thousandths(text)
                .filter(|multiplier| (1_000..=100_000).contains(multiplier))
                .map(|multiplier| f64::from(multiplier) / 1_000.0)
                .ok_or_else(|| {
                    let expected = "must be a decimal number from 1 to 100 with at most three digits after the point";
                    table.fault("accept_multiplier", expected)
                })?,
        },
        min_requests: within(table, "min_requests", 1..=100_000)?.unwrap_or(shipped.min_requests),
        timeout_weight: within(table, "timeout_weight", 1..=100)?.unwrap_or(shipped.timeout_weight),
        max_backoff: time("max_backoff_ms", 0, shipped.max_backoff)?,
        auth_backoff: time("auth_backoff_ms", 0, shipped.auth_backoff)?,
        probe_interval: time("probe_interval_ms", 1, shipped.probe_interval)?,
        max_workspaces: within(table, "max_workspaces", 1..=10_000)?.unwrap_or(shipped.max_workspaces),
        ..shipped
    };
    let tolerance = within(table, "pause_tolerance_ms", 50..=60_000)?.unwrap_or(500);
    Ok(ThrottlingConfig { policy, pause_tolerance: Duration::from_millis(tolerance) })
}
