//! Deleting a guardrail, restoring a version of it, and setting the default guardrail of a workspace.

use super::management::audit_draft;
use super::update_guardrail::change_with_retries;
use super::{GetGuardrailVersion, Guardrail, GuardrailError, GuardrailPorts, PlacedGuardrail};
use crate::audit::{Actor, AuditDraft};
use crate::ids::{GuardrailId, WorkspaceId};
use crate::json::Json;

/// Deletes a guardrail.
pub struct DeleteGuardrail {
    ports: GuardrailPorts,
}

impl DeleteGuardrail {
    /// Wires the ports.
    pub fn new(ports: GuardrailPorts) -> Self {
        Self { ports }
    }

    /// Deletes a guardrail with its versions. Its keys and its workspace then have no guardrail.
    ///
    /// # Errors
    /// Fails if the guardrail does not exist, which includes a malformed id, or if the store fails.
    pub async fn execute(&self, actor: &Actor, id: &str) -> Result<(), GuardrailError> {
        let guardrail = self.ports.find(id).await?;
        let before = self.ports.place(guardrail).await?;
        let audit = audit_draft(actor, "guardrail.delete", Some(&before), None);
        let deleted = self.ports.guardrails.delete(before.guardrail.id, &audit).await?;
        if deleted { Ok(()) } else { Err(GuardrailError::UnknownGuardrail) }
    }
}

/// Restores a version of a guardrail.
pub struct RestoreGuardrailVersion {
    ports: GuardrailPorts,
    version: GetGuardrailVersion,
}

impl RestoreGuardrailVersion {
    /// Wires the ports.
    pub fn new(ports: GuardrailPorts) -> Self {
        Self { version: GetGuardrailVersion::new(ports.clone()), ports }
    }

    /// Creates a new version with name, budget and rules of an older one. If nothing differs, it creates none. The
    /// default guardrail of the workspace does not change.
    ///
    /// # Errors
    /// Fails if the guardrail (also for a malformed id) or the version does not exist, if concurrent changes win every
    /// time, or if the store fails.
    pub async fn execute(&self, actor: &Actor, id: &str, version: u32) -> Result<PlacedGuardrail, GuardrailError> {
        let Guardrail { name, budget, rules, .. } = self.version.execute(id, version).await?.guardrail;
        let back = |now: Guardrail| Ok(Guardrail { name: name.clone(), budget, rules: rules.clone(), ..now });
        change_with_retries(&self.ports, actor, "guardrail.restore", id, None, back).await
    }
}

/// Sets the guardrail that applies to all requests of a workspace, besides the guardrails of its keys.
pub struct SetDefaultGuardrail {
    ports: GuardrailPorts,
}

impl SetDefaultGuardrail {
    /// Wires the ports.
    pub fn new(ports: GuardrailPorts) -> Self {
        Self { ports }
    }

    /// Makes the guardrail its workspace's default, replacing the previous one.
    ///
    /// # Errors
    /// Fails if the guardrail does not exist, which includes a malformed id, or if the store fails.
    pub async fn execute(&self, actor: &Actor, id: &str) -> Result<(), GuardrailError> {
        let guardrail = self.ports.find(id).await?;
        let done = self.set(actor, guardrail.workspace_id, Some(guardrail.id)).await?;
        if done { Ok(()) } else { Err(GuardrailError::UnknownGuardrail) }
    }

    /// Clears the default guardrail of a workspace (`None`: of the default workspace) and returns the workspace's id.
    ///
    /// # Errors
    /// Fails if the workspace does not exist or the store fails.
    pub async fn clear(&self, actor: &Actor, workspace: Option<WorkspaceId>) -> Result<WorkspaceId, GuardrailError> {
        let workspace = self.ports.workspace(workspace).await?.id;
        let done = self.set(actor, workspace, None).await?;
        if done { Ok(workspace) } else { Err(GuardrailError::UnknownWorkspace) }
    }

    async fn set(
        &self,
        actor: &Actor,
        workspace: WorkspaceId,
        guardrail: Option<GuardrailId>,
    ) -> Result<bool, GuardrailError> {
        let Some(before) = self.ports.workspaces.find(workspace).await? else { return Ok(false) };
        if before.default_guardrail_id == guardrail {
            return Ok(true);
        }
        let id_or_null =
            |id: Option<GuardrailId>| Json::from(id.map_or(serde_json::Value::Null, |id| id.to_string().into()));
        let state = |id| Json::object([("default_guardrail_id", id_or_null(id).text())]);
        let (before, after) = (state(before.default_guardrail_id), state(guardrail));
        let details = Json::object([("before", before.text()), ("after", after.text())]);
        let audit = AuditDraft::done(actor, "workspace.default_guardrail", format!("workspace {workspace}"), details);
        Ok(self.ports.guardrails.set_default(workspace, guardrail, &audit).await?)
    }
}
