//! Creates, changes and deletes guardrails, and restores their versions.

use super::manage_guardrails::{audit_draft, check_default};
use super::{
    Guardrail, GuardrailDraft, GuardrailError, GuardrailName, GuardrailRules, InvalidGuardrail, ManageGuardrails,
    PlacedGuardrail,
};
use crate::authority::Right;
use crate::change::{Change, MAX_ATTEMPTS};

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

#[cfg(test)]
mod tests;
