//! The shared parts of the use cases that manage guardrails.

use std::sync::Arc;

use super::{Guardrail, GuardrailError, GuardrailRepository, KnownNames};
use crate::ids::{GuardrailId, WorkspaceId};
use crate::system::{Clock, IdGenerator};
use crate::workspace::{Workspace, WorkspaceRepository};

/// The ports of the use cases that manage guardrails.
#[derive(Clone)]
pub struct GuardrailPorts {
    /// Stores guardrails.
    pub guardrails: Arc<dyn GuardrailRepository>,
    /// Stores workspaces and their default guardrails.
    pub workspaces: Arc<dyn WorkspaceRepository>,
    /// The models and providers that a guardrail can name.
    pub names: KnownNames,
    /// The clock.
    pub clock: Arc<dyn Clock>,
    /// Generates ids.
    pub ids: Arc<dyn IdGenerator>,
}

/// A guardrail, and whether it is its workspace's default.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct PlacedGuardrail {
    /// The guardrail.
    pub guardrail: Guardrail,
    /// True if it applies to all requests of its workspace, besides the guardrails of the keys.
    pub workspace_default: bool,
}

impl GuardrailPorts {
    pub(super) async fn find(&self, id: &str) -> Result<Guardrail, GuardrailError> {
        let id: GuardrailId = id.parse().map_err(|_| GuardrailError::UnknownGuardrail)?;
        self.guardrails.find(id).await?.ok_or(GuardrailError::UnknownGuardrail)
    }

    /// Adds to a guardrail whether it is its workspace's default.
    pub(super) async fn place(&self, guardrail: Guardrail) -> Result<PlacedGuardrail, GuardrailError> {
        let workspace = self.workspaces.find(guardrail.workspace_id).await?;
        let workspace_default = workspace.is_some_and(|found| found.default_guardrail_id == Some(guardrail.id));
        Ok(PlacedGuardrail { guardrail, workspace_default })
    }

    /// Returns the named workspace, or the default one for `None`.
    pub(super) async fn workspace(&self, named: Option<WorkspaceId>) -> Result<Workspace, GuardrailError> {
        let found = match named {
            Some(id) => self.workspaces.find(id).await?,
            None => self.workspaces.list().await?.into_iter().find(|workspace| workspace.is_default),
        };
        found.ok_or(GuardrailError::UnknownWorkspace)
    }
}
