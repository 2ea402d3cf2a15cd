//! Guardrails in memory.

use std::cmp::Reverse;
use std::collections::HashSet;

use async_trait::async_trait;
use chrono::{DateTime, Utc};

use super::memory_state::State;
use super::memory_state::StoredKey;
use super::memory_store::MemoryGuardrails;
use crate::api_key::{ApiKeyScope, KeyReference};
use crate::audit::{Actor, AuditDraft};
use crate::authority::{Authority, ManagementScope};
use crate::change::Change;
use crate::change_feed::ChangeSubject;
use crate::error::StoreError;
use crate::guardrail::{
    AssignKeysError, Guardrail, GuardrailRepository, GuardrailVersion, KeyAssignment, PlacedGuardrail, keys_assigned,
    keys_removed,
};
use crate::ids::{GuardrailId, WorkspaceId};
use crate::naming::{NameError, ResourceName};

impl State {
    fn guardrail(&self, id: GuardrailId) -> Option<&Guardrail> {
        self.guardrails.iter().find(|stored| stored.id == id)
    }

    /// Returns the place of a guardrail if its version and its place as the default are still those.
    fn unchanged(&self, before: &PlacedGuardrail) -> Option<usize> {
        let Guardrail { id, workspace_id, version, .. } = before.guardrail;
        let default = self.workspace(workspace_id).and_then(|workspace| workspace.default_guardrail_id);
        let is_same = |stored: &Guardrail| stored.id == id && stored.version == version;
        let at = self.guardrails.iter().position(is_same)?;
        ((default == Some(id)) == before.workspace_default).then_some(at)
    }

    /// Checks the version of a guardrail, and returns its workspace.
    fn check_assignment(&self, id: GuardrailId, change: &Change<'_, u64>) -> Result<WorkspaceId, AssignKeysError> {
        let guardrail = self.guardrail(id).cloned().ok_or(NameError::Unknown)?;
        let workspace_id = guardrail.workspace_id;
        let default = self.workspace(workspace_id).and_then(|workspace| workspace.default_guardrail_id);
        change.check_version(PlacedGuardrail { guardrail, workspace_default: default == Some(id) }.version())?;
        Ok(workspace_id)
    }

    fn keep_version(&mut self, guardrail: &Guardrail, changed_at: DateTime<Utc>, audit: &AuditDraft) {
        let changed_by = audit.actor.name.clone();
        self.guardrail_versions.push(GuardrailVersion { guardrail: guardrail.clone(), changed_at, changed_by });
    }

    /// Makes the guardrail the default of its workspace, or clears it as the default.
    fn place(&mut self, guardrail: &Guardrail, default: bool, at: DateTime<Utc>) {
        let Some(workspace) = self.workspaces.iter_mut().find(|stored| stored.id == guardrail.workspace_id) else {
            return;
        };
        let before = workspace.default_guardrail_id;
        if default {
            workspace.default_guardrail_id = Some(guardrail.id);
        } else if before == Some(guardrail.id) {
            workspace.default_guardrail_id = None;
        }
        if workspace.default_guardrail_id != before {
            self.changed(at, [ChangeSubject::Workspace(guardrail.workspace_id)]);
        }
    }
}

impl MemoryGuardrails {
    fn add(&self, guardrail: &Guardrail, default: bool, audit: &AuditDraft) -> Result<bool, StoreError> {
        let mut state = self.0.begin(audit)?;
        if state.workspace(guardrail.workspace_id).is_none() {
            return Ok(false);
        }
        if state.guardrail(guardrail.id).is_some() {
            return Err(StoreError::Corrupt("a guardrail of this id is there already".to_owned()));
        }
        state.guardrails.push(guardrail.clone());
        state.keep_version(guardrail, guardrail.created_at, audit);
        if default {
            state.place(guardrail, true, self.0.now());
        }
        state.note(audit, self.0.now());
        Ok(true)
    }

    fn replace(
        &self,
        before: &PlacedGuardrail,
        after: &PlacedGuardrail,
        audit: &AuditDraft,
    ) -> Result<bool, StoreError> {
        let mut state = self.0.begin(audit)?;
        let Some(at) = state.unchanged(before) else { return Ok(false) };
        let PlacedGuardrail { guardrail, workspace_default } = after;
        let stored = &mut state.guardrails[at];
        let Guardrail { name, budget, rules, version, updated_at, .. } = guardrail.clone();
        let is_budget_changed = stored.budget != budget;
        *stored = Guardrail { name, budget, rules, version, updated_at, ..stored.clone() };
        let (stored, at) = (stored.clone(), updated_at.unwrap_or(self.0.now()));
        state.keep_version(&stored, at, audit);
        state.place(&stored, *workspace_default, self.0.now());
        let subjects = [ChangeSubject::Guardrail(guardrail.id)];
        if is_budget_changed {
            state.limits_changed(self.0.now(), subjects);
        } else {
            state.changed(self.0.now(), subjects);
        }
        state.note(audit, self.0.now());
        Ok(true)
    }
}

