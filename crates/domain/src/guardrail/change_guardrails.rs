//! Deleting a guardrail, and restoring a version of it.

use super::manage_guardrails::{audit_draft, check_default};
use super::update_guardrail::MAX_ATTEMPTS;
use super::{Guardrail, GuardrailError, ManageGuardrails, PlacedGuardrail};
use crate::authority::Right;
use crate::change::Change;

impl ManageGuardrails {
    /// Deletes a guardrail with its versions. Its keys and its workspace then have no guardrail.
    ///
    /// # Errors
    /// Fails if the caller lacks the right, if the guardrail does not exist, which includes a malformed id, if it has a
    /// version that the caller does not accept, if concurrent changes win every time, or if the store fails.
    pub async fn delete(&self, change: &Change<'_, ()>, id: &str) -> Result<(), GuardrailError> {
        let by = change.by();
        by.check(Right::Write)?;
        for _ in 0..MAX_ATTEMPTS {
            let before = self.get(by, id).await?;
            check_default(by, before.workspace_default)?;
            change.check_version(before.version())?;
            let audit = change.audited(audit_draft(by, "guardrail.delete", Some(&before), None), &());
            if self.guardrails.delete(&before, &audit).await? {
                return Ok(());
            }
        }
        Err(GuardrailError::Conflict)
    }

    /// Creates a new version with name, budget and rules of an older one. If nothing differs, it creates none. The
    /// default guardrail of the workspace does not change.
    ///
    /// # Errors
    /// Fails if the guardrail (also for a malformed id) or the version does not exist, if concurrent changes win every
    /// time, or if the store fails.
    pub async fn restore_version(
        &self,
        change: &Change<'_, PlacedGuardrail>,
        id: &str,
        version: u32,
    ) -> Result<PlacedGuardrail, GuardrailError> {
        change.by().check(Right::Write)?;
        let Guardrail { name, budget, rules, .. } = self.get_version(change.by(), id, version).await?.guardrail;
        let back = |now: Guardrail| Ok(Guardrail { name: name.clone(), budget, rules: rules.clone(), ..now });
        self.change(change, "guardrail.restore", id, None, back).await
    }
}
