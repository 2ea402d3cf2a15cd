//! The metrics of the process: their recorders and their exposition.

use std::collections::BTreeSet;
use std::sync::Arc;
use std::time::Duration;

use adapters_cache::{CachedKeyGrants, CachedPolicies};
use adapters_metrics::{LabelledValue, MetricKind, MetricSample, OPENMETRICS, PrometheusMetrics};
use adapters_storage::{Database, SeaOrmOutbox};
use adapters_system::{DescriptorLimit, LocalDiskSpace, WorkerStatus, open_descriptors};
use adapters_valkey::RateStoreStatus;
use api_actix::{AdmissionBound, AdmissionSettings, Answer, Application, Exposition, NoRecorder, Recorder};
use domain::budget::RenewingLedger;
use domain::decision::{Metrics, NoMetrics, RecordQuotaStatus};
use domain::observability::Outbox;
use domain::rate::RateLimited;
use domain::routing::{Endpoint, EndpointDirectory, ThrottleView};
use domain::system::Clock;
use http_server::Connections;

use super::{Background, RateLimits, StoreDisks, Stores, directory};
use crate::config::Config;
use crate::routing::{CurrentRouting, Routing};
use crate::telemetry::{LOG, accept_pauses};

/// The poll interval of the outbox.
const SAMPLE_EVERY: Duration = Duration::from_secs(5);

/// The metrics of this process; disabled without a listener.
#[derive(Clone)]
pub struct ProcessMetrics(Option<Arc<PrometheusMetrics>>);

impl ProcessMetrics {
    /// Creates the metrics according to the configuration.
    pub fn new(config: &Config) -> Self {
        Self(config.server.metrics_listen.map(|_| {
            let endpoints = directory(config);
            let metrics = PrometheusMetrics::new(env!("CARGO_PKG_VERSION"), providers(&endpoints));
            metrics.http().init_bounds(AdmissionBound::ALL.map(AdmissionBound::as_str));
            watch_limits(&metrics, config.limits.admission);
            watch_descriptors(&metrics);
            let help = "Log lines dropped because standard error did not accept them";
            metrics.watch(MetricSample::counter("log_lines_dropped", help, || LOG.dropped_lines()));
            let help = "Pauses in accepting connections after an error, such as no free file descriptor";
            metrics.watch(MetricSample::counter("accept_pauses", help, accept_pauses));
            Arc::new(metrics)
        }))
    }

    /// Adds the providers of a reloaded configuration.
    pub fn add_providers(&self, endpoints: &EndpointDirectory) {
        if let Some(metrics) = &self.0 {
            metrics.add_providers(providers(endpoints));
        }
    }

    /// Returns the recorder for Decisions requests.
    pub fn metrics(&self) -> Arc<dyn Metrics> {
        match &self.0 {
            Some(metrics) => Arc::clone(metrics) as Arc<dyn Metrics>,
            None => Arc::new(NoMetrics),
        }
    }

    /// Returns the recorder for the HTTP layer.
    pub fn recorder(&self) -> Arc<dyn Recorder> {
        match &self.0 {
            Some(metrics) => Arc::new(HttpRecorder(Arc::clone(metrics))),
            None => Arc::new(NoRecorder),
        }
    }

    /// Returns the exposition for the metrics listener.
    pub fn exposition(&self) -> Option<Arc<dyn Exposition>> {
        self.0.as_ref().map(|metrics| Arc::new(Text(Arc::clone(metrics))) as Arc<dyn Exposition>)
    }

    /// Reports the operations in flight and the memory of their bodies.
    pub fn watch_admission(&self, application: &Application) {
        let (memory, counts) = (application.body_memory(), application.in_flight_counts());
        let help = "Memory of request bodies, compressed and decompressed, in bytes";
        self.watch(|| MetricSample::gauge("body_memory_bytes", help, move || number(memory())));
        self.watch(|| MetricSample {
            name: "requests_in_flight_largest_share",
            help: "Requests in flight of the key and of the workspace with the most",
            kind: MetricKind::Gauge,
            read: Box::new(move || {
                let counts = counts();
                let shares = [("key", counts.largest_key), ("workspace", counts.largest_workspace)];
                shares.map(|(scope, count)| labelled([("scope", scope)], number(count))).into()
            }),
        });
    }

