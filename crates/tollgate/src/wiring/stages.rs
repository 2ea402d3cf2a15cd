//! The stages of a start, each made of the one before it: the stores are followed, the process gets its journal, the use
//! cases serve. A failure of the first stage leaves no journal.

use std::path::Path;
use std::sync::Arc;
use std::thread::available_parallelism;
use std::time::Duration;

use adapters_blob::detect_media_type;
use adapters_cache::{
    CachedKeyGrants, CachedPolicies, CachedPresets, ChangeWatcher, LiveCatalogue, LivePauses, StalenessBounds,
};
use adapters_storage::{SeaOrmLedgerReports, SeaOrmOutbox};
use adapters_system::{FairWorkers, TokioTimer, WorkerSettings};
use anyhow::Context;
use api_actix::{Services, WorkspaceServices};
use domain::api_key::{Authenticate, CountRequest, GetOwnKey, GrantCache, ReadApiKeys, RotateApiKey};
use domain::audit::DeniedChangeRecorder;
use domain::budget::{Ledger, LedgerReader, ReadOnlyLedger, RenewingLedger};
use domain::container::BlobStore;
use domain::decision::{
    Broadcast, FilterPorts, MeterTokens, NoBroadcast, ResolvePreset, SumUsage, SumUsagePorts, UsagePorts,
};
use domain::file::{
    DocumentQuota, ManageContainerFiles, PromoteContainerFile, PromoteContainerFilePorts, ReadDocuments,
    RunningPromotions, StorageLimits,
};
use domain::guardrail::AssignKeysToGuardrail;
use domain::model::{Catalogue, GetModel};
use domain::observability::RetryDeadLetters;
use domain::operation::{ContainerLimits, ListAuditEntries, PutContainerFile, ReadStatus, ServerIdentity};
use domain::rate::DefaultRates;
use domain::retention::{ApplyRetention, ApplyRetentionPorts};
use domain::system::{HealthProbe, Randomness, TimeSource, Workers};
use domain::usage::RejectionRecorder;
use domain::workspace::{ChooseFilesWorkspace, ReadWorkspaces};

use super::configuration_checks::warn_about;
use super::probes::{DatabaseProbe, JournalProbe};
use super::rate_limits::RateLimitProbe;
use super::{
    Background, ProcessMetrics, RateLimits, Reloader, RoutedParts, StoreDisks, Stores, Upstreams, broadcast, ledger,
    minimal_rows, routed, sandbox_models,
};
use crate::config::{Config, Environment, JournalSync};
use crate::telemetry;

/// Queued large requests per workspace.
const SCAN_QUEUE_PER_WORKSPACE: usize = 256;
/// The maximum number of documents of a workspace.
const MAX_DOCUMENTS: u64 = 1_000_000;
/// The minimum size that a document counts as, in bytes.
const MIN_CHARGED_BYTES: u64 = 1_024;

/// The maximum number of cached keys.
const CACHED_KEYS: u64 = 100_000;
/// The maximum number of cached presets.
const CACHED_PRESETS: u64 = 1_024;
/// The maximum number of cached policies, one per pair of workspace guardrail and key guardrail.
const CACHED_POLICIES: u64 = 32_768;
/// The age of the change feed's last read from which it is read again before a cached key is used; a second is
/// documented.
const RECHECK_AFTER: Duration = Duration::from_millis(900);

/// The interval of retention.
const RETENTION_EVERY: Duration = Duration::from_hours(1);
/// The maximum random addition to it, so that several processes do not start simultaneously.
const RETENTION_JITTER: Duration = Duration::from_mins(10);

/// The inputs of all stages.
#[derive(Clone, Copy)]
pub struct StartContext<'a> {
    /// The configuration.
    pub config: &'a Config,
    /// The environment variables, for reloads.
    pub environment: &'a Environment,
    /// The stores.
    pub stores: &'a Stores,
    /// The background tasks.
    pub background: &'a Background,
    /// The metrics of the process.
    pub measures: &'a ProcessMetrics,
    /// True for the application of one command: it has no journal, and writes down denied changes only.
    pub is_private: bool,
}

impl StartContext<'_> {
    fn is_read_only(&self) -> bool {
        self.config.storage.read_only
    }

    fn has_journal(&self) -> bool {
        !self.is_read_only() && !self.is_private
    }
}

