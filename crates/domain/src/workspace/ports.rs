//! Where workspaces are kept.

use async_trait::async_trait;

use super::Workspace;
use crate::api_key::ApiKey;
use crate::audit::AuditDraft;
use crate::budget::{LimitStatus, WorkspaceBudgets};
use crate::error::StoreError;
use crate::ids::WorkspaceId;
use crate::money::Usd;
use crate::rate::RateLimits;

/// Keeps workspaces.
///
/// # Contract
/// - Every method is one transaction: it happens wholly or not at all. Those that change something write their audit
///   entry in it.
/// - At most one workspace MUST be the default, whatever runs at the same time.
/// - `set_suspended`, `set_budgets`, `set_rates`, `clear_credit`, and `add_credit` that begins or lowers the credit MUST
///   write the workspace to the change feed in the same transaction, because cached keys carry it.
#[cfg_attr(feature = "mock", mockall::automock)]
#[async_trait]
pub trait WorkspaceRepository: Send + Sync {
    /// Adds a workspace that is not the default.
    async fn insert(&self, workspace: &Workspace, audit: &AuditDraft) -> Result<(), StoreError>;

    /// The default workspace; where there is none yet, `workspace` is added as the default and returned.
    async fn default_or_insert(&self, workspace: &Workspace, audit: &AuditDraft) -> Result<Workspace, StoreError>;

    /// Makes the first inhabitants: adds `workspace` as the default where no default exists, and `key` where no
    /// management key was ever made (deleted ones count). True where the key was added. Two processes that start
    /// at once MUST NOT both get true.
    async fn bootstrap(&self, workspace: &Workspace, key: &ApiKey, audit: &AuditDraft) -> Result<bool, StoreError>;

    /// One workspace.
    async fn find(&self, id: WorkspaceId) -> Result<Option<Workspace>, StoreError>;

    /// All of them, oldest first.
    async fn list(&self) -> Result<Vec<Workspace>, StoreError>;

    /// The workspace's credit and budgets as they stand, the credit first and then the budgets from the shortest period
    /// to the longest; `None` where there is no such workspace.
    async fn standing_limits(&self, id: WorkspaceId) -> Result<Option<Vec<LimitStatus>>, StoreError>;

    /// Suspends or resumes; false where there is no such workspace.
    async fn set_suspended(&self, id: WorkspaceId, suspended: bool, audit: &AuditDraft) -> Result<bool, StoreError>;

    /// Sets every budget to that of `after` where they still are those of `before`; false where they are not, or there
    /// is no such workspace.
    async fn set_budgets(
        &self,
        id: WorkspaceId,
        before: &WorkspaceBudgets,
        after: &WorkspaceBudgets,
        audit: &AuditDraft,
    ) -> Result<bool, StoreError>;

    /// Sets the rates to `after` where they still are `before`; false where they are not, or there is no such workspace.
    async fn set_rates(
        &self,
        id: WorkspaceId,
        before: RateLimits,
        after: RateLimits,
        audit: &AuditDraft,
    ) -> Result<bool, StoreError>;

    /// Takes the credit away, so that the workspace is unlimited; false where there is no such workspace.
    async fn clear_credit(&self, id: WorkspaceId, audit: &AuditDraft) -> Result<bool, StoreError>;

    /// Adds `amount` (negative takes away) to the credit, an unlimited workspace starting from zero: what it spent
    /// before is not taken from it. Returns the new balance, `None` where there is no such workspace. A sum that leaves [`Usd`]'s range is
    /// [`StoreError::Corrupt`] and changes nothing.
    async fn add_credit(&self, id: WorkspaceId, amount: Usd, audit: &AuditDraft) -> Result<Option<Usd>, StoreError>;
}
