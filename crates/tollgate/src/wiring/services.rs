//! The use cases behind HTTP with their adapters.

use std::sync::Arc;
use std::thread::available_parallelism;
use std::time::Duration;

use adapters_blob::ContentMediaTypes;
use adapters_cache::{CachedKeyGrants, CachedPolicies, ChangeWatcher, LiveCatalogue, StalenessBounds};
use adapters_storage::SeaOrmLedgerReports;
use adapters_system::{FairWorkers, LocalRateLimiter, TokioTimer, WorkerSettings};
use anyhow::Context;
use api_actix::{DestinationUseCases, GuardrailUseCases, Services};
use domain::api_key::{Authenticate, CountRequest, GrantCache, RotateApiKey};
use domain::budget::{Ledger, LimitStatusReader, ReadOnlyLedger};
use domain::container::BlobStore;
use domain::decision::{ExplainGuardrail, ExplainGuardrailPorts, GetGeneration, MeterTokens};
use domain::decision::{FilterPorts, RoutingPorts, SubmitDecision, SubmitDecisionPorts, UsagePorts};
use domain::file::{DocumentQuota, PromoteContainerFile, PromoteContainerFilePorts, StorageLimits};
use domain::guardrail::{AssignKeysToGuardrail, GuardrailPolicies, KnownNames};
use domain::model::{Catalogue, CountModels, GetModel, ListModels, Model};
use domain::rate::{DefaultRates, RateLimiter};
use domain::routing::{EndpointDirectory, ListModelEndpoints, ListProviders};
use domain::system::{HealthProbe, TimeSource, Workers};
use domain::usage::{FindRecord, PendingRecords};

use super::probes::{DatabaseProbe, JournalProbe};
use super::{
    Background, ProcessMetrics, Stores, Upstreams, broadcast, configured_endpoints, denied_changes, ledger,
    minimal_rows, price_warnings, retention, router,
};
use crate::config::{Config, Environment};

/// The maximum number of cached keys.
const CACHED_KEYS: u64 = 100_000;
/// The maximum number of cached policies, one per pair of workspace guardrail and key guardrail.
const CACHED_POLICIES: u64 = 32_768;
/// The age of the change feed's last read from which it is read again before a cached key is used; a second is
/// documented.
const RECHECK_AFTER: Duration = Duration::from_millis(900);

