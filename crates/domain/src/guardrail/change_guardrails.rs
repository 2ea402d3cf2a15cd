//! Deleting a guardrail, restoring a version of it, and setting the default guardrail of a workspace.

use super::manage_guardrails::audit_draft;
use super::{Guardrail, GuardrailError, ManageGuardrails, PlacedGuardrail};
use crate::audit::{Actor, AuditDraft};
use crate::ids::{GuardrailId, WorkspaceId};
use crate::json::Json;

impl ManageGuardrails {
    /// Deletes a guardrail with its versions. Its keys and its workspace then have no guardrail.
    ///
    /// # Errors
    /// Fails if the guardrail does not exist, which includes a malformed id, or if the store fails.
    pub async fn delete(&self, actor: &Actor, id: &str) -> Result<(), GuardrailError> {
        let before = self.get(id).await?;
        let audit = audit_draft(actor, "guardrail.delete", Some(&before), None);
        let deleted = self.guardrails.delete(before.guardrail.id, &audit).await?;
        if deleted { Ok(()) } else { Err(GuardrailError::UnknownGuardrail) }
    }

    /// Creates a new version with name, budget and rules of an older one. If nothing differs, it creates none. The
    /// default guardrail of the workspace does not change.
    ///
    /// # Errors
    /// Fails if the guardrail (also for a malformed id) or the version does not exist, if concurrent changes win every
    /// time, or if the store fails.
    pub async fn restore_version(
        &self,
        actor: &Actor,
        id: &str,
        version: u32,
    ) -> Result<PlacedGuardrail, GuardrailError> {
        let Guardrail { name, budget, rules, .. } = self.get_version(id, version).await?.guardrail;
        let back = |now: Guardrail| Ok(Guardrail { name: name.clone(), budget, rules: rules.clone(), ..now });
        self.change(actor, "guardrail.restore", id, None, back).await
    }

    /// Makes the guardrail its workspace's default, replacing the previous one.
    ///
    /// # Errors
    /// Fails if the guardrail does not exist, which includes a malformed id, or if the store fails.
    pub async fn set_default(&self, actor: &Actor, id: &str) -> Result<(), GuardrailError> {
        let guardrail = self.find(id).await?;
        let done = self.replace_default(actor, guardrail.workspace_id, Some(guardrail.id)).await?;
        if done { Ok(()) } else { Err(GuardrailError::UnknownGuardrail) }
    }

    /// Clears the default guardrail of a workspace (`None`: of the default workspace) and returns the workspace's id.
    ///
    /// # Errors
    /// Fails if the workspace does not exist or the store fails.
    pub async fn clear_default(
        &self,
        actor: &Actor,
        workspace: Option<WorkspaceId>,
    ) -> Result<WorkspaceId, GuardrailError> {
        let workspace = self.workspace(workspace).await?.id;
        let done = self.replace_default(actor, workspace, None).await?;
        if done { Ok(workspace) } else { Err(GuardrailError::UnknownWorkspace) }
    }

    async fn replace_default(
        &self,
        actor: &Actor,
        workspace: WorkspaceId,
        guardrail: Option<GuardrailId>,
    ) -> Result<bool, GuardrailError> {
        let Some(before) = self.workspaces.find(workspace).await? else { return Ok(false) };
        if before.default_guardrail_id == guardrail {
            return Ok(true);
        }
        let id_or_null =
            |id: Option<GuardrailId>| Json::from(id.map_or(serde_json::Value::Null, |id| id.to_string().into()));
        let state = |id| Json::object([("default_guardrail_id", id_or_null(id).text())]);
        let (before, after) = (Some(state(before.default_guardrail_id)), Some(state(guardrail)));
        let subject = format!("workspace {workspace}");
        let audit = AuditDraft::change(actor, "workspace.default_guardrail", subject, before, after);
        Ok(self.guardrails.set_default(workspace, guardrail, &audit).await?)
    }
}
