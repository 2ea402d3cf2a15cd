//! Clearing the credit of a workspace.

use std::sync::Arc;

use super::model::{before_and_after, usd};
use super::{ChangeWorkspaceError, WorkspaceRepository};
use crate::audit::{Actor, AuditDraft};
use crate::ids::WorkspaceId;
use crate::json::Json;
use crate::money::Usd;

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
