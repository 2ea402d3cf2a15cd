//! Reads versions of guardrails.

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

    /// Returns that version.
    ///
    /// # Errors
    /// Fails if the guardrail (also for a malformed id) or the version does not exist, or if the store fails.
    pub async fn execute(&self, id: &str, version: u32) -> Result<GuardrailVersion, GuardrailError> {
        let versions = self.versions.execute(id).await?;
        let found = versions.into_iter().find(|found| found.guardrail.version == version);
        found.ok_or(GuardrailError::UnknownVersion)
    }
}
