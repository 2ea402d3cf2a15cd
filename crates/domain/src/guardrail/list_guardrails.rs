//! Lists guardrails.

use super::{GuardrailError, GuardrailPorts, PlacedGuardrail};
use crate::ids::WorkspaceId;

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
