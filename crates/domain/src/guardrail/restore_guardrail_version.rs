//! Going back to a state that a guardrail was in.

use super::update_guardrail::change_to;
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

    /// Makes a new version that has name, budget and rules of an older one; none where that is what it has now. What
    /// the guardrail is the default of stays as it is.
    ///
    /// # Errors
    /// There is no such guardrail (a malformed id included) or no such version of it; others who keep changing it; the
    /// store.
    pub async fn execute(&self, actor: &Actor, id: &str, version: u32) -> Result<PlacedGuardrail, GuardrailError> {
        let Guardrail { name, budget, rules, .. } = self.version.execute(id, version).await?.guardrail;
        let back = |now: Guardrail| Ok(Guardrail { name: name.clone(), budget, rules: rules.clone(), ..now });
        change_to(&self.ports, actor, "guardrail.restore", id, None, back).await
    }
}
