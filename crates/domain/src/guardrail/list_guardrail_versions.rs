//! Lists the versions of guardrails.

use super::{GuardrailError, GuardrailPorts, GuardrailVersion};
use crate::ids::GuardrailId;

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
