//! Deleting a guardrail, restoring a version of it, and setting the default guardrail of a workspace.

use super::manage_guardrails::{audit_draft, check_default, find_visible};
use super::update_guardrail::MAX_ATTEMPTS;
use super::{Guardrail, GuardrailError, ManageGuardrails, PlacedGuardrail};
use crate::audit::AuditDraft;
use crate::authority::{Authority, Right};
use crate::change::Change;
use crate::ids::{GuardrailId, WorkspaceId};
use crate::json::Json;
use crate::naming::NameError;

impl ManageGuardrails {
    /// Deletes a guardrail with its versions. Its keys and its workspace then have no guardrail.
    ///
    /// # Errors
    /// Fails if the caller lacks the right, if the guardrail does not exist, which includes a malformed id, if it has a
    /// version that the caller does not accept, if concurrent changes win every time, or if the store fails.
    pub async fn delete(&self, change: &Change<'_, ()>, id: &str) -> Result<(), GuardrailError> {
        let by = change.by();
        by.check(Right::Write)?;
        for _ in 0..MAX_ATTEMPTS {
            let before = self.get(by, id).await?;
            check_default(by, before.workspace_default)?;
            change.check_version(before.version())?;
            let audit = change.audited(audit_draft(by, "guardrail.delete", Some(&before), None), &());
            if self.guardrails.delete(&before, &audit).await? {
                return Ok(());
            }
        }
        Err(GuardrailError::Conflict)
    }

    /// Creates a new version with name, budget and rules of an older one. If nothing differs, it creates none. The
    /// default guardrail of the workspace does not change.
    ///
    /// # Errors
    /// Fails if the guardrail (also for a malformed id) or the version does not exist, if concurrent changes win every
    /// time, or if the store fails.
    pub async fn restore_version(
        &self,
        change: &Change<'_, PlacedGuardrail>,
        id: &str,
        version: u32,
    ) -> Result<PlacedGuardrail, GuardrailError> {
        change.by().check(Right::Write)?;
        let Guardrail { name, budget, rules, .. } = self.get_version(change.by(), id, version).await?.guardrail;
        let back = |now: Guardrail| Ok(Guardrail { name: name.clone(), budget, rules: rules.clone(), ..now });
        self.change(change, "guardrail.restore", id, None, back).await
    }

    /// Makes the guardrail its workspace's default, replacing the previous one.
    ///
    /// # Errors
    /// Fails if the caller lacks the right, if the guardrail does not exist, which includes a malformed id, or if the
    /// store fails.
    pub async fn set_default(&self, by: &Authority, id: &str) -> Result<(), GuardrailError> {
        by.check(Right::Unrestricted)?;
        let guardrail = find_visible::<GuardrailError>(&*self.guardrails, by, id).await?;
        let done = self.replace_default(by, guardrail.workspace_id, Some(guardrail.id)).await?;
        if done { Ok(()) } else { Err(NameError::Unknown.into()) }
    }

    /// Clears the default guardrail of a workspace (`None`: of the default workspace) and returns the workspace's id.
    ///
    /// # Errors
    /// Fails if the workspace does not exist or the store fails.
    pub async fn clear_default(
        &self,
        by: &Authority,
        workspace: Option<WorkspaceId>,
    ) -> Result<WorkspaceId, GuardrailError> {
        by.check(Right::Unrestricted)?;
        let workspace = self.workspace(by, workspace).await?.id;
        let done = self.replace_default(by, workspace, None).await?;
        if done { Ok(workspace) } else { Err(GuardrailError::UnknownWorkspace) }
    }

    async fn replace_default(
        &self,
        by: &Authority,
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
        let audit = AuditDraft::change(by.actor(), "workspace.default_guardrail", subject, before, after);
        Ok(self.guardrails.set_default(workspace, guardrail, &audit).await?)
    }
}
