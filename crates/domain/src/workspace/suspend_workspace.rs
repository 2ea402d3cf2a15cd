//! Suspending and resuming a workspace.

use std::sync::Arc;

use super::model::before_and_after;
use super::{ChangeWorkspaceError, WorkspaceRepository};
use crate::audit::{Actor, AuditDraft};
use crate::ids::WorkspaceId;
use crate::json::Json;

/// Suspends and resumes workspaces.
pub struct SuspendWorkspace {
    workspaces: Arc<dyn WorkspaceRepository>,
}

impl SuspendWorkspace {
    /// Wires the port.
    pub fn new(workspaces: Arc<dyn WorkspaceRepository>) -> Self {
        Self { workspaces }
    }

    /// Suspends or resumes a workspace. All calls of a suspended workspace's keys are rejected.
    pub async fn execute(&self, actor: &Actor, id: WorkspaceId, suspended: bool) -> Result<(), ChangeWorkspaceError> {
        let unknown = || ChangeWorkspaceError::UnknownWorkspace(id);
        let before = self.workspaces.find(id).await?.ok_or_else(unknown)?.suspended;
        let state = |suspended: bool| Json::object([("suspended", if suspended { "true" } else { "false" })]);
        let details = before_and_after(&state(before), &state(suspended));
        let audit = AuditDraft::done(actor, "workspace.set_suspended", format!("workspace {id}"), details);
        if self.workspaces.set_suspended(id, suspended, &audit).await? { Ok(()) } else { Err(unknown()) }
    }
}
