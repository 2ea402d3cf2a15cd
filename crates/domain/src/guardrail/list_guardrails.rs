//! Listing guardrails.

use super::{GuardrailError, GuardrailPorts, PlacedGuardrail};
use crate::ids::WorkspaceId;

/// Some guardrails of a workspace, and how many there are.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct GuardrailPage {
    /// Newest first.
    pub guardrails: Vec<PlacedGuardrail>,
    /// How many the workspace has, those beyond the page included.
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

    /// Up to `limit` guardrails of the workspace (of the default one where none is named), newest first, without the
    /// first `offset`.
    ///
    /// # Errors
    /// There is no such workspace; the store.
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
