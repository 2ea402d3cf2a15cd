//! Key look-ups from memory.

use std::sync::Arc;
use std::time::Duration;

use async_trait::async_trait;
use domain::api_key::{ApiKeyHash, KeyGrant, KeyGrants};
use domain::error::StoreError;
use moka::future::Cache;
use moka::policy::EvictionPolicy;

use crate::standing::{CacheStanding, Lookups};
use crate::{ChangeWatcher, KeysVersion};

/// Finds grants in memory, else in `inner`; many askers of one key ask `inner` once.
///
/// Entries are filed under the change feed's key counter as well as under the digest. So a change anywhere makes all
/// of them unreachable at once, and a look-up that began before a change is filed where nobody looks any more.
/// Unknown keys are not kept: a key that is made now works now. While the feed cannot be read, the keys in memory are
/// found and all others are an error.
pub struct CachedKeyGrants {
    inner: Arc<dyn KeyGrants>,
    watcher: Arc<ChangeWatcher>,
    cache: Cache<(u64, ApiKeyHash), Arc<KeyGrant>>,
    lookups: Lookups,
}

/// Why a look-up brought nothing to keep.
#[derive(Debug, thiserror::Error)]
enum Miss {
    #[error("there is no such key")]
    Unknown,
    #[error("the look-up failed")]
    Store(#[source] StoreError),
}

impl CachedKeyGrants {
    /// Wires the ports; `capacity` is how many grants are kept at most.
    pub fn new(inner: Arc<dyn KeyGrants>, watcher: Arc<ChangeWatcher>, capacity: u64) -> Self {
        let cache = Cache::builder()
            .max_capacity(capacity)
            // Entries under an old counter are dead however often they were used, so age decides, not frequency.
            .eviction_policy(EvictionPolicy::lru())
            .time_to_idle(Duration::from_mins(5))
            .build();
        Self { inner, watcher, cache, lookups: Lookups::default() }
    }

    /// Asks `inner`, unless somebody is asking for the same already.
    async fn look_up(&self, version: KeysVersion, hash: &ApiKeyHash) -> Result<Option<Arc<KeyGrant>>, StoreError> {
        // A key that was not found in a store that is half away may exist.
        let number = if version.is_stale { self.watcher.refresh_keys().await? } else { version.number };
        let entry = (number, *hash);
        let look_up = async {
            match self.inner.find(&entry.1).await {
                Ok(Some(grant)) => Ok(grant),
                Ok(None) => Err(Miss::Unknown),
                Err(error) => Err(Miss::Store(error)),
            }
        };
        match self.cache.try_get_with(entry, look_up).await {
            Ok(grant) => Ok(Some(grant)),
            Err(miss) => match &*miss {
                Miss::Unknown => Ok(None),
                Miss::Store(StoreError::Corrupt(what)) => Err(StoreError::Corrupt(what.clone())),
                Miss::Store(StoreError::Unavailable(_)) => Err(StoreError::unavailable(miss)),
            },
        }
    }

    /// How it stands.
    pub fn standing(&self) -> CacheStanding {
        self.lookups.standing(self.cache.entry_count())
    }
}

#[async_trait]
impl KeyGrants for CachedKeyGrants {
    async fn find(&self, hash: &ApiKeyHash) -> Result<Option<Arc<KeyGrant>>, StoreError> {
        let version = self.watcher.keys_version().await?;
        match self.lookups.count(self.cache.get(&(version.number, *hash)).await) {
            Some(grant) => Ok(Some(grant)),
            // Boxed, so that the many that are found do not carry the room of the few that are not.
            None => Box::pin(self.look_up(version, hash)).await,
        }
    }
}