/// Builds every use case and starts the background tasks.
///
/// # Errors
/// A provider's settings are invalid, or the catalogue cannot be read.
pub async fn services(
    config: &Config,
    environment: &Environment,
    stores: &Stores,
    background: &Background,
    measures: &ProcessMetrics,
) -> anyhow::Result<Services> {
    let Upstreams { provider, endpoints } = Upstreams::build(config, environment)?;
    let clock = || Arc::clone(&stores.clock);
    let bounds = StalenessBounds { recheck_after: RECHECK_AFTER, max_stale: config.max_stale_keys };
    let watcher = Arc::new(ChangeWatcher::new(Arc::clone(&stores.feed), clock(), bounds));
    // The feed's position must be known before anything that follows it is loaded.
    watcher.refresh().await.context("change feed not readable")?;
    let live = LiveCatalogue::load(
        Arc::clone(&stores.models),
        watcher.catalogue_version(),
        minimal_rows(&config.endpoints),
        !config.sandbox_enabled,
    );
    let live = Arc::new(live.await.context("the catalogue cannot be read")?);
    warn_about_prices(config, &live);
    warn_about_missing_prices(config, &live);
    warn_about_idle_options(config, &live, &endpoints);
    background.follow_changes(Arc::clone(&watcher), Arc::clone(&live));
    let grants = Arc::new(CachedKeyGrants::new(Arc::clone(&stores.grants), Arc::clone(&watcher), CACHED_KEYS));
    let policies = CachedPolicies::new(
        Arc::clone(&stores.guardrails),
        Arc::clone(&stores.grants),
        Arc::clone(&watcher),
        CACHED_POLICIES,
    );
    let policies = Arc::new(policies);
    measures.watch_caches(Arc::clone(&grants), Arc::clone(&policies));
    let policies: Arc<dyn GuardrailPolicies> = policies;
    let health = router::health(config, &endpoints);
    background.watch_endpoints(&endpoints, &health, &stores.clock);
    let live: Arc<dyn Catalogue> = live;
    let catalogue = || Arc::clone(&live);
    measures.watch_outbox(stores, background);
    let reports = Arc::new(SeaOrmLedgerReports::new(stores.database.clone()));
    let journaled = if config.storage.read_only {
        None
    } else {
        let started = ledger::start(config, stores, reports.clone(), measures.metrics(), background);
        Some(started.await?)
    };
    let (ledger, limits): (Arc<dyn Ledger>, Arc<dyn LimitStatusReader>) = match &journaled {
        Some(journaled) => (journaled.clone(), journaled.clone()),
        None => (Arc::new(ReadOnlyLedger), reports.clone()),
    };
    let random = router::randomness(config)?;
    let refusals = (!config.storage.read_only).then(|| denied_changes::start(stores, background));
    if !config.storage.read_only {
        stores.start_checkpoint_task().await?;
        retention::start(config.retention, stores, Arc::clone(&random), background, measures);
    }
    let mut probes: Vec<Arc<dyn HealthProbe>> = vec![
        Arc::new(DatabaseProbe::new(stores.database.clone(), Arc::clone(&watcher))),
        Arc::clone(&stores.blobs) as Arc<dyn HealthProbe>,
    ];
    let broadcaster = broadcast::start(config, stores, watcher, Arc::clone(&random), background).await?;
    let workers = workers(config, measures)?;
    let directory = || Arc::clone(&endpoints);
    let decide = SubmitDecisionPorts {
        provider,
        routing: RoutingPorts { catalogue: catalogue(), endpoints: directory(), health: Arc::clone(&health), random },
        guardrails: FilterPorts { policies, workers: Arc::clone(&workers) },
        usage: UsagePorts {
            ledger,
            volumes: reports,
            ids: Arc::clone(&stores.ids),
            metrics: measures.metrics(),
            broadcaster,
        },
        time: TimeSource { clock: clock(), timer: Arc::new(TokioTimer) },
    };
    measures.watch_throttling(&endpoints, &health, &clock());
    measures.watch_database(stores.database.clone());
    measures.watch_wal(stores.database.clone());
    let submit_decision = Arc::new(SubmitDecision::new(decide, router::settings(config)));
    // A weak reference: the metrics outlive the server and would keep the ledger open.
    let weak = Arc::downgrade(&submit_decision);
    let records = move || weak.upgrade().map(|decisions| decisions.record_quota_status()).unwrap_or_default();
    measures.watch_records(config.limits.workspace_record_bytes_per_day, records);
    let pending = journaled.clone().map(|ledger| ledger as Arc<dyn PendingRecords>);
    let records = FindRecord::new(Arc::clone(&stores.usage), pending, clock(), Arc::new(TokioTimer));
    if let Some(journaled) = &journaled {
        measures.watch_journal(journaled);
        probes.push(Arc::new(JournalProbe(Arc::clone(journaled))));
    }
    let limiter: Arc<dyn RateLimiter> = Arc::new(LocalRateLimiter::new(clock()));
    let default_rates = DefaultRates { key: config.limits.key_rates, workspace: config.limits.workspace_rates };
    let cache: Arc<dyn GrantCache> = Arc::clone(&grants) as Arc<dyn GrantCache>;
    Ok(Services {
        rotate_key: Arc::new(RotateApiKey::new(Arc::clone(&stores.keys), cache, Arc::clone(&stores.secrets))),
        authenticate: Arc::new(Authenticate::new(grants, clock())),
        promote: Arc::new(promote(config, stores)),
        guardrails: guardrails(stores, KnownNames::new(catalogue(), directory()), limits, &submit_decision),
        destinations: DestinationUseCases::new(&broadcast::destination_ports(config, stores)?),
        submit_decision,
        assign_keys: Arc::new(AssignKeysToGuardrail::new(Arc::clone(&stores.guardrails))),
        get_model: Arc::new(GetModel::new(catalogue())),
        count_models: Arc::new(CountModels::new(catalogue())),
        list_models: Arc::new(ListModels::new(catalogue())),
        list_model_endpoints: Arc::new(ListModelEndpoints::new(catalogue(), directory(), Arc::clone(&health), clock())),
        list_providers: Arc::new(ListProviders::new(directory(), health, clock())),
        get_generation: Arc::new(GetGeneration::new(records, catalogue(), directory())),
        probes,
        count_request: Arc::new(CountRequest::new(Arc::clone(&limiter), default_rates)),
        meter_tokens: Arc::new(MeterTokens::new(limiter, default_rates)),
        recorder: measures.recorder(),
        denied_changes: refusals,
        ids: Arc::clone(&stores.ids),
        clock: clock(),
        workers,
    })
}

