//! A configuration that has been checked.

use std::net::SocketAddr;
use std::path::PathBuf;
use std::time::Duration;

use api_actix::{AdmissionSettings, ConnectionSettings};
use domain::decision::{DraftBounds, TokenFactor, UnknownUsage, UnpricedModels};
use domain::rate::RateLimits;
use domain::retention::RetentionPolicy;
use domain::routing::HealthPolicy;
use ipnet::IpNet;

use super::{BroadcastConfig, EndpointConfig, ModelConfig, ProviderConfig, TelemetryConfig};

/// Everything that a start needs to know.
#[derive(Debug, Clone)]
pub struct Config {
    /// The file that it was read from.
    pub file: Option<PathBuf>,
    /// `[server]`
    pub server: ServerConfig,
    /// `[storage]`
    pub storage: StorageConfig,
    /// `[journal]`
    pub journal: JournalConfig,
    /// `keys.max_stale_ms`: how long known keys are served while the database cannot be read.
    pub max_stale_keys: Duration,
    /// `[blobs]`
    pub blobs: BlobsConfig,
    /// `[limits]`
    pub limits: LimitsConfig,
    /// `[sandbox] enabled`
    pub sandbox_enabled: bool,
    /// `[log]`
    pub log: LogConfig,
    /// `[money] unreported_usage`
    pub unknown_usage: UnknownUsage,
    /// What else `[money]` says of charges.
    pub money: MoneyConfig,
    /// `[routing]`
    pub routing: RoutingConfig,
    /// `[throttling]`
    pub throttling: ThrottlingConfig,
    /// `[retention]`
    pub retention: RetentionPolicy,
    /// `egress.allow_private_addresses`: true where traces may be sent to addresses of the operator's own network.
    pub allow_private_addresses: bool,
    /// `[broadcast]`
    pub broadcast: BroadcastConfig,
    /// `[telemetry]`, where a collector is named.
    pub telemetry: Option<TelemetryConfig>,
    /// `[[providers]]`
    pub providers: Vec<ProviderConfig>,
    /// `[[endpoints]]`
    pub endpoints: Vec<EndpointConfig>,
    /// `[[models]]`
    pub models: Vec<ModelConfig>,
    /// `HTTPS_PROXY` and its companions.
    pub proxy: ProxyConfig,
}

/// `[server]`
#[derive(Debug, Clone)]
pub struct ServerConfig {
    /// Address and port; port 0 takes a free one.
    pub listen: SocketAddr,
    /// What stands before every path; begins with a slash and does not end with one, or is empty.
    pub base_path: String,
    /// Names on the wire.
    pub wire_names: WireNamesConfig,
    /// Worker threads; `None` is one a core.
    pub workers: Option<usize>,
    /// Whose forwarding headers count.
    pub trusted_proxies: Vec<IpNet>,
    /// The deadlines and bounds of each connection.
    pub connection: ConnectionSettings,
    /// Connections at a time, of each worker.
    pub max_connections_per_worker: usize,
    /// How long answers carry `Connection: close` before a stop closes the listener.
    pub drain_period: Duration,
    /// How long a stop waits for requests in flight after that.
    pub shutdown_timeout: Duration,
    /// Where measures are read; `None` is nowhere.
    pub metrics_listen: Option<SocketAddr>,
    /// Connections at a time of the listener of measures.
    pub metrics_max_connections: usize,
}

/// Which literal names answers use.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum WireNamesConfig {
    /// Those of the interface.
    Interface,
    /// Those that existing SDKs decode.
    OpenRouter,
}

/// `[storage]`
#[derive(Debug, Clone)]
pub struct StorageConfig {
    /// `sqlite://path[?mode=ro]`
    pub url: String,
    /// The database's file.
    pub file: PathBuf,
    /// True where the URL says `mode=ro`.
    pub read_only: bool,
    /// True where an answer must survive the loss of power.
    pub synchronous_full: bool,
    /// How long a writer waits for another.
    pub busy_timeout: Duration,
    /// Connections that read.
    pub read_connections: u32,
    /// The largest size of the database; `None` is the limit of SQLite.
    pub max_database_bytes: Option<u64>,
}

