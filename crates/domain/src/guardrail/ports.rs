//! Where guardrails and their assignments are kept.

use std::sync::Arc;

use async_trait::async_trait;

use super::{Guardrail, GuardrailVersion, Policy};
use crate::api_key::{InferenceKey, KeyReference};
use crate::audit::{Actor, AuditDraft};
use crate::error::StoreError;
use crate::ids::{GuardrailId, WorkspaceId};

/// Finds what a key is under. Called on every request, so it is usually a cache over the repository.
///
/// # Contract
/// - What is returned MUST NOT be older than one second; where that cannot be kept, it is an error.
/// - A failure of the store MUST be an error, never `Ok(None)`.
#[cfg_attr(feature = "mock", mockall::automock)]
#[async_trait]
pub trait GuardrailPolicies: Send + Sync {
    /// The policy of a key; `None` where neither it nor its workspace has a guardrail.
    async fn find(&self, key: &InferenceKey) -> Result<Option<Arc<Policy>>, StoreError>;
}

/// No guardrails: for embedding and for tests.
#[derive(Debug, Clone, Copy, Default)]
pub struct NoGuardrails;

#[async_trait]
impl GuardrailPolicies for NoGuardrails {
    async fn find(&self, _: &InferenceKey) -> Result<Option<Arc<Policy>>, StoreError> {
        Ok(None)
    }
}

/// Keeps guardrails, every version of them, and which keys hold them.
///
/// # Contract
/// - Every method is one transaction; `assign_keys` MUST be all or nothing however many names it takes. Those that
///   change something write their audit entry in it, `assign_keys` that of [`super::keys_assigned`] for the keys that
///   did not hold the guardrail.
/// - Of changes to one guardrail that run at the same time from the same version, exactly one happens.
/// - In the same transaction, changes are written to the change feed ([`crate::change_feed::ChangeSubject`]): the
///   guardrail by `update`, `update_default` and `delete`, the workspace whose default changed, and the keys that hold
///   another guardrail than before or none, by name or by their workspace.
#[cfg_attr(feature = "mock", mockall::automock)]
#[async_trait]
pub trait GuardrailRepository: Send + Sync {
    /// Adds a guardrail and its first version; false where its workspace does not exist.
    async fn insert(&self, guardrail: &Guardrail, audit: &AuditDraft) -> Result<bool, StoreError>;

    /// As [`Self::insert`], and puts its whole workspace under it, in place of what that was under.
    async fn insert_default(&self, guardrail: &Guardrail, audit: &AuditDraft) -> Result<bool, StoreError>;

    /// Replaces name, budget and rules where the version that is stored is one below `guardrail.version`, and keeps
    /// what comes to be as a version; false otherwise.
    async fn update(&self, guardrail: &Guardrail, audit: &AuditDraft) -> Result<bool, StoreError>;

    /// As [`Self::update`], and puts its whole workspace under it, or, where it is under it, under none.
    async fn update_default(
        &self,
        guardrail: &Guardrail,
        default: bool,
        audit: &AuditDraft,
    ) -> Result<bool, StoreError>;

    /// One guardrail, of any workspace: management keys manage across workspaces.
    async fn find(&self, id: GuardrailId) -> Result<Option<Guardrail>, StoreError>;

    /// The guardrails of a workspace, newest first.
    async fn list(&self, workspace_id: WorkspaceId) -> Result<Vec<Guardrail>, StoreError>;

    /// The states that a guardrail was in, the newest (the present one) first.
    async fn versions(&self, id: GuardrailId) -> Result<Vec<GuardrailVersion>, StoreError>;

    /// Deletes a guardrail with its versions and takes it from every key and workspace that holds it; false where there
    /// is no such guardrail.
    async fn delete(&self, id: GuardrailId, audit: &AuditDraft) -> Result<bool, StoreError>;

    /// Puts a whole workspace under one of its guardrails, or with `None` under none; false where there is no such
    /// workspace, or the guardrail is not one of it.
    async fn set_default(
        &self,
        workspace_id: WorkspaceId,
        guardrail: Option<GuardrailId>,
        audit: &AuditDraft,
    ) -> Result<bool, StoreError>;

    /// Gives the guardrail to every key of `keys` that is a live (not deleted; disabled and expired ones count)
    /// inference key of the guardrail's workspace, replacing what it held; skips the others. Returns how many keys
    /// hold it because of `keys`, those that already did included, each once; `None` where there is no such guardrail.
    /// `keys` is sorted and holds no duplicates.
    async fn assign_keys(
        &self,
        id: GuardrailId,
        keys: &[KeyReference],
        actor: &Actor,
    ) -> Result<Option<u64>, StoreError>;

    /// How many live keys hold the guardrail.
    async fn count_keys(&self, id: GuardrailId) -> Result<u64, StoreError>;
}