#[async_trait]
impl GuardrailRepository for MemoryGuardrails {
    async fn insert(&self, guardrail: &Guardrail, default: bool, audit: &AuditDraft) -> Result<bool, StoreError> {
        self.add(guardrail, default, audit)
    }

    async fn update(
        &self,
        before: &PlacedGuardrail,
        after: &PlacedGuardrail,
        audit: &AuditDraft,
    ) -> Result<bool, StoreError> {
        self.replace(before, after, audit)
    }

    async fn versions(&self, id: GuardrailId, newest: u32, limit: u64) -> Result<Vec<GuardrailVersion>, StoreError> {
        let state = self.0.state();
        let is_wanted = |kept: &&GuardrailVersion| kept.guardrail.id == id && kept.guardrail.version <= newest;
        let limit = usize::try_from(limit).unwrap_or(usize::MAX);
        Ok(state.guardrail_versions.iter().rev().filter(is_wanted).take(limit).cloned().collect())
    }

    async fn find(&self, id: GuardrailId) -> Result<Option<Guardrail>, StoreError> {
        Ok(self.0.state().guardrail(id).cloned())
    }

    async fn find_named(&self, name: &ResourceName, within: &ManagementScope) -> Result<Vec<Guardrail>, StoreError> {
        let has_name = |guardrail: &&Guardrail| match name.id::<GuardrailId>() {
            Some(id) => guardrail.id == id,
            None => guardrail.name.as_str() == name.as_str(),
        };
        let state = self.0.state();
        let visible = state.guardrails.iter().filter(|guardrail| within.contains(guardrail.workspace_id));
        Ok(visible.filter(has_name).take(ResourceName::MAX_MATCHES).cloned().collect())
    }

    async fn list(&self, workspace_id: WorkspaceId) -> Result<Vec<Guardrail>, StoreError> {
        let state = self.0.state();
        let mut found: Vec<Guardrail> =
            state.guardrails.iter().filter(|stored| stored.workspace_id == workspace_id).cloned().collect();
        found.sort_by_key(|guardrail| std::cmp::Reverse((guardrail.created_at, guardrail.id)));
        Ok(found)
    }

    async fn page(
        &self,
        within: &ManagementScope,
        offset: u64,
        limit: u64,
    ) -> Result<(Vec<PlacedGuardrail>, u64), StoreError> {
        let state = self.0.state();
        let default = |id: WorkspaceId| state.workspace(id).and_then(|workspace| workspace.default_guardrail_id);
        let own = state.guardrails.iter().filter(|stored| within.contains(stored.workspace_id));
        let mut found: Vec<PlacedGuardrail> = own
            .map(|stored| PlacedGuardrail {
                workspace_default: default(stored.workspace_id) == Some(stored.id),
                guardrail: stored.clone(),
            })
            .collect();
        found.sort_by_key(|placed| Reverse((placed.guardrail.created_at, placed.guardrail.id)));
        let total = found.len() as u64;
        let [offset, limit] = [offset, limit].map(|count| usize::try_from(count).unwrap_or(usize::MAX));
        Ok((found.into_iter().skip(offset).take(limit).collect(), total))
    }

    async fn delete(&self, before: &PlacedGuardrail, audit: &AuditDraft) -> Result<bool, StoreError> {
        let mut state = self.0.begin(audit)?;
        let Some(at) = state.unchanged(before) else { return Ok(false) };
        let id = before.guardrail.id;
        let guardrail = state.guardrails.remove(at);
        state.guardrail_versions.retain(|kept| kept.guardrail.id != id);
        let mut subjects = vec![ChangeSubject::Guardrail(id)];
        for workspace in state.workspaces.iter_mut().filter(|stored| stored.default_guardrail_id == Some(id)) {
            workspace.default_guardrail_id = None;
            subjects.push(ChangeSubject::Workspace(workspace.id));
        }
        let mut holders = Vec::new();
        for stored in state.keys.values_mut().filter(|stored| stored.key.guardrail_id == Some(id)) {
            (stored.key.guardrail_id, stored.assigned) = (None, None);
            holders.push(stored.key.hash);
        }
        subjects.extend(ChangeSubject::keys_of(guardrail.workspace_id, &holders));
        if guardrail.budget.is_some() {
            state.limits_changed(self.0.now(), subjects);
        } else {
            state.changed(self.0.now(), subjects);
        }
        state.note(audit, self.0.now());
        Ok(true)
    }

