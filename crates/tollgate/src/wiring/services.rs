//! The use cases behind HTTP with their adapters.

use std::sync::Arc;
use std::thread::available_parallelism;
use std::time::Duration;

use adapters_blob::ContentMediaTypes;
use adapters_cache::{CachedKeyGrants, CachedPolicies, ChangeWatcher, LiveCatalogue, StalenessBounds};
use adapters_storage::SeaOrmLedgerReports;
use adapters_system::{FairWorkers, TokioTimer, WorkerSettings};
use anyhow::Context;
use api_actix::{DestinationUseCases, LiveServices, Services};
use domain::api_key::{Authenticate, CountRequest, GrantCache, RotateApiKey};
use domain::budget::{Ledger, LimitStatusReader, ReadOnlyLedger};
use domain::container::BlobStore;
use domain::decision::{FilterPorts, MeterTokens, UsagePorts};
use domain::file::{DocumentQuota, PromoteContainerFile, PromoteContainerFilePorts, RunningPromotions, StorageLimits};
use domain::guardrail::AssignKeysToGuardrail;
use domain::model::{Catalogue, CountModels, GetModel};
use domain::rate::DefaultRates;
use domain::system::{HealthProbe, TimeSource, Workers};
use domain::usage::PendingRecords;

use super::configuration_warnings::warn_about;
use super::probes::{DatabaseProbe, JournalProbe};
use super::rate_limits::RateLimitProbe;
use super::{
    Background, ProcessMetrics, RateLimits, Reloader, RoutedParts, StoreDisks, Stores, Upstreams, broadcast, ledger,
    minimal_rows, retention, router, sandbox_models,
};
use crate::config::{Config, Environment};
use crate::control::StatusParts;

/// Queued large requests per workspace.
const SCAN_QUEUE_PER_WORKSPACE: usize = 256;
/// The minimum size that a document counts as, in bytes.
const MIN_CHARGED_BYTES: u64 = 1_024;

/// The maximum number of cached keys.
const CACHED_KEYS: u64 = 100_000;
/// The maximum number of cached policies, one per pair of workspace guardrail and key guardrail.
const CACHED_POLICIES: u64 = 32_768;
/// The age of the change feed's last read from which it is read again before a cached key is used; a second is
/// documented.
const RECHECK_AFTER: Duration = Duration::from_millis(900);

