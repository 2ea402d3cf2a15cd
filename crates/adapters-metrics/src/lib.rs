//! Metrics in the Prometheus text format.
//!
//! No label contains text of a caller: routes are patterns, providers and models come from the configuration, other
//! values from fixed lists. Therefore the configuration bounds the number of series.
#![warn(missing_docs)]

mod buckets;
mod decisions;
mod edge;
mod metrics;
mod outbox;
mod reading;
mod usd;

pub use edge::EdgeMeasures;
pub use metrics::{OPENMETRICS, PrometheusMetrics};
pub use outbox::OutboxMeasures;
pub use reading::{Kind, Reading, Sample};
