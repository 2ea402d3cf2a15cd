//! Changes guardrails.

use super::manage_guardrails::{audit_draft, check_default};
use super::{Guardrail, GuardrailDraft, GuardrailError, ManageGuardrails, PlacedGuardrail};
use crate::authority::Right;
use crate::change::Change;

/// The number of attempts at a change while others change the same record.
pub(super) const MAX_ATTEMPTS: usize = 8;

impl ManageGuardrails {
    /// Changes only the members that the draft names: `null` clears a member, a list is replaced as a whole. Creates a
    /// new version if something differs. Concurrent changes of other members are kept.
    ///
    /// # Errors
    /// Fails if the caller lacks the right, if the draft is invalid or names no member, if the guardrail does not
    /// exist or has a version that the caller does not accept, if concurrent changes win every time, or if the store fails.
    pub async fn update(
        &self,
        change: &Change<'_, PlacedGuardrail>,
        id: &str,
        draft: &GuardrailDraft,
    ) -> Result<PlacedGuardrail, GuardrailError> {
        change.by().check(Right::Write)?;
        draft.require_changes()?;
        let edit = |before: Guardrail| draft.apply(before, &self.names).map_err(GuardrailError::from);
        self.change(change, "guardrail.update", id, draft.workspace_default(), edit).await
    }

    /// Replaces a guardrail with the result of `edit`. It repeats the change on the newest record if it lost a race.
    pub(super) async fn change(
        &self,
        change: &Change<'_, PlacedGuardrail>,
        action: &'static str,
        id: &str,
        default: Option<bool>,
        edit: impl Fn(Guardrail) -> Result<Guardrail, GuardrailError>,
    ) -> Result<PlacedGuardrail, GuardrailError> {
        let by = change.by();
        for _ in 0..MAX_ATTEMPTS {
            let before = self.get(by, id).await?;
            check_default(by, before.workspace_default || default == Some(true))?;
            change.check_version(before.version())?;
            let changed = edit(before.guardrail.clone())?;
            let workspace_default = default.unwrap_or(before.workspace_default);
            if changed == before.guardrail && workspace_default == before.workspace_default {
                return Ok(before);
            }
            let guardrail = Guardrail {
                version: before.guardrail.version.saturating_add(1),
                updated_at: Some(self.clock.now()),
                ..changed
            };
            let after = PlacedGuardrail { guardrail, workspace_default };
            let audit = change.audited(audit_draft(by, action, Some(&before), Some(&after)), &after);
            if self.guardrails.update(&before, &after, &audit).await? {
                return Ok(after);
            }
        }
        Err(GuardrailError::Conflict)
    }
}

#[cfg(test)]
mod tests;
