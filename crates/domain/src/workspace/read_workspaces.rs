//! Reading workspaces, their budgets and their credit.

use std::sync::Arc;

use super::{Credit, Workspace, WorkspaceError, WorkspaceRepository, choose_workspace};
use crate::authority::{Authority, Right};
use crate::budget::{LedgerReader, LimitStatus, ResetInterval};
use crate::ids::WorkspaceId;
use crate::naming::{NameError, ResourceName, only_match};

/// Reads workspaces, their budgets and their credit. The amounts contain all charges of this process.
#[derive(Clone)]
pub struct ReadWorkspaces {
    workspaces: Arc<dyn WorkspaceRepository>,
    ledger: Arc<dyn LedgerReader>,
}

impl ReadWorkspaces {
    /// Wires the ports; `ledger` is that of the process.
    pub fn new(workspaces: Arc<dyn WorkspaceRepository>, ledger: Arc<dyn LedgerReader>) -> Self {
        Self { workspaces, ledger }
    }

    /// Returns a page of the workspaces that the caller sees, oldest first.
    ///
    /// # Errors
    /// A missing right; a store failure.
    pub async fn list(&self, by: &Authority, offset: u64, limit: u64) -> Result<(Vec<Workspace>, u64), WorkspaceError> {
        self.begin(by).await?;
        let (workspaces, total) = self.workspaces.page(by.scope(), offset, limit).await?;
        Ok((workspaces, total))
    }

    /// Returns a workspace that the caller sees.
    ///
    /// # Errors
    /// A missing right; an unknown or ambiguous name; a store failure.
    pub async fn get(&self, by: &Authority, name: &ResourceName) -> Result<Workspace, WorkspaceError> {
        self.begin(by).await?;
        self.find(by, name).await
    }

    /// Returns a workspace that the caller sees; amounts may lack charges of this process.
    ///
    /// # Errors
    /// Those of [`Self::get`].
    pub async fn find(&self, by: &Authority, name: &ResourceName) -> Result<Workspace, WorkspaceError> {
        find_visible(&*self.workspaces, by, name).await
    }

    /// Returns the workspace and the status of its budgets, from the shortest to the longest period.
    ///
    /// # Errors
    /// Those of [`Self::get`].
    pub async fn budgets(
        &self,
        by: &Authority,
        name: &ResourceName,
    ) -> Result<(Workspace, Vec<LimitStatus>), WorkspaceError> {
        let workspace = self.get(by, name).await?;
        let mut limits = self.ledger.workspace_limit_statuses(workspace.id).await?;
        limits.retain(|limit| !limit.is_credit);
        Ok((workspace, limits))
    }

    /// Returns the workspace and the status of its budget of a period; `None` is all time.
    ///
    /// # Errors
    /// Those of [`Self::get`]; a budget that is not set.
    pub async fn budget(
        &self,
        by: &Authority,
        name: &ResourceName,
        period: Option<ResetInterval>,
    ) -> Result<(Workspace, LimitStatus), WorkspaceError> {
        let (workspace, limits) = self.budgets(by, name).await?;
        let found = limits.into_iter().find(|limit| limit.reset == period);
        Ok((workspace, found.ok_or(WorkspaceError::UnknownBudget)?))
    }

    /// Returns the credit of the named workspace, or of that of a call that names none ([`choose_workspace`]).
    ///
    /// # Errors
    /// Those of [`Self::get`]; several workspaces without the default one.
    pub async fn credit(&self, by: &Authority, named: Option<WorkspaceId>) -> Result<Credit, WorkspaceError> {
        self.begin(by).await?;
        let workspace = choose_workspace(&*self.workspaces, by, named).await?;
        Ok(self.workspaces.credit(workspace.id).await?.ok_or(NameError::Unknown)?)
    }

    async fn begin(&self, by: &Authority) -> Result<(), WorkspaceError> {
        by.check(Right::Read)?;
        Ok(self.ledger.store_pending().await?)
    }
}

/// Returns the workspace that a call names; without a name as [`choose_workspace`].
pub(crate) async fn choose_named(
    workspaces: &dyn WorkspaceRepository,
    by: &Authority,
    named: Option<&ResourceName>,
) -> Result<Workspace, WorkspaceError> {
    match named {
        Some(name) => find_visible(workspaces, by, name).await,
        None => Ok(choose_workspace(workspaces, by, None).await?),
    }
}

/// Finds a workspace that exists for the caller.
pub(crate) async fn find_visible(
    workspaces: &dyn WorkspaceRepository,
    by: &Authority,
    name: &ResourceName,
) -> Result<Workspace, WorkspaceError> {
    Ok(only_match(workspaces.find_named(name, by.scope()).await?, |workspace| workspace.id.to_string())?)
}

#[cfg(test)]
mod tests;
