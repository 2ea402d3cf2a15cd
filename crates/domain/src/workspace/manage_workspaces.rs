//! Changing workspaces.

use std::sync::Arc;

use super::changes::{differences, usd};
use super::{
    BudgetsChange, MAX_ATTEMPTS, Workspace, WorkspaceChange, WorkspaceError, WorkspaceRepository, WorkspaceUpdate,
};
use crate::audit::AuditDraft;
use crate::authority::{Authority, Right};
use crate::ids::WorkspaceId;
use crate::json::Json;
use crate::money::Usd;
use crate::system::Clock;

/// Changes workspaces. Every change needs [`Right::Unrestricted`].
pub struct ManageWorkspaces {
    workspaces: Arc<dyn WorkspaceRepository>,
    clock: Arc<dyn Clock>,
}

impl ManageWorkspaces {
    /// Wires the ports.
    pub fn new(workspaces: Arc<dyn WorkspaceRepository>, clock: Arc<dyn Clock>) -> Self {
        Self { workspaces, clock }
    }

    /// Changes settings and returns the workspace. Absent members keep their value; a change of nothing writes nothing.
    /// Concurrent changes of other members are not lost.
    ///
    /// # Errors
    /// A change without a member; an invalid one; a slug of another workspace; a default guardrail of another one; an
    /// unknown workspace; concurrent changes; a store failure.
    pub async fn update(
        &self,
        by: &Authority,
        id: WorkspaceId,
        change: &WorkspaceChange,
    ) -> Result<Workspace, WorkspaceError> {
        by.check(Right::Unrestricted)?;
        if change.is_empty() {
            return Err(WorkspaceError::NothingToChange);
        }
        self.change(by, "workspace.update", id, |before| change.of(before)).await
    }

    /// Changes budgets, and returns the workspace. Concurrent changes are not lost, and cannot break the order of the
    /// budgets together.
    pub async fn set_budgets(
        &self,
        by: &Authority,
        id: WorkspaceId,
        change: BudgetsChange,
    ) -> Result<Workspace, WorkspaceError> {
        by.check(Right::Unrestricted)?;
        let change = |before: &Workspace| Ok(Workspace { budgets: change.of(&before.budgets)?, ..before.clone() });
        self.change(by, "workspace.set_budgets", id, change).await
    }

    /// Replaces a workspace with the result of `change`. It repeats the change on the newest state if it lost a race.
    async fn change(
        &self,
        by: &Authority,
        action: &'static str,
        id: WorkspaceId,
        change: impl Fn(&Workspace) -> Result<Workspace, WorkspaceError>,
    ) -> Result<Workspace, WorkspaceError> {
        for _ in 0..MAX_ATTEMPTS {
            let before = self.find(id).await?;
            let after = change(&before)?;
            if after.has_settings_of(&before) {
                return Ok(before);
            }
            let after = Workspace { updated_at: Some(self.clock.now()), ..after };
            let (was, is) = differences(Some(&before), &after);
            let audit = AuditDraft::change(by.actor(), action, format!("workspace {id}"), was, Some(is));
            match self.workspaces.update(&before, &after, &audit).await? {
                WorkspaceUpdate::Updated => return Ok(after),
                WorkspaceUpdate::Differs => {}
                WorkspaceUpdate::SlugTaken => return Err(WorkspaceError::SlugTaken(after.slug.as_str().to_owned())),
                WorkspaceUpdate::UnknownGuardrail => return Err(WorkspaceError::UnknownGuardrail),
            }
        }
        Err(WorkspaceError::Contended)
    }

    /// Adds `amount`, which may be negative, and returns the new balance. A workspace without credit starts from zero
    /// and becomes limited. A negative amount for an unlimited workspace is an error.
    pub async fn add_credit(&self, by: &Authority, id: WorkspaceId, amount: Usd) -> Result<Usd, WorkspaceError> {
        by.check(Right::Unrestricted)?;
        let before = self.find(id).await?.credit;
        if before.is_none() && amount < Usd::ZERO {
            return Err(WorkspaceError::NoCreditToTake);
        }
        before.unwrap_or_default().checked_add(amount).ok_or(WorkspaceError::CreditOutOfRange)?;
        // Only the store knows the new balance: requests are charged at the same time.
        let details = Json::object([("before", credit(before).text()), ("add_usd", &amount.to_string())]);
        let audit = AuditDraft::done(by.actor(), "workspace.credit", format!("workspace {id}"), details);
        self.workspaces.add_credit(id, amount, &audit).await?.ok_or_else(|| unknown(id))
    }

    /// Clears the credit and its balance: the workspace is not limited by credit, and later credit starts from zero.
    /// Budgets stay.
    pub async fn clear_credit(&self, by: &Authority, id: WorkspaceId) -> Result<(), WorkspaceError> {
        by.check(Right::Unrestricted)?;
        let before = self.find(id).await?.credit;
        let audit = changed(by, "workspace.clear_credit", id, credit(before), credit(None));
        if self.workspaces.clear_credit(id, &audit).await? { Ok(()) } else { Err(unknown(id)) }
    }

    async fn find(&self, id: WorkspaceId) -> Result<Workspace, WorkspaceError> {
        self.workspaces.find(id).await?.ok_or_else(|| unknown(id))
    }
}

fn unknown(id: WorkspaceId) -> WorkspaceError {
    WorkspaceError::UnknownWorkspace(id)
}

fn changed(by: &Authority, action: &'static str, id: WorkspaceId, before: Json, after: Json) -> AuditDraft {
    AuditDraft::change(by.actor(), action, format!("workspace {id}"), Some(before), Some(after))
}

fn credit(credit: Option<Usd>) -> Json {
    Json::object([("credit_usd", usd(credit).as_str())])
}

#[cfg(test)]
mod tests;
