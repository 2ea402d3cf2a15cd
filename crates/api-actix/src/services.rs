//! The use cases and ports that the endpoints call.

use std::sync::Arc;

use arc_swap::ArcSwap;
use domain::api_key::{Authenticate, CountRequest, CreateApiKey, GetOwnKey, ManageApiKeys, ReadApiKeys, RotateApiKey};
use domain::audit::DeniedChangeRecorder;
use domain::decision::{
    ExplainGuardrail, GetGeneration, ListGenerations, MeterTokens, ResolvePreset, SubmitDecision, SumUsage,
    TestProviders,
};
use domain::evidence::{LabelAnswers, ListEvidence, SubmitFeedback};
use domain::file::{DeleteDocument, ManageContainerFiles, PromoteContainerFile, ReadDocuments};
use domain::guardrail::{AssignKeysToGuardrail, ListPermittedModels, ManageGuardrails};
use domain::model::{CountModels, FindCallableModel, GetModel, ImportCatalogue, ListModels};
use domain::observability::{ManageDestinations, RetryDeadLetters};
use domain::operation::{
    ListAuditEntries, LoadedConfiguration, PauseProvider, PutContainerFile, ReadStatus, ServerIdentity,
};
use domain::preset::ManagePresets;
use domain::repetition::IdempotentRequests;
use domain::retention::DeleteWorkspace;
use domain::routing::{ListEndpoints, ListProviders};
use domain::system::{Clock, HealthProbe, IdGenerator, Workers};
use domain::usage::RejectionRecorder;
use domain::workspace::{ChooseFilesWorkspace, CreateWorkspace, ManageWorkspaces, ReadWorkspaces};

use crate::http::access_log::AccessLog;
use crate::http::recorder::Recorder;

/// The use cases and the ports that HTTP itself needs.
pub struct Services {
    /// Authenticates callers.
    pub authenticate: Arc<Authenticate>,
    /// Operation 1.
    pub promote: Arc<PromoteContainerFile>,
    /// Chooses the workspace of calls about documents and container files.
    pub choose_files_workspace: ChooseFilesWorkspace,
    /// Reads and deletes container files.
    pub container_files: ManageContainerFiles,
    /// Writes container files.
    pub put_container_file: PutContainerFile,
    /// Reads documents.
    pub read_documents: ReadDocuments,
    /// Deletes documents.
    pub delete_document: DeleteDocument,
    /// Operation 2, and the other use cases that follow the configured providers and endpoints.
    pub routed: LiveServices,
    /// Operation 3.
    pub assign_keys: Arc<AssignKeysToGuardrail>,
    /// Reads the caller's own key.
    pub get_own_key: GetOwnKey,
    /// Sums usage, and counts rejected requests.
    pub sum_usage: Arc<SumUsage>,
    /// Reads keys with their usage.
    pub read_keys: ReadApiKeys,
    /// Creates keys.
    pub create_key: CreateApiKey,
    /// Updates and deletes keys.
    pub manage_keys: ManageApiKeys,
    /// The use cases of workspaces, except their deletion.
    pub workspaces: WorkspaceServices,
    /// Replaces the secrets of API keys.
    pub rotate_key: Arc<RotateApiKey>,
    /// Operation 4.
    pub get_model: Arc<GetModel>,
    /// The use cases of presets.
    pub presets: ManagePresets,
    /// Replaces the presets of requests by their models and questions.
    pub resolve_preset: ResolvePreset,
    /// The use cases of evidence.
    pub evidence: EvidenceServices,
    /// The use cases of trace destinations.
    pub destinations: ManageDestinations,
    /// Makes dead letters of destinations due again.
    pub retry_dead_letters: RetryDeadLetters,
    /// This server.
    pub server: ServerIdentity,
    /// Reads the status.
    pub read_status: ReadStatus,
    /// Lists the audit log.
    pub audit_entries: ListAuditEntries,
    /// Finds the responses to repeated requests.
    pub repetitions: Arc<dyn IdempotentRequests>,
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

/// The use cases of evidence.
pub struct EvidenceServices {
    /// Lists evidence.
    pub list: Arc<ListEvidence>,
    /// Labels answers.
    pub labels: LabelAnswers,
    /// Takes feedback.
    pub feedback: SubmitFeedback,
}

/// The use cases of workspaces.
pub struct WorkspaceServices {
    /// Reads workspaces, budgets and credit.
    pub read: ReadWorkspaces,
    /// Creates workspaces.
    pub create: CreateWorkspace,
    /// Changes workspaces, budgets and credit.
    pub manage: ManageWorkspaces,
}

/// The use cases that depend on the configured providers and endpoints.
pub struct RoutedServices {
    /// Operation 2.
    pub submit_decision: Arc<SubmitDecision>,
    /// Operation 5.
    pub count_models: Arc<CountModels>,
    /// Lists the models of the catalogue, in pages.
    pub list_models: Arc<ListModels>,
    /// The configuration of all these.
    pub configuration: LoadedConfiguration,
    /// Imports catalogue rows.
    pub import_catalogue: ImportCatalogue,
    /// Lists the models that the guardrails of a key permit.
    pub list_permitted_models: Arc<ListPermittedModels>,
    /// Finds a model that can be called.
    pub find_callable_model: Arc<FindCallableModel>,
    /// Lists the endpoints of a model, and those with zero data retention.
    pub list_endpoints: Arc<ListEndpoints>,
    /// Pauses and resumes providers.
    pub pause_provider: PauseProvider,
    /// Tests providers.
    pub test_providers: TestProviders,
    /// Lists the providers.
    pub list_providers: Arc<ListProviders>,
    /// The use cases of guardrails, except operation 3.
    pub guardrails: ManageGuardrails,
    /// Deletes workspaces, with their guardrails.
    pub delete_workspace: DeleteWorkspace,
    /// Explains what a guardrail does with a request.
    pub explain_guardrail: ExplainGuardrail,
    /// Reads the records of Decisions requests.
    pub get_generation: Arc<GetGeneration>,
    /// Lists the records of Decisions requests.
    pub list_generations: Arc<ListGenerations>,
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
