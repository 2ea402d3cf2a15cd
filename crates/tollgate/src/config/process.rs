//! `[sandbox]`, `[log]`, `[keys]` and `[egress]`

use std::time::Duration;

use serde::Deserialize;
use tracing_subscriber::EnvFilter;

use super::section::Section;
use super::values::{Millis, Within};
use super::{ConfigError, Environment, LogConfig, LogFormat, SandboxConfig};

const MIB: u64 = 1024 * 1024;

/// The keys of `[sandbox]`.
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
pub struct RawSandbox {
    enabled: Option<bool>,
    errors: Option<bool>,
}

/// The keys of `[log]`.
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
pub struct RawLog {
    format: Option<LogFormat>,
    filter: Option<String>,
    buffer_bytes: Option<Within<usize, 65_536, { 1024 * MIB }>>,
}

/// The keys of `[keys]`.
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
pub struct RawKeys {
    // A day at most: revocations elsewhere have no effect here in the meantime.
    max_stale_ms: Option<Millis<0, 86_400_000>>,
}

/// The keys of `[egress]`.
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
pub struct RawEgress {
    pub allow_private_addresses: Option<bool>,
}

/// Checks `[sandbox]`. A gateway with a provider offers the sandbox only on request: a caller must not take its answers
/// for a model's.
pub fn sandbox(section: &Section<RawSandbox>, has_providers: bool) -> Result<SandboxConfig, ConfigError> {
    let enabled = section.enabled.unwrap_or(!has_providers);
    let errors = section.errors.unwrap_or(false);
    if errors && !enabled {
        let reason = if section.enabled.is_some() { "" } else { ", which is off by default beside [[providers]]" };
        return Err(section.fault("errors", format!("requires sandbox.enabled = true{reason}")));
    }
    Ok(SandboxConfig { enabled, errors })
}

/// Checks `[log]`.
pub fn log(section: &Section<RawLog>, environment: &Environment) -> Result<LogConfig, ConfigError> {
    if section.filter.as_deref().is_some_and(|filter| EnvFilter::try_new(filter).is_err()) {
        return Err(section.fault("filter", "must hold levels, such as \"info\" or \"warn,api_actix=debug\""));
    }
    Ok(LogConfig {
        format: section.format.unwrap_or(LogFormat::Text),
        buffer_bytes: section.buffer_bytes.map_or(4 << 20, Within::get),
        filter: environment.first(&["RUST_LOG"]),
        server_filter: section.filter.clone(),
    })
}

/// Returns the time that known keys are served while the database cannot be read.
pub fn max_stale_keys(section: &Section<RawKeys>) -> Duration {
    section.max_stale_ms.map_or(Duration::from_secs(30), Millis::get)
}
