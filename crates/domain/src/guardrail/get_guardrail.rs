//! Reading a guardrail.

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

    /// The guardrail as it is now.
    ///
    /// # Errors
    /// There is no such guardrail, a malformed id included; the store.
    pub async fn execute(&self, id: &str) -> Result<PlacedGuardrail, GuardrailError> {
        let guardrail = self.ports.find(id).await?;
        self.ports.place(guardrail).await
    }
}
