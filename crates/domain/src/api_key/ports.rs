//! The ports of keys.

use std::sync::Arc;

use async_trait::async_trait;
use chrono::{DateTime, Utc};

use super::{ApiKey, KeyGrant, KeyIdentity, KeyReference, StoreKeyError};
use crate::audit::AuditDraft;
use crate::authority::{Authority, ManagementScope};
use crate::error::StoreError;
use crate::ids::{GuardrailId, WorkspaceId};
use crate::naming::ResourceName;
use crate::secret::ApiKeyHash;

/// Finds the grant of a key by the hash of its secret. Called on every request, so it is usually a cache over the
/// repository.
///
/// # Contract
/// - A deleted or unknown key is `Ok(None)`. A disabled or expired key is returned as it is.
/// - A previous secret MUST find the same grant, with its own hash, and an expiry that is not after that of the secret.
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

/// The result of adding a key.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum KeyInsertion {
    /// The key was added.
    Inserted,
    /// The workspace of an inference key does not exist, or one of a management scope.
    UnknownWorkspace,
    /// The guardrail does not exist in the workspace.
    UnknownGuardrail,
    /// Another key has the name.
    NameTaken,
}

impl KeyInsertion {
    /// Returns true if the key was added.
    pub fn is_inserted(self) -> bool {
        self == Self::Inserted
    }
}

/// The result of updating a key.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum KeyUpdate {
    /// The key was updated.
    Updated,
    /// The key differs from the one before the change, or is not live.
    Conflict,
    /// A workspace of the new management scope does not exist.
    UnknownWorkspace,
    /// The new guardrail does not exist in the workspace of the key.
    UnknownGuardrail,
}

/// A filter of keys.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct KeyFilter {
    /// True for management keys, false for inference keys.
    pub is_management: bool,
    /// Inference keys of these workspaces only; `None` is all.
    pub workspaces: Option<Vec<WorkspaceId>>,
    /// Keys of this name only.
    pub name: Option<String>,
    /// Keys with this label only.
    pub external_user: Option<String>,
    /// Keys with this guardrail only.
    pub guardrail_id: Option<GuardrailId>,
    /// Enabled keys only.
    pub only_enabled: bool,
    /// Keys only that do not expire at this time or earlier.
    pub unexpired_at: Option<DateTime<Utc>>,
}

/// The treatment of the last unrestricted key that is enabled and unexpired.
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
/// - `update`, `rotate` and `delete` MUST write the key to the change feed in the same transaction, by the hash that it
///   had before, and by the hash of its previous secret. `insert` need not: no cache keeps unknown keys.
/// - With [`LastKeyRule::Enforced`], `update` and `delete` of an unrestricted key that is enabled and unexpired by the
///   store's clock MUST decide in their transaction whether one is left: another one, which has no expiry either if the
///   key has none, or the key itself without an earlier expiry. Of concurrent deletions of the last two, one MUST fail.
/// - A previous secret exists until its expiry by the store's clock, and ends with the next rotation, with an update that
///   disables the key, and with its deletion.
/// - A deleted key does not exist for any method but `identities`. Its id and hash stay used: an `insert` with one of
///   them is [`StoreError::Corrupt`].
#[cfg_attr(feature = "mock", mockall::automock)]
#[async_trait]
pub trait ApiKeyRepository: Send + Sync {
    /// Adds a key.
    async fn insert(&self, key: &ApiKey, audit: &AuditDraft) -> Result<KeyInsertion, StoreError>;

    /// Adds a key like [`Self::insert`], unless a live key of the same workspace, or another management key, has its
    /// name. Of concurrent calls with one name exactly one MUST add its key.
    async fn insert_unique(&self, key: &ApiKey, audit: &AuditDraft) -> Result<KeyInsertion, StoreError>;

    /// Finds a live (not deleted) key.
    async fn find(&self, name: &KeyReference) -> Result<Option<ApiKey>, StoreError>;

    /// Finds the live keys with a name, within a scope: the key of the id; else those of the hash, of the prefix of the
    /// hash, of the hash of the previous secret, and of the name. Management keys are in the unrestricted scope only.
    /// Returns at most [`ResourceName::MAX_MATCHES`].
    async fn find_named(&self, name: &ResourceName, within: &ManagementScope) -> Result<Vec<ApiKey>, StoreError>;

    /// Returns a page of live keys, newest first, and the number of all keys of the filter.
    async fn page(&self, filter: &KeyFilter, offset: u64, limit: u64) -> Result<(Vec<ApiKey>, u64), StoreError>;

    /// Returns id, hash and workspace of the given keys that exist, live or deleted, each once and in no order.
    async fn identities(&self, names: &[KeyReference]) -> Result<Vec<KeyIdentity>, StoreError>;

    /// Lists live keys, newest first: those of one workspace, or with `None` the management keys.
    async fn list(&self, workspace_id: Option<WorkspaceId>) -> Result<Vec<ApiKey>, StoreError>;

    /// Replaces name, management scope, limit, rates, expiry, guardrail, labels and the disabled state of a live key by
    /// those of `after` if they still equal those of `before`, with the time of the update.
    async fn update(
        &self,
        before: &ApiKey,
        after: &ApiKey,
        rule: LastKeyRule,
        audit: &AuditDraft,
    ) -> Result<KeyUpdate, StoreKeyError>;

    /// Replaces hash, label and previous secret of a live key by those of `after` if its hash and what [`Self::update`]
    /// replaces still equal those of `before`. Returns false if they differ, or the key is not live.
    async fn rotate(&self, before: &ApiKey, after: &ApiKey, audit: &AuditDraft) -> Result<bool, StoreError>;

    /// Deletes a key permanently if what [`Self::update`] replaces still equals that of `before`. Returns false if it
    /// differs, or the key is not live.
    async fn delete(&self, before: &ApiKey, rule: LastKeyRule, audit: &AuditDraft) -> Result<bool, StoreKeyError>;
}
