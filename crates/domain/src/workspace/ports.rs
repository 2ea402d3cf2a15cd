//! The port of workspaces.

use async_trait::async_trait;

use super::{Workspace, WorkspaceDeletion, WorkspaceInsertion, WorkspaceSlug, WorkspaceUpdate};
use crate::api_key::ApiKey;
use crate::audit::AuditDraft;
use crate::budget::LimitStatus;
use crate::error::StoreError;
use crate::ids::WorkspaceId;
use crate::money::Usd;

/// The most attempts of an update under concurrent changes.
pub(super) const MAX_ATTEMPTS: u32 = 8;

/// Stores workspaces.
///
/// # Contract
/// - Every method is one transaction. Methods that change something write their audit entry in it.
/// - At most one workspace MUST be the default, also under concurrent calls.
/// - A deleted workspace MUST NOT be found, listed or changed, and no key, guardrail, destination or document can be added
///   to it. Its usage records, counters and deleted keys stay.
/// - `update`, `delete`, `clear_credit`, and `add_credit` that begins or lowers the credit MUST write the workspace to
///   the change feed in the same transaction, because cached keys carry it.
#[cfg_attr(feature = "mock", mockall::automock)]
#[async_trait]
pub trait WorkspaceRepository: Send + Sync {
    /// Adds a workspace that is not the default, unless another workspace has its slug or, with `unique_name`, its name.
    /// Of concurrent calls with one slug exactly one MUST add its workspace; with `unique_name`, of those with one name.
    async fn insert(
        &self,
        workspace: &Workspace,
        unique_name: bool,
        audit: &AuditDraft,
    ) -> Result<WorkspaceInsertion, StoreError>;

    /// Returns the slug if no workspace has it, else the first free one of those numbered from 2 on.
    async fn free_slug(&self, slug: &WorkspaceSlug) -> Result<WorkspaceSlug, StoreError>;

    /// Returns the default workspace. If there is none, adds `workspace` as the default, with a free slug, and returns
    /// it.
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

    /// Replaces the settings and budgets ([`Workspace::has_settings_of`]) and the time of the change by those of `after`
    /// if the settings and budgets still equal those of `before`, which has the same id.
    async fn update(
        &self,
        before: &Workspace,
        after: &Workspace,
        audit: &AuditDraft,
    ) -> Result<WorkspaceUpdate, StoreError>;

    /// Deletes a workspace without live keys, documents (pending ones included), guardrails and destinations, unless it
    /// is the default.
    async fn delete(&self, id: WorkspaceId, audit: &AuditDraft) -> Result<WorkspaceDeletion, StoreError>;

    /// Clears the credit, so that the workspace is unlimited. Returns false if it does not exist.
    async fn clear_credit(&self, id: WorkspaceId, audit: &AuditDraft) -> Result<bool, StoreError>;

    /// Adds `amount`, which may be negative, to the credit. An unlimited workspace starts from zero: earlier spend does
    /// not count. Returns the new balance; `None` if the workspace does not exist. A sum out of [`Usd`]'s range is
    /// [`StoreError::Corrupt`] and changes nothing.
    async fn add_credit(&self, id: WorkspaceId, amount: Usd, audit: &AuditDraft) -> Result<Option<Usd>, StoreError>;
}
