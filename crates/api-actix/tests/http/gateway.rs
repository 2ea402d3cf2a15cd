//! A complete gateway over in-memory fakes.

use std::net::SocketAddr;
use std::sync::Arc;
use std::time::Duration;

use api_actix::{
    AdmissionSettings, Application, EvidenceServices, HttpSettings, LiveServices, NoRecorder, RoutedServices, Services,
    WireNames, WorkspaceServices,
};
use chrono::{DateTime, TimeDelta, Utc};
use domain::api_key::{
    ApiKey, ApiKeyName, ApiKeyRepository, ApiKeyScope, Authenticate, CountRequest, CreateApiKey, GetOwnKey, KeyGrants,
    ManageApiKeys, NoGrantCache, ReadApiKeys, RotateApiKey,
};
use domain::audit::{Actor, AuditDraft, DeniedChangeRecorder};
use domain::authority::ManagementScope;
use domain::budget::{
    ForgetProcesses, ForgetSettings, Hold, HoldRequest, Ledger, LimitExceeded, MockOrphanedJournals, WorkspaceBudgets,
};
use domain::container::{BlobKey, BlobStore, ContainerPath};
use domain::decision::{
    DecisionProvider, DecisionSettings, ExplainGuardrail, ExplainGuardrailPorts, FindRecord, GenerationNames,
    GetGeneration, ListGenerations, MeterTokens, ProviderAnswer, ResolvePreset, SubmitDecision, SumUsage,
    SumUsagePorts, TestProvider, TestProviders, UsageNames,
};
use domain::error::StoreError;
use domain::evidence::{LabelAnswers, ListEvidence, SubmitFeedback};
use domain::file::{
    DeleteDocument, DocumentQuota, ManageContainerFiles, PromoteContainerFile, PromoteContainerFilePorts,
    ReadDocuments, RunningPromotions, StorageLimits,
};
use domain::guardrail::{
    AssignKeysToGuardrail, Guardrail, GuardrailName, GuardrailPolicies, GuardrailRepository, GuardrailRules,
    KnownNames, ListPermittedModels, ManageGuardrails, NoGuardrails,
};
use domain::ids::{GuardrailId, WorkspaceId};
use domain::json::Json;
use domain::model::{Catalogue, CountModels, FindCallableModel, GetModel, ImportCatalogue, ListModels, Model, Pricing};
use domain::observability::{ManageDestinations, MessageSender, MockMessageSender, RetryDeadLetters};
use domain::operation::{
    ContainerLimits, ListAuditEntries, LoadedConfiguration, PauseProvider, PutContainerFile, ReadStatus, ServerIdentity,
};
use domain::preset::ManagePresets;
use domain::pricing::ReportedUsage;
use domain::rate::{DefaultRates, RateLimiter, RateLimits};
use domain::retention::DeleteWorkspace;
use domain::routing::{
    AttemptFailure, Endpoint, HealthBoard, HealthPolicy, ListEndpoints, ListProviders, PausedProviders, Wire,
};
use domain::system::{Clock, HealthProbe, InlineExecutor, MockSecretGenerator, TimeSource, Workers};
use domain::testing::{
    FixedClock, FixedRateLimiter, FixedSecrets, ManualTimer, MemoryBlobStore, MemoryByteSource, MemoryCatalogue,
    MemoryStore, ScriptedProvider, SequentialIds, decision_ports,
};
use domain::usage::{RejectionRecorder, UnknownUsage, UsageRepository};
use domain::workspace::{
    ChooseFilesWorkspace, CreateWorkspace, ManageWorkspaces, ReadWorkspaces, Workspace, WorkspaceName,
    WorkspaceRepository, WorkspaceSlug,
};
use http_server::{ConnectionSettings, Stopper, bind_tcp};
use tokio_util::task::TaskTracker;

use super::client::{Reply, exchange, request};
use super::rejections::RecordedRejections;

/// A caller, identified by the number of its secret.
#[derive(Debug, Clone, Copy)]
pub enum Caller {
    Inference = 1,
    Management = 2,
    OfSuspendedWorkspace = 3,
    OfOtherWorkspace = 4,
    Disabled = 5,
    Expired = 6,
    Unknown = 7,
}

impl Caller {
    pub fn bearer(self) -> String {
        format!("Bearer {}", FixedSecrets::secret(self as u64).expose())
    }