    async fn assign_keys<'a>(
        &self,
        id: GuardrailId,
        keys: &[KeyReference],
        change: &Change<'a, u64>,
    ) -> Result<u64, AssignKeysError> {
        let (mut stored_state, actor) = (self.0.state(), change.by().actor());
        let workspace_id = stored_state.check_assignment(id, change)?;
        let mut state = stored_state.clone();
        let (mut holding, mut changed, mut hashes) = (HashSet::new(), Vec::new(), Vec::new());
        let now = self.0.now();
        for name in keys {
            let Some(stored) = state.live_key(name) else { continue };
            if stored.key.scope == ApiKeyScope::Inference(workspace_id) {
                holding.insert(stored.key.id);
                if stored.key.guardrail_id.replace(id) != Some(id) {
                    stored.assigned = Some((actor.name.clone(), now));
                    changed.push(stored.key.id);
                    hashes.push(stored.key.hash);
                }
            }
        }
        if !changed.is_empty() {
            let audit = change.audited(keys_assigned(actor, id, &changed), &(holding.len() as u64));
            state.check_repetition(&audit, now)?;
            state.changed(now, ChangeSubject::keys_of(workspace_id, &hashes));
            state.note(&audit, now);
            *stored_state = state;
        }
        Ok(holding.len() as u64)
    }

    async fn list_keys(
        &self,
        id: Option<GuardrailId>,
        within: &ManagementScope,
        offset: u64,
        limit: u64,
    ) -> Result<(Vec<KeyAssignment>, u64), StoreError> {
        let state = self.0.state();
        let assignment = |stored: &StoredKey| {
            let guardrail_id = stored.key.guardrail_id.filter(|held| id.is_none_or(|id| id == *held))?;
            let is_within = stored.key.scope.workspace_id().is_some_and(|workspace| within.contains(workspace));
            (is_within && !stored.deleted).then(|| KeyAssignment {
                guardrail_id,
                key_id: stored.key.id,
                key_hash: stored.key.hash,
                key_name: stored.key.name.clone(),
                key_label: stored.key.label.clone(),
                assigned_by: stored.assigned.as_ref().map(|(actor, _)| actor.clone()),
                assigned_at: stored.assigned.as_ref().map_or(stored.key.created_at, |(_, at)| *at),
            })
        };
        let mut assignments: Vec<KeyAssignment> = state.keys.values().filter_map(assignment).collect();
        assignments.sort_by_key(|held| Reverse((held.guardrail_id, held.assigned_at, held.key_id)));
        let total = assignments.len() as u64;
        let (offset, limit) = (usize::try_from(offset), usize::try_from(limit));
        let page = assignments.into_iter().skip(offset.unwrap_or(usize::MAX)).take(limit.unwrap_or(usize::MAX));
        Ok((page.collect(), total))
    }

    async fn remove_keys<'a>(
        &self,
        id: GuardrailId,
        keys: &[KeyReference],
        change: &Change<'a, u64>,
    ) -> Result<u64, AssignKeysError> {
        let mut stored_state = self.0.state();
        let workspace_id = stored_state.check_assignment(id, change)?;
        let mut state = stored_state.clone();
        let (mut removed, mut hashes) = (Vec::new(), Vec::new());
        for name in keys {
            let Some(stored) = state.live_key(name).filter(|stored| stored.key.guardrail_id == Some(id)) else {
                continue;
            };
            (stored.key.guardrail_id, stored.assigned) = (None, None);
            removed.push(stored.key.id);
            hashes.push(stored.key.hash);
        }
        let count = removed.len() as u64;
        if !removed.is_empty() {
            let audit = change.audited(keys_removed(change.by().actor(), id, &removed), &count);
            state.check_repetition(&audit, self.0.now())?;
            state.changed(self.0.now(), ChangeSubject::keys_of(workspace_id, &hashes));
            state.note(&audit, self.0.now());
            *stored_state = state;
        }
        Ok(count)
    }

    async fn count_keys(&self, id: GuardrailId) -> Result<u64, StoreError> {
        let state = self.0.state();
        let holding = state.keys.values().filter(|stored| !stored.deleted && stored.key.guardrail_id == Some(id));
        Ok(holding.map(|_| 1).sum())
    }
}

/// Assigns keys as an actor; `None` if the guardrail does not exist.
///
/// # Errors
/// The store failed.
pub async fn assign_keys(
    guardrails: &dyn GuardrailRepository,
    id: GuardrailId,
    keys: &[KeyReference],
    actor: &Actor,
) -> Result<Option<u64>, StoreError> {
    found(guardrails.assign_keys(id, keys, &Change::plain(&Authority::operator(actor.clone()))).await)
}

/// Removes keys as an actor; `None` if the guardrail does not exist.
///
/// # Errors
/// The store failed.
pub async fn remove_keys(
    guardrails: &dyn GuardrailRepository,
    id: GuardrailId,
    keys: &[KeyReference],
    actor: &Actor,
) -> Result<Option<u64>, StoreError> {
    found(guardrails.remove_keys(id, keys, &Change::plain(&Authority::operator(actor.clone()))).await)
}

fn found(count: Result<u64, AssignKeysError>) -> Result<Option<u64>, StoreError> {
    match count {
        Ok(count) => Ok(Some(count)),
        Err(AssignKeysError::Store(error)) => Err(error),
        Err(_) => Ok(None),
    }
}
