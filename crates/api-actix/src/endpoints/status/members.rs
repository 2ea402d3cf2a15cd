//! The members of a status. A command of another release may read it, so missing members have defaults and unknown
//! members are ignored.

use domain::budget::LiveProcess;
use serde::Deserialize;

use super::ConfiguredEndpoint;
use crate::endpoints::prelude::*;

/// The status of servers, and of the processes of their database.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, ToSchema)]
pub struct Status {
    /// True if this server accepts requests.
    pub ok: bool,
    /// The database.
    pub database: String,
    /// This server; empty if a command answers without one.
    pub servers: Vec<ServerStatus>,
    /// The live processes of the database; null if it cannot be read.
    #[serde(default)]
    #[schema(required)]
    pub processes: Option<Vec<ProcessStatus>>,
    /// The configured endpoints, in their order, then those of the sandbox.
    #[serde(default)]
    #[schema(required)]
    pub endpoints: Vec<ConfiguredEndpoint>,
}

/// The status of a server.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, ToSchema)]
pub struct ServerStatus {
    /// The id of the process, as in `processes`; of this start on a read-only database.
    pub id: String,
    /// The id of the process in the operating system.
    pub pid: u32,
    /// The release.
    pub version: String,
    /// The start, RFC 3339 in UTC.
    pub started_at: String,
    /// The time since the start, in seconds.
    pub uptime_seconds: u64,
    /// The bound address; null without a port.
    #[schema(required)]
    pub address: Option<String>,
    /// The prefix of all paths.
    #[serde(default)]
    pub base_path: String,
    /// The configuration file; null without one.
    #[serde(default)]
    pub config_file: Option<String>,
    /// The time at which the configuration was last read, RFC 3339 in UTC.
    #[serde(default)]
    pub configured_at: Option<String>,
    /// The readiness.
    pub state: ServerState,
    /// Open client connections with a request.
    #[serde(default)]
    pub connections_in_request: usize,
    /// The readiness of each store.
    #[serde(default)]
    pub stores: Vec<StoreStatus>,
    /// The journal; null on a read-only database.
    #[serde(default)]
    pub journal: Option<JournalStatus>,
    /// The health of each endpoint, in the order of the configuration.
    #[serde(default)]
    pub endpoints: Vec<EndpointHealth>,
    /// The names of the set environment variables that the configuration uses.
    #[serde(default)]
    pub variables: Vec<String>,
    /// The health of each provider: the worst of its endpoints.
    #[serde(default)]
    pub providers: Vec<ProviderHealth>,
}

/// The readiness of a server, as `/health/ready` reports it.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[serde(rename_all = "snake_case")]
pub enum ServerState {
    /// All stores respond.
    Ready,
    /// Requests are served without a store that does not respond.
    Degraded,
    /// A required store does not respond.
    Unavailable,
    /// The server is stopping.
    Draining,
}

impl ServerState {
    /// Returns the word of the JSON document.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Ready => "ready",
            Self::Degraded => "degraded",
            Self::Unavailable => "unavailable",
            Self::Draining => "draining",
        }
    }

    /// Returns true if the server accepts requests.
    pub fn is_ready(self) -> bool {
        matches!(self, Self::Ready | Self::Degraded)
    }
}

/// The readiness of a store.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct StoreStatus {
    /// Its name.
    pub name: String,
    /// True if it responded.
    pub ready: bool,
    /// The reason if it did not respond.
    pub error: Option<String>,
    /// True if requests are served while it does not respond.
    #[serde(default)]
    pub serves_during_outage: bool,
}

/// The status of a journal.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct JournalStatus {
    /// The entries that are not yet in the database.
    pub unfolded_entries: u64,
    /// The size of these entries, in bytes.
    pub unfolded_bytes: u64,
    /// The maximum of [`Self::unfolded_bytes`].
    pub max_bytes: u64,
    /// False while the disk does not accept entries.
    pub writable: bool,
    /// Decisions requests in flight.
    pub open_requests: usize,
}

/// The health of an endpoint in one server.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, ToSchema)]
#[schema(as = ServerEndpointHealth)]
pub struct EndpointHealth {
    /// The model's name in the catalogue.
    pub model: String,
    /// The provider's slug.
    pub provider: String,
    /// The model's name at the provider.
    pub upstream_model: String,
    /// True if the operator paused its provider.
    #[serde(default)]
    pub paused: bool,
    /// True if requests of all workspaces are rejected.
    pub throttled: bool,
    /// The number of workspaces that are throttled because of their own requests.
    pub throttled_workspaces: u32,
    /// The share of successful attempts in the window, 0 to 1; null without an attempt.
    pub accept_rate: Option<f64>,
    /// The average latency of successful answers, in milliseconds; null without an answer.
    pub latency_ms: Option<f64>,
    /// The remaining back-off, in seconds.
    pub retry_in_seconds: Option<u64>,
    /// Attempts since the start.
    pub attempts: u64,
    /// The last failure.
    pub last_error: Option<LastError>,
    /// True if no attempt succeeded after the last failure.
    pub last_attempt_failed: bool,
    /// The highest ratio of counted tokens to the configured bound; null if no recent count exceeded it.
    #[serde(default)]
    pub bound_ratio: Option<f64>,
    /// The highest number of counted tokens above the configured bound; null if no recent count exceeded it.
    #[serde(default)]
    pub bound_extra_tokens: Option<u64>,
}

