//! Key look-ups from memory.

use std::sync::Arc;

use async_trait::async_trait;
use domain::api_key::{ApiKeyHash, GrantCache, GrantScope, KeyGrant, KeyGrants};
use domain::error::StoreError;

use crate::changed::{Changed, DropChanged};
use crate::shared_fills::SharedFills;
use crate::standing::{CacheStanding, Lookups};
use crate::{ChangeWatcher, Freshness};

/// Finds grants in memory, else in `inner`; many askers of one key ask `inner` once.
///
/// Entries are filed under the full digest. A change drops the key that it names, or the keys of a workspace, and the
/// look-ups that are under way and began before it. Unknown keys are not kept: a key that is made now works now. While
/// the feed cannot be read, the keys in memory are found and all others are an error.
pub struct CachedKeyGrants {
    inner: Arc<dyn KeyGrants>,
    watcher: Arc<ChangeWatcher>,
    grants: Arc<Grants>,
    lookups: Lookups,
}

type Grants = SharedFills<ApiKeyHash, Arc<KeyGrant>, Miss>;

/// Why a look-up brought nothing to keep.
#[derive(Debug, thiserror::Error)]
enum Miss {
    #[error("there is no such key")]
    Unknown,
    #[error("the look-up failed")]
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
    /// Wires the ports; `capacity` is how many grants are kept at most.
    pub fn new(inner: Arc<dyn KeyGrants>, watcher: Arc<ChangeWatcher>, capacity: u64) -> Self {
        let grants = Arc::new(Grants::new(capacity));
        watcher.attach(Arc::clone(&grants) as Arc<dyn DropChanged>);
        Self { inner, watcher, grants, lookups: Lookups::default() }
    }

    /// Asks `inner`, unless somebody is asking for the same already.
    async fn look_up(&self, freshness: Freshness, hash: &ApiKeyHash) -> Result<Option<Arc<KeyGrant>>, StoreError> {
        // A key that was not found in a store that is half away may exist.
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

    /// How it stands.
    pub fn standing(&self) -> CacheStanding {
        self.lookups.standing(self.grants.count())
    }
}

#[async_trait]
impl GrantCache for CachedKeyGrants {
    /// Drops the grant of the secret, also where the change feed cannot be read, then reads the feed: what changed up to
    /// now is dropped.
    async fn invalidate(&self, hash: &ApiKeyHash) -> Result<(), StoreError> {
        self.grants.drop_keys([hash]);
        self.watcher.refresh().await
    }
}

#[async_trait]
impl KeyGrants for CachedKeyGrants {
    async fn find(&self, hash: &ApiKeyHash) -> Result<Option<Arc<KeyGrant>>, StoreError> {
        // Before the look: changes up to now have been dropped by then.
        let freshness = self.watcher.freshness().await?;
        match self.lookups.count(self.grants.get(hash)) {
            Some(grant) => Ok(Some(grant)),
            // Boxed, so that the many that are found do not carry the room of the few that are not.
            None => Box::pin(self.look_up(freshness, hash)).await,
        }
    }
}
