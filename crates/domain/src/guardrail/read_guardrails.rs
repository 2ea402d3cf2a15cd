//! Reading guardrails, their versions and their keys.

use super::manage_guardrails::find_visible;
use super::{AssignKeysError, GuardrailError, GuardrailVersion, KeyAssignment, ManageGuardrails, PlacedGuardrail};
use crate::authority::Authority;
use crate::ids::WorkspaceId;

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
    ) -> Result<(Vec<PlacedGuardrail>, u64), GuardrailError> {
        let within = by.list_scope(workspace_id).ok_or(GuardrailError::UnknownWorkspace)?;
        Ok(self.guardrails.page(&within, offset, limit).await?)
    }

    /// Returns that version.
    ///
    /// # Errors
    /// Fails if no guardrail or several ones have the name, if the version does not exist, or if the store fails.
    pub async fn get_version(
        &self,
        by: &Authority,
        name: &str,
        version: u32,
    ) -> Result<GuardrailVersion, GuardrailError> {
        let guardrail = find_visible::<GuardrailError>(&*self.guardrails, by, name).await?;
        let found = self.guardrails.versions(guardrail.id, version, 1).await?.into_iter().next();
        found.filter(|found| found.guardrail.version == version).ok_or(GuardrailError::UnknownVersion)
    }

    /// Returns up to `limit` versions after the first `offset`, newest first, and the number of all. The newest is the
    /// current state.
    ///
    /// # Errors
    /// Fails if no guardrail or several ones have the name, or if the store fails.
    pub async fn list_versions(
        &self,
        by: &Authority,
        name: &str,
        offset: u64,
        limit: u64,
    ) -> Result<(Vec<GuardrailVersion>, u32), GuardrailError> {
        let guardrail = find_visible::<GuardrailError>(&*self.guardrails, by, name).await?;
        let newest = guardrail.version.saturating_sub(u32::try_from(offset).unwrap_or(u32::MAX));
        Ok((self.guardrails.versions(guardrail.id, newest, limit).await?, guardrail.version))
    }

    /// Returns up to `limit` assignments after the first `offset`, newest first.
    ///
    /// # Errors
    /// Fails if no guardrail or several ones have the name, or if the store fails.
    pub async fn list_assigned_keys(
        &self,
        by: &Authority,
        name: &str,
        offset: u64,
        limit: u64,
    ) -> Result<(Vec<KeyAssignment>, u64), AssignKeysError> {
        let guardrail = find_visible::<AssignKeysError>(&*self.guardrails, by, name).await?;
        Ok(self.guardrails.list_keys(Some(guardrail.id), by.scope(), offset, limit).await?)
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
    ) -> Result<(Vec<KeyAssignment>, u64), GuardrailError> {
        let within = by.list_scope(workspace_id).ok_or(GuardrailError::UnknownWorkspace)?;
        Ok(self.guardrails.list_keys(None, &within, offset, limit).await?)
    }
}