/// The first stage: the providers, the caches that follow the change feed, and the rate limits.
pub struct FollowedStores<'a> {
    start: StartContext<'a>,
    upstreams: Upstreams,
    changes: Changes,
    rates: RateLimits,
}

/// The caches that follow the change feed.
struct Changes {
    watcher: Arc<ChangeWatcher>,
    catalogue: Arc<LiveCatalogue>,
    pauses: Arc<LivePauses>,
    grants: Arc<CachedKeyGrants>,
    policies: Arc<CachedPolicies>,
    presets: Arc<CachedPresets>,
}

impl Changes {
    /// Reads the position of the feed, then loads the caches.
    async fn load(start: StartContext<'_>) -> anyhow::Result<Self> {
        let StartContext { config, stores, .. } = start;
        let bounds = StalenessBounds { recheck_after: RECHECK_AFTER, max_stale: config.max_stale_keys };
        let watcher = Arc::new(ChangeWatcher::new(Arc::clone(&stores.feed), Arc::clone(&stores.clock), bounds));
        watcher.refresh().await.context("change feed not readable")?;
        let overlay = minimal_rows(&config.endpoints);
        let models = Arc::clone(&stores.models);
        let catalogue = LiveCatalogue::load(models, watcher.catalogue_version(), overlay, sandbox_models(config));
        let catalogue = Arc::new(catalogue.await.context("the catalogue cannot be read")?);
        let pauses = LivePauses::load(Arc::clone(&stores.pauses), watcher.providers_version());
        let pauses = Arc::new(pauses.await.context("the paused providers cannot be read")?);
        let grants = Arc::clone(&stores.grants);
        let guardrails = Arc::clone(&stores.guardrails);
        let policies = CachedPolicies::new(guardrails, Arc::clone(&grants), Arc::clone(&watcher), CACHED_POLICIES);
        let (grants, policies) =
            (Arc::new(CachedKeyGrants::new(grants, Arc::clone(&watcher), CACHED_KEYS)), Arc::new(policies));
        let presets = Arc::new(CachedPresets::new(Arc::clone(&stores.presets), Arc::clone(&watcher), CACHED_PRESETS));
        start.measures.watch_caches(Arc::clone(&grants), Arc::clone(&policies));
        Ok(Self { watcher, catalogue, pauses, grants, policies, presets })
    }
}

impl<'a> FollowedStores<'a> {
    /// Builds the providers, and follows the change feed.
    ///
    /// # Errors
    /// A provider's settings are invalid, or the catalogue cannot be read.
    pub async fn start(start: StartContext<'a>) -> anyhow::Result<Self> {
        let StartContext { config, stores, background, measures, .. } = start;
        if start.is_private {
            let (upstreams, changes) = (Upstreams::build_usable(config), Changes::load(start).await?);
            return Ok(Self { start, upstreams, changes, rates: RateLimits::local(stores) });
        }
        let upstreams = Upstreams::build(config)?;
        let changes = Changes::load(start).await?;
        warn_about(config, &changes.catalogue, &upstreams.endpoints);
        let (watcher, catalogue) = (Arc::clone(&changes.watcher), Arc::clone(&changes.catalogue));
        background.follow_changes(stores.database.clone(), watcher, catalogue, Arc::clone(&changes.pauses));
        measures.watch_outbox(stores, background);
        let rates = RateLimits::start(config, stores, background).await?;
        measures.watch_rate_limits(&rates);
        Ok(Self { start, upstreams, changes, rates })
    }

