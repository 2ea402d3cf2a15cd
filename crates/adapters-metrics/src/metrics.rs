//! All metrics of a process.

use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use domain::decision::Metrics;
use prometheus_client::encoding::text::{encode_eof, encode_registry};
use prometheus_client::metrics::info::Info;
use prometheus_client::registry::Registry;

use crate::decisions::{DecisionMetrics, OutboxMetrics};
use crate::http::HttpMetrics;
use crate::sample::MetricSample;

/// The media type of [`PrometheusMetrics::text`].
pub const OPENMETRICS: &str = "application/openmetrics-text; version=1.0.0; charset=utf-8";

/// All metrics of a process.
pub struct PrometheusMetrics {
    registry: Mutex<Registry>,
    /// Process metrics with the standard names.
    process: Mutex<Registry>,
    http: HttpMetrics,
    outbox: OutboxMetrics,
    decisions: Arc<DecisionMetrics>,
}

impl PrometheusMetrics {
    /// Creates the metrics. `providers` are the slugs with separate series; all others count as `other`.
    pub fn new<'a>(version: &'static str, providers: impl IntoIterator<Item = &'a str>) -> Self {
        let mut registry = Registry::with_prefix("tollgate");
        registry.register("build", "What runs", Info::new(vec![("version", version)]));
        Self {
            http: HttpMetrics::register(&mut registry),
            outbox: OutboxMetrics::register(&mut registry),
            decisions: Arc::new(DecisionMetrics::register(&mut registry, providers)),
            registry: Mutex::new(registry),
            process: Mutex::default(),
        }
    }

    /// Returns the metrics of inbound requests.
    pub fn http(&self) -> &HttpMetrics {
        &self.http
    }

    /// Returns the metrics of decisions.
    pub fn decisions(&self) -> Arc<dyn Metrics> {
        Arc::clone(&self.decisions) as Arc<dyn Metrics>
    }

    /// Returns the metrics of the outbox.
    pub fn outbox(&self) -> &OutboxMetrics {
        &self.outbox
    }

    /// Adds the series of providers that a reloaded configuration names. Series of removed providers stay.
    pub fn add_providers<'a>(&self, slugs: impl IntoIterator<Item = &'a str>) {
        self.decisions.add_providers(slugs);
    }

    /// Adds a reading to every scrape.
    pub fn watch(&self, sample: MetricSample) {
        lock(&self.registry).register_collector(Box::new(sample));
    }

    /// Like [`PrometheusMetrics::watch`], for a metric without the prefix `tollgate_`.
    pub fn watch_process(&self, sample: MetricSample) {
        lock(&self.process).register_collector(Box::new(sample));
    }

    /// Returns all current values in the text format.
    pub fn text(&self) -> String {
        let mut text = String::new();
        // Writing to a string fails only if a reading does, and readings never fail.
        let written = encode_registry(&mut text, &lock(&self.registry))
            .map(|()| self.decisions.write_money(&mut text))
            .and_then(|()| encode_registry(&mut text, &lock(&self.process)))
            .and_then(|()| encode_eof(&mut text));
        if written.is_err() {
            "# EOF\n".clone_into(&mut text);
        }
        text
    }
}

/// Locked by scrapes, never by requests.
fn lock(registry: &Mutex<Registry>) -> MutexGuard<'_, Registry> {
    registry.lock().unwrap_or_else(PoisonError::into_inner)
}

#[cfg(test)]
mod tests;