    /// Reports the threads that parse and filter large requests.
    pub fn watch_workers(&self, status: impl Fn() -> WorkerStatus + Clone + Send + Sync + 'static) {
        let (threads, busy, waiting) = (status.clone(), status.clone(), status.clone());
        let (rejected, abandoned) = (status.clone(), status);
        let help = "Threads that parse and scan large requests";
        self.watch(|| MetricSample::gauge("scan_threads", help, move || number(threads().threads)));
        let help = "Threads that are parsing or scanning a large request";
        self.watch(|| MetricSample::gauge("scan_threads_busy", help, move || number(busy().busy)));
        let help = "Large requests that wait for a scan thread";
        self.watch(|| MetricSample::gauge("scan_queue_length", help, move || number(waiting().waiting)));
        let help = "Large requests rejected because the queue of their workspace was full";
        self.watch(|| MetricSample::counter("scan_queue_rejections", help, move || rejected().rejected));
        let help = "Large requests removed from the queue because the client disconnected or the deadline passed";
        self.watch(|| MetricSample::counter("scan_queue_abandoned", help, move || abandoned().abandoned));
    }

    /// Reports the size of usage records per workspace and day.
    pub fn watch_records(
        &self,
        limit: Option<u64>,
        status: impl Fn() -> RecordQuotaStatus + Clone + Send + Sync + 'static,
    ) {
        let rejected = status.clone();
        let help = "Bytes of usage records written today (UTC) by the workspace with the most";
        self.watch(|| {
            MetricSample::gauge("usage_records_largest_workspace_bytes", help, move || status().largest_bytes)
        });
        let help = "Bytes of usage records allowed per workspace and day; 0 is unlimited";
        self.watch(|| MetricSample::gauge("usage_records_limit_bytes", help, move || limit.unwrap_or_default()));
        let help = "Requests rejected by the daily limit on the usage records of a workspace";
        self.watch(|| MetricSample::counter("usage_records_rejections", help, move || rejected().rejected));
    }

    /// Reports the throttling of each endpoint.
    pub fn watch_throttling(&self, current: &CurrentRouting, clock: &Arc<dyn Clock>) {
        type Value = fn(&ThrottleView) -> Option<u64>;
        let readings: [(&str, &str, MetricKind, Value); 3] = [
            (
                "endpoint_accept_rate",
                "Share of successful attempts over the throttling window, from 0 to 1",
                MetricKind::Ratio,
                |view| view.accept_rate.map(millionths),
            ),
            (
                "endpoint_throttled",
                "1 if requests of all workspaces to the endpoint are throttled",
                MetricKind::Gauge,
                |view| Some(u64::from(view.throttled)),
            ),
            (
                "endpoint_throttled_workspaces",
                "Workspaces throttled at the endpoint because of their own failures",
                MetricKind::Gauge,
                |view| Some(u64::from(view.throttled_workspaces)),
            ),
        ];
        for (name, help, kind, value) in readings {
            let (current, clock) = (current.clone(), Arc::clone(clock));
            let read = move || {
                let routing = Arc::clone(&current.borrow());
                let Routing { endpoints, health, .. } = &*routing;
                let now = clock.monotonic();
                let sample = |(index, endpoint): (usize, &Arc<Endpoint>)| {
                    value(&health.throttling(index, now)).map(|value| of_endpoint(index, endpoint, value))
                };
                endpoints.all().iter().enumerate().filter_map(sample).collect()
            };
            self.watch(|| MetricSample { name, help, kind, read: Box::new(read) });
        }
    }

    /// Reports the database connections.
    pub fn watch_database(&self, database: Database) {
        let (of_busy, of_alerts, of_writes) = (database.clone(), database.clone(), database.clone());
        let help = "1 if the last write of this process to the database succeeded";
        let is_writable = move || u64::from(of_writes.write_failure().is_none());
        self.watch(|| MetricSample::gauge("database_writable", help, is_writable));
        let help = "Rows of limits and budget alerts that could not be read and were skipped";
        let skipped = move || of_alerts.unreadable_alert_rows();
        self.watch(|| MetricSample::gauge("budget_alerts_unreadable_rows", help, skipped));
        self.watch(|| MetricSample {
            name: "database_connections",
            help: "Open database connections",
            kind: MetricKind::Gauge,
            read: Box::new(move || {
                let samples = of_busy.pools().into_iter().flat_map(|standing| {
                    let sample = |state: &str, value| labelled([("pool", standing.pool), ("state", state)], value);
                    [sample("busy", standing.busy), sample("idle", standing.idle)]
                });
                samples.collect()
            }),
        });
        self.watch(|| MetricSample {
            name: "database_connections_limit",
            help: "Maximum number of database connections",
            kind: MetricKind::Gauge,
            read: Box::new(move || {
                database
                    .pools()
                    .into_iter()
                    .map(|standing| labelled([("pool", standing.pool)], standing.limit))
                    .collect()
            }),
        });
    }