    /// Gives the process its journal and its tasks that write, unless the database is read-only.
    ///
    /// # Errors
    /// The journal cannot be created, or the database cannot be written.
    pub async fn journal(self) -> anyhow::Result<JournaledProcess<'a>> {
        let StartContext { config, stores, background, measures, .. } = self.start;
        let reports = Arc::new(stores.reports());
        let random = routed::randomness(config)?;
        let denied_changes = (!self.start.is_read_only()).then(|| background.record_denied_changes(stores));
        if !self.start.has_journal() {
            let running = Arc::new(RunningPromotions::new(|| None));
            return Ok(JournaledProcess { followed: self, writers: None, denied_changes, reports, running, random });
        }
        // Before the first record of this process.
        background.maintain_usage_months(stores.database.clone()).await;
        let ledger = ledger::start(config, stores, reports.clone(), measures.metrics(), background).await?;
        let process = Arc::clone(&ledger);
        let running = Arc::new(RunningPromotions::new(move || Some(process.process())));
        // Before a step that can fail: a failed start, too, releases the promotions of dead processes.
        background.release_promotions(config, stores, Arc::clone(&running)).await;
        self.rates.count_replicas(Arc::clone(&ledger), config, stores, background).await;
        let rejections = background.record_rejections(stores);
        stores.start_checkpoint_task().await?;
        start_retention(self.start, Arc::clone(&random));
        measures.watch_journal(&ledger);
        let writers = Some(Writers { ledger, rejections });
        Ok(JournaledProcess { followed: self, writers, denied_changes, reports, running, random })
    }
}

/// The ledger and the recorder of a process that answers requests.
struct Writers {
    ledger: Arc<RenewingLedger>,
    rejections: Arc<dyn RejectionRecorder>,
}

/// The second stage: the charges of dead processes are recovered, and this process can charge.
pub struct JournaledProcess<'a> {
    followed: FollowedStores<'a>,
    /// `None` if the database is read-only, and for one command.
    writers: Option<Writers>,
    /// `None` if the database is read-only.
    denied_changes: Option<Arc<dyn DeniedChangeRecorder>>,
    reports: Arc<SeaOrmLedgerReports>,
    running: Arc<RunningPromotions>,
    random: Arc<dyn Randomness>,
}

/// The last stage: the use cases, and the reloader of those that depend on providers and endpoints.
pub struct ServingParts {
    /// The use cases behind HTTP.
    pub services: Services,
    /// Replaces the use cases that depend on providers and endpoints.
    pub reloader: Reloader,
}

