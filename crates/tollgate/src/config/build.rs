//! The construction of a checked configuration from its entries.

use std::net::{IpAddr, SocketAddr};
use std::path::Path;
use std::time::Duration;

use adapters_blob::LocalBlobStore;
use api_actix::ConnectionSettings;
use domain::decision::DraftBounds;
use domain::rate::RateLimits;
use ipnet::IpNet;
use tracing_subscriber::EnvFilter;

use super::admission::admission;
use super::encryption::encryption_key;
use super::entries::{Entries, Table};
use super::{
    BlobsConfig, Config, ConfigError, Environment, LimitsConfig, LogConfig, LogFormat, ProxyConfig, RestartValues,
    SandboxConfig, ServerConfig, StorageConfig, WireNamesConfig, broadcast, endpoints, journal::journal, providers,
    retention, routing, throttling, urls,
};

const MIB: u64 = 1024 * 1024;
/// Sixteen pages. A smaller number is probably a number of pages.
const SMALLEST_DATABASE: u64 = 65_536;
/// The limit of SQLite: 2^32 - 2 pages of 4096 bytes.
const LARGEST_DATABASE: u64 = 17_592_186_036_224;
/// The time that a stop waits after the requests' deadline, so that their responses can be sent.
const BEYOND_DEADLINE: Duration = Duration::from_secs(5);

/// Checks every value and applies the defaults.
pub fn build(file: Option<&Path>, entries: &Entries, environment: &Environment) -> Result<Config, ConfigError> {
    let providers = providers::providers(&entries.repeated("providers")?)?;
    let endpoints = endpoints::endpoints(&entries.repeated("endpoints")?, &providers)?;
    let models = routing::models(&entries.repeated("models")?)?;
    let limits = limits(&entries.single("limits"))?;
    let storage = storage(&entries.single("storage"), environment)?;
    Ok(Config {
        file: file.map(Path::to_owned),
        server: server(&entries.single("server"), limits.request_timeout)?,
        journal: journal(&entries.single("journal"), &storage)?,
        max_stale_keys: max_stale_keys(&entries.single("keys"))?,
        storage,
        blobs: blobs(&entries.single("blobs"))?,
        sandbox: sandbox(&entries.single("sandbox"), !providers.is_empty())?,
        log: log(&entries.single("log"), environment)?,
        unknown_usage: routing::unknown_usage(&entries.single("money"))?,
        money: routing::money(&entries.single("money"))?,
        limits,
        routing: routing::routing(&entries.single("routing"))?,
        throttling: throttling::throttling(&entries.single("throttling"))?,
        retention: retention::retention(&entries.single("retention"))?,
        allow_private_addresses: entries.single("egress").switch("allow_private_addresses").unwrap_or(false),
        broadcast: broadcast::broadcast(&entries.single("broadcast"))?,
        telemetry: broadcast::telemetry(&entries.single("telemetry"), environment)?,
        providers,
        endpoints,
        models,
        proxy: ProxyConfig {
            https: environment.first(&["HTTPS_PROXY", "https_proxy"]),
            http: environment.first(&["HTTP_PROXY", "http_proxy"]),
            none_for: environment.first(&["NO_PROXY", "no_proxy"]),
        },
        restart_values: RestartValues::of(entries),
    })
}

fn log(table: &Table, environment: &Environment) -> Result<LogConfig, ConfigError> {
    let server_filter = table.text("filter").map(str::to_owned);
    if server_filter.as_deref().is_some_and(|filter| EnvFilter::try_new(filter).is_err()) {
        return Err(table.fault("filter", "must hold levels, such as \"info\" or \"warn,api_actix=debug\""));
    }
    Ok(LogConfig {
        format: choice(table, "format", &[("text", LogFormat::Text), ("json", LogFormat::Json)])?,
        buffer_bytes: within(table, "buffer_bytes", 65_536..=1024 * MIB)?.unwrap_or(4 << 20),
        filter: environment.first(&["RUST_LOG"]),
        server_filter,
    })
}

/// A gateway with a provider offers the sandbox only on request: a caller must not take its answers for a model's.
fn sandbox(table: &Table, has_providers: bool) -> Result<SandboxConfig, ConfigError> {
    let enabled = table.switch("enabled").unwrap_or(!has_providers);
    let errors = table.switch("errors").unwrap_or(false);
    if errors && !enabled {
        let reason = if table.has("enabled") { "" } else { ", which is off by default beside [[providers]]" };
        return Err(table.fault("errors", format!("requires sandbox.enabled = true{reason}")));
    }
    Ok(SandboxConfig { enabled, errors })
}

/// A day at most: revocations elsewhere have no effect here in the meantime.
fn max_stale_keys(table: &Table) -> Result<Duration, ConfigError> {
    Ok(Duration::from_millis(within(table, "max_stale_ms", 0..=86_400_000)?.unwrap_or(30_000)))
}

