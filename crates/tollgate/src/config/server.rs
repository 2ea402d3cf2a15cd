//! `[server]`

use std::net::{IpAddr, SocketAddr};
use std::time::Duration;

use http_server::ConnectionSettings;
use ipnet::IpNet;
use serde::Deserialize;

use super::section::Section;
use super::values::{Millis, Positive, PositiveMillis, Within};
use super::{ConfigError, ServerConfig, WireNamesConfig, urls};

const KIB: u64 = 1024;
/// The time that a stop waits after the requests' deadline, so that their responses can be sent.
const BEYOND_DEADLINE: Duration = Duration::from_secs(5);

/// The keys of `[server]`.
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
pub struct RawServer {
    listen: Option<String>,
    base_path: Option<String>,
    wire_names: Option<WireNamesConfig>,
    workers: Option<Positive<usize>>,
    trusted_proxies: Option<Vec<String>>,
    record_client_address: Option<bool>,
    request_header_timeout_ms: Option<PositiveMillis>,
    keep_alive_ms: Option<PositiveMillis>,
    write_timeout_ms: Option<Millis<1_000, 3_600_000>>,
    linger_ms: Option<Millis<0, 60_000>>,
    linger_bytes: Option<u64>,
    send_buffer_bytes: Option<Within<usize, { 16 * KIB }, { 16 * KIB * KIB }>>,
    max_connections_per_worker: Option<Positive<usize>>,
    drain_ms: Option<Millis<0, 600_000>>,
    shutdown_timeout_ms: Option<Millis<0, 3_600_000>>,
    metrics_listen: Option<String>,
    metrics_max_connections: Option<Within<usize, 1, 65_536>>,
}

/// Checks `[server]`.
pub fn server(section: &Section<RawServer>, request_timeout: Duration) -> Result<ServerConfig, ConfigError> {
    let base_path = section.base_path.as_deref().unwrap_or("/api/v1");
    let metrics_listen = section.metrics_listen.as_deref();
    Ok(ServerConfig {
        listen: address(section, "listen", section.listen.as_deref().unwrap_or("127.0.0.1:8080"))?,
        base_path: urls::base_path(base_path).map_err(|fault| section.fault("base_path", fault))?,
        wire_names: section.wire_names.unwrap_or(WireNamesConfig::Interface),
        workers: section.workers.map(Positive::get),
        trusted_proxies: trusted_proxies(section)?,
        record_client_address: section.record_client_address.unwrap_or(true),
        connection: connection(section),
        max_connections_per_worker: section.max_connections_per_worker.map_or(8_192, Positive::get),
        drain_period: section.drain_ms.map_or(Duration::from_secs(5), Millis::get),
        shutdown_timeout: section
            .shutdown_timeout_ms
            .map_or(request_timeout.saturating_add(BEYOND_DEADLINE), Millis::get),
        metrics_max_connections: section.metrics_max_connections.map_or(64, Within::get),
        metrics_listen: metrics_listen.map(|text| address(section, "metrics_listen", text)).transpose()?,
    })
}

fn connection(section: &Section<RawServer>) -> ConnectionSettings {
    ConnectionSettings {
        header_timeout: section.request_header_timeout_ms.map_or(Duration::from_secs(10), Millis::get),
        keep_alive: section.keep_alive_ms.map_or(Duration::from_secs(75), Millis::get),
        write_timeout: section.write_timeout_ms.map_or(Duration::from_secs(30), Millis::get),
        linger_timeout: section.linger_ms.map_or(Duration::from_secs(2), Millis::get),
        linger_bytes: section.linger_bytes.unwrap_or(32 * KIB * KIB),
        send_buffer_bytes: section.send_buffer_bytes.map_or(512 * 1024, Within::get),
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
