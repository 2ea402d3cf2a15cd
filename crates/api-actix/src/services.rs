//! The use cases and ports that the endpoints call.

use std::sync::Arc;

use arc_swap::ArcSwap;
use domain::api_key::{Authenticate, CountRequest, RotateApiKey};
use domain::audit::DeniedChangeRecorder;
use domain::decision::{ExplainGuardrail, GetGeneration, MeterTokens, SubmitDecision};
use domain::file::PromoteContainerFile;
use domain::guardrail::{
    AssignKeysToGuardrail, CreateGuardrail, DeleteGuardrail, GetGuardrail, GetGuardrailVersion, GuardrailPorts,
    ListAssignedKeys, ListGuardrailVersions, ListGuardrails, RemoveKeysFromGuardrail, RestoreGuardrailVersion,
    UpdateGuardrail,
};
use domain::model::{CountModels, FindCallableModel, GetModel, ListModels};
use domain::observability::{
    CreateDestination, DeleteDestination, DestinationPorts, FindDestinationKeys, GetDestination, ListDestinations,
    UpdateDestination,
};
use domain::routing::{ListModelEndpoints, ListProviders};
use domain::system::{Clock, HealthProbe, IdGenerator, Workers};
use domain::usage::RejectionRecorder;

use crate::http::access_log::AccessLog;
use crate::http::recorder::Recorder;

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
    /// Writes the access log.
    pub access_log: AccessLog,
    /// Records denied management changes; `None` if no audit log is configured.
    pub denied_changes: Option<Arc<dyn DeniedChangeRecorder>>,
    /// Counts rejected requests; `None` if the database is read-only.
    pub rejections: Option<Arc<dyn RejectionRecorder>>,
    /// Generates request ids.
    pub ids: Arc<dyn IdGenerator>,
    /// Measures latencies and computes rate limit resets.
    pub clock: Arc<dyn Clock>,
    /// Parses large bodies off the event loop.
    pub workers: Arc<dyn Workers>,
}

/// The use cases of destinations.
pub struct DestinationUseCases {
    pub(crate) create: CreateDestination,
    pub(crate) list: ListDestinations,
    pub(crate) get: GetDestination,
    pub(crate) update: UpdateDestination,
    pub(crate) delete: DeleteDestination,
    pub(crate) keys: FindDestinationKeys,
}

impl DestinationUseCases {
    /// Creates the use cases over their ports.
    pub fn new(ports: &DestinationPorts) -> Self {
        Self {
            create: CreateDestination::new(ports.clone()),
            list: ListDestinations::new(Arc::clone(&ports.destinations)),
            get: GetDestination::new(Arc::clone(&ports.destinations)),
            update: UpdateDestination::new(ports.clone()),
            delete: DeleteDestination::new(ports.clone()),
            keys: FindDestinationKeys::new(Arc::clone(&ports.keys)),
        }
    }
}

/// The use cases of guardrails except key assignment, which is an operation of the contract.
pub struct GuardrailUseCases {
    pub(crate) create: CreateGuardrail,
    pub(crate) list: ListGuardrails,
    pub(crate) get: GetGuardrail,
    pub(crate) update: UpdateGuardrail,
    pub(crate) delete: DeleteGuardrail,
    pub(crate) list_versions: ListGuardrailVersions,
    pub(crate) get_version: GetGuardrailVersion,
    pub(crate) restore_version: RestoreGuardrailVersion,
    pub(crate) explain: ExplainGuardrail,
    pub(crate) list_assigned_keys: ListAssignedKeys,
    pub(crate) remove_keys: RemoveKeysFromGuardrail,
}

impl GuardrailUseCases {
    /// Creates the use cases over their ports.
    pub fn new(ports: &GuardrailPorts, explain: ExplainGuardrail) -> Self {
        Self {
            create: CreateGuardrail::new(ports.clone()),
            list: ListGuardrails::new(ports.clone()),
            get: GetGuardrail::new(ports.clone()),
            update: UpdateGuardrail::new(ports.clone()),
            delete: DeleteGuardrail::new(ports.clone()),
            list_versions: ListGuardrailVersions::new(ports.clone()),
            get_version: GetGuardrailVersion::new(ports.clone()),
            restore_version: RestoreGuardrailVersion::new(ports.clone()),
            explain,
            list_assigned_keys: ListAssignedKeys::new(Arc::clone(&ports.guardrails)),
            remove_keys: RemoveKeysFromGuardrail::new(Arc::clone(&ports.guardrails)),
        }
    }
}

/// The use cases that depend on the configured providers and endpoints.
pub struct RoutedServices {
    /// Operation 2.
    pub submit_decision: Arc<SubmitDecision>,
    /// Lists the models of the catalogue, in pages.
    pub list_models: Arc<ListModels>,
    /// Finds a model that can be called.
    pub find_callable_model: Arc<FindCallableModel>,
    /// Lists the endpoints of a model.
    pub list_model_endpoints: Arc<ListModelEndpoints>,
    /// Lists the providers.
    pub list_providers: Arc<ListProviders>,
    /// The use cases of guardrails, except operation 3.
    pub guardrails: GuardrailUseCases,
    /// Reads the records of Decisions requests.
    pub get_generation: Arc<GetGeneration>,
}

/// The current [`RoutedServices`], replaced as a whole. A request keeps those that were current when it took them, so
/// running requests end with the providers and settings that they began with. Clones share the current ones.
#[derive(Clone)]
pub struct LiveServices(Arc<ArcSwap<RoutedServices>>);

impl LiveServices {
    /// Creates a holder of services.
    pub fn new(services: RoutedServices) -> Self {
        Self(Arc::new(ArcSwap::from_pointee(services)))
    }

    /// Returns the current services.
    pub fn current(&self) -> Arc<RoutedServices> {
        self.0.load_full()
    }

    /// Replaces the services for later requests.
    pub fn replace(&self, services: RoutedServices) {
        self.0.store(Arc::new(services));
    }

    /// Returns a function that reads a value of the current services, for metrics: they outlive the server, after which
    /// it returns the default.
    pub fn reader<T>(&self, read: fn(&RoutedServices) -> T) -> impl Fn() -> T + Clone + Send + Sync + 'static
    where
        T: Default + 'static,
    {
        let services = Arc::downgrade(&self.0);
        move || services.upgrade().map(|services| read(&services.load())).unwrap_or_default()
    }
}
