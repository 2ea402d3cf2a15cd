//! The checked configuration.

use std::collections::{BTreeMap, BTreeSet};
use std::fmt;
use std::net::SocketAddr;
use std::path::PathBuf;
use std::time::Duration;

use adapters_valkey::ValkeySettings;
use api_actix::{AdmissionSettings, WireNames};
use domain::decision::{ModelOptions, TokenFactor, UnpricedModels};
use domain::model::ModelId;
use domain::rate::RateLimits;
use domain::retention::RetentionPolicy;
use domain::usage::UnknownUsage;
use http_client::ProxySettings;
use http_server::ConnectionSettings;
use ipnet::IpNet;
use serde::Deserialize;
use toml::Value;

use super::{BucketConfig, EndpointConfig, NamedSecret, ProviderConfig, TelemetryConfig, urls};

/// All settings of the process.
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
    /// `keys.max_stale_ms`: the time that known keys are served while the database cannot be read.
    pub max_stale_keys: Duration,
    /// `[blobs]`
    pub blobs: BlobsConfig,
    /// `[limits]`
    pub limits: LimitsConfig,
    /// `[rate_limits]`, if a server counts for all replicas.
    pub rate_limits: Option<RateLimitsConfig>,
    /// `[sandbox]`
    pub sandbox: SandboxConfig,
    /// `[log]`
    pub log: LogConfig,
    /// `[money] unreported_usage`
    pub unknown_usage: UnknownUsage,
    /// The other settings of `[money]`.
    pub money: MoneyConfig,
    /// `routing.seed`: the seed of the random numbers; `None` draws one at each start.
    pub seed: Option<u64>,
    /// `[retention]`
    pub retention: RetentionPolicy,
    /// `egress.allow_private_addresses`: true if traces may be sent to addresses of private networks.
    pub allow_private_addresses: bool,
    /// `[telemetry]`, if a collector is configured.
    pub telemetry: Option<TelemetryConfig>,
    /// `[[providers]]`
    pub providers: Vec<ProviderConfig>,
    /// `[[endpoints]]`
    pub endpoints: Vec<EndpointConfig>,
    /// `[[models]]`
    pub models: Vec<ModelConfig>,
    /// The proxy variables, such as `HTTPS_PROXY`.
    pub proxy: ProxySettings,
    /// The values that only a restart changes.
    pub restart_values: RestartValues,
}

/// `[server]`
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ServerConfig {
    /// The address and port; port 0 selects a free port.
    pub listen: SocketAddr,
    /// The prefix of all paths; begins with a slash and does not end with one, or is empty.
    pub base_path: String,
    /// The literal names in responses.
    pub wire_names: WireNames,
    /// Worker threads; `None` is one per core.
    pub workers: Option<usize>,
    /// The networks whose forwarding headers are trusted.
    pub trusted_proxies: Vec<IpNet>,
    /// True: usage records contain the client's address.
    pub record_client_address: bool,
    /// The deadlines and limits of each connection.
    pub connection: ConnectionSettings,
    /// Concurrent connections per worker.
    pub max_connections_per_worker: usize,
    /// The time for which responses carry `Connection: close` before the listener is closed at a stop.
    pub drain_period: Duration,
    /// The time that a stop then waits for requests in flight.
    pub shutdown_timeout: Duration,
    /// The address of the metrics listener; `None` disables it.
    pub metrics_listen: Option<SocketAddr>,
}

/// `[sandbox]`
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct SandboxConfig {
    /// True if the built-in models can be called. By default they can if no provider is configured.
    pub enabled: bool,
    /// True if the models that simulate errors exist, too.
    pub errors: bool,
}

/// `[storage]`
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct StorageConfig {
    /// `sqlite://path[?mode=ro]` or `postgres://user:password@host:port/database`.
    pub url: DatabaseUrl,
    /// The database's file; with PostgreSQL the path beside which this machine's files are: locks, sockets, journals.
    pub file: PathBuf,
    /// True if the URL has `mode=ro`.
    pub read_only: bool,
    /// True if responses must survive a power loss.
    pub synchronous_full: bool,
    /// The time that a writer waits for another one.
    pub busy_timeout: Duration,
    /// The key that encrypts the secrets of destinations.
    pub encryption_key: Option<NamedSecret>,
}

impl StorageConfig {
    /// Returns the name of the database for messages, without credentials.
    pub fn name(&self) -> String {
        match &self.url {
            DatabaseUrl::Sqlite(_) => self.file.display().to_string(),
            DatabaseUrl::Postgres { name, .. } => name.clone(),
        }
    }

    /// Returns the path beside which the lock and the sockets of the database's servers are. With PostgreSQL it differs
    /// from database to database, so that a command never reaches the server of another one.
    pub fn servers(&self) -> PathBuf {
        match &self.url {
            DatabaseUrl::Sqlite(_) => self.file.clone(),
            DatabaseUrl::Postgres { url, name } => {
                let mut path = self.file.clone().into_os_string();
                path.push("-");
                path.push(urls::postgres_digest(url, name));
                path.into()
            }
        }
    }

    /// Returns true if the database is a file of this machine.
    pub fn is_file(&self) -> bool {
        matches!(self.url, DatabaseUrl::Sqlite(_))
    }
}