    /// Reports the client connections.
    pub fn watch_connections(&self, connections: Connections) {
        let (of_limit, of_evictions) = (connections.clone(), connections.clone());
        self.watch(|| MetricSample {
            name: "connections",
            help: "Open client connections by state",
            kind: MetricKind::Gauge,
            read: Box::new(move || {
                let counts = connections.counts();
                let states = [
                    ("waiting", counts.waiting),
                    ("idle", counts.idle),
                    ("reading_headers", counts.reading_head),
                    ("in_request", counts.in_request),
                ];
                states.into_iter().map(|(state, count)| labelled([("state", state)], count as u64)).collect()
            }),
        });
        let help = "Maximum number of concurrent client connections";
        self.watch(|| MetricSample::gauge("connections_limit", help, move || of_limit.limit() as u64));
        let help = "Idle connections closed for new ones";
        self.watch(|| MetricSample::counter("connection_evictions", help, move || of_evictions.evictions()));
    }

    /// Reports the database's write-ahead log.
    pub fn watch_wal(&self, database: Database) {
        let (of_bytes, of_ends) = (database.clone(), database.clone());
        let help = "Size of the SQLite write-ahead log at the last check, in bytes";
        self.watch(|| MetricSample::gauge("sqlite_wal_bytes", help, move || of_bytes.wal_status().bytes));
        let help = "Restarts of the WAL checkpoint task after it ended unexpectedly";
        self.watch(|| MetricSample::counter("wal_checkpoint_task_restarts", help, move || of_ends.wal_status().ended));
        self.watch(|| MetricSample {
            name: "wal_checkpoints",
            help: "WAL checkpoints by result",
            kind: MetricKind::Counter,
            read: Box::new(move || {
                let log = database.wal_status();
                let results = [
                    ("complete", log.copied),
                    ("partial", log.partial),
                    ("restarted", log.restarted),
                    ("failed", log.failed),
                ];
                results.into_iter().map(|(result, value)| labelled([("result", result)], value)).collect()
            }),
        });
    }

    /// Reports the free space of the disks under the stores. A disk that does not answer has no sample.
    pub fn watch_disks(&self, disks: StoreDisks) {
        self.watch(|| MetricSample {
            name: "disk_free_bytes",
            help: "Free bytes of the disk under a store",
            kind: MetricKind::Gauge,
            read: Box::new(move || {
                let sample = |(store, disk): (&'static str, &LocalDiskSpace)| {
                    Some(labelled([("store", store)], disk.free_bytes().ok()?))
                };
                disks.named().filter_map(sample).collect()
            }),
        });
    }

    /// Reports the shared counts of rate limits, or the share of this process.
    pub fn watch_rate_limits(&self, rates: &RateLimits) {
        let replicas = rates.replicas.clone();
        let help = "Live replicas by which rate limits are divided where each replica counts its share";
        self.watch(|| MetricSample::gauge("rate_limit_replicas", help, move || replicas.get().into()));
        let Some(shared) = &rates.shared else { return };
        let counter = |name, help, read: fn(&RateStoreStatus) -> u64| {
            let shared = shared.clone();
            self.watch(|| MetricSample::counter(name, help, move || read(&shared.status())));
        };
        counter("rate_limit_store_outages", "Outages of the server of shared rate limits", |status| status.outages);
        let help = "Corrections of tokens that the server of shared rate limits did not confirm";
        counter("rate_limit_lost_corrections", help, |status| status.lost_corrections);
        let of_up = shared.clone();
        let help = "1 while the server of shared rate limits is used";
        let is_up = move || u64::from(of_up.status().outage.is_none());
        self.watch(|| MetricSample::gauge("rate_limit_store_up", help, is_up));
        let shared = shared.clone();
        self.watch(|| MetricSample {
            name: "rate_limit_fallbacks",
            help: "Rate limit decisions without the server of shared rate limits",
            kind: MetricKind::Counter,
            read: Box::new(move || {
                let status = shared.status();
                let decisions = [("local", status.decided_locally), ("reject", status.rejected)];
                decisions.map(|(decision, value)| labelled([("decision", decision)], value)).into()
            }),
        });
    }