impl EndpointHealth {
    /// Returns true if the last attempt ended with a rejected credential.
    pub fn is_credential_rejected(&self) -> bool {
        self.last_attempt_failed && self.last_error.as_ref().is_some_and(|error| error.rejected_credential)
    }

    /// Returns true for the health of this endpoint.
    pub fn is_of(&self, model: &str, provider: &str, upstream_model: &str) -> bool {
        (&*self.model, &*self.provider, &*self.upstream_model) == (model, provider, upstream_model)
    }
}

/// The last failure of an endpoint.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[schema(as = EndpointLastError)]
pub struct LastError {
    /// The outcome of the attempt, as in usage records.
    pub outcome: String,
    /// The HTTP status of the provider, if it sent one.
    pub upstream_status: Option<u16>,
    /// True if the provider rejected the credential.
    #[serde(default)]
    pub rejected_credential: bool,
    /// The name of the cause, if it is one that an operator can mend.
    #[serde(default)]
    pub cause: Option<String>,
}

impl std::fmt::Display for LastError {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(&self.outcome)?;
        if let Some(status) = self.upstream_status {
            write!(f, " ({status})")?;
        }
        self.cause.as_ref().map_or(Ok(()), |cause| write!(f, ": {}", cause.replace('_', " ")))
    }
}

/// The health of a provider: the worst of its endpoints.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, ToSchema)]
#[schema(as = ServerProviderHealth)]
pub struct ProviderHealth {
    /// The provider's slug.
    pub provider: String,
    /// The state of its worst endpoint.
    pub state: ProviderState,
    /// The number of its endpoints.
    pub endpoints: usize,
    /// Attempts since the start.
    pub attempts: u64,
    /// The lowest of its endpoints, 0 to 1; null without an attempt in the window.
    #[schema(required)]
    pub accept_rate: Option<f64>,
    /// The last failure of its worst endpoint.
    #[schema(required)]
    pub last_error: Option<LastError>,
}

/// The states of a provider, the worst last.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize, ToSchema)]
#[serde(rename_all = "snake_case")]
pub enum ProviderState {
    /// No attempt since the start.
    Unused,
    /// The last attempts succeeded.
    Ok,
    /// The last attempt failed.
    Failing,
    /// Requests of all workspaces are rejected.
    Throttled,
    /// The operator paused it.
    Paused,
    /// The provider rejected the credential.
    CredentialRejected,
}

impl ProviderState {
    fn of(endpoint: &EndpointHealth) -> Self {
        if endpoint.is_credential_rejected() {
            Self::CredentialRejected
        } else if endpoint.paused {
            Self::Paused
        } else if endpoint.throttled {
            Self::Throttled
        } else if endpoint.last_attempt_failed {
            Self::Failing
        } else if endpoint.attempts == 0 {
            Self::Unused
        } else {
            Self::Ok
        }
    }

    /// Returns true for a state that needs attention.
    pub fn is_problem(self) -> bool {
        self >= Self::Failing
    }

    /// Returns the words for people.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Unused => "unused",
            Self::Ok => "ok",
            Self::Failing => "failing",
            Self::Throttled => "throttled",
            Self::Paused => "paused",
            Self::CredentialRejected => "credential rejected",
        }
    }
}

impl ProviderHealth {
    /// Returns each provider once, in the order of the endpoints.
    pub fn list(endpoints: &[EndpointHealth]) -> Vec<Self> {
        let mut providers: Vec<Self> = Vec::new();
        for endpoint in endpoints {
            let known = providers.iter().position(|known| known.provider == endpoint.provider);
            let position = known.unwrap_or_else(|| {
                providers.push(Self {
                    provider: endpoint.provider.clone(),
                    state: ProviderState::Unused,
                    endpoints: 0,
                    attempts: 0,
                    accept_rate: None,
                    last_error: None,
                });
                providers.len() - 1
            });
            providers[position].add(endpoint);
        }
        providers
    }

    fn add(&mut self, endpoint: &EndpointHealth) {
        let state = ProviderState::of(endpoint);
        if self.last_error.is_none() || (state > self.state && endpoint.last_error.is_some()) {
            self.last_error.clone_from(&endpoint.last_error);
        }
        self.state = self.state.max(state);
        self.endpoints += 1;
        self.attempts = self.attempts.saturating_add(endpoint.attempts);
        self.accept_rate = match (self.accept_rate, endpoint.accept_rate) {
            (Some(one), Some(other)) => Some(one.min(other)),
            (one, other) => one.or(other),
        };
    }
}

/// A live process of the database.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct ProcessStatus {
    /// Its id.
    pub id: String,
    /// The last time that the database saw it.
    pub seen_at: String,
    /// The time since then, in seconds.
    pub silent_seconds: u64,
    /// True if its journal is on the machine of this server.
    pub has_journal: bool,
}

impl From<&(LiveProcess, bool)> for ProcessStatus {
    fn from((found, has_journal): &(LiveProcess, bool)) -> Self {
        Self {
            id: found.process.to_string(),
            seen_at: time(found.seen_at),
            silent_seconds: found.silent_for.as_secs(),
            has_journal: *has_journal,
        }
    }
}
