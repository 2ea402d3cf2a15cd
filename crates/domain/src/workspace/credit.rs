//! Adding credit to a workspace, and clearing it.

use std::sync::Arc;

use super::model::{before_and_after, usd};
use super::{ChangeWorkspaceError, WorkspaceRepository};
use crate::audit::{Actor, AuditDraft};
use crate::ids::WorkspaceId;
use crate::json::Json;
use crate::money::Usd;

/// Adds to the prepaid credit of a workspace.
pub struct AddCredit {
    workspaces: Arc<dyn WorkspaceRepository>,
}

impl AddCredit {
    /// Wires the port.
    pub fn new(workspaces: Arc<dyn WorkspaceRepository>) -> Self {
        Self { workspaces }
    }

    /// Adds `amount`, which may be negative, and returns the new balance. A workspace without credit starts from zero
    /// and becomes limited. A negative amount for an unlimited workspace is an error.
    pub async fn execute(&self, actor: &Actor, id: WorkspaceId, amount: Usd) -> Result<Usd, ChangeWorkspaceError> {
        let unknown = || ChangeWorkspaceError::UnknownWorkspace(id);
        let before = self.workspaces.find(id).await?.ok_or_else(unknown)?.credit;
        if before.is_none() && amount < Usd::ZERO {
            return Err(ChangeWorkspaceError::NoCreditToTake);
        }
        before.unwrap_or_default().checked_add(amount).ok_or(ChangeWorkspaceError::CreditOutOfRange)?;
        let before = Json::object([("credit_usd", usd(before).as_str())]);
        // Only the store knows the new balance: requests are charged at the same time.
        let details = Json::object([("before", before.text()), ("add_usd", &amount.to_string())]);
        let audit = AuditDraft::done(actor, "workspace.credit", format!("workspace {id}"), details);
        self.workspaces.add_credit(id, amount, &audit).await?.ok_or_else(unknown)
    }
}

/// Clears the credit of a workspace, which is then not limited by credit.
pub struct ClearCredit {
    workspaces: Arc<dyn WorkspaceRepository>,
}

impl ClearCredit {
    /// Wires the port.
    pub fn new(workspaces: Arc<dyn WorkspaceRepository>) -> Self {
        Self { workspaces }
    }

    /// Clears the credit and its balance: later credit starts from zero. Budgets stay.
    pub async fn execute(&self, actor: &Actor, id: WorkspaceId) -> Result<(), ChangeWorkspaceError> {
        let unknown = || ChangeWorkspaceError::UnknownWorkspace(id);
        let before = self.workspaces.find(id).await?.ok_or_else(unknown)?.credit;
        let state = |credit: Option<Usd>| Json::object([("credit_usd", usd(credit).as_str())]);
        let details = before_and_after(&state(before), &state(None));
        let audit = AuditDraft::done(actor, "workspace.clear_credit", format!("workspace {id}"), details);
        if self.workspaces.clear_credit(id, &audit).await? { Ok(()) } else { Err(unknown()) }
    }
}
