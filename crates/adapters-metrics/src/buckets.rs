//! Upper bounds of histograms, in seconds.

use prometheus_client::metrics::histogram::Histogram;

/// Returns buckets for requests and provider calls: half a millisecond to two minutes.
pub(crate) fn of_calls() -> Histogram {
    Histogram::new([
        0.0005, 0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1.0, 2.5, 5.0, 10.0, 30.0, 60.0, 120.0,
    ])
}

/// Returns buckets for work within this process: fifty microseconds to five seconds.
pub(crate) fn of_own_work() -> Histogram {
    Histogram::new([
        0.000_05, 0.0001, 0.000_25, 0.0005, 0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1.0, 5.0,
    ])
}
