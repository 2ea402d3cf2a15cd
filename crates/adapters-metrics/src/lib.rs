//! Metrics in the Prometheus text format.
//!
//! No label contains text of a caller: routes are patterns, providers and models come from the configuration, other
//! values from fixed lists. Therefore the configuration bounds the number of series.
#![warn(missing_docs)]

mod buckets;
mod decisions;
mod http;
mod metrics;
mod outbox;
mod sample;
mod usd;

pub use http::HttpMetrics;
pub use metrics::{OPENMETRICS, PrometheusMetrics};
pub use outbox::OutboxMetrics;
pub use sample::{LabelledValue, MetricKind, MetricSample};
