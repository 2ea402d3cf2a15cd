//! The port of workspaces.

use async_trait::async_trait;

use super::{
    Credit, CreditEdit, Workspace, WorkspaceDeletion, WorkspaceError, WorkspaceInsertion, WorkspaceSlug,
    WorkspaceUpdate,
};
use crate::api_key::ApiKey;
use crate::audit::AuditDraft;
use crate::authority::ManagementScope;
use crate::error::StoreError;
use crate::ids::WorkspaceId;
use crate::naming::ResourceName;

/// Stores workspaces.
///
/// # Contract
/// - Every method is one transaction. Methods that change something write their audit entry in it.
/// - At most one workspace MUST be the default, also under concurrent calls.
/// - A deleted workspace MUST NOT be found, listed or changed, and no key, guardrail, destination or document can be added
///   to it. Its usage records, counters and deleted keys stay.
/// - `update`, `delete`, and `change_credit` that begins, lowers or ends the credit MUST write the workspace to the
///   change feed in the same transaction, because cached keys carry it.
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

    /// Finds the workspaces with a name, within a scope: that of the id; else that of the slug, which the name of another
    /// workspace cannot take away; else those of the name, oldest first. Returns at most [`ResourceName::MAX_MATCHES`].
    async fn find_named(&self, name: &ResourceName, within: &ManagementScope) -> Result<Vec<Workspace>, StoreError>;

    /// Returns a page of the workspaces within a scope, oldest first, and their number.
    async fn page(
        &self,
        within: &ManagementScope,
        offset: u64,
        limit: u64,
    ) -> Result<(Vec<Workspace>, u64), StoreError>;

    /// Lists all workspaces, oldest first.
    async fn list(&self) -> Result<Vec<Workspace>, StoreError>;

    /// Replaces the settings and budgets ([`Workspace::has_settings_of`]) and the time of the change by those of `after`
    /// if the settings and budgets still equal those of `before`, which has the same id.
    async fn update(
        &self,
        before: &Workspace,
        after: &Workspace,
        audit: &AuditDraft,
    ) -> Result<WorkspaceUpdate, StoreError>;

    /// Deletes a workspace without contents, unless it is the default, if its settings and budgets still equal those of
    /// `before`. Its contents are live keys, documents (pending ones included), guardrails, destinations, presets, which
    /// are deleted with it instead if `with_presets`, and the given number of container files.
    async fn delete(
        &self,
        before: &Workspace,
        with_presets: bool,
        container_files: u64,
        audit: &AuditDraft,
    ) -> Result<WorkspaceDeletion, StoreError>;

    /// Returns the credit; `None` if the workspace does not exist.
    async fn credit(&self, id: WorkspaceId) -> Result<Option<Credit>, StoreError>;

    /// Replaces the granted credit by that of `edit`, which gets the stored credit in the transaction.
    /// A first credit starts now: earlier spend does not count. An equal credit changes nothing. Returns the credit
    /// after the change; `None` if the workspace does not exist. A balance out of the range of [`crate::money::Usd`] is
    /// [`StoreError::Corrupt`].
    async fn change_credit<'a>(
        &self,
        id: WorkspaceId,
        edit: &'a CreditEdit<'a>,
    ) -> Result<Option<Credit>, WorkspaceError>;
}
