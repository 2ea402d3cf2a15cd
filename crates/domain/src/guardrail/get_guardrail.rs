//! Reads guardrails.

use super::{GuardrailError, GuardrailPorts, PlacedGuardrail};

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
