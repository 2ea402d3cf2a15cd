//! How caches stand, for the operator.

use std::sync::atomic::{AtomicU64, Ordering};

/// How a cache stands.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct CacheStanding {
    /// Entries, about.
    pub entries: u64,
    /// Look-ups that were answered from memory, since the start.
    pub hits: u64,
    /// Look-ups that were not.
    pub misses: u64,
}

/// Look-ups since the start.
#[derive(Debug, Default)]
pub(crate) struct Lookups {
    hits: AtomicU64,
    misses: AtomicU64,
}

impl Lookups {
    /// Counts one, and hands on what it found.
    pub(crate) fn count<T>(&self, found: Option<T>) -> Option<T> {
        let counter = if found.is_some() { &self.hits } else { &self.misses };
        counter.fetch_add(1, Ordering::Relaxed);
        found
    }

    pub(crate) fn standing(&self, entries: u64) -> CacheStanding {
        let (hits, misses) = (self.hits.load(Ordering::Relaxed), self.misses.load(Ordering::Relaxed));
        CacheStanding { entries, hits, misses }
    }
}
