//! Cached key look-ups, and cached and compiled policies of keys.

use std::sync::Arc;

use async_trait::async_trait;
use domain::api_key::{GrantCache, GrantScope, InferenceKey, KeyGrant, KeyGrants};
use domain::error::StoreError;
use domain::guardrail::{Guardrail, GuardrailPolicies, GuardrailRepository, Policy};
use domain::ids::GuardrailId;
use domain::secret::ApiKeyHash;

use crate::shared_fills::{CacheStatus, Lookups, SharedFills};
use crate::watcher::{Changed, DropChanged};
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

type Grants = SharedFills<ApiKeyHash, Arc<KeyGrant>>;

impl DropChanged for Grants {
    fn drop_changed(&self, changed: &Changed) {
        match changed {
            Changed::Everything => self.drop_where(|_, _| true),
            Changed::Named { keys, workspaces, .. } => {
                self.drop_keys(keys);
                if !workspaces.is_empty() {
                    self.drop_where(|_, grant| match &grant.scope {
                        GrantScope::Inference { workspace_id, .. } => workspaces.contains(workspace_id),
                        GrantScope::Management(_) => false,
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
        self.grants.fill(*hash, self.inner.find(hash)).await
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

/// The number of times that a key is read again because its guardrail was deleted.
const TRIES: usize = 3;

/// The guardrail of a workspace and that of a key, in the order of their application.
type Pair = (Option<GuardrailId>, Option<GuardrailId>);

/// Finds policies in memory, else compiles them from the repository; concurrent look-ups of one pair of guardrails
/// share one read.
///
/// A change of a guardrail drops the policies of every pair with it, and pending reads that began earlier. Changes of
/// keys drop none.
pub struct CachedPolicies {
    guardrails: Arc<dyn GuardrailRepository>,
    grants: Arc<dyn KeyGrants>,
    watcher: Arc<ChangeWatcher>,
    policies: Arc<Policies>,
    lookups: Lookups,
}

type Policies = SharedFills<Pair, Arc<Policy>>;

impl DropChanged for Policies {
    fn drop_changed(&self, changed: &Changed) {
        match changed {
            Changed::Everything => self.drop_where(|_, _| true),
            Changed::Named { guardrails, .. } if guardrails.is_empty() => {}
            Changed::Named { guardrails, .. } => {
                self.drop_where(|pair, _| [pair.0, pair.1].iter().flatten().any(|id| guardrails.contains(id)));
            }
        }
    }
}

impl CachedPolicies {
    /// Creates the cache. `grants` is read when a key's guardrail was deleted, so it must not be a cache. `capacity` is
    /// the largest number of cached policies.
    pub fn new(
        guardrails: Arc<dyn GuardrailRepository>,
        grants: Arc<dyn KeyGrants>,
        watcher: Arc<ChangeWatcher>,
        capacity: u64,
    ) -> Self {
        let policies = Arc::new(Policies::new(capacity));
        watcher.attach(Arc::clone(&policies) as Arc<dyn DropChanged>);
        Self { guardrails, grants, watcher, policies, lookups: Lookups::default() }
    }

    /// Returns the cache's status.
    pub fn status(&self) -> CacheStatus {
        self.lookups.status(self.policies.count())
    }

    /// Returns the policy of a pair; `None` if one of its guardrails does not exist.
    async fn policy(&self, pair: Pair) -> Result<Option<Arc<Policy>>, StoreError> {
        let freshness = self.watcher.freshness().await?;
        if let Some(policy) = self.lookups.count(self.policies.get(&pair)) {
            return Ok(Some(policy));
        }
        // Boxed, because most look-ups are hits and should not reserve stack for misses.
        Box::pin(self.look_up(freshness, pair)).await
    }

    async fn look_up(&self, freshness: Freshness, pair: Pair) -> Result<Option<Arc<Policy>>, StoreError> {
        if freshness == Freshness::Stale {
            self.watcher.refresh().await?;
        }
        self.policies.fill(pair, self.make(pair)).await
    }

    async fn make(&self, pair: Pair) -> Result<Option<Arc<Policy>>, StoreError> {
        let mut guardrails: Vec<Guardrail> = Vec::with_capacity(2);
        for id in [pair.0, pair.1].into_iter().flatten() {
            if guardrails.iter().all(|found| found.id != id) {
                let Some(found) = self.guardrails.find(id).await? else { return Ok(None) };
                guardrails.push(found);
            }
        }
        let ids: Vec<String> = guardrails.iter().map(|guardrail| guardrail.id.to_string()).collect();
        let policy = Policy::compile(guardrails).map_err(|fault| {
            let what = format!("the filters of guardrail {} cannot be used: {fault}", ids.join(" and "));
            StoreError::Corrupt(what)
        })?;
        Ok(Some(Arc::new(policy)))
    }

    /// Returns the current guardrails of the key; none for a deleted key.
    async fn now(&self, key: &InferenceKey) -> Result<Pair, StoreError> {
        let grant = self.grants.find(&key.hash()).await?;
        match grant.as_deref().map(|grant| &grant.scope) {
            Some(GrantScope::Inference { workspace_guardrail_id, guardrail_id, .. }) => {
                Ok((*workspace_guardrail_id, *guardrail_id))
            }
            Some(GrantScope::Management(_)) | None => Err(StoreError::unavailable("the key is gone")),
        }
    }
}

#[async_trait]
impl GuardrailPolicies for CachedPolicies {
    async fn find(&self, key: &InferenceKey) -> Result<Option<Arc<Policy>>, StoreError> {
        let mut pair = (key.workspace_guardrail_id(), key.guardrail_id());
        for _ in 0..TRIES {
            if pair == (None, None) {
                return Ok(None);
            }
            if let Some(policy) = self.policy(pair).await? {
                return Ok(Some(policy));
            }
            // Deleted since the key was looked up: the key has another guardrail by now, or none.
            pair = Box::pin(self.now(key)).await?;
        }
        // Never "no policy" for a key with a guardrail.
        Err(StoreError::unavailable("the guardrail of the key was not found"))
    }
}