impl JournaledProcess<'_> {
    /// Builds every use case.
    ///
    /// # Errors
    /// The destinations of traces cannot be read, or a thread cannot be started.
    pub async fn serve(self) -> anyhow::Result<ServingParts> {
        let Self { followed, writers, denied_changes, reports, running, random } = self;
        let FollowedStores { start, upstreams, changes, rates } = followed;
        let StartContext { config, environment, stores, background, measures, .. } = start;
        let clock = || Arc::clone(&stores.clock);
        let (ledger, rejections) = writers.map(|Writers { ledger, rejections }| (ledger, rejections)).unzip();
        let probes = probes(start, &changes.watcher, &rates, ledger.as_ref());
        let broadcaster: Arc<dyn Broadcast> = if start.is_private {
            Arc::new(NoBroadcast)
        } else {
            broadcast::start(config, stores, changes.watcher, Arc::clone(&random), background).await?
        };
        let workers = workers(measures)?;
        let (charging, limits): (Arc<dyn Ledger>, Arc<dyn LedgerReader>) = match &ledger {
            Some(ledger) => (ledger.clone(), ledger.clone()),
            None => (Arc::new(ReadOnlyLedger), reports),
        };
        let read_keys = ReadApiKeys::new(
            Arc::clone(&stores.keys),
            Arc::clone(&limits),
            Arc::clone(&stores.usage),
            Arc::clone(&stores.clock),
        );
        let get_own_key = GetOwnKey::new(Arc::clone(&stores.keys), Arc::clone(&limits), read_keys.clone());
        let sum_usage = SumUsage::new(SumUsagePorts {
            usage: Arc::clone(&stores.usage),
            rejections: Arc::clone(&stores.rejections),
            names: stores.usage_names(),
            ledger: Arc::clone(&limits),
            clock: clock(),
        });
        let evidence = stores.evidence_services(&limits);
        let destinations = broadcast::manage_destinations(config, stores)?;
        let catalogue = || Arc::clone(&changes.catalogue) as Arc<dyn Catalogue>;
        let parts = RoutedParts {
            stores: stores.clone(),
            catalogue: catalogue(),
            paused: changes.pauses.paused(),
            random,
            guardrails: FilterPorts { policies: changes.policies, workers: Arc::clone(&workers) },
            usage: UsagePorts {
                ledger: charging,
                records: Arc::clone(&stores.usage),
                ids: Arc::clone(&stores.ids),
                metrics: measures.metrics(),
                broadcaster,
            },
            limits: Arc::clone(&limits),
            destinations: destinations.clone(),
        };
        let live = Arc::clone(&changes.catalogue);
        let reloader = Reloader::new((config, environment), upstreams, live, parts, measures.clone());
        if !start.is_private {
            background.watch_endpoints(reloader.routing(), &stores.clock);
        }
        measures.watch_throttling(&reloader.routing(), &clock());
        let quota = reloader.services().reader(|services| services.submit_decision.record_quota_status());
        measures.watch_records(config.limits.workspace_record_bytes_per_day, quota);
        let limiter = rates.limiter;
        let default_rates = DefaultRates { key: config.limits.key_rates, workspace: config.limits.workspace_rates };
        let cache: Arc<dyn GrantCache> = Arc::clone(&changes.grants) as Arc<dyn GrantCache>;
        let identity = identity(config, stores, ledger.as_deref());
        let processes = ledger::forget_processes(config, stores).await?;
        let read_status = ReadStatus::new(probes.clone(), ledger, processes, Arc::new(TokioTimer));
        let services = Services {
            get_own_key,
            sum_usage: Arc::new(sum_usage),
            read_keys,
            create_key: stores.create_api_key(),
            manage_keys: stores.manage_keys(),
            rotate_key: Arc::new(RotateApiKey::new(
                Arc::clone(&stores.keys),
                cache,
                Arc::clone(&stores.secrets),
                Arc::clone(&stores.clock),
            )),
            authenticate: Arc::new(Authenticate::new(changes.grants, clock())),
            promote: Arc::new(promote(config, stores, running)),
            choose_files_workspace: ChooseFilesWorkspace::new(Arc::clone(&stores.workspaces)),
            container_files: ManageContainerFiles::new(Arc::clone(&stores.blobs) as _),
            put_container_file: PutContainerFile::new(
                Arc::clone(&stores.workspaces),
                Arc::clone(&stores.blobs) as _,
                ContainerLimits::with_file_bytes(config.limits.max_file_bytes),
            ),
            read_documents: ReadDocuments::new(Arc::clone(&stores.documents), Arc::clone(&stores.blobs) as _),
            delete_document: stores.delete_document(),
            routed: reloader.services(),
            destinations,
            workspaces: WorkspaceServices {
                read: ReadWorkspaces::new(Arc::clone(&stores.workspaces), Arc::clone(&limits)),
                create: stores.create_workspace(),
                manage: stores.manage_workspaces(limits),
            },
            presets: stores.manage_presets(catalogue()),
            evidence,
            resolve_preset: ResolvePreset::new(changes.presets),
            assign_keys: Arc::new(AssignKeysToGuardrail::new(Arc::clone(&stores.guardrails))),
            get_model: Arc::new(GetModel::new(catalogue())),
            retry_dead_letters: RetryDeadLetters::new(
                broadcast::outbox(stores),
                broadcast::repository(stores),
                Arc::clone(&stores.clock),
            ),
            server: identity,
            read_status,
            audit_entries: ListAuditEntries::new(Arc::clone(&stores.audit)),
            repetitions: Arc::clone(&stores.repetitions),
            probes,
            count_request: Arc::new(CountRequest::new(Arc::clone(&limiter), default_rates)),
            meter_tokens: Arc::new(MeterTokens::new(limiter, default_rates)),
            recorder: measures.recorder(),
            access_log: telemetry::access_log(config.log.format),
            denied_changes,
            rejections,
            ids: Arc::clone(&stores.ids),
            clock: clock(),
            workers,
        };
        Ok(ServingParts { services, reloader })
    }
}

/// Describes the server that starts now, with the id of its first journal.
fn identity(config: &Config, stores: &Stores, ledger: Option<&RenewingLedger>) -> ServerIdentity {
    let absolute = |file: &Path| std::path::absolute(file).unwrap_or_else(|_| file.to_owned()).display().to_string();
    let storage = &config.storage;
    ServerIdentity {
        id: ledger.map_or_else(|| stores.ids.process_id(), RenewingLedger::process).to_string(),
        version: env!("CARGO_PKG_VERSION"),
        started_at: stores.clock.now(),
        began: stores.clock.monotonic(),
        config_file: config.file.as_deref().map(absolute),
        database: if storage.is_file() { absolute(&storage.file) } else { storage.name() },
    }
}

