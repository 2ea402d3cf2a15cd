//! The metrics of the process: their recorders and their exposition.

use std::collections::BTreeSet;
use std::sync::Arc;
use std::time::Duration;

use adapters_cache::{CachedKeyGrants, CachedPolicies};
use adapters_metrics::{LabelledValue, MetricKind, MetricSample, OPENMETRICS, PrometheusMetrics};
use adapters_storage::{Database, SeaOrmOutbox};
use adapters_system::{DescriptorLimit, WorkerStatus, open_descriptors};
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
        let metrics = Self(config.server.metrics_listen.map(|_| {
            let endpoints = directory(config);
            let metrics = PrometheusMetrics::new(env!("CARGO_PKG_VERSION"), providers(&endpoints));
            metrics.http().init_bounds(AdmissionBound::ALL.map(AdmissionBound::as_str));
            watch_descriptors(&metrics);
            Arc::new(metrics)
        }));
        metrics.watch_limits(config.limits.admission);
        let help = "Log lines dropped because standard error did not accept them";
        metrics.counter("log_lines_dropped", help, || LOG.dropped_lines());
        let help = "Pauses in accepting connections after an error, such as no free file descriptor";
        metrics.counter("accept_pauses", help, accept_pauses);
        metrics
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
            Some(metrics) => metrics.decisions(),
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
    pub fn exposition(&self) -> Option<Exposition> {
        let metrics = Arc::clone(self.0.as_ref()?);
        Some(Exposition { content_type: OPENMETRICS, text: Arc::new(move || metrics.text()) })
    }

    /// Reports the operations in flight and the memory of their bodies.
    pub fn watch_admission(&self, application: &Application) {
        let (memory, counts) = (application.body_memory(), application.in_flight_counts());
        let help = "Memory of request bodies, compressed and decompressed, in bytes";
        self.gauge("body_memory_bytes", help, move || number(memory()));
        let help = "Requests in flight of the key and of the workspace with the most";
        self.family("requests_in_flight_largest_share", help, MetricKind::Gauge, move || {
            let counts = counts();
            by("scope", [("key", number(counts.largest_key)), ("workspace", number(counts.largest_workspace))])
        });
    }

    /// Reports the limits on operations and on their bodies.
    fn watch_limits(&self, admission: AdmissionSettings) {
        let limit = number(admission.max_in_flight);
        self.gauge("requests_in_flight_limit", "Maximum number of requests in flight", move || limit);
        let shares = [("key", admission.max_in_flight_per_key), ("workspace", admission.max_in_flight_per_workspace)];
        let help = "Maximum number of requests in flight per key and per workspace";
        self.family("requests_in_flight_share_limit", help, MetricKind::Gauge, move || {
            by("scope", shares.map(|(scope, count)| (scope, number(count))))
        });
        let limit = number(admission.body_memory_bytes);
        self.gauge("body_memory_limit_bytes", "Maximum memory of request bodies, in bytes", move || limit);
        let share = number(admission.body_memory_bytes_per_workspace);
        let help = "Maximum memory of request bodies per workspace, in bytes";
        self.gauge("body_memory_share_limit_bytes", help, move || share);
    }

    /// Reports the threads that parse and filter large requests.
    pub fn watch_workers(&self, status: impl Fn() -> WorkerStatus + Clone + Send + Sync + 'static) {
        let read = |value: fn(&WorkerStatus) -> u64| {
            let status = status.clone();
            move || value(&status())
        };
        let help = "Threads that parse and scan large requests";
        self.gauge("scan_threads", help, read(|workers| number(workers.threads)));
        let help = "Threads that are parsing or scanning a large request";
        self.gauge("scan_threads_busy", help, read(|workers| number(workers.busy)));
        let help = "Large requests that wait for a scan thread";
        self.gauge("scan_queue_length", help, read(|workers| number(workers.waiting)));
        let help = "Large requests rejected because the queue of their workspace was full";
        self.counter("scan_queue_rejections", help, read(|workers| workers.rejected));
        let help = "Large requests removed from the queue because the client disconnected or the deadline passed";
        self.counter("scan_queue_abandoned", help, read(|workers| workers.abandoned));
    }

    /// Reports the size of usage records per workspace and day.
    pub fn watch_records(
        &self,
        limit: Option<u64>,
        status: impl Fn() -> RecordQuotaStatus + Clone + Send + Sync + 'static,
    ) {
        let rejected = status.clone();
        let help = "Bytes of usage records written today (UTC) by the workspace with the most";
        self.gauge("usage_records_largest_workspace_bytes", help, move || status().largest_bytes);
        let help = "Bytes of usage records allowed per workspace and day; 0 is unlimited";
        self.gauge("usage_records_limit_bytes", help, move || limit.unwrap_or_default());
        let help = "Requests rejected by the daily limit on the usage records of a workspace";
        self.counter("usage_records_rejections", help, move || rejected().rejected);
    }

    /// Reports the throttling of each endpoint.
    pub fn watch_throttling(&self, current: &CurrentRouting, clock: &Arc<dyn Clock>) {
        let watch = |name, help, kind, value: fn(&ThrottleView) -> Option<u64>| {
            let (current, clock) = (current.clone(), Arc::clone(clock));
            self.family(name, help, kind, move || {
                let routing = Arc::clone(&current.borrow());
                let Routing { endpoints, health, .. } = &*routing;
                let now = clock.monotonic();
                let sample = |(index, endpoint): (usize, &Arc<Endpoint>)| {
                    value(&health.throttling(index, now)).map(|value| of_endpoint(index, endpoint, value))
                };
                endpoints.all().iter().enumerate().filter_map(sample).collect()
            });
        };
        let help = "Share of successful attempts over the throttling window, from 0 to 1";
        watch("endpoint_accept_rate", help, MetricKind::Ratio, |view| view.accept_rate.map(millionths));
        let help = "1 if requests of all workspaces to the endpoint are throttled";
        watch("endpoint_throttled", help, MetricKind::Gauge, |view| Some(u64::from(view.throttled)));
        let help = "Workspaces throttled at the endpoint because of their own failures";
        watch("endpoint_throttled_workspaces", help, MetricKind::Gauge, |view| Some(view.throttled_workspaces.into()));
    }

    /// Reports the database: its connections, and its write-ahead log.
    pub fn watch_database(&self, database: &Database) {
        let read = |value: fn(&Database) -> u64| {
            let database = database.clone();
            move || value(&database)
        };
        let help = "1 if the last write of this process to the database succeeded";
        self.gauge("database_writable", help, read(|database| u64::from(database.write_failure().is_none())));
        let help = "Rows of limits and budget alerts that could not be read and were skipped";
        self.gauge("budget_alerts_unreadable_rows", help, read(Database::unreadable_alert_rows));
        let help = "Size of the SQLite write-ahead log at the last check, in bytes";
        self.gauge("sqlite_wal_bytes", help, read(|database| database.wal_status().bytes));
        let help = "Restarts of the WAL checkpoint task after it ended unexpectedly";
        self.counter("wal_checkpoint_task_restarts", help, read(|database| database.wal_status().ended));
        let pools = database.clone();
        self.family("database_connections", "Open database connections", MetricKind::Gauge, move || {
            let samples = pools.pools().into_iter().flat_map(|pool| {
                let sample = |state: &str, value| labelled([("pool", pool.pool), ("state", state)], value);
                [sample("busy", pool.busy), sample("idle", pool.idle)]
            });
            samples.collect()
        });
        let (pools, help) = (database.clone(), "Maximum number of database connections");
        self.family("database_connections_limit", help, MetricKind::Gauge, move || {
            by("pool", pools.pools().into_iter().map(|pool| (pool.pool, pool.limit)))
        });
        let database = database.clone();
        self.family("wal_checkpoints", "WAL checkpoints by result", MetricKind::Counter, move || {
            let log = database.wal_status();
            let results = [
                ("complete", log.copied),
                ("partial", log.partial),
                ("restarted", log.restarted),
                ("failed", log.failed),
            ];
            by("result", results)
        });
    }

    /// Reports the client connections.
    pub fn watch_connections(&self, connections: &Connections) {
        let (of_limit, of_evictions) = (connections.clone(), connections.clone());
        let help = "Maximum number of concurrent client connections";
        self.gauge("connections_limit", help, move || number(of_limit.limit()));
        self.counter("connection_evictions", "Idle connections closed for new ones", move || of_evictions.evictions());
        let connections = connections.clone();
        self.family("connections", "Open client connections by state", MetricKind::Gauge, move || {
            let counts = connections.counts();
            let states = [
                ("waiting", counts.waiting),
                ("idle", counts.idle),
                ("reading_headers", counts.reading_head),
                ("in_request", counts.in_request),
            ];
            by("state", states.map(|(state, count)| (state, number(count))))
        });
    }

    /// Reports the free space of the disks under the stores. A disk that does not answer has no sample.
    pub fn watch_disks(&self, disks: StoreDisks) {
        self.family("disk_free_bytes", "Free bytes of the disk under a store", MetricKind::Gauge, move || {
            by("store", disks.named().filter_map(|(store, disk)| Some((store, disk.free_bytes().ok()?))))
        });
    }

    /// Reports the shared counts of rate limits, or the share of this process.
    pub fn watch_rate_limits(&self, rates: &RateLimits) {
        let replicas = rates.replicas.clone();
        let help = "Live replicas by which rate limits are divided where each replica counts its share";
        self.gauge("rate_limit_replicas", help, move || replicas.get().into());
        let Some(shared) = &rates.shared else { return };
        let read = |value: fn(&RateStoreStatus) -> u64| {
            let shared = shared.clone();
            move || value(&shared.status())
        };
        let help = "Outages of the server of shared rate limits";
        self.counter("rate_limit_store_outages", help, read(|status| status.outages));
        let help = "Corrections of tokens that the server of shared rate limits did not confirm";
        self.counter("rate_limit_lost_corrections", help, read(|status| status.lost_corrections));
        let help = "1 while the server of shared rate limits is used";
        self.gauge("rate_limit_store_up", help, read(|status| u64::from(status.outage.is_none())));
        let (shared, help) = (shared.clone(), "Rate limit decisions without the server of shared rate limits");
        self.family("rate_limit_fallbacks", help, MetricKind::Counter, move || {
            let status = shared.status();
            by("decision", [("local", status.decided_locally), ("reject", status.rejected)])
        });
    }

    /// Reports the caches of keys and policies.
    pub fn watch_caches(&self, keys: Arc<CachedKeyGrants>, policies: Arc<CachedPolicies>) {
        let caches = move || [("keys", keys.status()), ("policies", policies.status())];
        let of_entries = caches.clone();
        self.family("cache_entries", "Cache entries", MetricKind::Gauge, move || {
            by("cache", of_entries().map(|(cache, status)| (cache, status.entries)))
        });
        self.family("cache_lookups", "Cache lookups by result", MetricKind::Counter, move || {
            let samples = caches().into_iter().flat_map(|(cache, status)| {
                let sample = |result: &str, value| labelled([("cache", cache), ("result", result)], value);
                [sample("hit", status.hits), sample("miss", status.misses)]
            });
            samples.collect()
        });
    }

    /// Reports the journal. The weak reference lets the ledger end before the metrics do.
    pub fn watch_journal(&self, ledger: &Arc<RenewingLedger>) {
        let read = |value: fn(&RenewingLedger) -> u64| {
            let ledger = Arc::downgrade(ledger);
            move || ledger.upgrade().map_or(0, |ledger| value(&ledger))
        };
        let help = "Journal entries not yet folded into the database";
        self.gauge("journal_unfolded_entries", help, read(|ledger| ledger.journal_status().unfolded_entries));
        let help = "Bytes of journal entries not yet folded into the database";
        self.gauge("journal_unfolded_bytes", help, read(|ledger| ledger.journal_status().unfolded_bytes));
        self.gauge("open_holds", "Open holds of Decisions requests", read(|ledger| number(ledger.open_calls())));
        let help = "Usage records stored without their trace because the journal was half full or the record too large";
        self.counter("journal_omitted_traces", help, read(RenewingLedger::omitted_traces));
        let help = "Journal entries folded into the database since the journal was created";
        self.counter("journal_folded_entries", help, read(RenewingLedger::folded_entries));
        let help = "Requests with a limit rejected because no hold could be placed: the database takes no writes";
        self.counter("hold_failures", help, read(RenewingLedger::failed_holds));
        let help = "Changes of the process id because the database no longer accepted the previous one";
        self.counter("ledger_renewals", help, read(RenewingLedger::renewals));
    }

    /// Reports records that retention cannot remove.
    pub fn watch_retention(&self, unreadable: impl Fn() -> u64 + Send + Sync + 'static) {
        let help = "Expired usage records that the last retention run could not read";
        self.gauge("retention_unreadable_records", help, unreadable);
    }

    /// Polls the outbox in the background until the instance ends.
    pub fn watch_outbox(&self, stores: &Stores, background: &Background) {
        let Some(metrics) = self.0.clone() else { return };
        let outbox = SeaOrmOutbox::new(stores.database.clone());
        let (clock, cancelled) = (Arc::clone(&stores.clock), background.cancelled.clone());
        background.tasks.spawn(async move {
            sample(&metrics, &outbox, &*clock).await;
            while cancelled.run_until_cancelled(tokio::time::sleep(SAMPLE_EVERY)).await.is_some() {
                sample(&metrics, &outbox, &*clock).await;
            }
        });
    }

    fn gauge(&self, name: &'static str, help: &'static str, read: impl Fn() -> u64 + Send + Sync + 'static) {
        self.watch(MetricSample::single(name, help, MetricKind::Gauge, read));
    }

    fn counter(&self, name: &'static str, help: &'static str, read: impl Fn() -> u64 + Send + Sync + 'static) {
        self.watch(MetricSample::single(name, help, MetricKind::Counter, read));
    }

    fn family(
        &self,
        name: &'static str,
        help: &'static str,
        kind: MetricKind,
        read: impl Fn() -> Vec<LabelledValue> + Send + Sync + 'static,
    ) {
        self.watch(MetricSample { name, help, kind, read: Box::new(read) });
    }

    fn watch(&self, sample: MetricSample) {
        if let Some(metrics) = &self.0 {
            metrics.watch(sample);
        }
    }
}

fn number(count: usize) -> u64 {
    u64::try_from(count).unwrap_or(u64::MAX)
}

/// Reports the file descriptors of the process.
fn watch_descriptors(metrics: &PrometheusMetrics) {
    let help = "Open file descriptors of the process";
    let open = || open_descriptors().unwrap_or_default();
    metrics.watch_process(MetricSample::single("process_open_fds", help, MetricKind::Gauge, open));
    let help = "File descriptors that the process may open";
    let limit = || DescriptorLimit::of_process().soft;
    metrics.watch_process(MetricSample::single("process_max_fds", help, MetricKind::Gauge, limit));
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

/// Returns a value for each value of one label.
fn by<'a>(label: &'static str, values: impl IntoIterator<Item = (&'a str, u64)>) -> Vec<LabelledValue> {
    values.into_iter().map(|(name, value)| labelled([(label, name)], value)).collect()
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
