//! Creates guardrails.

use super::management::audit_draft;
use super::{
    Guardrail, GuardrailDraft, GuardrailError, GuardrailName, GuardrailPorts, GuardrailRules, InvalidGuardrail,
    PlacedGuardrail,
};
use crate::audit::Actor;

/// Creates a guardrail.
pub struct CreateGuardrail {
    ports: GuardrailPorts,
}

impl CreateGuardrail {
    /// Wires the ports.
    pub fn new(ports: GuardrailPorts) -> Self {
        Self { ports }
    }

    /// Creates a guardrail in the workspace that the draft names, or in the default workspace. It is assigned to no key
    /// yet. With `workspace_default` the same transaction makes it the workspace's default guardrail.
    ///
    /// # Errors
    /// Fails if the draft is invalid or has no name, if the workspace does not exist, or if the store fails.
    pub async fn execute(&self, actor: &Actor, draft: &GuardrailDraft) -> Result<PlacedGuardrail, GuardrailError> {
        let ports = &self.ports;
        let name = draft.name().ok_or_else(|| InvalidGuardrail::new("name", "is required"))?;
        let blank = Guardrail {
            id: ports.ids.guardrail_id(),
            workspace_id: ports.workspace(draft.workspace_id()).await?.id,
            name: GuardrailName::try_new(name).map_err(|fault| InvalidGuardrail::new("name", fault.to_string()))?,
            budget: None,
            rules: GuardrailRules::default(),
            version: 1,
            created_at: ports.clock.now(),
            updated_at: None,
        };
        let guardrail = draft.apply(blank, &ports.names)?;
        let workspace_default = draft.workspace_default() == Some(true);
        let placed = PlacedGuardrail { guardrail, workspace_default };
        let audit = audit_draft(actor, "guardrail.create", None, Some(&placed));
        let added = if workspace_default {
            ports.guardrails.insert_default(&placed.guardrail, &audit).await?
        } else {
            ports.guardrails.insert(&placed.guardrail, &audit).await?
        };
        if added { Ok(placed) } else { Err(GuardrailError::UnknownWorkspace) }
    }
}

#[cfg(test)]
mod tests;
