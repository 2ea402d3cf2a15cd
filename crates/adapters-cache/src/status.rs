//! Status of caches, for operators.

use std::sync::atomic::{AtomicU64, Ordering};

/// The status of a cache.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct CacheStatus {
    /// The approximate number of entries.
    pub entries: u64,
    /// Look-ups answered from memory since the start.
    pub hits: u64,
    /// Other look-ups since the start.
    pub misses: u64,
}

/// Look-up counters since the start.
#[derive(Debug, Default)]
pub(crate) struct Lookups {
    hits: AtomicU64,
    misses: AtomicU64,
}

impl Lookups {
    /// Counts a look-up and returns its result.
    pub(crate) fn count<T>(&self, found: Option<T>) -> Option<T> {
        let counter = if found.is_some() { &self.hits } else { &self.misses };
        counter.fetch_add(1, Ordering::Relaxed);
        found
    }

    pub(crate) fn status(&self, entries: u64) -> CacheStatus {
        let (hits, misses) = (self.hits.load(Ordering::Relaxed), self.misses.load(Ordering::Relaxed));
        CacheStatus { entries, hits, misses }
    }
}
