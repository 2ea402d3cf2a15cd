//! Changing and deleting workspaces.

use std::sync::Arc;

use super::model::{budgets, named, rates, usd};
use super::{
    BudgetsChange, ChangeWorkspaceError, MAX_ATTEMPTS, RatesChange, Workspace, WorkspaceDeletion, WorkspaceName,
    WorkspaceRepository,
};
use crate::audit::AuditDraft;
use crate::authority::{Authority, Right};
use crate::budget::WorkspaceBudgets;
use crate::ids::WorkspaceId;
use crate::json::Json;
use crate::money::Usd;
use crate::rate::RateLimits;

/// Changes and deletes workspaces. Every change needs [`Right::Unrestricted`].
pub struct ManageWorkspaces {
    workspaces: Arc<dyn WorkspaceRepository>,
}

impl ManageWorkspaces {
    /// Wires the port.
    pub fn new(workspaces: Arc<dyn WorkspaceRepository>) -> Self {
        Self { workspaces }
    }

    /// Renames a workspace, the default one included. The same name writes nothing.
    ///
    /// # Errors
    /// An invalid name; an unknown workspace; concurrent changes; a store failure.
    pub async fn rename(&self, by: &Authority, id: WorkspaceId, name: &str) -> Result<(), ChangeWorkspaceError> {
        by.check(Right::Unrestricted)?;
        let after = WorkspaceName::try_new(name)?;
        for _ in 0..MAX_ATTEMPTS {
            let before = self.find(id).await?.name;
            if before == after {
                return Ok(());
            }
            let audit = changed(by, "workspace.rename", id, named(&before), named(&after));
            if self.workspaces.rename(id, &before, &after, &audit).await? {
                return Ok(());
            }
        }
        Err(ChangeWorkspaceError::Contended)
    }

    /// Suspends or resumes a workspace. All calls of a suspended workspace's keys are rejected.
    pub async fn suspend(&self, by: &Authority, id: WorkspaceId, suspended: bool) -> Result<(), ChangeWorkspaceError> {
        by.check(Right::Unrestricted)?;
        let before = self.find(id).await?.suspended;
        let state = |suspended: bool| Json::object([("suspended", if suspended { "true" } else { "false" })]);
        let audit = changed(by, "workspace.set_suspended", id, state(before), state(suspended));
        if self.workspaces.set_suspended(id, suspended, &audit).await? { Ok(()) } else { Err(unknown(id)) }
    }

    /// Changes rates, and returns all of them. Concurrent changes are not lost.
    pub async fn set_rates(
        &self,
        by: &Authority,
        id: WorkspaceId,
        change: RatesChange,
    ) -> Result<RateLimits, ChangeWorkspaceError> {
        by.check(Right::Unrestricted)?;
        for _ in 0..MAX_ATTEMPTS {
            let before = self.find(id).await?.rates;
            let after = change.of(before)?;
            if after == before {
                return Ok(after);
            }
            let audit = changed(by, "workspace.set_rates", id, rates(before), rates(after));
            if self.workspaces.set_rates(id, before, after, &audit).await? {
                return Ok(after);
            }
        }
        Err(ChangeWorkspaceError::Contended)
    }

    /// Changes budgets, and returns all of them. Concurrent changes are not lost, and cannot break the order of the
    /// budgets together.
    pub async fn set_budgets(
        &self,
        by: &Authority,
        id: WorkspaceId,
        change: BudgetsChange,
    ) -> Result<WorkspaceBudgets, ChangeWorkspaceError> {
        by.check(Right::Unrestricted)?;
        for _ in 0..MAX_ATTEMPTS {
            let before = self.find(id).await?.budgets;
            let after = change.of(&before)?;
            if after == before {
                return Ok(after);
            }
            let audit = changed(by, "workspace.set_budgets", id, budgets(&before), budgets(&after));
            if self.workspaces.set_budgets(id, &before, &after, &audit).await? {
                return Ok(after);
            }
        }
        Err(ChangeWorkspaceError::Contended)
    }

    /// Adds `amount`, which may be negative, and returns the new balance. A workspace without credit starts from zero
    /// and becomes limited. A negative amount for an unlimited workspace is an error.
    pub async fn add_credit(&self, by: &Authority, id: WorkspaceId, amount: Usd) -> Result<Usd, ChangeWorkspaceError> {
        by.check(Right::Unrestricted)?;
        let before = self.find(id).await?.credit;
        if before.is_none() && amount < Usd::ZERO {
            return Err(ChangeWorkspaceError::NoCreditToTake);
        }
        before.unwrap_or_default().checked_add(amount).ok_or(ChangeWorkspaceError::CreditOutOfRange)?;
        // Only the store knows the new balance: requests are charged at the same time.
        let details = Json::object([("before", credit(before).text()), ("add_usd", &amount.to_string())]);
        let audit = AuditDraft::done(by.actor(), "workspace.credit", format!("workspace {id}"), details);
        self.workspaces.add_credit(id, amount, &audit).await?.ok_or_else(|| unknown(id))
    }

    /// Clears the credit and its balance: the workspace is not limited by credit, and later credit starts from zero.
    /// Budgets stay.
    pub async fn clear_credit(&self, by: &Authority, id: WorkspaceId) -> Result<(), ChangeWorkspaceError> {
        by.check(Right::Unrestricted)?;
        let before = self.find(id).await?.credit;
        let audit = changed(by, "workspace.clear_credit", id, credit(before), credit(None));
        if self.workspaces.clear_credit(id, &audit).await? { Ok(()) } else { Err(unknown(id)) }
    }

    /// Deletes an empty workspace and returns it. Its usage records and its spending stay. The id is never reused.
    ///
    /// # Errors
    /// An unknown workspace; the default workspace; a workspace with keys, documents, guardrails or destinations; a
    /// store failure.
    pub async fn delete(&self, by: &Authority, id: WorkspaceId) -> Result<Workspace, ChangeWorkspaceError> {
        by.check(Right::Unrestricted)?;
        let before = self.find(id).await?;
        let subject = format!("workspace {id}");
        let audit = AuditDraft::change(by.actor(), "workspace.delete", subject, Some(named(&before.name)), None);
        match self.workspaces.delete(id, &audit).await? {
            WorkspaceDeletion::Deleted => Ok(before),
            WorkspaceDeletion::Unknown => Err(unknown(id)),
            WorkspaceDeletion::IsDefault => Err(ChangeWorkspaceError::IsDefault),
            WorkspaceDeletion::NotEmpty(contents) => Err(ChangeWorkspaceError::NotEmpty(contents)),
        }
    }

    async fn find(&self, id: WorkspaceId) -> Result<Workspace, ChangeWorkspaceError> {
        self.workspaces.find(id).await?.ok_or_else(|| unknown(id))
    }
}

fn unknown(id: WorkspaceId) -> ChangeWorkspaceError {
    ChangeWorkspaceError::UnknownWorkspace(id)
}

fn changed(by: &Authority, action: &'static str, id: WorkspaceId, before: Json, after: Json) -> AuditDraft {
    AuditDraft::change(by.actor(), action, format!("workspace {id}"), Some(before), Some(after))
}

fn credit(credit: Option<Usd>) -> Json {
    Json::object([("credit_usd", usd(credit).as_str())])
}

#[cfg(test)]
mod tests;