    /// Reports the caches of keys and policies.
    pub fn watch_caches(&self, keys: Arc<CachedKeyGrants>, policies: Arc<CachedPolicies>) {
        let standings = move || [("keys", keys.status()), ("policies", policies.status())];
        let of_entries = standings.clone();
        self.watch(|| MetricSample {
            name: "cache_entries",
            help: "Cache entries",
            kind: MetricKind::Gauge,
            read: Box::new(move || {
                of_entries()
                    .into_iter()
                    .map(|(cache, standing)| labelled([("cache", cache)], standing.entries))
                    .collect()
            }),
        });
        self.watch(|| MetricSample {
            name: "cache_lookups",
            help: "Cache lookups by result",
            kind: MetricKind::Counter,
            read: Box::new(move || {
                let samples = standings().into_iter().flat_map(|(cache, standing)| {
                    let sample = |result: &str, value| labelled([("cache", cache), ("result", result)], value);
                    [sample("hit", standing.hits), sample("miss", standing.misses)]
                });
                samples.collect()
            }),
        });
    }

    /// Reports the journal. The weak reference lets the ledger end before the metrics do.
    pub fn watch_journal(&self, ledger: &Arc<RenewingLedger>) {
        let gauge = |name, help, read: fn(&RenewingLedger) -> u64| {
            let ledger = Arc::downgrade(ledger);
            self.watch(|| MetricSample::gauge(name, help, move || ledger.upgrade().map_or(0, |ledger| read(&ledger))));
        };
        gauge("journal_unfolded_entries", "Journal entries not yet folded into the database", |ledger| {
            ledger.journal_status().unfolded_entries
        });
        gauge("journal_unfolded_bytes", "Bytes of journal entries not yet folded into the database", |ledger| {
            ledger.journal_status().unfolded_bytes
        });
        gauge("open_holds", "Open holds of Decisions requests", |ledger| ledger.open_calls() as u64);
        let counter = |name, help, read: fn(&RenewingLedger) -> u64| {
            let weak = Arc::downgrade(ledger);
            let read = move || weak.upgrade().map_or(0, |ledger| read(&ledger));
            self.watch(|| MetricSample::counter(name, help, read));
        };
        let help = "Usage records stored without their trace because the journal was half full or the record too large";
        counter("journal_omitted_traces", help, RenewingLedger::omitted_traces);
        let help = "Journal entries folded into the database since the journal was created";
        counter("journal_folded_entries", help, RenewingLedger::folded_entries);
        let help = "Requests with a limit rejected because no hold could be placed: the database takes no writes";
        counter("hold_failures", help, RenewingLedger::failed_holds);
        let help = "Changes of the process id because the database no longer accepted the previous one";
        counter("ledger_renewals", help, RenewingLedger::renewals);
    }

    /// Reports records that retention cannot remove.
    pub fn watch_retention(&self, unreadable: impl Fn() -> u64 + Send + Sync + 'static) {
        let help = "Expired usage records that the last retention run could not read";
        self.watch(|| MetricSample::gauge("retention_unreadable_records", help, unreadable));
    }

    /// Polls the outbox in the background until the instance ends.
    pub fn watch_outbox(&self, stores: &Stores, background: &Background) {
        let Some(metrics) = self.0.clone() else { return };
        let outbox = SeaOrmOutbox::new(stores.database.clone());
        let (clock, cancelled) = (Arc::clone(&stores.clock), background.cancelled.clone());
        background.tasks.spawn(async move {
            loop {
                sample(&metrics, &outbox, &*clock).await;
                tokio::select! {
                    () = cancelled.cancelled() => return,
                    () = tokio::time::sleep(SAMPLE_EVERY) => {}
                }
            }
        });
    }

