//! All measures of a process.

use std::sync::{Mutex, MutexGuard, PoisonError};

use prometheus_client::encoding::text::{encode_eof, encode_registry};
use prometheus_client::metrics::info::Info;
use prometheus_client::registry::Registry;

use crate::decisions::DecisionMeasures;
use crate::edge::EdgeMeasures;
use crate::outbox::OutboxMeasures;
use crate::reading::Reading;

/// The media type of [`PrometheusMetrics::text`].
pub const OPENMETRICS: &str = "application/openmetrics-text; version=1.0.0; charset=utf-8";

/// All measures of a process. It is also the domain's [`Metrics`](domain::observability::Metrics).
pub struct PrometheusMetrics {
    registry: Mutex<Registry>,
    /// Measures of the process, whose names are the same for all software.
    process: Mutex<Registry>,
    edge: EdgeMeasures,
    outbox: OutboxMeasures,
    pub(crate) decisions: DecisionMeasures,
}

impl PrometheusMetrics {
    /// Measures that begin at nothing. `providers` are the slugs that may be told apart; what others do counts for
    /// `other`.
    pub fn new<'a>(version: &'static str, providers: impl IntoIterator<Item = &'a str>) -> Self {
        let mut registry = Registry::with_prefix("tollgate");
        registry.register("build", "What runs", Info::new(vec![("version", version)]));
        Self {
            edge: EdgeMeasures::register(&mut registry),
            outbox: OutboxMeasures::register(&mut registry),
            decisions: DecisionMeasures::register(&mut registry, providers),
            registry: Mutex::new(registry),
            process: Mutex::default(),
        }
    }

    /// What is counted where requests come in.
    pub fn edge(&self) -> &EdgeMeasures {
        &self.edge
    }

    /// How messages to destinations stand.
    pub fn outbox(&self) -> &OutboxMeasures {
        &self.outbox
    }

    /// From now on this is read at each scrape.
    pub fn watch(&self, reading: Reading) {
        lock(&self.registry).register_collector(Box::new(reading));
    }

    /// As [`PrometheusMetrics::watch`], for a measure whose name is not put behind `tollgate_`.
    pub fn watch_process(&self, reading: Reading) {
        lock(&self.process).register_collector(Box::new(reading));
    }

    /// Everything as it is now, in the text format of measures.
    pub fn text(&self) -> String {
        let mut text = String::new();
        // Writing to a string fails only where a reading does, and readings do not.
        let written = encode_registry(&mut text, &lock(&self.registry))
            .and_then(|()| encode_registry(&mut text, &lock(&self.process)))
            .and_then(|()| encode_eof(&mut text));
        if written.is_err() {
            "# EOF\n".clone_into(&mut text);
        }
        text
    }
}

/// Locked for scrapes, never for a request.
fn lock(registry: &Mutex<Registry>) -> MutexGuard<'_, Registry> {
    registry.lock().unwrap_or_else(PoisonError::into_inner)
}

#[cfg(test)]
mod tests;
