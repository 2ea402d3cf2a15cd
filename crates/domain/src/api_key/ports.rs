//! The ports of keys.

use std::sync::Arc;

use async_trait::async_trait;

use super::{ApiKey, KeyGrant, KeyIdentity, KeyReference, StoreKeyError};
use crate::audit::AuditDraft;
use crate::authority::Authority;
use crate::error::StoreError;
use crate::ids::{ApiKeyId, WorkspaceId};
use crate::secret::ApiKeyHash;

/// Finds the grant of a key by the hash of its secret. Called on every request, so it is usually a cache over the
/// repository.
///
/// # Contract
/// - A deleted or unknown key is `Ok(None)`. A disabled or expired key is returned as it is.
/// - A failure of the store MUST be an error, never `Ok(None)`.
/// - While the store can be read, a change MUST be visible after one second. While it cannot be read, a grant that was
///   read before MAY be returned for as long as the operator allows (`keys.max_stale_ms`); after that the call fails.
/// - A key created by any process MUST be found at once.
#[cfg_attr(feature = "mock", mockall::automock)]
#[async_trait]
pub trait KeyGrants: Send + Sync {
    /// Finds a grant.
    async fn find(&self, hash: &ApiKeyHash) -> Result<Option<Arc<KeyGrant>>, StoreError>;
}

/// The cached grants of this process.
///
/// # Contract
/// - After a successful call, [`KeyGrants::find`] of this process MUST NOT return a grant that was read before it.
#[cfg_attr(feature = "mock", mockall::automock)]
#[async_trait]
pub trait GrantCache: Send + Sync {
    /// Drops the grant of a secret, even if the call fails later, then every cached grant that may have changed.
    async fn invalidate(&self, hash: &ApiKeyHash) -> Result<(), StoreError>;
}

/// The grant cache of a process without one, such as a command.
#[derive(Debug, Clone, Copy, Default)]
pub struct NoGrantCache;

#[async_trait]
impl GrantCache for NoGrantCache {
    async fn invalidate(&self, _: &ApiKeyHash) -> Result<(), StoreError> {
        Ok(())
    }
}

/// The result of adding a key with a unique name.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum KeyInsertion {
    /// The key was added.
    Inserted,
    /// The workspace of an inference key does not exist.
    UnknownWorkspace,
    /// Another key has the name.
    NameTaken,
}

/// The treatment of the last unrestricted key that is enabled and does not expire.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum LastKeyRule {
    /// It stays so: a change that ends this is an error, so that management over HTTP cannot lock itself out.
    Enforced,
    /// The operator, who needs no key, may change it.
    Waived,
}

impl LastKeyRule {
    /// Returns the rule for a caller.
    pub fn of(by: &Authority) -> Self {
        if by.is_operator() { Self::Waived } else { Self::Enforced }
    }
}

/// Stores keys.
///
/// # Contract
/// - Every method is one transaction; those that change something write their audit entry in it.
/// - `update`, `set_disabled`, `rotate` and `delete` MUST write the key to the change feed in the same transaction, by
///   the hash that it had before. `insert` need not: no cache keeps unknown keys.
/// - With [`LastKeyRule::Enforced`], `update`, `set_disabled` and `delete` MUST decide in their transaction whether
///   another unrestricted key is enabled and has no expiry. Of concurrent deletions of the last two, one MUST fail.
/// - A deleted key does not exist for any method but `identities`. Its id and hash stay used: an `insert` with one of
///   them is [`StoreError::Corrupt`].
#[cfg_attr(feature = "mock", mockall::automock)]
#[async_trait]
pub trait ApiKeyRepository: Send + Sync {
    /// Adds a key. Returns false, and adds nothing, if the workspace of an inference key does not exist.
    async fn insert(&self, key: &ApiKey, audit: &AuditDraft) -> Result<bool, StoreError>;

    /// Adds a key like [`Self::insert`], unless a live key of the same workspace, or another management key, has its
    /// name. Of concurrent calls with one name exactly one MUST add its key.
    async fn insert_unique(&self, key: &ApiKey, audit: &AuditDraft) -> Result<KeyInsertion, StoreError>;

    /// Finds a live (not deleted) key.
    async fn find(&self, name: &KeyReference) -> Result<Option<ApiKey>, StoreError>;

    /// Returns id and hash of the given keys that exist, live or deleted, each once and in no order.
    async fn identities(&self, names: &[KeyReference]) -> Result<Vec<KeyIdentity>, StoreError>;

    /// Lists live keys, newest first: those of one workspace, or with `None` the management keys.
    async fn list(&self, workspace_id: Option<WorkspaceId>) -> Result<Vec<ApiKey>, StoreError>;

    /// Disables or enables a key. Returns false if it is not live.
    async fn set_disabled(
        &self,
        id: ApiKeyId,
        disabled: bool,
        rule: LastKeyRule,
        audit: &AuditDraft,
    ) -> Result<bool, StoreKeyError>;

    /// Replaces name, management scope, limit, rates and expiry of a live key by those of `after` if they still equal
    /// those of `before`. Returns false if they differ, or the key is not live.
    async fn update(
        &self,
        before: &ApiKey,
        after: &ApiKey,
        rule: LastKeyRule,
        audit: &AuditDraft,
    ) -> Result<bool, StoreKeyError>;

    /// Replaces hash and label of a live key by those of `after` if its hash still equals that of `before`. Returns
    /// false if it differs, or the key is not live. The old hash no longer refers to the key.
    async fn rotate(&self, before: &ApiKey, after: &ApiKey, audit: &AuditDraft) -> Result<bool, StoreError>;

    /// Deletes a key permanently. Returns false if it is not live.
    async fn delete(&self, id: ApiKeyId, rule: LastKeyRule, audit: &AuditDraft) -> Result<bool, StoreKeyError>;
}