/// Returns the probes that decide readiness, and reports the same stores and disks as metrics.
fn probes(
    start: StartContext<'_>,
    watcher: &Arc<ChangeWatcher>,
    rates: &RateLimits,
    ledger: Option<&Arc<RenewingLedger>>,
) -> Vec<Arc<dyn HealthProbe>> {
    let StartContext { config, stores, measures, .. } = start;
    let disks = StoreDisks::new(config);
    let database_disk = (!start.is_read_only()).then(|| disks.database.clone());
    measures.watch_disks(disks);
    measures.watch_database(&stores.database);
    let mut probes: Vec<Arc<dyn HealthProbe>> = vec![
        Arc::new(DatabaseProbe::new(stores.database.clone(), Arc::clone(watcher), database_disk)),
        Arc::clone(&stores.blobs) as Arc<dyn HealthProbe>,
    ];
    let is_in_store = config.journal.sync == JournalSync::Store;
    let journal = ledger.map(|ledger| JournalProbe { ledger: Arc::clone(ledger), is_in_store });
    probes.extend(journal.map(|probe| Arc::new(probe) as Arc<dyn HealthProbe>));
    probes.extend(rates.shared.clone().map(|shared| Arc::new(RateLimitProbe(shared)) as Arc<dyn HealthProbe>));
    probes
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
        detect_media_type,
        time: TimeSource { clock: Arc::clone(&stores.clock), timer: Arc::new(TokioTimer) },
        ids: Arc::clone(&stores.ids),
        running,
    };
    let limits = StorageLimits {
        max_file_bytes: config.limits.max_file_bytes,
        quota: DocumentQuota { bytes: config.limits.workspace_quota_bytes, documents: MAX_DOCUMENTS },
        min_charged_bytes: MIN_CHARGED_BYTES,
    };
    PromoteContainerFile::new(ports, limits)
}

/// Removes old rows immediately and then about every hour, until the instance ends.
fn start_retention(start: StartContext<'_>, random: Arc<dyn Randomness>) {
    let StartContext { config, stores, background, measures, .. } = start;
    let ports = ApplyRetentionPorts {
        usage: Arc::new(stores.reports()),
        rejections: Arc::clone(&stores.rejections),
        evidence: Arc::clone(&stores.evidence),
        audit: Arc::clone(&stores.audit),
        outbox: Arc::new(SeaOrmOutbox::new(stores.database.clone())),
        repetitions: Arc::clone(&stores.repetitions),
        time: TimeSource { clock: Arc::clone(&stores.clock), timer: Arc::new(TokioTimer) },
    };
    let retention = Arc::new(ApplyRetention::new(ports, config.retention));
    // A weak reference: the metrics outlive the server and would keep the database open.
    let watched = Arc::downgrade(&retention);
    measures
        .watch_retention(move || watched.upgrade().map(|retention| retention.unreadable_records()).unwrap_or_default());
    let cancelled = background.cancelled.clone();
    background.tasks.spawn(async move {
        retention.execute(cancelled.cancelled()).await;
        let pause = || tokio::time::sleep(RETENTION_EVERY + jitter(random.next_u64()));
        while cancelled.run_until_cancelled(pause()).await.is_some() {
            retention.execute(cancelled.cancelled()).await;
        }
    });
}

/// Maps a random number to a part of [`RETENTION_JITTER`].
fn jitter(random: u64) -> Duration {
    let upper = u32::try_from(random >> 32).unwrap_or(u32::MAX);
    RETENTION_JITTER.mul_f64(f64::from(upper) / f64::from(u32::MAX))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn jitter_spans_zero_to_its_maximum() {
        assert_eq!((jitter(0), jitter(u64::MAX)), (Duration::ZERO, RETENTION_JITTER));
        let half = jitter(1 << 63);
        assert!(half > RETENTION_JITTER.mul_f64(0.49) && half < RETENTION_JITTER.mul_f64(0.51), "{half:?}");
    }
}