    pub fn id(self) -> String {
        SequentialIds::key(self as u64).to_string()
    }

    pub fn hash(self) -> String {
        FixedSecrets::secret(self as u64).hash().to_string()
    }
}

pub const BASE: &str = "/api/v1";
pub const CONTAINER: &str = "sess_one";

pub fn workspace(number: u64) -> WorkspaceId {
    WorkspaceId::from_uuid(SequentialIds::uuid(900 + number))
}

pub fn guardrail() -> GuardrailId {
    GuardrailId::from_uuid(SequentialIds::uuid(800))
}

pub fn now() -> DateTime<Utc> {
    FixedClock::default().now()
}

/// The parts of a gateway; tests change them before they start it.
pub struct Setup {
    pub store: MemoryStore,
    pub blobs: MemoryBlobStore,
    pub grants: Arc<dyn KeyGrants>,
    pub guardrails: Arc<dyn GuardrailRepository>,
    pub policies: Arc<dyn GuardrailPolicies>,
    pub ledger: Arc<dyn Ledger>,
    pub usage: Arc<dyn UsageRepository>,
    pub catalogue: Arc<dyn Catalogue>,
    pub provider: Arc<dyn DecisionProvider>,
    pub probes: Vec<Arc<dyn HealthProbe>>,
    pub rate_limiter: Arc<dyn RateLimiter>,
    pub denied_changes: Option<Arc<dyn DeniedChangeRecorder>>,
    pub rejections: Arc<dyn RejectionRecorder>,
    pub clock: FixedClock,
    pub workers: Arc<dyn Workers>,
    /// Sends the test messages of destinations.
    pub sender: Arc<dyn MessageSender>,
    pub health: Arc<HealthBoard>,
    pub paused: PausedProviders,
    pub limits: StorageLimits,
    pub endpoints: Vec<Endpoint>,
    pub settings: HttpSettings,
}

impl Setup {
    pub async fn new() -> Self {
        let (store, paused) = (MemoryStore::new(), PausedProviders::default());
        fill(&store).await;
        Self {
            blobs: MemoryBlobStore::new(FixedClock::default()),
            grants: store.key_grants(),
            guardrails: store.guardrails(),
            policies: Arc::new(NoGuardrails),
            ledger: store.ledger(),
            usage: store.usage(),
            catalogue: Arc::new(MemoryCatalogue::new(models())),
            provider: Arc::new(ScriptedProvider::new([])),
            probes: Vec::new(),
            rate_limiter: Arc::new(FixedRateLimiter::new(u32::MAX)),
            denied_changes: None,
            rejections: Arc::new(RecordedRejections::default()),
            clock: FixedClock::default(),
            workers: Arc::new(InlineExecutor),
            sender: Arc::new(MockMessageSender::new()),
            health: Arc::new(HealthBoard::new(2, HealthPolicy::default()).with_paused(paused.clone())),
            paused,
            endpoints: vec![endpoint("first"), endpoint("second")],
            limits: StorageLimits {
                max_file_bytes: 100,
                quota: DocumentQuota { bytes: 150, documents: 9 },
                min_charged_bytes: 1,
            },
            settings: HttpSettings {
                base_path: BASE.to_owned(),
                wire_names: WireNames::Interface,
                max_json_bytes: 8 << 20,
                admission: AdmissionSettings::default(),
                connection: ConnectionSettings::default(),
                body_timeout: Duration::from_mins(1),
                request_timeout: Duration::from_mins(1),
                max_connections: 1_000,
                trusted_proxies: Vec::new(),
                record_client_address: true,
                workers: Some(1),
                drain_period: Duration::ZERO,
                shutdown_timeout: Duration::from_secs(2),
            },
            store,
        }
    }

    pub async fn answering(script: impl IntoIterator<Item = Result<ProviderAnswer, AttemptFailure>>) -> Self {
        Self { provider: Arc::new(ScriptedProvider::new(script)), ..Self::new().await }
    }

    pub async fn put(&self, path: &str, bytes: usize) -> String {
        let path: ContainerPath = path.parse().unwrap();
        let key = BlobKey::container_file(workspace(1), &CONTAINER.parse().unwrap(), &path);
        self.blobs.put(&key, MemoryByteSource::new([vec![7; bytes]]).boxed()).await.unwrap();
        path.file_id()
    }