/// Builds every use case and starts the background tasks. The reloader replaces those that depend on providers and
/// endpoints. Also returns the parts that the server's status shows.
///
/// # Errors
/// A provider's settings are invalid, or the catalogue cannot be read.
pub async fn services(
    config: &Config,
    environment: &Environment,
    stores: &Stores,
    background: &Background,
    measures: &ProcessMetrics,
) -> anyhow::Result<(Services, Reloader, StatusParts)> {
    let upstreams = Upstreams::build(config, environment)?;
    let clock = || Arc::clone(&stores.clock);
    let bounds = StalenessBounds { recheck_after: RECHECK_AFTER, max_stale: config.max_stale_keys };
    let watcher = Arc::new(ChangeWatcher::new(Arc::clone(&stores.feed), clock(), bounds));
    // The feed's position must be known before anything that follows it is loaded.
    watcher.refresh().await.context("change feed not readable")?;
    let live = LiveCatalogue::load(
        Arc::clone(&stores.models),
        watcher.catalogue_version(),
        minimal_rows(&config.endpoints),
        sandbox_models(config),
    );
    let live = Arc::new(live.await.context("the catalogue cannot be read")?);
    warn_about((config, environment), &live, &upstreams.endpoints);
    background.follow_changes(stores.database.clone(), Arc::clone(&watcher), Arc::clone(&live));
    let grants = Arc::new(CachedKeyGrants::new(Arc::clone(&stores.grants), Arc::clone(&watcher), CACHED_KEYS));
    let policies = CachedPolicies::new(
        Arc::clone(&stores.guardrails),
        Arc::clone(&stores.grants),
        Arc::clone(&watcher),
        CACHED_POLICIES,
    );
    let policies = Arc::new(policies);
    measures.watch_caches(Arc::clone(&grants), Arc::clone(&policies));
    measures.watch_outbox(stores, background);
    // Before the journal: a failed start leaves none.
    let rates = RateLimits::start(config, environment, stores, background).await?;
    measures.watch_rate_limits(&rates);
    let reports = Arc::new(SeaOrmLedgerReports::new(stores.database.clone()));
    let journaled = if config.storage.read_only {
        None
    } else {
        // Before the first record of this process.
        background.maintain_usage_months(stores.database.clone()).await;
        let started = ledger::start(config, stores, reports.clone(), measures.metrics(), background);
        Some(started.await?)
    };
    let process = journaled.clone();
    let running = Arc::new(RunningPromotions::new(move || process.as_ref().map(|ledger| ledger.process())));
    if !config.storage.read_only {
        background.release_promotions(config, stores, Arc::clone(&running)).await;
    }
    // A read-only process is not registered, so it is no replica.
    if let Some(journaled) = &journaled {
        rates.count_replicas(Arc::clone(journaled), config, stores, background).await;
    }
    let (ledger, limits): (Arc<dyn Ledger>, Arc<dyn LimitStatusReader>) = match &journaled {
        Some(journaled) => (journaled.clone(), journaled.clone()),
        None => (Arc::new(ReadOnlyLedger), reports.clone()),
    };
    let random = router::randomness(config)?;
    let refusals = (!config.storage.read_only).then(|| background.record_denied_changes(stores));
    let rejections = (!config.storage.read_only).then(|| background.record_rejections(stores));
    if !config.storage.read_only {
        stores.start_checkpoint_task().await?;
        retention::start(config.retention, stores, Arc::clone(&random), background, measures);
    }
    let disks = StoreDisks::new(config);
    let database_disk = (!config.storage.read_only).then(|| Arc::clone(&disks.database));
    measures.watch_disks(disks);
    let mut probes: Vec<Arc<dyn HealthProbe>> = vec![
        Arc::new(DatabaseProbe::new(stores.database.clone(), Arc::clone(&watcher), database_disk)),
        Arc::clone(&stores.blobs) as Arc<dyn HealthProbe>,
    ];
    let broadcaster = broadcast::start(config, stores, watcher, Arc::clone(&random), background).await?;
    let workers = workers(measures)?;
    measures.watch_database(stores.database.clone());
    measures.watch_wal(stores.database.clone());
    if let Some(journaled) = &journaled {
        measures.watch_journal(journaled);
        probes.push(Arc::new(JournalProbe(Arc::clone(journaled))));
    }
    let catalogue = || Arc::clone(&live) as Arc<dyn Catalogue>;
    let parts = RoutedParts {
        stores: stores.clone(),
        catalogue: catalogue(),
        random,
        guardrails: FilterPorts { policies, workers: Arc::clone(&workers) },
        usage: UsagePorts {
            ledger,
            volumes: reports,
            ids: Arc::clone(&stores.ids),
            metrics: measures.metrics(),
            broadcaster,
        },
        limits,
        pending: journaled.clone().map(|ledger| ledger as Arc<dyn PendingRecords>),
    };
    let reloader = Reloader::new((config, environment), upstreams, Arc::clone(&live), parts, measures.clone());
    background.watch_endpoints(reloader.routing(), &stores.clock);
    measures.watch_throttling(&reloader.routing(), &clock());
    watch_records(config, measures, &reloader.services());
    probes.extend(rates.shared.clone().map(|shared| Arc::new(RateLimitProbe(shared)) as Arc<dyn HealthProbe>));
    let limiter = rates.limiter;
    let default_rates = DefaultRates { key: config.limits.key_rates, workspace: config.limits.workspace_rates };
    let cache: Arc<dyn GrantCache> = Arc::clone(&grants) as Arc<dyn GrantCache>;
    let status = StatusParts { routing: reloader.routing(), ledger: journaled, probes: probes.clone(), clock: clock() };
    let services = Services {
        rotate_key: Arc::new(RotateApiKey::new(Arc::clone(&stores.keys), cache, Arc::clone(&stores.secrets))),
        authenticate: Arc::new(Authenticate::new(grants, clock())),
        promote: Arc::new(promote(config, stores, running)),
        routed: reloader.services(),
        destinations: DestinationUseCases::new(&broadcast::destination_ports(config, stores)?),
        assign_keys: Arc::new(AssignKeysToGuardrail::new(Arc::clone(&stores.guardrails))),
        get_model: Arc::new(GetModel::new(catalogue())),
        count_models: Arc::new(CountModels::new(catalogue())),
        probes,
        count_request: Arc::new(CountRequest::new(Arc::clone(&limiter), default_rates)),
        meter_tokens: Arc::new(MeterTokens::new(limiter, default_rates)),
        recorder: measures.recorder(),
        denied_changes: refusals,
        rejections,
        ids: Arc::clone(&stores.ids),
        clock: clock(),
        workers,
    };
    Ok((services, reloader, status))
}

/// Reports the record quota. The reference is weak: the metrics outlive the server and would keep the ledger open.
fn watch_records(config: &Config, measures: &ProcessMetrics, services: &LiveServices) {
    let services = services.downgrade();
    let status = move || {
        let current = services.current();
        current.map(|services| services.submit_decision.record_quota_status()).unwrap_or_default()
    };
    measures.watch_records(config.limits.workspace_record_bytes_per_day, status);
}

/// Starts the threads that parse and filter large requests.
fn workers(measures: &ProcessMetrics) -> anyhow::Result<Arc<dyn Workers>> {
    let threads = available_parallelism().map_or(2, usize::from);
    let settings = WorkerSettings { threads, queue_per_owner: SCAN_QUEUE_PER_WORKSPACE };
    let workers = FairWorkers::start(settings).context("failed to start the threads for large requests")?;
    let watched = workers.clone();
    measures.watch_workers(move || watched.status());
    Ok(Arc::new(workers))
}

fn promote(config: &Config, stores: &Stores, running: Arc<RunningPromotions>) -> PromoteContainerFile {
    let ports = PromoteContainerFilePorts {
        documents: Arc::clone(&stores.documents),
        blobs: Arc::clone(&stores.blobs) as Arc<dyn BlobStore>,
        media_types: Arc::new(ContentMediaTypes),
        time: TimeSource { clock: Arc::clone(&stores.clock), timer: Arc::new(TokioTimer) },
        ids: Arc::clone(&stores.ids),
        running,
    };
    let limits = StorageLimits {
        max_file_bytes: config.limits.max_file_bytes,
        quota: DocumentQuota {
            bytes: config.limits.workspace_quota_bytes,
            documents: config.limits.workspace_max_documents,
        },
        min_charged_bytes: MIN_CHARGED_BYTES,
    };
    PromoteContainerFile::new(ports, limits)
}
