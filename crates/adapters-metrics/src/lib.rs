//! Metrics in the Prometheus text format.
//!
//! No label contains text of a caller: routes are patterns, providers and models come from the configuration, other
//! values from fixed lists. Therefore the configuration bounds the number of series.
#![warn(missing_docs)]

mod decisions;
mod http;
mod metrics;
mod sample;

pub use decisions::OutboxMetrics;
pub use http::HttpMetrics;
pub use metrics::{OPENMETRICS, PrometheusMetrics};
pub use sample::{LabelledValue, MetricKind, MetricSample};