    pub fn start(self) -> Gateway {
        let clock = self.clock;
        let ids = SequentialIds::default();
        let blobs: Arc<dyn BlobStore> = Arc::new(self.blobs);
        let promote_ports = PromoteContainerFilePorts {
            documents: self.store.documents(),
            blobs: Arc::clone(&blobs),
            detect_media_type: |_, _| "text/csv".to_owned(),
            time: TimeSource { clock: Arc::new(clock.clone()), timer: Arc::new(ManualTimer::new(clock.clone())) },
            ids: Arc::new(ids.clone()),
            running: Arc::new(RunningPromotions::new(|| None)),
        };
        let mut decision_ports = decision_ports(&self.store, Vec::new(), self.endpoints);
        let provider = Arc::clone(&self.provider);
        decision_ports.provider = self.provider;
        decision_ports.routing.catalogue = Arc::clone(&self.catalogue);
        decision_ports.routing.health = Arc::clone(&self.health);
        decision_ports.guardrails.policies = Arc::clone(&self.policies);
        decision_ports.usage.ledger = self.ledger;
        decision_ports.usage.ids = Arc::new(ids.clone());
        decision_ports.time =
            TimeSource { clock: Arc::new(clock.clone()), timer: Arc::new(ManualTimer::new(clock.clone())) };
        let directory = Arc::clone(&decision_ports.routing.endpoints);
        let settings = DecisionSettings::new(Duration::from_mins(1));
        let submit_decision = Arc::new(SubmitDecision::new(decision_ports, settings));
        let destinations = ManageDestinations {
            destinations: self.store.destinations(),
            workspaces: self.store.workspaces(),
            keys: self.store.api_keys(),
            sender: self.sender,
            clock: Arc::new(clock.clone()),
            ids: Arc::new(ids.clone()),
        };
        let (keys, limits) = (self.store.api_keys(), self.store.limits());
        let read_keys =
            ReadApiKeys::new(keys.clone(), limits.clone(), Arc::clone(&self.usage), Arc::new(clock.clone()));
        let get_own_key = GetOwnKey::new(keys.clone(), limits, read_keys.clone());
        let timer = Arc::new(ManualTimer::new(clock.clone()));
        let usage = Arc::clone(&self.usage);
        let records = |timer: &Arc<ManualTimer>| {
            let (clock, timer) = (Arc::new(clock.clone()), Arc::clone(timer));
            FindRecord::new(Arc::clone(&usage), self.store.limits(), clock, timer as _)
        };
        let labels = LabelAnswers {
            evidence: self.store.evidence(),
            presets: self.store.presets(),
            ledger: self.store.limits(),
        };
        let evidence = EvidenceServices {
            list: Arc::new(ListEvidence { evidence: self.store.evidence(), ledger: self.store.limits() }),
            feedback: SubmitFeedback { records: records(&timer), labels: labels.clone() },
            labels,
        };
        let records = records(&timer);
        let (guardrails, explain_guardrail) = guardrail_use_cases(
            &self.store,
            Arc::clone(&self.guardrails),
            KnownNames::new(Arc::clone(&self.catalogue), Arc::clone(&directory)),
            &submit_decision,
        );
        let names = GenerationNames::new(Arc::clone(&self.catalogue), Arc::clone(&directory));
        let filters = UsageNames { keys: self.store.api_keys(), workspaces: self.store.workspaces() };
        let list_models = Arc::new(ListModels::new(Arc::clone(&self.catalogue), directory.clone()));
        let list_providers =
            Arc::new(ListProviders::new(Arc::clone(&directory), Arc::clone(&self.health), Arc::new(clock.clone())));
        let routed = RoutedServices {
            list_permitted_models: Arc::new(ListPermittedModels::new(
                Arc::clone(&list_models),
                Arc::clone(&directory),
                self.policies,
            )),
            submit_decision,
            count_models: Arc::new(CountModels::new(Arc::clone(&self.catalogue), directory.clone())),
            list_models,
            configuration: LoadedConfiguration { loaded_at: now(), variables: vec!["A_KEY".to_owned()] },
            import_catalogue: ImportCatalogue::new(self.store.models())
                .serving(["acme/judge".parse().unwrap()], ["sandbox/decider".parse().unwrap()]),
            find_callable_model: Arc::new(FindCallableModel::new(Arc::clone(&self.catalogue), directory.clone())),
            list_endpoints: Arc::new(ListEndpoints::new(
                Arc::clone(&self.catalogue),
                Arc::clone(&directory),
                Arc::clone(&self.health),
                Arc::new(clock.clone()),
            )),
            delete_workspace: DeleteWorkspace {
                workspaces: self.store.workspaces(),
                keys: ManageApiKeys::new(keys.clone(), Arc::new(clock.clone())),
                documents: DeleteDocument::new(self.store.documents(), Arc::clone(&blobs)),
                destinations: destinations.clone(),
                guardrails: guardrails.clone(),
            },
            pause_provider: PauseProvider::new(
                Arc::clone(&list_providers),
                self.store.provider_pauses(),
                self.paused.clone(),
            ),
            list_providers,
            test_providers: TestProviders::new(
                Arc::clone(&directory),
                [("unused".parse().unwrap(), Wire::SystemOne)].into(),
                TestProvider::new(provider, Arc::new(clock.clone())),
            ),
            guardrails,
            explain_guardrail,
            get_generation: Arc::new(GetGeneration::new(records, names.clone())),
            list_generations: Arc::new(ListGenerations::new(usage, self.store.limits(), filters.clone(), names)),
        };
        let services = Services {
            authenticate: Arc::new(Authenticate::new(self.grants, Arc::new(clock.clone()))),
            promote: Arc::new(PromoteContainerFile::new(promote_ports, self.limits)),
            choose_files_workspace: ChooseFilesWorkspace::new(self.store.workspaces()),
            container_files: ManageContainerFiles::new(Arc::clone(&blobs)),
            put_container_file: PutContainerFile::new(
                self.store.workspaces(),
                Arc::clone(&blobs),
                ContainerLimits::with_file_bytes(self.limits.max_file_bytes),
            ),
            read_documents: ReadDocuments::new(self.store.documents(), Arc::clone(&blobs)),
            delete_document: DeleteDocument::new(self.store.documents(), Arc::clone(&blobs)),
            routed: LiveServices::new(routed),
            destinations,
            evidence,
            presets: ManagePresets {
                presets: self.store.presets(),
                workspaces: self.store.workspaces(),
                catalogue: Arc::clone(&self.catalogue),
                clock: Arc::new(clock.clone()),
                ids: Arc::new(ids.clone()),
            },
            resolve_preset: ResolvePreset::new(self.store.presets()),
            assign_keys: Arc::new(AssignKeysToGuardrail::new(self.guardrails)),
            get_own_key,
            sum_usage: Arc::new(SumUsage::new(SumUsagePorts {
                usage: self.store.usage(),
                rejections: self.store.rejections(),
                names: filters,
                ledger: self.store.limits(),
                clock: Arc::new(clock.clone()),
            })),
            read_keys,
            create_key: CreateApiKey::new(
                keys.clone(),
                Arc::new(clock.clone()),
                Arc::new(ids.clone()),
                Arc::new(new_secrets()),
            ),
            manage_keys: ManageApiKeys::new(keys, Arc::new(clock.clone())),
            rotate_key: Arc::new(RotateApiKey::new(
                self.store.api_keys(),
                Arc::new(NoGrantCache),
                Arc::new(new_secrets()),
                Arc::new(clock.clone()),
            )),
            get_model: Arc::new(GetModel::new(Arc::clone(&self.catalogue))),
            retry_dead_letters: RetryDeadLetters::new(
                self.store.outbox(),
                self.store.destinations(),
                Arc::new(clock.clone()),
            ),
            server: ServerIdentity {
                id: "server-1".to_owned(),
                version: "1.2.3",
                started_at: now(),
                began: Duration::ZERO,
                config_file: None,
                database: "memory".to_owned(),
            },
            read_status: ReadStatus::new(
                self.probes.clone(),
                None,
                ForgetProcesses::new(
                    self.store.budget(),
                    Arc::new(MockOrphanedJournals::new()),
                    Arc::new(clock.clone()),
                    ForgetSettings { lost_after: Duration::MAX, unknown: UnknownUsage::Free },
                ),
                Arc::new(ManualTimer::new(clock.clone())),
            ),
            audit_entries: ListAuditEntries::new(self.store.audit_log()),
            workspaces: WorkspaceServices {
                read: ReadWorkspaces::new(self.store.workspaces(), self.store.limits()),
                create: CreateWorkspace::new(self.store.workspaces(), Arc::new(clock.clone()), Arc::new(ids.clone())),
                manage: ManageWorkspaces::new(self.store.workspaces(), self.store.limits(), Arc::new(clock.clone())),
            },
            repetitions: self.store.repetitions(),
            probes: self.probes,
            count_request: Arc::new(CountRequest::new(Arc::clone(&self.rate_limiter), DefaultRates::default())),
            meter_tokens: Arc::new(MeterTokens::new(self.rate_limiter, DefaultRates::default())),
            denied_changes: self.denied_changes,
            rejections: Some(self.rejections),
            recorder: Arc::new(NoRecorder),
            access_log: |_, _| {},
            ids: Arc::new(ids),
            clock: Arc::new(clock),
            workers: self.workers,
        };
        let tasks = TaskTracker::new();
        let socket = bind_tcp(SocketAddr::from(([127, 0, 0, 1], 0)), &self.settings.connection).unwrap();
        let application = Application::listen(socket, services, self.settings, tasks.clone()).unwrap();
        let address = application.local_addr();
        let server = TaskTracker::new();
        let (running, stopper) = application.run();
        drop(server.spawn(running));
        Gateway { address, stopper: Some(stopper), tasks, server, store: self.store }
    }
}

