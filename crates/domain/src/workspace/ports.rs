//! The port of workspaces.

use async_trait::async_trait;

use super::{Workspace, WorkspaceDeletion, WorkspaceName};
use crate::api_key::ApiKey;
use crate::audit::AuditDraft;
use crate::budget::{LimitStatus, WorkspaceBudgets};
use crate::error::StoreError;
use crate::ids::WorkspaceId;
use crate::money::Usd;
use crate::rate::RateLimits;

/// The most attempts of an update under concurrent changes.
pub(super) const MAX_ATTEMPTS: u32 = 8;

/// Stores workspaces.
///
/// # Contract
/// - Every method is one transaction. Methods that change something write their audit entry in it.
/// - At most one workspace MUST be the default, also under concurrent calls.
/// - A deleted workspace MUST NOT be found, listed or changed, and no key, guardrail, destination or document can be added
///   to it. Its usage records, counters and deleted keys stay.
/// - `rename`, `delete`, `set_suspended`, `set_budgets`, `set_rates`, `clear_credit`, and `add_credit` that begins or
///   lowers the credit MUST write the workspace to the change feed in the same transaction, because cached keys carry it.
#[cfg_attr(feature = "mock", mockall::automock)]
#[async_trait]
pub trait WorkspaceRepository: Send + Sync {
    /// Adds a workspace that is not the default.
    async fn insert(&self, workspace: &Workspace, audit: &AuditDraft) -> Result<(), StoreError>;

    /// Adds a workspace like [`Self::insert`]. Returns false, and adds nothing, if another workspace has its name. Of
    /// concurrent calls with one name exactly one MUST add its workspace.
    async fn insert_unique(&self, workspace: &Workspace, audit: &AuditDraft) -> Result<bool, StoreError>;

    /// Returns the default workspace. If there is none, adds `workspace` as the default and returns it.
    async fn default_or_insert(&self, workspace: &Workspace, audit: &AuditDraft) -> Result<Workspace, StoreError>;

    /// Adds `workspace` as the default if there is none, and `key` if no management key ever existed (deleted keys
    /// count). Returns true if the key was added. Two processes that start at the same time MUST NOT both get true.
    async fn bootstrap(&self, workspace: &Workspace, key: &ApiKey, audit: &AuditDraft) -> Result<bool, StoreError>;

    /// Finds a workspace.
    async fn find(&self, id: WorkspaceId) -> Result<Option<Workspace>, StoreError>;

    /// Lists all workspaces, oldest first.
    async fn list(&self) -> Result<Vec<Workspace>, StoreError>;

    /// Returns the status of the workspace's limits: the credit, then the budgets from the shortest to the longest
    /// period. `None` if the workspace does not exist.
    async fn workspace_limit_statuses(&self, id: WorkspaceId) -> Result<Option<Vec<LimitStatus>>, StoreError>;

    /// Replaces the name by `after` if it still equals `before`. Returns false if it differs, or the workspace does not
    /// exist.
    async fn rename(
        &self,
        id: WorkspaceId,
        before: &WorkspaceName,
        after: &WorkspaceName,
        audit: &AuditDraft,
    ) -> Result<bool, StoreError>;

    /// Deletes a workspace without live keys, documents (pending ones included), guardrails and destinations, unless it
    /// is the default.
    async fn delete(&self, id: WorkspaceId, audit: &AuditDraft) -> Result<WorkspaceDeletion, StoreError>;

    /// Suspends or resumes a workspace. Returns false if it does not exist.
    async fn set_suspended(&self, id: WorkspaceId, suspended: bool, audit: &AuditDraft) -> Result<bool, StoreError>;

    /// Replaces the budgets by `after` if they still equal `before`. Returns false if they differ, or the workspace
    /// does not exist.
    async fn set_budgets(
        &self,
        id: WorkspaceId,
        before: &WorkspaceBudgets,
        after: &WorkspaceBudgets,
        audit: &AuditDraft,
    ) -> Result<bool, StoreError>;

    /// Replaces the rates by `after` if they still equal `before`. Returns false if they differ, or the workspace does
    /// not exist.
    async fn set_rates(
        &self,
        id: WorkspaceId,
        before: RateLimits,
        after: RateLimits,
        audit: &AuditDraft,
    ) -> Result<bool, StoreError>;

    /// Clears the credit, so that the workspace is unlimited. Returns false if it does not exist.
    async fn clear_credit(&self, id: WorkspaceId, audit: &AuditDraft) -> Result<bool, StoreError>;

    /// Adds `amount`, which may be negative, to the credit. An unlimited workspace starts from zero: earlier spend does
    /// not count. Returns the new balance; `None` if the workspace does not exist. A sum out of [`Usd`]'s range is
    /// [`StoreError::Corrupt`] and changes nothing.
    async fn add_credit(&self, id: WorkspaceId, amount: Usd, audit: &AuditDraft) -> Result<Option<Usd>, StoreError>;
}
