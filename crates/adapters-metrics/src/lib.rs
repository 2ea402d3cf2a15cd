//! Measures in the text format that Prometheus and its kin read.
//!
//! No label holds anything of a caller's: routes are patterns, providers and models come from the configuration, the
//! rest from fixed lists. So the number of series is bounded by the configuration.
#![warn(missing_docs)]

mod buckets;
mod decisions;
mod edge;
mod metrics;
mod outbox;
mod reading;

pub use edge::EdgeMeasures;
pub use metrics::{OPENMETRICS, PrometheusMetrics};
pub use outbox::OutboxMeasures;
pub use reading::{Kind, Reading, Sample};
