//! Setting the budgets of a workspace.

use std::sync::Arc;

use super::model::{before_and_after, budgets};
use super::{ChangeWorkspaceError, MAX_ATTEMPTS, WorkspaceRepository};
use crate::audit::{Actor, AuditDraft};
use crate::budget::WorkspaceBudgets;
use crate::edit::Edit;
use crate::ids::WorkspaceId;
use crate::money::Usd;

/// The changes of budgets.
#[derive(Debug, Clone, Copy, Default)]
pub struct BudgetsChange {
    /// Above zero.
    pub daily: Edit<Usd>,
    /// Above zero and above the daily budget.
    pub weekly: Edit<Usd>,
    /// Above zero and above the budgets of shorter periods.
    pub monthly: Edit<Usd>,
    /// Above zero and above the budgets of all periods.
    pub lifetime: Edit<Usd>,
}

impl BudgetsChange {
    fn of(self, before: &WorkspaceBudgets) -> Result<WorkspaceBudgets, ChangeWorkspaceError> {
        let after = WorkspaceBudgets {
            daily: self.daily.of(before.daily),
            weekly: self.weekly.of(before.weekly),
            monthly: self.monthly.of(before.monthly),
            lifetime: self.lifetime.of(before.lifetime),
        };
        check(&after)?;
        Ok(after)
    }
}

/// Checks that longer periods have higher budgets: a budget up to that of a shorter period would have no effect.
fn check(budgets: &WorkspaceBudgets) -> Result<(), ChangeWorkspaceError> {
    let mut narrower: Option<(&'static str, Usd)> = None;
    for (name, amount) in [
        ("daily", budgets.daily),
        ("weekly", budgets.weekly),
        ("monthly", budgets.monthly),
        ("lifetime", budgets.lifetime),
    ] {
        let Some(amount) = amount else { continue };
        if amount <= Usd::ZERO {
            return Err(ChangeWorkspaceError::BudgetNotPositive(name));
        }
        if let Some((shorter, least)) = narrower.replace((name, amount))
            && amount <= least
        {
            return Err(ChangeWorkspaceError::BudgetsDoNotFall { longer: name, amount, shorter, least });
        }
    }
    Ok(())
}

/// Sets the budgets of a workspace.
pub struct SetWorkspaceBudgets {
    workspaces: Arc<dyn WorkspaceRepository>,
}

impl SetWorkspaceBudgets {
    /// Wires the port.
    pub fn new(workspaces: Arc<dyn WorkspaceRepository>) -> Self {
        Self { workspaces }
    }

    /// Changes budgets, and returns all of them. Concurrent changes are not lost, and cannot break the order of the
    /// budgets together.
    pub async fn execute(
        &self,
        actor: &Actor,
        id: WorkspaceId,
        change: BudgetsChange,
    ) -> Result<WorkspaceBudgets, ChangeWorkspaceError> {
        for _ in 0..MAX_ATTEMPTS {
            let found = self.workspaces.find(id).await?.ok_or(ChangeWorkspaceError::UnknownWorkspace(id))?;
            let (before, after) = (found.budgets, change.of(&found.budgets)?);
            if after == before {
                return Ok(after);
            }
            let details = before_and_after(&budgets(&before), &budgets(&after));
            let audit = AuditDraft::done(actor, "workspace.set_budgets", format!("workspace {id}"), details);
            if self.workspaces.set_budgets(id, &before, &after, &audit).await? {
                return Ok(after);
            }
        }
        Err(ChangeWorkspaceError::Contended)
    }
}

#[cfg(test)]
mod tests;
