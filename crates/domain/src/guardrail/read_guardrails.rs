//! Reading guardrails, their versions and their keys.

use super::{AssignKeysError, AssignmentPage, GuardrailError, GuardrailPage, GuardrailVersion, ManageGuardrails};
use crate::authority::Authority;
use crate::ids::{GuardrailId, WorkspaceId};

impl ManageGuardrails {
    /// Returns a page of the guardrails of one workspace, or with `None` of all that the caller sees, newest first.
    ///
    /// # Errors
    /// An unknown workspace, or a store failure.
    pub async fn list(
        &self,
        by: &Authority,
        workspace_id: Option<WorkspaceId>,
        offset: u64,
        limit: u64,
    ) -> Result<GuardrailPage, GuardrailError> {
        let within = by.list_scope(workspace_id).ok_or(GuardrailError::UnknownWorkspace)?;
        Ok(self.guardrails.page(&within, offset, limit).await?)
    }

    /// Returns that version.
    ///
    /// # Errors
    /// Fails if the guardrail (also for a malformed id) or the version does not exist, or if the store fails.
    pub async fn get_version(
        &self,
        by: &Authority,
        id: &str,
        version: u32,
    ) -> Result<GuardrailVersion, GuardrailError> {
        let versions = self.list_versions(by, id).await?;
        let found = versions.into_iter().find(|found| found.guardrail.version == version);
        found.ok_or(GuardrailError::UnknownVersion)
    }

    /// Returns every version, newest first. The newest is the current state.
    ///
    /// # Errors
    /// Fails if the guardrail does not exist, which includes a malformed id, or if the store fails.
    pub async fn list_versions(&self, by: &Authority, id: &str) -> Result<Vec<GuardrailVersion>, GuardrailError> {
        let id: GuardrailId = id.parse().map_err(|_| GuardrailError::UnknownGuardrail)?;
        let versions = self.guardrails.versions(id).await?;
        // Every existing guardrail has at least one version.
        let is_visible = versions.first().is_some_and(|newest| by.sees(newest.guardrail.workspace_id));
        if is_visible { Ok(versions) } else { Err(GuardrailError::UnknownGuardrail) }
    }

    /// Returns up to `limit` assignments after the first `offset`, newest first.
    ///
    /// # Errors
    /// Fails if the guardrail does not exist, which includes a malformed id, or if the store fails.
    pub async fn list_assigned_keys(
        &self,
        by: &Authority,
        id: &str,
        offset: u64,
        limit: u64,
    ) -> Result<AssignmentPage, AssignKeysError> {
        let id: GuardrailId = id.parse().map_err(|_| AssignKeysError::UnknownGuardrail)?;
        let found = self.guardrails.find(id).await?.filter(|guardrail| by.sees(guardrail.workspace_id));
        found.ok_or(AssignKeysError::UnknownGuardrail)?;
        Ok(self.guardrails.list_keys(Some(id), by.scope(), offset, limit).await?)
    }

    /// Returns a page of the assignments of one workspace, or with `None` of all that the caller sees, newest first.
    ///
    /// # Errors
    /// An unknown workspace, or a store failure.
    pub async fn list_all_assigned_keys(
        &self,
        by: &Authority,
        workspace_id: Option<WorkspaceId>,
        offset: u64,
        limit: u64,
    ) -> Result<AssignmentPage, GuardrailError> {
        let within = by.list_scope(workspace_id).ok_or(GuardrailError::UnknownWorkspace)?;
        Ok(self.guardrails.list_keys(None, &within, offset, limit).await?)
    }
}
