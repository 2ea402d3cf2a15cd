//! Reading a state that a guardrail was in.

use super::{GuardrailError, GuardrailPorts, GuardrailVersion, ListGuardrailVersions};

/// Reads one version of a guardrail.
pub struct GetGuardrailVersion {
    versions: ListGuardrailVersions,
}

impl GetGuardrailVersion {
    /// Wires the ports.
    pub fn new(ports: GuardrailPorts) -> Self {
        Self { versions: ListGuardrailVersions::new(ports) }
    }

    /// That version.
    ///
    /// # Errors
    /// There is no such guardrail (a malformed id included) or no such version of it; the store.
    pub async fn execute(&self, id: &str, version: u32) -> Result<GuardrailVersion, GuardrailError> {
        let versions = self.versions.execute(id).await?;
        let found = versions.into_iter().find(|found| found.guardrail.version == version);
        found.ok_or(GuardrailError::UnknownVersion)
    }
}
