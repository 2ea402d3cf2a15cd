//! Restores versions of guardrails.

use super::update_guardrail::change_with_retries;
use super::{GetGuardrailVersion, Guardrail, GuardrailError, GuardrailPorts, PlacedGuardrail};
use crate::audit::Actor;

/// Restores a version of a guardrail.
pub struct RestoreGuardrailVersion {
    ports: GuardrailPorts,
    version: GetGuardrailVersion,
}

impl RestoreGuardrailVersion {
    /// Wires the ports.
    pub fn new(ports: GuardrailPorts) -> Self {
        Self { version: GetGuardrailVersion::new(ports.clone()), ports }
    }

    /// Creates a new version with name, budget and rules of an older one. If nothing differs, it creates none. The
    /// default guardrail of the workspace does not change.
    ///
    /// # Errors
    /// Fails if the guardrail (also for a malformed id) or the version does not exist, if concurrent changes win every
    /// time, or if the store fails.
    pub async fn execute(&self, actor: &Actor, id: &str, version: u32) -> Result<PlacedGuardrail, GuardrailError> {
        let Guardrail { name, budget, rules, .. } = self.version.execute(id, version).await?.guardrail;
        let back = |now: Guardrail| Ok(Guardrail { name: name.clone(), budget, rules: rules.clone(), ..now });
        change_with_retries(&self.ports, actor, "guardrail.restore", id, None, back).await
    }
}