    fn watch(&self, reading: impl FnOnce() -> MetricSample) {
        if let Some(metrics) = &self.0 {
            metrics.watch(reading());
        }
    }
}

/// Reports the limits on operations and on their bodies.
fn watch_limits(metrics: &PrometheusMetrics, admission: AdmissionSettings) {
    let help = "Maximum number of requests in flight";
    metrics.watch(MetricSample::gauge("requests_in_flight_limit", help, move || number(admission.max_in_flight)));
    metrics.watch(MetricSample {
        name: "requests_in_flight_share_limit",
        help: "Maximum number of requests in flight per key and per workspace",
        kind: MetricKind::Gauge,
        read: Box::new(move || {
            let shares =
                [("key", admission.max_in_flight_per_key), ("workspace", admission.max_in_flight_per_workspace)];
            shares.map(|(scope, count)| labelled([("scope", scope)], number(count))).into()
        }),
    });
    let help = "Maximum memory of request bodies, in bytes";
    metrics.watch(MetricSample::gauge("body_memory_limit_bytes", help, move || number(admission.body_memory_bytes)));
    let help = "Maximum memory of request bodies per workspace, in bytes";
    let share = admission.body_memory_bytes_per_workspace;
    metrics.watch(MetricSample::gauge("body_memory_share_limit_bytes", help, move || number(share)));
}

fn number(count: usize) -> u64 {
    u64::try_from(count).unwrap_or(u64::MAX)
}

/// Reports the file descriptors of the process.
fn watch_descriptors(metrics: &PrometheusMetrics) {
    let help = "Open file descriptors of the process";
    metrics.watch_process(MetricSample::gauge("process_open_fds", help, || open_descriptors().unwrap_or_default()));
    let help = "File descriptors that the process may open";
    metrics.watch_process(MetricSample::gauge("process_max_fds", help, || DescriptorLimit::of_process().soft));
}

async fn sample(metrics: &PrometheusMetrics, outbox: &dyn Outbox, clock: &dyn Clock) {
    match outbox.status().await {
        Ok(standing) => metrics.outbox().record_sample(&standing, clock.now()),
        Err(error) => {
            metrics.outbox().record_sample_failure();
            tracing::debug!(error = &error as &dyn std::error::Error, "outbox poll failed");
        }
    }
}

/// Returns the slugs of the providers, without duplicates.
fn providers(endpoints: &EndpointDirectory) -> BTreeSet<&str> {
    endpoints.all().iter().map(|endpoint| endpoint.provider.as_str()).collect()
}

fn labelled<const N: usize>(labels: [(&'static str, &str); N], value: u64) -> LabelledValue {
    LabelledValue { labels: labels.into_iter().map(|(name, value)| (name, value.to_owned())).collect(), value }
}

fn of_endpoint(index: usize, endpoint: &Endpoint, value: u64) -> LabelledValue {
    let index = index.to_string();
    let labels =
        [("endpoint", index.as_str()), ("provider", endpoint.provider.as_str()), ("model", endpoint.model.as_str())];
    labelled(labels, value)
}

/// Converts a fraction between 0 and 1 to millionths.
fn millionths(share: f64) -> u64 {
    #[expect(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "a share is from 0 to 1")]
    let millionths = (share.clamp(0.0, 1.0) * 1e6).round() as u64;
    millionths
}

/// The recorder of the HTTP layer.
struct HttpRecorder(Arc<PrometheusMetrics>);

impl Recorder for HttpRecorder {
    fn record_start(&self) {
        self.0.http().begin_operation();
    }

    fn record_end(&self) {
        self.0.http().end_operation();
    }

    fn record_answer(&self, answer: &Answer) {
        self.0.http().record_response(answer.route, answer.method, answer.status, answer.took);
    }

    fn record_rate_limit(&self, limited: &RateLimited) {
        self.0.http().record_rate_limit(limited.scope, limited.unit);
    }

    fn record_rejection(&self, bound: AdmissionBound) {
        self.0.http().record_rejection(bound.as_str());
    }
}

struct Text(Arc<PrometheusMetrics>);

impl Exposition for Text {
    fn content_type(&self) -> &'static str {
        OPENMETRICS
    }

    fn text(&self) -> String {
        self.0.text()
    }
}
