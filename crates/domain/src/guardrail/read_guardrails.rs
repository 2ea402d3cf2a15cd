//! Reading guardrails, their versions and their keys.

use std::sync::Arc;

use super::{
    AssignKeysError, AssignmentPage, GuardrailError, GuardrailPorts, GuardrailRepository, GuardrailVersion,
    PlacedGuardrail,
};
use crate::ids::{GuardrailId, WorkspaceId};

/// Reads a guardrail, of any workspace.
pub struct GetGuardrail {
    ports: GuardrailPorts,
}

impl GetGuardrail {
    /// Wires the ports.
    pub fn new(ports: GuardrailPorts) -> Self {
        Self { ports }
    }

    /// Returns the current guardrail.
    ///
    /// # Errors
    /// Fails if the guardrail does not exist, which includes a malformed id, or if the store fails.
    pub async fn execute(&self, id: &str) -> Result<PlacedGuardrail, GuardrailError> {
        let guardrail = self.ports.find(id).await?;
        self.ports.place(guardrail).await
    }
}

/// One page of a workspace's guardrails, and their total number.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct GuardrailPage {
    /// The guardrails, newest first.
    pub guardrails: Vec<PlacedGuardrail>,
    /// The number of guardrails in the workspace, on all pages.
    pub total: usize,
}

/// Lists the guardrails of a workspace.
pub struct ListGuardrails {
    ports: GuardrailPorts,
}

impl ListGuardrails {
    /// Wires the ports.
    pub fn new(ports: GuardrailPorts) -> Self {
        Self { ports }
    }

    /// Returns up to `limit` guardrails of the workspace (`None`: the default one) after the first `offset`, newest
    /// first.
    ///
    /// # Errors
    /// Fails if the workspace does not exist or the store fails.
    pub async fn execute(
        &self,
        workspace_id: Option<WorkspaceId>,
        offset: usize,
        limit: usize,
    ) -> Result<GuardrailPage, GuardrailError> {
        let workspace = self.ports.workspace(workspace_id).await?;
        let all = self.ports.guardrails.list(workspace.id).await?;
        let total = all.len();
        let placed = |guardrail: super::Guardrail| {
            let workspace_default = workspace.default_guardrail_id == Some(guardrail.id);
            PlacedGuardrail { guardrail, workspace_default }
        };
        Ok(GuardrailPage { guardrails: all.into_iter().skip(offset).take(limit).map(placed).collect(), total })
    }
}

/// Reads one version of a guardrail.
pub struct GetGuardrailVersion {
    versions: ListGuardrailVersions,
}

impl GetGuardrailVersion {
    /// Wires the ports.
    pub fn new(ports: GuardrailPorts) -> Self {
        Self { versions: ListGuardrailVersions::new(ports) }
    }

    /// Returns that version.
    ///
    /// # Errors
    /// Fails if the guardrail (also for a malformed id) or the version does not exist, or if the store fails.
    pub async fn execute(&self, id: &str, version: u32) -> Result<GuardrailVersion, GuardrailError> {
        let versions = self.versions.execute(id).await?;
        let found = versions.into_iter().find(|found| found.guardrail.version == version);
        found.ok_or(GuardrailError::UnknownVersion)
    }
}

/// Lists the versions of a guardrail.
pub struct ListGuardrailVersions {
    ports: GuardrailPorts,
}

impl ListGuardrailVersions {
    /// Wires the ports.
    pub fn new(ports: GuardrailPorts) -> Self {
        Self { ports }
    }

    /// Returns every version, newest first. The newest is the current state.
    ///
    /// # Errors
    /// Fails if the guardrail does not exist, which includes a malformed id, or if the store fails.
    pub async fn execute(&self, id: &str) -> Result<Vec<GuardrailVersion>, GuardrailError> {
        let id: GuardrailId = id.parse().map_err(|_| GuardrailError::UnknownGuardrail)?;
        let versions = self.ports.guardrails.versions(id).await?;
        // Every existing guardrail has at least one version.
        if versions.is_empty() { Err(GuardrailError::UnknownGuardrail) } else { Ok(versions) }
    }
}

/// Lists the keys that have a guardrail assigned.
pub struct ListAssignedKeys {
    guardrails: Arc<dyn GuardrailRepository>,
}

impl ListAssignedKeys {
    /// Wires the port.
    pub fn new(guardrails: Arc<dyn GuardrailRepository>) -> Self {
        Self { guardrails }
    }

    /// Returns up to `limit` assignments after the first `offset`, newest first.
    ///
    /// # Errors
    /// Fails if the guardrail does not exist, which includes a malformed id, or if the store fails.
    pub async fn execute(&self, id: &str, offset: u64, limit: u64) -> Result<AssignmentPage, AssignKeysError> {
        let id: GuardrailId = id.parse().map_err(|_| AssignKeysError::UnknownGuardrail)?;
        self.guardrails.list_keys(id, offset, limit).await?.ok_or(AssignKeysError::UnknownGuardrail)
    }
}
