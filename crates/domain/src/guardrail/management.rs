//! What every use case that manages guardrails shares.

use std::sync::Arc;

use super::{Guardrail, GuardrailError, GuardrailRepository, KnownNames};
use crate::ids::{GuardrailId, WorkspaceId};
use crate::system::{Clock, IdGenerator};
use crate::workspace::{Workspace, WorkspaceRepository};

/// The ports of the use cases that manage guardrails.
#[derive(Clone)]
pub struct GuardrailPorts {
    /// Where guardrails are kept.
    pub guardrails: Arc<dyn GuardrailRepository>,
    /// Which workspaces there are, and what they are under.
    pub workspaces: Arc<dyn WorkspaceRepository>,
    /// Which models and providers can be named.
    pub names: KnownNames,
    /// Time.
    pub clock: Arc<dyn Clock>,
    /// Ids.
    pub ids: Arc<dyn IdGenerator>,
}

/// A guardrail, and whether its whole workspace is under it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct PlacedGuardrail {
    /// The guardrail.
    pub guardrail: Guardrail,
    /// True where all traffic of its workspace is under it, whatever the keys hold.
    pub workspace_default: bool,
}

impl GuardrailPorts {
    pub(super) async fn find(&self, id: &str) -> Result<Guardrail, GuardrailError> {
        let id: GuardrailId = id.parse().map_err(|_| GuardrailError::UnknownGuardrail)?;
        self.guardrails.find(id).await?.ok_or(GuardrailError::UnknownGuardrail)
    }

    /// A guardrail as it is placed now.
    pub(super) async fn place(&self, guardrail: Guardrail) -> Result<PlacedGuardrail, GuardrailError> {
        let workspace = self.workspaces.find(guardrail.workspace_id).await?;
        let workspace_default = workspace.is_some_and(|found| found.default_guardrail_id == Some(guardrail.id));
        Ok(PlacedGuardrail { guardrail, workspace_default })
    }

    /// The workspace that is named, or else the one that is used where none is.
    pub(super) async fn workspace(&self, named: Option<WorkspaceId>) -> Result<Workspace, GuardrailError> {
        let found = match named {
            Some(id) => self.workspaces.find(id).await?,
            None => self.workspaces.list().await?.into_iter().find(|workspace| workspace.is_default),
        };
        found.ok_or(GuardrailError::UnknownWorkspace)
    }
}
