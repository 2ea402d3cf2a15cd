//! What a request meets: the use cases, the settings, and what is kept between requests.

use std::sync::Arc;
use std::time::Duration;

use bytes::Bytes;
use domain::api_key::{Authenticate, CountRequest, RotateApiKey};
use domain::audit::DeniedChangeRecorder;
use domain::decision::{DraftBounds, GetGeneration, MeterTokens, SubmitDecision};
use domain::file::PromoteContainerFile;
use domain::guardrail::AssignKeysToGuardrail;
use domain::model::{CountModels, GetModel, ListModels};
use domain::routing::{ListModelEndpoints, ListProviders};
use domain::system::{Clock, HealthProbe, IdGenerator, Workers};
use ipnet::IpNet;

use crate::application::HttpSettings;
use crate::endpoints::destinations::DestinationUseCases;
use crate::endpoints::docs::DocsPage;
use crate::endpoints::guardrails::GuardrailUseCases;
use crate::endpoints::rendered_catalogue::RenderedCatalogue;
use crate::http::admission::Admission;
use crate::http::body_memory::BodyMemory;
use crate::http::connection::Connections;
use crate::http::outlive::Afterlife;
use crate::http::recorder::Recorder;
use crate::http::wire_names::WireNames;
use crate::openapi::openapi_document;

/// The use cases and the few ports that HTTP itself needs.
pub struct Services {
    /// Lets callers in.
    pub authenticate: Arc<Authenticate>,
    /// Operation 1.
    pub promote: Arc<PromoteContainerFile>,
    /// Operation 2.
    pub submit_decision: Arc<SubmitDecision>,
    /// Operation 3.
    pub assign_keys: Arc<AssignKeysToGuardrail>,
    /// Replaces secrets of keys.
    pub rotate_key: Arc<RotateApiKey>,
    /// Operation 4.
    pub get_model: Arc<GetModel>,
    /// Operation 5.
    pub count_models: Arc<CountModels>,
    /// The catalogue's rows, in pages.
    pub list_models: Arc<ListModels>,
    /// What could serve a model.
    pub list_model_endpoints: Arc<ListModelEndpoints>,
    /// Who could be asked.
    pub list_providers: Arc<ListProviders>,
    /// Where traces are broadcast to.
    pub destinations: DestinationUseCases,
    /// What is done with guardrails beside operation 3.
    pub guardrails: GuardrailUseCases,
    /// Records of Decisions requests.
    pub get_generation: Arc<GetGeneration>,
    /// What must answer for the service to be ready.
    pub probes: Vec<Arc<dyn HealthProbe>>,
    /// Limits requests per minute.
    pub count_request: Arc<CountRequest>,
    /// Limits tokens per minute.
    pub meter_tokens: Arc<MeterTokens>,
    /// Counts what happens at the edge.
    pub recorder: Arc<dyn Recorder>,
    /// Hears of refused changes to what is managed; `None` where nobody writes them down.
    pub refusals: Option<Arc<dyn DeniedChangeRecorder>>,
    /// Request ids.
    pub ids: Arc<dyn IdGenerator>,
    /// Latencies, and when a rate limit resets.
    pub clock: Arc<dyn Clock>,
    /// Who reads large bodies.
    pub workers: Arc<dyn Workers>,
}

/// Shared by all workers.
pub(crate) struct Gateway {
    pub(crate) services: Services,
    pub(crate) base_path: String,
    pub(crate) wire_names: WireNames,
    pub(crate) max_json_bytes: usize,
    pub(crate) draft_bounds: DraftBounds,
    pub(crate) request_timeout: Duration,
    pub(crate) trusted_proxies: Vec<IpNet>,
    pub(crate) afterlife: Afterlife,
    pub(crate) rendered: RenderedCatalogue,
    pub(crate) openapi: Bytes,
    pub(crate) docs: DocsPage,
    pub(crate) connections: Connections,
    pub(crate) admission: Arc<Admission>,
    pub(crate) body_memory: Arc<BodyMemory>,
}

impl Gateway {
    pub(crate) fn new(
        services: Services,
        settings: HttpSettings,
        afterlife: Afterlife,
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
            afterlife,
            connections,
            rendered: RenderedCatalogue::new(format!("{base_path}/models")),
            docs: DocsPage::new(&openapi),
            openapi: Bytes::from(openapi),
            admission: Arc::new(Admission::new(settings.admission, Arc::clone(&services.recorder))),
            body_memory: Arc::new(BodyMemory::new(settings.admission, Arc::clone(&services.recorder))),
            services,
            base_path,
        }
    }
}
