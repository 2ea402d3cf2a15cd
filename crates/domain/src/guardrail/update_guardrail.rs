//! Changing a guardrail.

use super::record::audited;
use super::{Guardrail, GuardrailDraft, GuardrailError, GuardrailPorts, PlacedGuardrail};
use crate::audit::Actor;

/// How often a change is tried on the newest record while others change it too.
const TRIES: usize = 8;

/// Changes a guardrail.
pub struct UpdateGuardrail {
    ports: GuardrailPorts,
}

impl UpdateGuardrail {
    /// Wires the ports.
    pub fn new(ports: GuardrailPorts) -> Self {
        Self { ports }
    }

    /// Changes what the draft names and nothing else: null takes a member away, a list is replaced whole. Makes a new
    /// version, unless nothing is different. What somebody else changes in the meantime stays changed.
    ///
    /// # Errors
    /// A fault of the draft, which must name something; no such guardrail; others who keep changing it; the store.
    pub async fn execute(
        &self,
        actor: &Actor,
        id: &str,
        draft: &GuardrailDraft,
    ) -> Result<PlacedGuardrail, GuardrailError> {
        draft.must_change_something()?;
        let change = |before: Guardrail| draft.apply(before, &self.ports.names).map_err(GuardrailError::from);
        change_to(&self.ports, actor, "guardrail.update", id, draft.workspace_default(), change).await
    }
}

/// Replaces a guardrail by what `change` makes of it, on the newest record however often others are faster.
pub(super) async fn change_to(
    ports: &GuardrailPorts,
    actor: &Actor,
    action: &'static str,
    id: &str,
    default: Option<bool>,
    change: impl Fn(Guardrail) -> Result<Guardrail, GuardrailError>,
) -> Result<PlacedGuardrail, GuardrailError> {
    for _ in 0..TRIES {
        let before = ports.find(id).await?;
        let before = ports.place(before).await?;
        let changed = change(before.guardrail.clone())?;
        let workspace_default = default.unwrap_or(before.workspace_default);
        if changed == before.guardrail && workspace_default == before.workspace_default {
            return Ok(before);
        }
        let guardrail = Guardrail {
            version: before.guardrail.version.saturating_add(1),
            updated_at: Some(ports.clock.now()),
            ..changed
        };
        let after = PlacedGuardrail { guardrail, workspace_default };
        let audit = audited(actor, action, Some(&before), Some(&after));
        let done = match default {
            Some(default) => ports.guardrails.update_default(&after.guardrail, default, &audit).await?,
            None => ports.guardrails.update(&after.guardrail, &audit).await?,
        };
        if done {
            return Ok(after);
        }
    }
    Err(GuardrailError::Conflict)
}

#[cfg(test)]
mod tests;
