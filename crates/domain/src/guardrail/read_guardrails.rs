//! Reading guardrails, their versions and their keys.

use super::manage_guardrails::is_visible;
use super::{AssignKeysError, AssignmentPage, GuardrailError, GuardrailVersion, ManageGuardrails, PlacedGuardrail};
use crate::authority::Authority;
use crate::ids::{GuardrailId, WorkspaceId};

/// One page of a workspace's guardrails, and their total number.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct GuardrailPage {
    /// The guardrails, newest first.
    pub guardrails: Vec<PlacedGuardrail>,
    /// The number of guardrails in the workspace, on all pages.
    pub total: usize,
}

impl ManageGuardrails {
    /// Returns up to `limit` guardrails of the workspace ([`crate::workspace::choose_workspace`]) after the first
    /// `offset`, newest first.
    ///
    /// # Errors
    /// Fails if the workspace does not exist or the store fails.
    pub async fn list(
        &self,
        by: &Authority,
        workspace_id: Option<WorkspaceId>,
        offset: usize,
        limit: usize,
    ) -> Result<GuardrailPage, GuardrailError> {
        let workspace = self.workspace(by, workspace_id).await?;
        let all = self.guardrails.list(workspace.id).await?;
        let total = all.len();
        let placed = |guardrail: super::Guardrail| {
            let workspace_default = workspace.default_guardrail_id == Some(guardrail.id);
            PlacedGuardrail { guardrail, workspace_default }
        };
        Ok(GuardrailPage { guardrails: all.into_iter().skip(offset).take(limit).map(placed).collect(), total })
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
        if !is_visible(&*self.guardrails, by, id).await? {
            return Err(AssignKeysError::UnknownGuardrail);
        }
        self.guardrails.list_keys(id, offset, limit).await?.ok_or(AssignKeysError::UnknownGuardrail)
    }
}
