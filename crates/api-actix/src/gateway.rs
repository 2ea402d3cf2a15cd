//! The settings of the HTTP server, and the state shared by all requests: use cases, settings and caches.

use std::net::SocketAddr;
use std::sync::Arc;
use std::time::Duration;

use domain::api_key::Principal;
use domain::decision::TakenTokens;
use domain::rate::RateLimitError;
use domain::system::LineLimit;
use domain::usage::RejectionReason;
use http_server::{ConnectionSettings, Connections};
use ipnet::IpNet;
use tokio_util::sync::CancellationToken;

use crate::http::admission::{Admission, AdmissionSettings, BodyMemory};
use crate::http::body::BodyBounds;
use crate::http::client::WireNames;
use crate::http::detach::DetachOnDisconnect;
use crate::http::error::ApiError;
use crate::http::export_places::Exports;
use crate::rendered_catalogue::RenderedCatalogue;
use crate::rendered_openapi::RenderedOpenApi;
use crate::services::Services;

/// The state that all workers share.
pub(crate) struct Gateway {
    pub(crate) services: Services,
    pub(crate) settings: HttpSettings,
    /// The bound address; `None` if only the operator is served.
    pub(crate) address: Option<SocketAddr>,
    pub(crate) detach: DetachOnDisconnect,
    pub(crate) rendered: RenderedCatalogue,
    pub(crate) openapi: RenderedOpenApi,
    pub(crate) connections: Connections,
    /// Cancelled when a stop closes the listener: requests that wait for others end.
    pub(crate) stopping: CancellationToken,
    pub(crate) admission: Arc<Admission>,
    pub(crate) body_memory: Arc<BodyMemory>,
    /// The keys with a running export.
    pub(crate) exports: Arc<Exports>,
    /// Limits the lines about stores that fail.
    pub(crate) store_failures: LineLimit,
}

impl Gateway {
    pub(crate) fn new(
        services: Services,
        mut settings: HttpSettings,
        address: Option<SocketAddr>,
        openapi: RenderedOpenApi,
        detach: DetachOnDisconnect,
        connections: Connections,
    ) -> Self {
        settings.base_path.truncate(settings.base_path.trim_end_matches('/').len());
        Self {
            detach,
            connections,
            stopping: CancellationToken::new(),
            rendered: RenderedCatalogue::new(format!("{}/models", settings.base_path)),
            openapi,
            admission: Arc::new(Admission::new(settings.admission, Arc::clone(&services.recorder))),
            body_memory: Arc::new(BodyMemory::new(settings.admission, Arc::clone(&services.recorder))),
            services,
            settings,
            address,
            exports: Arc::default(),
            store_failures: LineLimit::default(),
        }
    }
}

/// The settings of the HTTP server.
#[derive(Debug, Clone)]
pub struct HttpSettings {
    /// The prefix of every API path, such as `/api/v1`; may be empty.
    pub base_path: String,
    /// The literal names in responses to clients that are no published package.
    pub wire_names: WireNames,
    /// The maximum size of a JSON body, in bytes.
    pub max_json_bytes: usize,
    /// The bounds on in-flight operations and on the memory of their bodies.
    pub admission: AdmissionSettings,
    /// The deadlines and bounds of each connection.
    pub connection: ConnectionSettings,
    /// The longest time in which a client may send a request body.
    pub body_timeout: Duration,
    /// The longest duration of a Decisions request, from the end of its body to its response.
    pub request_timeout: Duration,
    /// The maximum number of connections for each worker. At the limit, idle connections are closed for new ones.
    pub max_connections: usize,
    /// The networks whose `X-Forwarded-For` determines the client address in logs and records.
    pub trusted_proxies: Vec<IpNet>,
    /// True: usage records contain the client address.
    pub record_client_address: bool,
    /// The number of worker threads; `None` means one per core.
    pub workers: Option<usize>,
    /// The time during which responses carry `Connection: close` before a stop closes the listener.
    pub drain_period: Duration,
    /// The longest wait of a stop for in-flight requests after that.
    pub shutdown_timeout: Duration,
}

impl Gateway {
    pub(crate) fn body_bounds(&self) -> BodyBounds {
        BodyBounds { max_bytes: self.settings.max_json_bytes, timeout: self.settings.body_timeout }
    }

    /// Counts a request of an authenticated caller, or rejects it.
    pub(crate) async fn count_request(&self, caller: &Principal) -> Result<(), ApiError> {
        self.services.count_request.execute(caller).await.map_err(|error| self.rate_rejection(error))
    }

    /// Reserves the estimated tokens of a Decisions request with a body of `body_bytes`, or rejects it.
    pub(crate) async fn take_tokens(&self, caller: &Principal, body_bytes: usize) -> Result<TakenTokens, ApiError> {
        self.services.meter_tokens.execute(caller, body_bytes).await.map_err(|error| self.rate_rejection(error))
    }

    fn rate_rejection(&self, error: RateLimitError) -> ApiError {
        match error {
            RateLimitError::Exceeded(limited) => {
                self.services.recorder.record_rate_limit(&limited);
                ApiError::rate_limited(limited, self.services.clock.now().timestamp_millis())
            }
            RateLimitError::Unavailable { retry_after } => ApiError::from_kind(error.kind())
                .reason(RejectionReason::StoreUnavailable)
                .retry_after(retry_after)
                .caused_by(error),
        }
    }
}
