//! Where workspaces are kept.

use async_trait::async_trait;

use super::Workspace;
use crate::api_key::ApiKey;
use crate::error::StoreError;
use crate::ids::WorkspaceId;
use crate::money::Usd;

/// Keeps workspaces.
///
/// # Contract
/// - Every method is one transaction: it happens wholly or not at all.
/// - At most one workspace MUST be the default, whatever runs at the same time.
/// - `set_suspended` MUST raise the change feed's key version in the same transaction, because cached keys carry it.
#[cfg_attr(feature = "mock", mockall::automock)]
#[async_trait]
pub trait WorkspaceRepository: Send + Sync {
    /// Adds a workspace that is not the default.
    async fn insert(&self, workspace: &Workspace) -> Result<(), StoreError>;

    /// The default workspace; where there is none yet, `workspace` is added as the default and returned.
    async fn default_or_insert(&self, workspace: &Workspace) -> Result<Workspace, StoreError>;

    /// Makes the first inhabitants: adds `workspace` as the default where no default exists, and `key` where no
    /// management key was ever made (deleted ones count). True where the key was added. Two processes that start
    /// at once MUST NOT both get true.
    async fn bootstrap(&self, workspace: &Workspace, key: &ApiKey) -> Result<bool, StoreError>;

    /// One workspace.
    async fn find(&self, id: WorkspaceId) -> Result<Option<Workspace>, StoreError>;

    /// All of them, oldest first.
    async fn list(&self) -> Result<Vec<Workspace>, StoreError>;

    /// Suspends or resumes; false where there is no such workspace.
    async fn set_suspended(&self, id: WorkspaceId, suspended: bool) -> Result<bool, StoreError>;

    /// Adds `amount` (negative takes away) to the credit, an unlimited workspace starting from zero; returns the
    /// new balance, `None` where there is no such workspace. A sum that leaves [`Usd`]'s range is
    /// [`StoreError::Corrupt`] and changes nothing.
    async fn add_credit(&self, id: WorkspaceId, amount: Usd) -> Result<Option<Usd>, StoreError>;
}