/// Starts the threads that parse and filter large requests.
fn workers(config: &Config, measures: &ProcessMetrics) -> anyhow::Result<Arc<dyn Workers>> {
    let threads = config.limits.scan_threads.unwrap_or_else(|| available_parallelism().map_or(2, usize::from));
    let settings = WorkerSettings { threads, queue_per_owner: config.limits.scan_queue_per_workspace };
    let workers = FairWorkers::start(settings).context("failed to start the threads of limits.scan_threads")?;
    let watched = workers.clone();
    measures.watch_workers(move || watched.status());
    Ok(Arc::new(workers))
}

fn guardrails(
    stores: &Stores,
    names: KnownNames,
    limits: Arc<dyn LimitStatusReader>,
    decisions: &SubmitDecision,
) -> GuardrailUseCases {
    let explain = ExplainGuardrailPorts {
        guardrails: Arc::clone(&stores.guardrails),
        workspaces: Arc::clone(&stores.workspaces),
        api_keys: Arc::clone(&stores.keys),
        limits,
        clock: Arc::clone(&stores.clock),
    };
    let explain = ExplainGuardrail::new(explain, decisions);
    GuardrailUseCases::new(&stores.guardrail_ports_over(names), &stores.assignments, explain)
}

fn promote(config: &Config, stores: &Stores) -> PromoteContainerFile {
    let ports = PromoteContainerFilePorts {
        documents: Arc::clone(&stores.documents),
        blobs: Arc::clone(&stores.blobs) as Arc<dyn BlobStore>,
        media_types: Arc::new(ContentMediaTypes),
        clock: Arc::clone(&stores.clock),
        timer: Arc::new(TokioTimer),
        ids: Arc::clone(&stores.ids),
    };
    let limits = StorageLimits {
        max_file_bytes: config.limits.max_file_bytes,
        quota: DocumentQuota {
            bytes: config.limits.workspace_quota_bytes,
            documents: config.limits.workspace_max_documents,
        },
        min_charged_bytes: config.limits.min_charged_file_bytes,
    };
    PromoteContainerFile::new(ports, limits)
}

/// Warns about endpoints without prices, which are served for free.
fn warn_about_missing_prices(config: &Config, live: &LiveCatalogue) {
    let snapshot = live.snapshot();
    let minimal = minimal_rows(&config.endpoints);
    for endpoint in config.endpoints.iter().filter(|endpoint| endpoint.prices.is_none()) {
        let stands_in = |row: &Model| minimal.contains(row) && !row.pricing.is_known;
        if snapshot.rows().iter().any(|row| row.id == endpoint.model && stands_in(row)) {
            tracing::warn!(
                endpoint.model = %endpoint.model,
                endpoint.provider = %endpoint.provider,
                "no price in the endpoint or the catalogue: calls are free"
            );
        }
    }
}

/// Warns about prices in the wrong unit, which bill a million times too much or too little.
fn warn_about_prices(config: &Config, live: &LiveCatalogue) {
    let snapshot = live.snapshot();
    for endpoint in configured_endpoints(config) {
        for reason in price_warnings(&endpoint, snapshot.rows().iter().map(AsRef::as_ref)) {
            tracing::warn!(
                endpoint.model = %endpoint.model,
                endpoint.provider = %endpoint.provider,
                reason,
                "endpoint price differs from the catalogue"
            );
        }
    }
}

/// Warns about options of misspelt models, which have no effect.
fn warn_about_idle_options(config: &Config, live: &LiveCatalogue, endpoints: &EndpointDirectory) {
    for model in &config.models {
        if let Some(reason) = router::idle_options(model, &live.snapshot(), endpoints) {
            tracing::warn!(model.id = %model.model, reason, "[[models]] option without effect");
        }
    }
}