/// Returns a generator of secrets that no caller has.
fn new_secrets() -> MockSecretGenerator {
    let (mut secrets, mut number) = (MockSecretGenerator::new(), 100);
    secrets.expect_api_key_secret().returning(move || {
        number += 1;
        Ok(FixedSecrets::secret(number))
    });
    secrets
}

fn guardrail_use_cases(
    store: &MemoryStore,
    guardrails: Arc<dyn GuardrailRepository>,
    names: KnownNames,
    decisions: &SubmitDecision,
) -> (ManageGuardrails, ExplainGuardrail) {
    let clock = Arc::new(FixedClock::default());
    let explain = ExplainGuardrailPorts {
        guardrails: Arc::clone(&guardrails),
        workspaces: store.workspaces(),
        api_keys: store.api_keys(),
        presets: store.presets(),
        limits: store.limits(),
        clock: Arc::clone(&clock) as Arc<dyn Clock>,
    };
    let explain = ExplainGuardrail::new(explain, decisions);
    let workspaces = store.workspaces();
    let ids = Arc::new(SequentialIds::default());
    (ManageGuardrails { guardrails, workspaces, names, clock, ids }, explain)
}

/// A running gateway.
pub struct Gateway {
    pub address: SocketAddr,
    /// Ends the server on drop.
    pub stopper: Option<Stopper>,
    pub tasks: TaskTracker,
    pub server: TaskTracker,
    pub store: MemoryStore,
}