/// The URL of the database; `Debug` hides a password.
#[derive(Clone, PartialEq, Eq)]
pub enum DatabaseUrl {
    /// A file.
    Sqlite(String),
    /// A server.
    Postgres {
        /// The whole URL.
        url: String,
        /// Host, port and database.
        name: String,
    },
}

impl DatabaseUrl {
    /// Returns the whole URL.
    pub fn as_str(&self) -> &str {
        match self {
            Self::Sqlite(url) | Self::Postgres { url, .. } => url,
        }
    }
}

impl fmt::Debug for DatabaseUrl {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Sqlite(shown) | Self::Postgres { name: shown, .. } => f.write_str(shown),
        }
    }
}

/// `[journal]`
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct JournalConfig {
    /// The folder of the journals, with a subfolder for each start.
    pub path: PathBuf,
    /// The point at which a response may be sent.
    pub sync: JournalSync,
    /// The maximum size of unfolded charges, in bytes.
    pub max_bytes: u64,
}

/// The point at which a response may be sent.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum JournalSync {
    /// After its charge is written to the journal's file, which is synced periodically.
    Interval,
    /// After its charge is synced to disk.
    Always,
    /// After its charge is committed to the database.
    Store,
}

/// `[blobs]`
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum BlobsConfig {
    /// A folder of this machine.
    Folder(FolderConfig),
    /// A bucket of an object store.
    Bucket(Box<BucketConfig>),
}

impl BlobsConfig {
    /// Returns the folder or the address of the bucket, for messages.
    pub fn name(&self) -> String {
        match self {
            Self::Folder(folder) => folder.root.display().to_string(),
            Self::Bucket(bucket) => bucket.name(),
        }
    }

    /// Returns the folder; `None` for a bucket.
    pub fn folder(&self) -> Option<&FolderConfig> {
        match self {
            Self::Folder(folder) => Some(folder),
            Self::Bucket(_) => None,
        }
    }
}

/// A folder of container files and documents.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct FolderConfig {
    /// The folder.
    pub root: PathBuf,
    /// The time for which a container file must be unchanged before it is promoted.
    pub quiet_period: Duration,
}

/// `[limits]`
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct LimitsConfig {
    /// The maximum size of a JSON body in bytes.
    pub max_json_bytes: usize,
    /// The maximum size of a promoted file in bytes.
    pub max_file_bytes: u64,
    /// The maximum size of a workspace's documents in bytes.
    pub workspace_quota_bytes: u64,
    /// The maximum size of a workspace's usage records per UTC day, in bytes; `None` is no bound.
    pub workspace_record_bytes_per_day: Option<u64>,
    /// The default rates of keys.
    pub key_rates: RateLimits,
    /// The default rates of workspaces.
    pub workspace_rates: RateLimits,
    /// The limits on concurrent operations and on the memory of their bodies.
    pub admission: AdmissionSettings,
    /// The maximum time of a Decisions request with all its attempts.
    pub request_timeout: Duration,
}

/// `[rate_limits]`: the server that counts the rates of all replicas.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct RateLimitsConfig {
    /// The address of the server, and the rules of its use.
    pub store: ValkeySettings,
    /// The password.
    pub password: Option<NamedSecret>,
    /// The decision about requests while the server is not used.
    pub on_failure: OnRateStoreFailure,
}

/// The decision about requests while the shared counts are unavailable.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum OnRateStoreFailure {
    /// Each replica limits by its share.
    Local,
    /// Requests with limits are 503.
    Reject,
}

/// `[log]`
#[derive(Debug, Clone)]
pub struct LogConfig {
    /// The format of a line.
    pub format: LogFormat,
    /// `RUST_LOG`, if it is set: for all commands.
    pub filter: Option<String>,
    /// `log.filter`: for the server, unless `RUST_LOG` is set.
    pub server_filter: Option<String>,
}

/// The format of a log line.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum LogFormat {
    /// For a terminal.
    Text,
    /// One JSON object per line.
    Json,
}

/// The settings of charges.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct MoneyConfig {
    /// The maximum number of tokens that a provider may count per token explained by the request's size.
    pub max_tokens_per_byte: TokenFactor,
    /// The rule for models without a price when money is limited.
    pub unpriced_models: UnpricedModels,
}

/// One of `[[models]]`
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ModelConfig {
    /// Its id in the catalogue.
    pub model: ModelId,
    /// The routing options.
    pub options: ModelOptions,
}

/// The values of the keys that need a restart, by `section.key`. Only their comparison is public: they may be secrets.
#[derive(Clone, Default, PartialEq)]
pub struct RestartValues(BTreeMap<String, Value>);

impl fmt::Debug for RestartValues {
    /// Hides the values, which may contain secrets.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("RestartValues(…)")
    }
}

impl RestartValues {
    /// Collects values by `section.key`.
    pub fn new(values: impl IntoIterator<Item = (String, Value)>) -> Self {
        Self(values.into_iter().collect())
    }

    /// Returns the keys whose values differ, in order.
    pub fn changed(&self, other: &Self) -> Vec<String> {
        let keys: BTreeSet<&String> = self.0.keys().chain(other.0.keys()).collect();
        keys.into_iter().filter(|key| self.0.get(*key) != other.0.get(*key)).cloned().collect()
    }
}