/// `[journal]`
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct JournalConfig {
    /// The folder of the journals, one folder in it for each start.
    pub path: PathBuf,
    /// True where an answer waits until its charge is synced to disk.
    pub is_synced: bool,
    /// The most bytes of charges that wait for the database.
    pub max_bytes: u64,
    /// How long folded segments are kept.
    pub keep: Duration,
    /// The silence after which a process without a journal on this machine is lost.
    pub lost_after: Duration,
}

/// `[blobs]`
#[derive(Debug, Clone)]
pub struct BlobsConfig {
    /// The folder.
    pub root: PathBuf,
    /// How long a container file must not have changed before it is promoted.
    pub quiet_period: Duration,
}

/// `[limits]`
#[derive(Debug, Clone)]
pub struct LimitsConfig {
    /// Most bytes of a JSON body.
    pub max_json_bytes: usize,
    /// Bounds of what a Decisions request holds.
    pub draft_bounds: DraftBounds,
    /// Most bytes of a promoted file.
    pub max_file_bytes: u64,
    /// Most bytes of a workspace's documents.
    pub workspace_quota_bytes: u64,
    /// Most documents of a workspace.
    pub workspace_max_documents: u64,
    /// Bytes that a document counts at least.
    pub min_charged_file_bytes: u64,
    /// Most bytes that the usage records of a workspace take in a UTC day; `None` is no bound.
    pub workspace_record_bytes_per_day: Option<u64>,
    /// Rates of keys that have none of their own.
    pub key_rates: RateLimits,
    /// Rates of workspaces that have none of their own.
    pub workspace_rates: RateLimits,
    /// How long a request waits for money that others have reserved.
    pub budget_wait: Duration,
    /// Bounds on operations in flight and on the memory of their bodies.
    pub admission: AdmissionSettings,
    /// Threads that read and filter large requests; `None` is one a core.
    pub scan_threads: Option<usize>,
    /// Large requests of one workspace that wait for such a thread.
    pub scan_queue_per_workspace: usize,
    /// How long a body may take from its beginning to its end.
    pub body_timeout: Duration,
    /// How long a Decisions request may take with all its attempts.
    pub request_timeout: Duration,
}

/// `[log]`
#[derive(Debug, Clone)]
pub struct LogConfig {
    /// How a line is written.
    pub format: LogFormat,
    /// Bytes of lines that may wait to be written while a server runs.
    pub buffer_bytes: usize,
    /// `RUST_LOG`, where it is set.
    pub filter: Option<String>,
}

/// How a log line is written.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum LogFormat {
    /// For people.
    Text,
    /// One JSON object a line.
    Json,
}

/// How charges are bounded.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct MoneyConfig {
    /// How many tokens a provider may count where the size of what it is sent explains one.
    pub max_tokens_per_byte: TokenFactor,
    /// What becomes of a model without a price where money is limited.
    pub unpriced_models: UnpricedModels,
}

/// `[routing]`
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct RoutingConfig {
    /// Where random numbers begin; `None` is somewhere else at each start.
    pub seed: Option<u64>,
    /// Parts of one split request that are asked at a time.
    pub max_concurrent_subrequests: usize,
}

/// `[throttling]`
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct ThrottlingConfig {
    /// The figures of the health rules.
    pub policy: HealthPolicy,
    /// The delay of the heartbeat from which the process counts as paused.
    pub pause_tolerance: Duration,
}

/// The proxy variables, as common tools read them.
#[derive(Clone, Default)]
pub struct ProxyConfig {
    /// `HTTPS_PROXY`
    pub https: Option<String>,
    /// `HTTP_PROXY`
    pub http: Option<String>,
    /// `NO_PROXY`
    pub none_for: Option<String>,
}

impl std::fmt::Debug for ProxyConfig {
    /// A proxy's URL may hold a password.
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("ProxyConfig")
            .field("https", &self.https.is_some())
            .field("http", &self.http.is_some())
            .field("none_for", &self.none_for)
            .finish()
    }
}
