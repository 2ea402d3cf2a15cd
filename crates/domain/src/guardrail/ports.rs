//! Where guardrails and their assignments are kept.

use async_trait::async_trait;

use super::Guardrail;
use crate::api_key::ApiKeyHash;
use crate::error::StoreError;
use crate::ids::{GuardrailId, WorkspaceId};

/// Keeps guardrails and which keys hold them.
///
/// # Contract
/// - Every method is one transaction; `assign_keys` MUST be all or nothing however many hashes it takes.
/// - `assign_keys` and `delete` MUST raise the change feed's key version in the same transaction when they change
///   a key.
#[cfg_attr(feature = "mock", mockall::automock)]
#[async_trait]
pub trait GuardrailRepository: Send + Sync {
    /// Adds a guardrail; false where its workspace does not exist.
    async fn insert(&self, guardrail: &Guardrail) -> Result<bool, StoreError>;

    /// One guardrail, of any workspace: management keys manage across workspaces.
    async fn find(&self, id: GuardrailId) -> Result<Option<Guardrail>, StoreError>;

    /// The guardrails of a workspace, newest first.
    async fn list(&self, workspace_id: WorkspaceId) -> Result<Vec<Guardrail>, StoreError>;

    /// Deletes a guardrail and takes it from every key that holds it; false where there is no such guardrail.
    async fn delete(&self, id: GuardrailId) -> Result<bool, StoreError>;

    /// Gives the guardrail to every key of `hashes` that is a live (not deleted; disabled and expired ones count)
    /// inference key of the guardrail's workspace, replacing what it held; skips the others. Returns how many of
    /// `hashes` hold it now, those that already did included; `None` where there is no such guardrail.
    /// `hashes` is sorted and holds no duplicates.
    async fn assign_keys(&self, id: GuardrailId, hashes: &[ApiKeyHash]) -> Result<Option<u64>, StoreError>;

    /// How many live keys hold the guardrail.
    async fn count_keys(&self, id: GuardrailId) -> Result<u64, StoreError>;
}
