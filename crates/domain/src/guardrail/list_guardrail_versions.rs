//! Listing the states that a guardrail was in.

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

    /// Every version, the newest (the present state) first.
    ///
    /// # Errors
    /// There is no such guardrail, a malformed id included; the store.
    pub async fn execute(&self, id: &str) -> Result<Vec<GuardrailVersion>, GuardrailError> {
        let id: GuardrailId = id.parse().map_err(|_| GuardrailError::UnknownGuardrail)?;
        let versions = self.ports.guardrails.versions(id).await?;
        // A guardrail that is there has its first version at least.
        if versions.is_empty() { Err(GuardrailError::UnknownGuardrail) } else { Ok(versions) }
    }
}