impl Gateway {
    pub async fn raw(&self, request: &[u8]) -> Reply {
        exchange(self.address, request).await
    }

    /// Sends a request with exactly these headers in addition to `Host`, `Connection` and `Content-Length`.
    pub async fn send(&self, method: &str, path: &str, headers: &[(&str, &str)], body: &[u8]) -> Reply {
        self.raw(&request(method, path, headers, body)).await
    }

    pub async fn get(&self, caller: Caller, path: &str, headers: &[(&str, &str)]) -> Reply {
        let bearer = caller.bearer();
        let headers = [&[("Authorization", bearer.as_str())], headers].concat();
        self.send("GET", &format!("{BASE}{path}"), &headers, b"").await
    }

    pub async fn post(&self, caller: Caller, path: &str, headers: &[(&str, &str)], body: &[u8]) -> Reply {
        let bearer = caller.bearer();
        let headers = [&[("Authorization", bearer.as_str())], headers].concat();
        self.send("POST", &format!("{BASE}{path}"), &headers, body).await
    }

    /// Sends a JSON body with any method.
    pub async fn json(&self, caller: Caller, method: &str, path: &str, body: &str) -> Reply {
        let bearer = caller.bearer();
        let headers = [("Authorization", bearer.as_str()), ("Content-Type", "application/json")];
        self.send(method, &format!("{BASE}{path}"), &headers, body.as_bytes()).await
    }

    pub async fn post_json(&self, caller: Caller, path: &str, body: &str) -> Reply {
        self.post(caller, path, &[("Content-Type", "application/json")], body.as_bytes()).await
    }

    pub async fn decide(&self, body: &str) -> Reply {
        self.post_json(Caller::Inference, "/api/alpha/decisions", body).await
    }
}

