//! `[server]`, `[sandbox]`, `[log]`, `[keys]` and `[egress]`

use std::net::{IpAddr, SocketAddr};
use std::time::Duration;

use api_actix::WireNames;
use http_server::ConnectionSettings;
use ipnet::IpNet;
use serde::Deserialize;
use tracing_subscriber::EnvFilter;

use super::section::Section;
use super::values::{Millis, Positive, PositiveMillis};
use super::{ConfigError, Environment, LimitsConfig, LogConfig, LogFormat, SandboxConfig, ServerConfig, urls};

/// The time that a stop waits after the requests' deadline, so that their responses can be sent.
const BEYOND_DEADLINE: Duration = Duration::from_secs(5);

/// The keys of `[server]`.
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
pub struct RawServer {
    listen: Option<String>,
    base_path: Option<String>,
    wire_names: Option<WireNames>,
    workers: Option<Positive<usize>>,
    trusted_proxies: Option<Vec<String>>,
    record_client_address: Option<bool>,
    keep_alive_ms: Option<PositiveMillis>,
    max_connections_per_worker: Option<Positive<usize>>,
    drain_ms: Option<Millis<0, 600_000>>,
    shutdown_timeout_ms: Option<Millis<0, 3_600_000>>,
    metrics_listen: Option<String>,
}

/// Checks `[server]`.
pub fn server(section: &Section<RawServer>, limits: &LimitsConfig) -> Result<ServerConfig, ConfigError> {
    let base_path = section.base_path.as_deref().unwrap_or("/api/v1");
    let metrics_listen = section.metrics_listen.as_deref();
    Ok(ServerConfig {
        listen: address(section, "listen", section.listen.as_deref().unwrap_or("127.0.0.1:8080"))?,
        base_path: urls::base_path(base_path).map_err(|fault| section.fault("base_path", fault))?,
        wire_names: section.wire_names.unwrap_or(WireNames::Interface),
        workers: section.workers.map(Positive::get),
        trusted_proxies: trusted_proxies(section)?,
        record_client_address: section.record_client_address.unwrap_or(true),
        connection: connection(section, limits.max_json_bytes),
        max_connections_per_worker: section.max_connections_per_worker.map_or(8_192, Positive::get),
        drain_period: section.drain_ms.map_or(Duration::from_secs(5), Millis::get),
        shutdown_timeout: section
            .shutdown_timeout_ms
            .map_or(limits.request_timeout.saturating_add(BEYOND_DEADLINE), Millis::get),
        metrics_listen: metrics_listen.map(|text| address(section, "metrics_listen", text)).transpose()?,
    })
}

fn connection(section: &Section<RawServer>, max_json_bytes: usize) -> ConnectionSettings {
    let constants = ConnectionSettings::default();
    ConnectionSettings {
        keep_alive: section.keep_alive_ms.map_or(constants.keep_alive, Millis::get),
        // A client that sends a too long body before it reads still gets its 413.
        linger_bytes: constants.linger_bytes.max(u64::try_from(max_json_bytes).unwrap_or(u64::MAX).saturating_mul(2)),
        ..constants
    }
}

fn address(section: &Section<RawServer>, key: &str, text: &str) -> Result<SocketAddr, ConfigError> {
    text.parse().map_err(|_| section.fault(key, "must be an address and a port, such as 127.0.0.1:8080"))
}

/// Parses networks in CIDR notation; a bare address is a network of one.
fn trusted_proxies(section: &Section<RawServer>) -> Result<Vec<IpNet>, ConfigError> {
    let parse = |text: &String| text.parse().or_else(|_| text.parse::<IpAddr>().map(IpNet::from));
    section.trusted_proxies.iter().flatten().map(parse).collect::<Result<_, _>>().map_err(|_| {
        section.fault("trusted_proxies", "must hold addresses or networks, such as \"10.0.0.0/8\" or \"::1\"")
    })
}

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
        filter: environment.first(&["RUST_LOG"]),
        server_filter: section.filter.clone(),
    })
}

/// Returns the time that known keys are served while the database cannot be read.
pub fn max_stale_keys(section: &Section<RawKeys>) -> Duration {
    section.max_stale_ms.map_or(Duration::from_secs(30), Millis::get)
}
