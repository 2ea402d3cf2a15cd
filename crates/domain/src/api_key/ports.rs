//! Where keys are kept and looked up.

use std::sync::Arc;

use async_trait::async_trait;

use super::{ApiKey, ApiKeyHash, KeyGrant, KeyIdentity, KeyReference};
use crate::audit::AuditDraft;
use crate::error::StoreError;
use crate::ids::{ApiKeyId, WorkspaceId};

/// Finds what a key grants, by the digest of its secret. Called on every request, so it is usually a cache over
/// the repository.
///
/// # Contract
/// - A deleted or unknown key is `Ok(None)`. A disabled or expired one is returned as it is.
/// - A failure of the store MUST be an error, never `Ok(None)`.
/// - What is returned MUST NOT be older than one second; where that cannot be kept, it is an error.
/// - A key made by any process MUST be found at once.
#[cfg_attr(feature = "mock", mockall::automock)]
#[async_trait]
pub trait KeyGrants: Send + Sync {
    /// What the key grants.
    async fn find(&self, hash: &ApiKeyHash) -> Result<Option<Arc<KeyGrant>>, StoreError>;
}

/// The cached grants of this process.
///
/// # Contract
/// - After a successful call, [`KeyGrants::find`] of this process MUST NOT return what was read before the call.
#[cfg_attr(feature = "mock", mockall::automock)]
#[async_trait]
pub trait GrantCache: Send + Sync {
    /// Drops the grant of a secret, whatever comes after, then every cached grant that may have changed.
    async fn invalidate(&self, hash: &ApiKeyHash) -> Result<(), StoreError>;
}

/// The cache of a process that caches no grants: of a command.
#[derive(Debug, Clone, Copy, Default)]
pub struct NoGrantCache;

#[async_trait]
impl GrantCache for NoGrantCache {
    async fn invalidate(&self, _: &ApiKeyHash) -> Result<(), StoreError> {
        Ok(())
    }
}

/// Keeps keys.
///
/// # Contract
/// - Every method is one transaction; those that change something write their audit entry in it.
/// - `update`, `set_disabled`, `rotate` and `delete` MUST write the key to the change feed in the same transaction, by the
///   hash that it had before. `insert` need not: no cache keeps unknown keys.
/// - A deleted key is gone for every method but `identities`, and keeps its id and hash: `insert` of the same id or hash
///   again is [`StoreError::Corrupt`].
#[cfg_attr(feature = "mock", mockall::automock)]
#[async_trait]
pub trait ApiKeyRepository: Send + Sync {
    /// Adds a key. False where it is an inference key and its workspace does not exist; nothing is added then.
    async fn insert(&self, key: &ApiKey, audit: &AuditDraft) -> Result<bool, StoreError>;

    /// One live (not deleted) key.
    async fn find(&self, name: &KeyReference) -> Result<Option<ApiKey>, StoreError>;

    /// Both names of those of the keys that exist, live or deleted, each once and in no order.
    async fn identities(&self, names: &[KeyReference]) -> Result<Vec<KeyIdentity>, StoreError>;

    /// Live keys, newest first: of one workspace, or with `None` the management keys.
    async fn list(&self, workspace_id: Option<WorkspaceId>) -> Result<Vec<ApiKey>, StoreError>;

    /// Switches a key off or on; false where there is no such live key.
    async fn set_disabled(&self, id: ApiKeyId, disabled: bool, audit: &AuditDraft) -> Result<bool, StoreError>;

    /// Replaces name, limit, rates and expiry of a live key by those of `after` where they still are those of `before`;
    /// false where they are not, or there is no such live key.
    async fn update(&self, before: &ApiKey, after: &ApiKey, audit: &AuditDraft) -> Result<bool, StoreError>;

    /// Replaces hash and label of a live key by those of `after` where its hash still is that of `before`; false where
    /// it is not, or there is no such live key. The old hash names nothing from then on.
    async fn rotate(&self, before: &ApiKey, after: &ApiKey, audit: &AuditDraft) -> Result<bool, StoreError>;

    /// Deletes a key for good; false where there is no such live key.
    async fn delete(&self, id: ApiKeyId, audit: &AuditDraft) -> Result<bool, StoreError>;
}
