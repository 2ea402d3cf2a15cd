//! The state shared by all requests: use cases, settings and caches.

use std::sync::Arc;
use std::time::Duration;

use domain::decision::DraftBounds;
use domain::system::LineLimit;
use http_server::Connections;
use ipnet::IpNet;
use tokio_util::sync::CancellationToken;

use crate::http::admission::Admission;
use crate::http::body_memory::BodyMemory;
use crate::http::detach::DetachOnDisconnect;
use crate::http::wire_names::WireNames;
use crate::rendered_catalogue::RenderedCatalogue;
use crate::rendered_openapi::RenderedOpenApi;
use crate::services::Services;
use crate::settings::HttpSettings;

/// The state that all workers share.
pub(crate) struct Gateway {
    pub(crate) services: Services,
    pub(crate) base_path: String,
    /// The literal names for clients that are no published package.
    pub(crate) wire_names: WireNames,
    pub(crate) max_json_bytes: usize,
    pub(crate) draft_bounds: DraftBounds,
    pub(crate) request_timeout: Duration,
    pub(crate) trusted_proxies: Vec<IpNet>,
    /// True: usage records contain the client address.
    pub(crate) record_client_address: bool,
    pub(crate) detach: DetachOnDisconnect,
    pub(crate) rendered: RenderedCatalogue,
    pub(crate) openapi: RenderedOpenApi,
    pub(crate) connections: Connections,
    /// Cancelled when a stop closes the listener: requests that wait for others end.
    pub(crate) stopping: CancellationToken,
    pub(crate) admission: Arc<Admission>,
    pub(crate) body_memory: Arc<BodyMemory>,
    /// Limits the lines about stores that fail.
    pub(crate) store_failures: LineLimit,
}

impl Gateway {
    pub(crate) fn new(
        services: Services,
        settings: HttpSettings,
        openapi: RenderedOpenApi,
        detach: DetachOnDisconnect,
        connections: Connections,
    ) -> Self {
        let mut base_path = settings.base_path;
        base_path.truncate(base_path.trim_end_matches('/').len());
        Self {
            wire_names: settings.wire_names,
            max_json_bytes: settings.max_json_bytes,
            draft_bounds: settings.draft_bounds,
            request_timeout: settings.request_timeout,
            trusted_proxies: settings.trusted_proxies,
            record_client_address: settings.record_client_address,
            detach,
            connections,
            stopping: CancellationToken::new(),
            rendered: RenderedCatalogue::new(format!("{base_path}/models")),
            openapi,
            admission: Arc::new(Admission::new(settings.admission, Arc::clone(&services.recorder))),
            body_memory: Arc::new(BodyMemory::new(settings.admission, Arc::clone(&services.recorder))),
            services,
            base_path,
            store_failures: LineLimit::default(),
        }
    }
}
