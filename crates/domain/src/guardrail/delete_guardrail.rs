//! Deletes guardrails.

use super::management::audit_draft;
use super::{GuardrailError, GuardrailPorts};
use crate::audit::Actor;

/// Deletes a guardrail.
pub struct DeleteGuardrail {
    ports: GuardrailPorts,
}

impl DeleteGuardrail {
    /// Wires the ports.
    pub fn new(ports: GuardrailPorts) -> Self {
        Self { ports }
    }

    /// Deletes a guardrail with its versions. Its keys and its workspace then have no guardrail.
    ///
    /// # Errors
    /// Fails if the guardrail does not exist, which includes a malformed id, or if the store fails.
    pub async fn execute(&self, actor: &Actor, id: &str) -> Result<(), GuardrailError> {
        let guardrail = self.ports.find(id).await?;
        let before = self.ports.place(guardrail).await?;
        let audit = audit_draft(actor, "guardrail.delete", Some(&before), None);
        let deleted = self.ports.guardrails.delete(before.guardrail.id, &audit).await?;
        if deleted { Ok(()) } else { Err(GuardrailError::UnknownGuardrail) }
    }
}