/// Returns one entry of a provider's script.
#[expect(clippy::unnecessary_wraps, reason = "a script holds answers and failures")]
pub fn answer(answers: &str) -> Result<ProviderAnswer, AttemptFailure> {
    let usage = Some(ReportedUsage { input_tokens: 429, output_tokens: 0 });
    Ok(ProviderAnswer { answers: Json::parse(answers).unwrap(), usage, sent_bytes: 10 })
}

fn models() -> Vec<Model> {
    let priced = |id: &str, price: &str| {
        let price = Pricing::per_token(price.parse().unwrap(), "0".parse().unwrap());
        Model::minimal(id.parse().unwrap(), price)
    };
    let mut writer = priced("acme/writer", "0.1");
    writer.architecture.output_modalities = vec!["text".to_owned()];
    vec![priced("acme/judge", "0.000000042"), priced("acme/idle", "0"), priced("acme/varies", "-1"), writer]
}

/// Returns an endpoint of `acme/judge`.
pub fn endpoint(provider: &str) -> Endpoint {
    Endpoint {
        provider_name: format!("The {provider}"),
        prompt_overhead_tokens: 0,
        ..Endpoint::new("acme/judge".parse().unwrap(), provider.parse().unwrap(), Wire::SystemOne, "judge-1")
    }
}

pub fn audit_draft() -> AuditDraft {
    AuditDraft::done(&Actor::system(), "test.fill", "everything", Json::object([]))
}

async fn fill(store: &MemoryStore) {
    for number in 1..=3 {
        let workspace = Workspace {
            id: workspace(number),
            name: WorkspaceName::try_new("w").unwrap(),
            slug: WorkspaceSlug::of_name(&format!("w {number}")),
            description: None,
            owner_id: Some(format!("owner-{number}")),
            is_default: false,
            suspended: number == 3,
            credit: None,
            budgets: WorkspaceBudgets::default(),
            rates: RateLimits::default(),
            default_guardrail_id: None,
            storage_used_bytes: 0,
            created_at: now(),
            updated_at: None,
        };
        store.workspaces().insert(&workspace, false, &audit_draft()).await.unwrap();
    }
    let keys = [
        (Caller::Inference, ApiKeyScope::Inference(workspace(1))),
        (Caller::Management, ApiKeyScope::Management(ManagementScope::UNRESTRICTED)),
        (Caller::OfSuspendedWorkspace, ApiKeyScope::Inference(workspace(3))),
        (Caller::OfOtherWorkspace, ApiKeyScope::Inference(workspace(2))),
        (Caller::Disabled, ApiKeyScope::Inference(workspace(1))),
        (Caller::Expired, ApiKeyScope::Inference(workspace(1))),
    ];
    for (caller, scope) in keys {
        let secret = FixedSecrets::secret(caller as u64);
        let key = ApiKey {
            id: SequentialIds::key(caller as u64),
            hash: secret.hash(),
            label: secret.label(),
            name: ApiKeyName::try_new("k").unwrap(),
            scope,
            disabled: matches!(caller, Caller::Disabled),
            expires_at: matches!(caller, Caller::Expired).then(|| now() - TimeDelta::days(1)),
            limit: None,
            rates: RateLimits::default(),
            guardrail_id: None,
            users: domain::api_key::KeyUsers::default(),
            previous_secret: None,
            created_at: now(),
            updated_at: None,
        };
        assert!(store.api_keys().insert(&key, &audit_draft()).await.unwrap().is_inserted());
    }
    let name = GuardrailName::try_new("g").unwrap();
    let guardrail = Guardrail {
        id: guardrail(),
        workspace_id: workspace(1),
        name,
        budget: None,
        rules: GuardrailRules::default(),
        version: 1,
        created_at: now(),
        updated_at: None,
    };
    assert!(store.guardrails().insert(&guardrail, false, &audit_draft()).await.unwrap());
}

/// Returns the hold of a ledger that grants every request.
#[expect(clippy::unnecessary_wraps, reason = "as the port returns it")]
pub fn granted(wanted: HoldRequest) -> Result<Result<Hold, LimitExceeded>, StoreError> {
    Ok(Ok(Hold { id: wanted.id, at: DateTime::UNIX_EPOCH, payer: wanted.payer, amount: wanted.amount }))
}
