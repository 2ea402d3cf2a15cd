//! What a request meets: the use cases, the settings, and what is kept between requests.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use bytes::Bytes;
use domain::api_key::Authenticate;
use domain::decision::SubmitDecision;
use domain::file::PromoteContainerFile;
use domain::guardrail::AssignKeysToGuardrail;
use domain::model::{CountModels, GetModel, ListModels};
use domain::rate::{RateLimiter, RateLimits};
use domain::routing::{ListModelEndpoints, ListProviders};
use domain::system::{Clock, HealthProbe, IdGenerator};
use domain::usage::GetGeneration;
use ipnet::IpNet;

use crate::application::HttpSettings;
use crate::endpoints::docs::DocsPage;
use crate::endpoints::rendered_catalogue::RenderedCatalogue;
use crate::http::outlive::Afterlife;
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
    /// Records of Decisions requests.
    pub get_generation: Arc<GetGeneration>,
    /// What must answer for the service to be ready.
    pub probes: Vec<Arc<dyn HealthProbe>>,
    /// Limits requests per key; `None` limits nothing.
    pub rate_limiter: Option<Arc<dyn RateLimiter>>,
    /// Rates of keys that have none of their own.
    pub key_rates: RateLimits,
    /// Rates of workspaces that have none of their own.
    pub workspace_rates: RateLimits,
    /// Request ids.
    pub ids: Arc<dyn IdGenerator>,
    /// Latencies, and when a rate limit resets.
    pub clock: Arc<dyn Clock>,
}

/// Shared by all workers.
pub(crate) struct Gateway {
    pub(crate) services: Services,
    pub(crate) base_path: String,
    pub(crate) wire_names: WireNames,
    pub(crate) max_json_bytes: usize,
    pub(crate) trusted_proxies: Vec<IpNet>,
    pub(crate) afterlife: Afterlife,
    pub(crate) rendered: RenderedCatalogue,
    pub(crate) openapi: Bytes,
    pub(crate) docs: DocsPage,
    in_flight: InFlight,
}

impl Gateway {
    pub(crate) fn new(services: Services, settings: HttpSettings, afterlife: Afterlife) -> Self {
        let mut base_path = settings.base_path;
        base_path.truncate(base_path.trim_end_matches('/').len());
        let openapi = openapi_document(&base_path, settings.wire_names).to_string();
        Self {
            services,
            wire_names: settings.wire_names,
            max_json_bytes: settings.max_json_bytes,
            trusted_proxies: settings.trusted_proxies,
            afterlife,
            rendered: RenderedCatalogue::new(format!("{base_path}/models")),
            docs: DocsPage::new(&openapi),
            openapi: Bytes::from(openapi),
            in_flight: InFlight { now: AtomicUsize::new(0), most: settings.max_in_flight.unwrap_or(usize::MAX) },
            base_path,
        }
    }

    /// A place among the requests in flight, until it is dropped; `None` where all are taken.
    pub(crate) fn enter(&self) -> Option<Place<'_>> {
        let before = self.in_flight.now.fetch_add(1, Ordering::Relaxed);
        let place = Place(&self.in_flight.now);
        (before < self.in_flight.most).then_some(place)
    }
}

struct InFlight {
    now: AtomicUsize,
    most: usize,
}

/// See [`Gateway::enter`].
pub(crate) struct Place<'g>(&'g AtomicUsize);

impl Drop for Place<'_> {
    fn drop(&mut self) {
        self.0.fetch_sub(1, Ordering::Relaxed);
    }
}
