//! Creates guardrails.

use super::manage_guardrails::{audit_draft, check_default};
use super::{
    Guardrail, GuardrailDraft, GuardrailError, GuardrailName, GuardrailRules, InvalidGuardrail, ManageGuardrails,
    PlacedGuardrail,
};
use crate::authority::Right;
use crate::change::Change;

impl ManageGuardrails {
    /// Creates a guardrail in the workspace that the draft names, or in the default workspace. It is assigned to no key
    /// yet. With `workspace_default` the same transaction makes it the workspace's default guardrail.
    ///
    /// # Errors
    /// Fails if the caller lacks the right, if the draft is invalid or has no name, if the workspace does not exist, or
    /// if the store fails.
    pub async fn create(
        &self,
        change: &Change<'_, PlacedGuardrail>,
        draft: &GuardrailDraft,
    ) -> Result<PlacedGuardrail, GuardrailError> {
        let by = change.by();
        by.check(Right::Write)?;
        let workspace_default = draft.workspace_default() == Some(true);
        check_default(by, workspace_default)?;
        let name = draft.name().ok_or_else(|| InvalidGuardrail::new("name", "is required"))?;
        let blank = Guardrail {
            id: self.ids.guardrail_id(),
            workspace_id: self.workspace(by, draft.workspace_id()).await?.id,
            name: GuardrailName::try_new(name).map_err(|fault| InvalidGuardrail::new("name", fault.to_string()))?,
            budget: None,
            rules: GuardrailRules::default(),
            version: 1,
            created_at: self.clock.now(),
            updated_at: None,
        };
        let guardrail = draft.apply(blank, &self.names)?;
        let placed = PlacedGuardrail { guardrail, workspace_default };
        let audit = change.audited(audit_draft(by, "guardrail.create", None, Some(&placed)), &placed);
        let added = self.guardrails.insert(&placed.guardrail, workspace_default, &audit).await?;
        if added { Ok(placed) } else { Err(GuardrailError::UnknownWorkspace) }
    }
}

#[cfg(test)]
mod tests;
