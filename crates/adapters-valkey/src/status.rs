//! The status of the shared counts.

use std::sync::atomic::{AtomicU64, Ordering};

/// The status of the shared counts, for metrics and readiness.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct RateStoreStatus {
    /// The last error while the server is not used; `None` while it is.
    pub outage: Option<String>,
    /// Outages since the start.
    pub outages: u64,
    /// Requests that this process decided by its share of the limits.
    pub decided_locally: u64,
    /// Requests that were rejected because the server was not used.
    pub rejected: u64,
    /// Corrections of tokens that the server did not confirm.
    pub lost_corrections: u64,
}

/// Counts events since the start.
#[derive(Debug, Default)]
pub(crate) struct Counters {
    pub(crate) outages: Counter,
    pub(crate) decided_locally: Counter,
    pub(crate) rejected: Counter,
    pub(crate) lost_corrections: Counter,
}

/// A counter.
#[derive(Debug, Default)]
pub(crate) struct Counter(AtomicU64);

impl Counter {
    pub(crate) fn add_one(&self) {
        self.0.fetch_add(1, Ordering::Relaxed);
    }

    pub(crate) fn get(&self) -> u64 {
        self.0.load(Ordering::Relaxed)
    }
}
