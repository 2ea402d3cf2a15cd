//! The limits on concurrent operations and on their bodies.

use api_actix::AdmissionSettings;

use super::ConfigError;
use super::build::narrow;
use super::entries::Table;

/// The default memory for bodies, unless this many of the largest bodies need more.
const DEFAULT_BODY_MEMORY: u64 = 256 << 20;
const DEFAULT_LARGEST_BODIES: u64 = 8;
/// Copies of a body during decompression: compressed, decompressed, and the window of zstd.
const COPIES: u64 = 3;

/// Parses the bounds of `[limits]`; the default of a share is half of the whole.
pub fn admission(table: &Table, max_json_bytes: usize) -> Result<AdmissionSettings, ConfigError> {
    let max_in_flight = table.positive("max_in_flight", 4_096)?;
    let half = (max_in_flight / 2).max(1);
    let largest = u64::try_from(max_json_bytes).unwrap_or(u64::MAX);
    let default_memory = DEFAULT_BODY_MEMORY.max(largest.saturating_mul(DEFAULT_LARGEST_BODIES));
    let body_memory = table.positive("body_memory_bytes", default_memory)?;
    let body_share = table.positive("body_memory_bytes_per_workspace", body_memory / 2)?;
    let least = largest.saturating_mul(COPIES);
    for (key, bytes) in [("body_memory_bytes_per_workspace", body_share), ("body_memory_bytes", body_memory)] {
        if bytes < least {
            let fault = format!(
                "gives {bytes} bytes and must give at least {least}: {COPIES} times limits.max_json_bytes, so that the \
                 largest body can be read"
            );
            return Err(table.fault(key, fault));
        }
    }
    Ok(AdmissionSettings {
        max_in_flight: narrow(table, "max_in_flight", max_in_flight)?,
        max_in_flight_per_key: share(table, "max_in_flight_per_key", half)?,
        max_in_flight_per_workspace: share(table, "max_in_flight_per_workspace", half)?,
        body_memory_bytes: narrow(table, "body_memory_bytes", body_memory)?,
        body_memory_bytes_per_workspace: narrow(table, "body_memory_bytes_per_workspace", body_share)?,
    })
}

fn share(table: &Table, key: &str, half: u64) -> Result<usize, ConfigError> {
    narrow(table, key, table.positive(key, half)?)
}
