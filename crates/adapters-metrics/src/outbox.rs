//! Metrics of messages to destinations. They need database queries, so they are sampled periodically and never at a
//! scrape.

use chrono::{DateTime, Utc};
use domain::observability::OutboxStatus;
use prometheus_client::encoding::EncodeLabelSet;
use prometheus_client::metrics::counter::Counter;
use prometheus_client::metrics::family::Family;
use prometheus_client::metrics::gauge::Gauge;
use prometheus_client::registry::{Registry, Unit};

/// The last sample of the outbox.
#[derive(Debug)]
pub struct OutboxMetrics {
    messages: Family<StateLabels, Gauge>,
    lag: Gauge,
    failed_samples: Counter,
}

#[derive(Debug, Clone, PartialEq, Eq, Hash, EncodeLabelSet)]
struct StateLabels {
    state: &'static str,
}

impl OutboxMetrics {
    pub(crate) fn register(registry: &mut Registry) -> Self {
        let metrics = Self { messages: Family::default(), lag: Gauge::default(), failed_samples: Counter::default() };
        metrics.set(0, 0);
        registry.register("outbox_messages", "Outbox messages by state", metrics.messages.clone());
        registry.register_with_unit(
            "outbox_lag",
            "Age of the oldest pending message",
            Unit::Seconds,
            metrics.lag.clone(),
        );
        registry.register(
            "outbox_poll_errors",
            "Failed polls of the outbox; its other metrics are stale then",
            metrics.failed_samples.clone(),
        );
        metrics
    }

    /// Records a sample.
    pub fn record_sample(&self, status: &OutboxStatus, now: DateTime<Utc>) {
        self.set(status.pending, status.dead);
        let lag = status.oldest.map_or(0, |oldest| (now - oldest).num_seconds().max(0));
        self.lag.set(lag);
    }

    /// Records a failed sample.
    pub fn record_sample_failure(&self) {
        self.failed_samples.inc();
    }

    fn set(&self, pending: u64, dead: u64) {
        for (state, count) in [("pending", pending), ("dead", dead)] {
            self.messages.get_or_create(&StateLabels { state }).set(i64::try_from(count).unwrap_or(i64::MAX));
        }
    }
}