/// Parses one of several words; the first is the default.
pub fn choice<T: Copy>(table: &Table, key: &str, options: &[(&str, T)]) -> Result<T, ConfigError> {
    let default = options.first().map(|(_, value)| *value);
    let found = optional_choice(table, key, options)?.or(default);
    found.ok_or_else(|| table.fault(key, "has no default"))
}

/// Parses one of several words; `None` if the key is not set.
pub fn optional_choice<T: Copy>(table: &Table, key: &str, options: &[(&str, T)]) -> Result<Option<T>, ConfigError> {
    let Some(text) = table.text(key) else { return Ok(None) };
    let found = options.iter().find(|(word, _)| *word == text);
    found.map(|(_, value)| Some(*value)).ok_or_else(|| {
        let words: Vec<&str> = options.iter().map(|(word, _)| *word).collect();
        table.fault(key, format!("must be {}", alternatives(&words)))
    })
}

/// `a, b or c`.
pub fn alternatives(words: &[&str]) -> String {
    match words {
        [before @ .., last] if !before.is_empty() => format!("{} or {last}", before.join(", ")),
        _ => words.concat(),
    }
}

fn server(table: &Table, request_timeout: Duration) -> Result<ServerConfig, ConfigError> {
    let listen = table.text("listen").unwrap_or("127.0.0.1:8080");
    let workers = table.positive("workers", 0)?;
    Ok(ServerConfig {
        listen: address(table, "listen", listen)?,
        base_path: urls::base_path(table.text("base_path").unwrap_or("/api/v1"))
            .map_err(|fault| table.fault("base_path", fault))?,
        wire_names: choice(
            table,
            "wire_names",
            &[("interface", WireNamesConfig::Interface), ("openrouter", WireNamesConfig::OpenRouter)],
        )?,
        workers: (workers > 0).then(|| narrow(table, "workers", workers)).transpose()?,
        trusted_proxies: trusted_proxies(table)?,
        connection: connection(table)?,
        max_connections_per_worker: narrow(
            table,
            "max_connections_per_worker",
            table.positive("max_connections_per_worker", 8_192)?,
        )?,
        drain_period: Duration::from_millis(within(table, "drain_ms", 0..=600_000)?.unwrap_or(5_000)),
        shutdown_timeout: within(table, "shutdown_timeout_ms", 0..=3_600_000)?
            .map_or(request_timeout.saturating_add(BEYOND_DEADLINE), Duration::from_millis),
        metrics_max_connections: within(table, "metrics_max_connections", 1..=65_536)?.unwrap_or(64),
        metrics_listen: table.text("metrics_listen").map(|text| address(table, "metrics_listen", text)).transpose()?,
    })
}

fn connection(table: &Table) -> Result<ConnectionSettings, ConfigError> {
    let linger = table.number("linger_ms").unwrap_or(2_000);
    if linger > 60_000 {
        return Err(table.fault("linger_ms", "must be 0 to 60000"));
    }
    let write_timeout = table.positive("write_timeout_ms", 30_000)?;
    if !(1_000..=3_600_000).contains(&write_timeout) {
        return Err(table.fault("write_timeout_ms", "must be 1000 to 3600000"));
    }
    Ok(ConnectionSettings {
        header_timeout: Duration::from_millis(table.positive("request_header_timeout_ms", 10_000)?),
        keep_alive: Duration::from_millis(table.positive("keep_alive_ms", 75_000)?),
        write_timeout: Duration::from_millis(write_timeout),
        linger_timeout: Duration::from_millis(linger),
        linger_bytes: table.number("linger_bytes").unwrap_or(32 * 1024 * 1024),
        send_buffer_bytes: within(table, "send_buffer_bytes", 16 * 1024..=16 * MIB)?.unwrap_or(512 * 1024),
    })
}

fn address(table: &Table, key: &str, text: &str) -> Result<SocketAddr, ConfigError> {
    text.parse().map_err(|_| table.fault(key, "must be an address and a port, such as 127.0.0.1:8080"))
}

/// Parses networks in CIDR notation; a bare address is a network of one.
fn trusted_proxies(table: &Table) -> Result<Vec<IpNet>, ConfigError> {
    let parse = |text: &String| text.parse().or_else(|_| text.parse::<IpAddr>().map(IpNet::from));
    table.texts("trusted_proxies").iter().map(parse).collect::<Result<_, _>>().map_err(|_| {
        table.fault("trusted_proxies", "must hold addresses or networks, such as \"10.0.0.0/8\" or \"::1\"")
    })
}

