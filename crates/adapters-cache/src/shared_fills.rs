//! A cache with shared reads that are discarded if a change overtakes them, and its counters.

use std::collections::HashMap;
use std::hash::Hash;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use domain::error::StoreError;
use moka::policy::EvictionPolicy;
use moka::sync::Cache;
use tokio::sync::OnceCell;

/// A read that all concurrent misses of the entry wait for.
type Fill<V> = Arc<OnceCell<Result<Option<V>, Arc<StoreError>>>>;

/// Cached entries and pending reads.
///
/// An entry is cached only if its read is still in `fills` when it ends. A change removes reads from `fills` and
/// entries from the cache under one lock, so no outdated entry survives.
pub(crate) struct SharedFills<K, V> {
    entries: Cache<K, V>,
    fills: Mutex<HashMap<K, Fill<V>>>,
}

impl<K, V> SharedFills<K, V>
where
    K: Clone + Eq + Hash + Send + Sync + 'static,
    V: Clone + Send + Sync + 'static,
{
    /// Creates a cache; `capacity` is the largest number of entries, and the least recently used are evicted first.
    pub(crate) fn new(capacity: u64) -> Self {
        let entries = Cache::builder()
            .max_capacity(capacity)
            .eviction_policy(EvictionPolicy::lru())
            .time_to_idle(Duration::from_mins(5))
            .build();
        Self { entries, fills: Mutex::default() }
    }

    pub(crate) fn get(&self, key: &K) -> Option<V> {
        self.entries.get(key)
    }

    /// Returns the approximate number of entries.
    pub(crate) fn count(&self) -> u64 {
        self.entries.entry_count()
    }

    /// Reads an entry, or waits for a pending read of it. Failures and missing entries are shared but not cached.
    pub(crate) async fn fill(
        &self,
        key: K,
        read: impl Future<Output = Result<Option<V>, StoreError>>,
    ) -> Result<Option<V>, StoreError> {
        let fill = Arc::clone(self.fills().entry(key.clone()).or_default());
        let pending = PendingFill { fills: &self.fills, key: key.clone(), fill };
        let result = pending.fill.get_or_init(|| async { read.await.map_err(Arc::new) }).await;
        let mut fills = self.fills();
        if pending.is_current(&fills) {
            fills.remove(&key);
            if let Ok(Some(value)) = result {
                self.entries.insert(key, value.clone());
            }
        }
        drop(fills);
        result.clone().map_err(|error| match &*error {
            StoreError::Corrupt(what) => StoreError::Corrupt(what.clone()),
            StoreError::Unavailable(_) | StoreError::Repeated => StoreError::unavailable(error),
        })
    }

    /// Drops entries and pending reads of them.
    pub(crate) fn drop_keys<'a>(&self, keys: impl IntoIterator<Item = &'a K>) {
        let mut fills = self.fills();
        for key in keys {
            fills.remove(key);
            self.entries.invalidate(key);
        }
    }

    /// Drops the entries that match `is_named`, and all pending reads, whose results are unknown.
    pub(crate) fn drop_where(&self, is_named: impl Fn(&K, &V) -> bool) {
        let mut fills = self.fills();
        fills.clear();
        for (key, value) in &self.entries {
            if is_named(&key, &value) {
                self.entries.invalidate(&*key);
            }
        }
    }

    fn fills(&self) -> MutexGuard<'_, HashMap<K, Fill<V>>> {
        lock(&self.fills)
    }
}

/// One of the waiters for a read. The last one that leaves before the end of the read removes it.
struct PendingFill<'a, K: Clone + Eq + Hash, V> {
    fills: &'a Mutex<HashMap<K, Fill<V>>>,
    key: K,
    fill: Fill<V>,
}

impl<K: Clone + Eq + Hash, V> PendingFill<'_, K, V> {
    /// Returns true unless a change dropped the read or its result is cached already.
    fn is_current(&self, fills: &HashMap<K, Fill<V>>) -> bool {
        fills.get(&self.key).is_some_and(|current| Arc::ptr_eq(current, &self.fill))
    }
}

impl<K: Clone + Eq + Hash, V> Drop for PendingFill<'_, K, V> {
    fn drop(&mut self) {
        let mut fills = lock(self.fills);
        let is_current = self.is_current(&fills);
        // Under the lock, so that exactly one of two concurrent leavers is the last.
        drop(std::mem::take(&mut self.fill));
        if is_current && fills.get(&self.key).is_some_and(|fill| Arc::strong_count(fill) == 1) {
            fills.remove(&self.key);
        }
    }
}

fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

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

#[cfg(test)]
mod tests {
    use std::sync::atomic::{AtomicUsize, Ordering};

    use super::*;

    type Fills = SharedFills<u32, u32>;

    async fn slow(value: Result<u32, StoreError>) -> Result<Option<u32>, StoreError> {
        tokio::time::sleep(Duration::from_millis(100)).await;
        value.map(Some)
    }

    async fn soon() {
        tokio::time::sleep(Duration::from_millis(50)).await;
    }

    #[tokio::test(start_paused = true)]
    async fn fill_shares_read_and_failure() {
        let (cache, reads) = (Fills::new(10), AtomicUsize::new(0));
        let read = |value| {
            let reads = &reads;
            async move {
                reads.fetch_add(1, Ordering::SeqCst);
                slow(value).await
            }
        };
        let (one, two) = tokio::join!(cache.fill(1, read(Ok(7))), cache.fill(1, read(Ok(8))));
        assert_eq!((one.unwrap(), two.unwrap(), cache.get(&1)), (Some(7), Some(7), Some(7)));
        let (one, two) =
            tokio::join!(cache.fill(2, read(Err(StoreError::unavailable("away")))), cache.fill(2, read(Ok(8))));
        for failure in [one, two] {
            assert!(matches!(failure, Err(StoreError::Unavailable(_))));
        }
        assert_eq!(cache.get(&2), None);
        assert_eq!((cache.fill(3, async { Ok(None) }).await.unwrap(), cache.get(&3)), (None, None));
        assert_eq!(reads.load(Ordering::SeqCst), 2);
        assert_eq!(cache.fill(2, read(Ok(9))).await.unwrap(), Some(9), "a failure is not kept");
    }

    #[tokio::test(start_paused = true)]
    async fn fill_discards_read_overtaken_by_change() {
        let cache = Fills::new(10);
        for drops_all in [false, true] {
            let change = async {
                soon().await;
                if drops_all { cache.drop_where(|_, _| false) } else { cache.drop_keys(&[1]) }
            };
            let late = async {
                soon().await;
                soon().await;
                cache.fill(1, slow(Ok(2))).await
            };
            let (before, (), other) = tokio::join!(cache.fill(1, slow(Ok(1))), change, cache.fill(2, slow(Ok(3))));
            assert_eq!((before.unwrap(), cache.get(&1)), (Some(1), None));
            assert_eq!((other.unwrap(), cache.get(&2)), (Some(3), (!drops_all).then_some(3)));
            let (before, (), after) = tokio::join!(cache.fill(1, slow(Ok(1))), async { cache.drop_keys(&[1]) }, late);
            assert_eq!((before.unwrap(), after.unwrap(), cache.get(&1)), (Some(1), Some(2), Some(2)));
            cache.drop_keys(&[1, 2]);
        }
    }

    #[tokio::test(start_paused = true)]
    async fn fill_continues_when_first_caller_leaves() {
        let cache = Fills::new(10);
        let left = tokio::time::timeout(Duration::from_millis(50), cache.fill(1, slow(Ok(1))));
        let (left, stayed) = tokio::join!(left, cache.fill(1, slow(Ok(2))));
        assert!(left.is_err());
        assert_eq!((stayed.unwrap(), cache.get(&1)), (Some(2), Some(2)));
        let left = tokio::time::timeout(Duration::from_millis(50), cache.fill(3, slow(Ok(1)))).await;
        assert!(left.is_err() && cache.fills().is_empty());
    }

    #[test]
    fn drop_where_drops_only_named_entries() {
        let cache = Fills::new(1_000);
        for key in 0..1_000 {
            cache.entries.insert(key, key % 10);
        }
        cache.drop_keys(&[5]);
        assert_eq!((cache.get(&5), cache.get(&15)), (None, Some(5)));
        cache.drop_where(|_, value| *value == 3);
        let kept = (0..1_000).filter(|key| cache.get(key).is_some()).count();
        assert_eq!(kept, 899);
        assert_eq!((cache.get(&3), cache.get(&993), cache.get(&4)), (None, None, Some(4)));
    }
}
