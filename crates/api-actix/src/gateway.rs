//! The state shared by all requests: use cases, settings and caches.

use std::sync::Arc;
use std::time::Duration;

use bytes::Bytes;
use domain::api_key::{Authenticate, CountRequest, RotateApiKey};
use domain::audit::DeniedChangeRecorder;
use domain::decision::{DraftBounds, MeterTokens};
use domain::file::PromoteContainerFile;
use domain::guardrail::AssignKeysToGuardrail;
use domain::model::{CountModels, GetModel, ListModels};
use domain::system::{Clock, HealthProbe, IdGenerator, Workers};
use ipnet::IpNet;

use crate::application::HttpSettings;
use crate::endpoints::destinations::DestinationUseCases;
use crate::endpoints::rendered_catalogue::RenderedCatalogue;
use crate::http::admission::Admission;
use crate::http::body_memory::BodyMemory;
use crate::http::connection::Connections;
use crate::http::detach::DetachOnDisconnect;
use crate::http::recorder::Recorder;
use crate::http::wire_names::WireNames;
use crate::live_services::LiveServices;
use crate::openapi::openapi_document;

/// The use cases and the ports that HTTP itself needs.
pub struct Services {
    /// Authenticates callers.
    pub authenticate: Arc<Authenticate>,
    /// Operation 1.
    pub promote: Arc<PromoteContainerFile>,
    /// Operation 2, and the other use cases that follow the configured providers and endpoints.
    pub routed: LiveServices,
    /// Operation 3.
    pub assign_keys: Arc<AssignKeysToGuardrail>,
    /// Replaces the secrets of API keys.
    pub rotate_key: Arc<RotateApiKey>,
    /// Operation 4.
    pub get_model: Arc<GetModel>,
    /// Operation 5.
    pub count_models: Arc<CountModels>,
    /// Lists the models of the catalogue, in pages.
    pub list_models: Arc<ListModels>,
    /// The use cases of trace destinations.
    pub destinations: DestinationUseCases,
    /// The health checks that decide readiness.
    pub probes: Vec<Arc<dyn HealthProbe>>,
    /// Enforces the request rate limits (per minute).
    pub count_request: Arc<CountRequest>,
    /// Enforces the token rate limits (per minute).
    pub meter_tokens: Arc<MeterTokens>,
    /// Records HTTP metrics.
    pub recorder: Arc<dyn Recorder>,
    /// Records denied management changes; `None` if no audit log is configured.
    pub denied_changes: Option<Arc<dyn DeniedChangeRecorder>>,
    /// Generates request ids.
    pub ids: Arc<dyn IdGenerator>,
    /// Measures latencies and computes rate limit resets.
    pub clock: Arc<dyn Clock>,
    /// Parses large bodies off the event loop.
    pub workers: Arc<dyn Workers>,
}

/// The state that all workers share.
pub(crate) struct Gateway {
    pub(crate) services: Services,
    pub(crate) base_path: String,
    pub(crate) wire_names: WireNames,
    pub(crate) max_json_bytes: usize,
    pub(crate) draft_bounds: DraftBounds,
    pub(crate) request_timeout: Duration,
    pub(crate) trusted_proxies: Vec<IpNet>,
    pub(crate) detach: DetachOnDisconnect,
    pub(crate) rendered: RenderedCatalogue,
    pub(crate) openapi: Bytes,
    pub(crate) connections: Connections,
    pub(crate) admission: Arc<Admission>,
    pub(crate) body_memory: Arc<BodyMemory>,
}

impl Gateway {
    pub(crate) fn new(
        services: Services,
        settings: HttpSettings,
        detach: DetachOnDisconnect,
        connections: Connections,
    ) -> Self {
        let mut base_path = settings.base_path;
        base_path.truncate(base_path.trim_end_matches('/').len());
        let openapi = openapi_document(&base_path, settings.wire_names).to_string();
        Self {
            wire_names: settings.wire_names,
            max_json_bytes: settings.max_json_bytes,
            draft_bounds: settings.draft_bounds,
            request_timeout: settings.request_timeout,
            trusted_proxies: settings.trusted_proxies,
            detach,
            connections,
            rendered: RenderedCatalogue::new(format!("{base_path}/models")),
            openapi: Bytes::from(openapi),
            admission: Arc::new(Admission::new(settings.admission, Arc::clone(&services.recorder))),
            body_memory: Arc::new(BodyMemory::new(settings.admission, Arc::clone(&services.recorder))),
            services,
            base_path,
        }
    }
}