fn storage(table: &Table, environment: &Environment) -> Result<StorageConfig, ConfigError> {
    let url = table.text("url").unwrap_or("sqlite://tollgate-data/tollgate.db");
    let named = urls::sqlite_file(url).map_err(|fault| table.fault("url", fault))?;
    let file = table.resolve("url", &named);
    Ok(StorageConfig {
        url: urls::sqlite_url(url, &file).map_err(|fault| table.fault("url", fault))?,
        file,
        read_only: url.split_once('?').is_some_and(|(_, parameters)| parameters == "mode=ro"),
        synchronous_full: choice(table, "synchronous", &[("normal", false), ("full", true)])?,
        busy_timeout: Duration::from_millis(table.number("busy_timeout_ms").unwrap_or(5_000)),
        read_connections: narrow(table, "read_connections", table.positive("read_connections", 4)?)?,
        max_database_bytes: within(table, "max_database_bytes", SMALLEST_DATABASE..=LARGEST_DATABASE)?,
        encryption_key: encryption_key(table, environment)?,
    })
}

fn blobs(table: &Table) -> Result<BlobsConfig, ConfigError> {
    let url = table.text("url").unwrap_or("file:tollgate-data/blobs");
    // A period below the resolution of file times has no effect.
    let quiet_period = within(table, "quiet_period_ms", 20..=60_000)?;
    Ok(BlobsConfig {
        root: table.resolve("url", &urls::blobs_folder(url).map_err(|fault| table.fault("url", fault))?),
        quiet_period: quiet_period.map_or(LocalBlobStore::QUIET_PERIOD, Duration::from_millis),
    })
}

fn limits(table: &Table) -> Result<LimitsConfig, ConfigError> {
    let max_json_bytes = narrow(table, "max_json_bytes", table.positive("max_json_bytes", 8 * MIB)?)?;
    Ok(LimitsConfig {
        max_json_bytes,
        draft_bounds: draft_bounds(table)?,
        // Sizes are stored in signed 64-bit columns.
        max_file_bytes: table.positive("max_file_bytes", 100 * MIB)?.min(i64::MAX.unsigned_abs()),
        workspace_quota_bytes: table
            .number("workspace_quota_bytes")
            .unwrap_or(10_240 * MIB)
            .min(i64::MAX.unsigned_abs()),
        workspace_max_documents: table.positive("workspace_max_documents", 1_000_000)?.min(i64::MAX.unsigned_abs()),
        min_charged_file_bytes: within(table, "min_charged_file_bytes", 0..=1024 * MIB)?.unwrap_or(1024),
        workspace_record_bytes_per_day: Some(table.number("workspace_record_bytes_per_day").unwrap_or(1_024 * MIB))
            .filter(|bytes| *bytes > 0),
        key_rates: rates(table, "requests_per_minute", "tokens_per_minute")?,
        workspace_rates: rates(table, "workspace_requests_per_minute", "workspace_tokens_per_minute")?,
        budget_wait: Duration::from_millis(within(table, "budget_wait_ms", 0..=60_000)?.unwrap_or(250)),
        scan_threads: within(table, "scan_threads", 1..=1_024)?,
        scan_queue_per_workspace: within(table, "scan_queue_per_workspace", 1..=1_000_000)?.unwrap_or(256),
        admission: admission(table, max_json_bytes)?,
        body_timeout: Duration::from_millis(table.positive("body_timeout_ms", 60_000)?),
        request_timeout: Duration::from_millis(table.positive("request_timeout_ms", 60_000)?),
    })
}

fn draft_bounds(table: &Table) -> Result<DraftBounds, ConfigError> {
    let max_trace_bytes = within(table, "max_trace_bytes", 2..=MIB)?;
    Ok(DraftBounds { max_trace_bytes: max_trace_bytes.unwrap_or(DraftBounds::default().max_trace_bytes) })
}

/// Parses rates; a missing key means no limit.
fn rates(table: &Table, requests: &str, tokens: &str) -> Result<RateLimits, ConfigError> {
    let per_minute = |key: &str| within(table, key, 1..=u64::from(u32::MAX));
    Ok(RateLimits { requests_per_minute: per_minute(requests)?, tokens_per_minute: per_minute(tokens)? })
}

/// Parses a number within bounds; `None` if the key is not set.
pub fn within<T: TryFrom<u64>>(
    table: &Table,
    key: &str,
    bounds: std::ops::RangeInclusive<u64>,
) -> Result<Option<T>, ConfigError> {
    let Some(number) = table.number(key) else { return Ok(None) };
    if !bounds.contains(&number) {
        return Err(table.fault(key, format!("must be {} to {}", bounds.start(), bounds.end())));
    }
    narrow(table, key, number).map(Some)
}

/// Converts a number to a smaller type.
pub fn narrow<T: TryFrom<u64>>(table: &Table, key: &str, number: u64) -> Result<T, ConfigError> {
    T::try_from(number).map_err(|_| table.fault(key, "is too large"))
}
