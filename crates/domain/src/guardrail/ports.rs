//! The stores of guardrails and of their assignments.

use std::sync::Arc;

use async_trait::async_trait;

use super::{AssignKeysError, Guardrail, GuardrailVersion, KeyAssignment, PlacedGuardrail, Policy};
use crate::api_key::{InferenceKey, KeyReference};
use crate::audit::AuditDraft;
use crate::authority::ManagementScope;
use crate::change::Change;
use crate::error::StoreError;
use crate::ids::{GuardrailId, WorkspaceId};
use crate::naming::ResourceName;

/// Finds the policy of a key. It is called on every request and is therefore usually a cache over the repository.
///
/// # Contract
/// - While the store can be read, a change MUST be visible after one second.
/// - While it cannot be read, a policy that was read before MAY be returned for as long as the operator allows
///   (`keys.max_stale_ms`). After that, and for a policy that was not read before, the call fails.
/// - A failure of the store MUST be an error, never `Ok(None)`. The same holds for a guardrail of the key that is
///   missing in the store.
/// - If a guardrail was deleted after the key was read, the guardrails that the key has now apply.
#[cfg_attr(feature = "mock", mockall::automock)]
#[async_trait]
pub trait GuardrailPolicies: Send + Sync {
    /// Returns the policy of a key; `None` if neither the key nor its workspace has a guardrail.
    async fn find(&self, key: &InferenceKey) -> Result<Option<Arc<Policy>>, StoreError>;
}

/// A source without guardrails, for embedding and for tests.
#[derive(Debug, Clone, Copy, Default)]
pub struct NoGuardrails;

#[async_trait]
impl GuardrailPolicies for NoGuardrails {
    async fn find(&self, _: &InferenceKey) -> Result<Option<Arc<Policy>>, StoreError> {
        Ok(None)
    }
}

/// Stores guardrails with all of their versions, and their assignment to keys.
///
/// # Contract
/// - Every method is one transaction, and `assign_keys` and `remove_keys` MUST be all or nothing for any number of keys.
///   Methods that change something write their audit entry in it; `assign_keys` writes that of [`super::keys_assigned`]
///   for the keys that did not have the guardrail, `remove_keys` that of [`super::keys_removed`]. Both check the version
///   of the guardrail in it.
/// - Only live keys have assignments. Disabled and expired keys are live, deleted ones are not.
/// - Of concurrent changes to one guardrail from the same version, exactly one succeeds.
/// - The same transaction writes to the change feed ([`crate::change_feed::ChangeSubject`]). `update` and
///   `delete` write the guardrail. A changed default writes the workspace. Keys whose guardrail changed are written
///   one by one or as their workspace.
#[cfg_attr(feature = "mock", mockall::automock)]
#[async_trait]
pub trait GuardrailRepository: Send + Sync {
    /// Adds a guardrail and its first version; returns false if its workspace does not exist. With `default` it becomes
    /// the default of its workspace, replacing the previous one.
    async fn insert(&self, guardrail: &Guardrail, default: bool, audit: &AuditDraft) -> Result<bool, StoreError>;

    /// Replaces name, budget and rules, stores the result as a version, and makes the guardrail its workspace's default
    /// or removes it as the default, if the stored version is that of `before` and `before` tells whether the guardrail
    /// is the default; returns false otherwise.
    async fn update(
        &self,
        before: &PlacedGuardrail,
        after: &PlacedGuardrail,
        audit: &AuditDraft,
    ) -> Result<bool, StoreError>;

    /// Returns one guardrail of any workspace; callers check its workspace.
    async fn find(&self, id: GuardrailId) -> Result<Option<Guardrail>, StoreError>;

    /// Finds the guardrails with a name, within a scope: that of the id, else those of the name. Returns at most
    /// [`ResourceName::MAX_MATCHES`].
    async fn find_named(&self, name: &ResourceName, within: &ManagementScope) -> Result<Vec<Guardrail>, StoreError>;

    /// Returns the guardrails of a workspace, newest first.
    async fn list(&self, workspace_id: WorkspaceId) -> Result<Vec<Guardrail>, StoreError>;

    /// Returns a page of the guardrails within a scope, newest first, and their number.
    async fn page(
        &self,
        within: &ManagementScope,
        offset: u64,
        limit: u64,
    ) -> Result<(Vec<PlacedGuardrail>, u64), StoreError>;

    /// Returns versions of a guardrail from the number `newest` down, newest first. They are numbered from 1 without gaps,
    /// and the newest is the current state.
    async fn versions(&self, id: GuardrailId, newest: u32, limit: u64) -> Result<Vec<GuardrailVersion>, StoreError>;

    /// Deletes a guardrail with its versions and removes it from every key and its workspace, if the stored version is
    /// that of `before` and `before` tells whether the guardrail is the default; returns false otherwise.
    async fn delete(&self, before: &PlacedGuardrail, audit: &AuditDraft) -> Result<bool, StoreError>;

    /// Assigns the guardrail to every key of `keys` that is a live inference key of the guardrail's workspace, and
    /// skips the others. Disabled and expired keys are live, deleted ones are not. An assignment replaces the key's
    /// previous one. Returns the number of keys of `keys` that now have the guardrail, each counted once. `keys` is
    /// sorted and holds no duplicates.
    async fn assign_keys<'a>(
        &self,
        id: GuardrailId,
        keys: &[KeyReference],
        change: &Change<'a, u64>,
    ) -> Result<u64, AssignKeysError>;

    /// Removes the guardrail from every key of `keys` that has it assigned and skips the others. Returns the number of
    /// keys that had it, each counted once. `keys` is sorted and holds no duplicates.
    async fn remove_keys<'a>(
        &self,
        id: GuardrailId,
        keys: &[KeyReference],
        change: &Change<'a, u64>,
    ) -> Result<u64, AssignKeysError>;

    /// Returns a page of the assignments of a guardrail, or with `None` of all (by guardrail), within a scope, newest
    /// first, and their number. Those of one moment stand in the falling order of the keys' ids.
    async fn list_keys(
        &self,
        id: Option<GuardrailId>,
        within: &ManagementScope,
        offset: u64,
        limit: u64,
    ) -> Result<(Vec<KeyAssignment>, u64), StoreError>;

    /// Returns the number of live keys that have the guardrail assigned.
    async fn count_keys(&self, id: GuardrailId) -> Result<u64, StoreError>;
}
