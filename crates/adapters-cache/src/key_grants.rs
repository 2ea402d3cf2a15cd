//! Cached key look-ups.

use std::sync::Arc;

use async_trait::async_trait;
use domain::api_key::{GrantCache, GrantScope, KeyGrant, KeyGrants};
use domain::error::StoreError;
use domain::secret::ApiKeyHash;

use crate::changed::{Changed, DropChanged};
use crate::shared_fills::SharedFills;
use crate::status::{CacheStatus, Lookups};
use crate::{ChangeWatcher, Freshness};

/// Finds grants in memory, else in `inner`; concurrent look-ups of one key share one call of `inner`.
///
/// Entries are stored under the full digest. A change drops the key that it names, or the keys of a workspace, and
/// pending look-ups of them. Unknown keys are not cached, so that a new key works at once. While the feed cannot be
/// read, cached keys are found and all others are an error.
pub struct CachedKeyGrants {
    inner: Arc<dyn KeyGrants>,
    watcher: Arc<ChangeWatcher>,
    grants: Arc<Grants>,
    lookups: Lookups,
}

type Grants = SharedFills<ApiKeyHash, Arc<KeyGrant>, Miss>;

/// The reason for a look-up without a result to cache.
#[derive(Debug, thiserror::Error)]
enum Miss {
    #[error("key not found")]
    Unknown,
    #[error("the lookup failed")]
    Store(#[source] StoreError),
}

impl DropChanged for Grants {
    fn drop_changed(&self, changed: &Changed) {
        match changed {
            Changed::Everything => self.drop_where(|_, _| true),
            Changed::Named { keys, workspaces, .. } => {
                self.drop_keys(keys);
                if !workspaces.is_empty() {
                    self.drop_where(|_, grant| match &grant.scope {
                        GrantScope::Inference { workspace_id, .. } => workspaces.contains(workspace_id),
                        GrantScope::Management => false,
                    });
                }
            }
        }
    }
}

impl CachedKeyGrants {
    /// Creates the cache; `capacity` is the largest number of cached grants.
    pub fn new(inner: Arc<dyn KeyGrants>, watcher: Arc<ChangeWatcher>, capacity: u64) -> Self {
        let grants = Arc::new(Grants::new(capacity));
        watcher.attach(Arc::clone(&grants) as Arc<dyn DropChanged>);
        Self { inner, watcher, grants, lookups: Lookups::default() }
    }

    /// Looks up in `inner`, or joins a pending look-up of the same key.
    async fn look_up(&self, freshness: Freshness, hash: &ApiKeyHash) -> Result<Option<Arc<KeyGrant>>, StoreError> {
        // A key that is missing in a partially unavailable store may exist.
        if freshness == Freshness::Stale {
            self.watcher.refresh().await?;
        }
        let look_up = async {
            match self.inner.find(hash).await {
                Ok(Some(grant)) => Ok(grant),
                Ok(None) => Err(Miss::Unknown),
                Err(error) => Err(Miss::Store(error)),
            }
        };
        match self.grants.fill(*hash, look_up).await {
            Ok(grant) => Ok(Some(grant)),
            Err(miss) => match &*miss {
                Miss::Unknown => Ok(None),
                Miss::Store(StoreError::Corrupt(what)) => Err(StoreError::Corrupt(what.clone())),
                Miss::Store(StoreError::Unavailable(_)) => Err(StoreError::unavailable(miss)),
            },
        }
    }

    /// Returns the cache's status.
    pub fn status(&self) -> CacheStatus {
        self.lookups.status(self.grants.count())
    }
}

#[async_trait]
impl GrantCache for CachedKeyGrants {
    /// Drops the grant of the secret, even if the change feed cannot be read, and then reads the feed: all changes up
    /// to now are dropped.
    async fn invalidate(&self, hash: &ApiKeyHash) -> Result<(), StoreError> {
        self.grants.drop_keys([hash]);
        self.watcher.refresh().await
    }
}

#[async_trait]
impl KeyGrants for CachedKeyGrants {
    async fn find(&self, hash: &ApiKeyHash) -> Result<Option<Arc<KeyGrant>>, StoreError> {
        // Read before the look-up: all changes up to now have been dropped by then.
        let freshness = self.watcher.freshness().await?;
        match self.lookups.count(self.grants.get(hash)) {
            Some(grant) => Ok(Some(grant)),
            // Boxed, because most look-ups are hits and should not reserve stack for misses.
            None => Box::pin(self.look_up(freshness, hash)).await,
        }
    }
}
