//! Keys in memory.

use std::sync::Arc;

use async_trait::async_trait;
use chrono::{DateTime, Utc};

use super::memory_state::{State, StoredKey};
use super::memory_store::{MemoryApiKeys, MemoryKeyGrants};
use crate::api_key::{
    ApiKey, ApiKeyRepository, ApiKeyScope, GrantScope, KeyFilter, KeyGrant, KeyGrants, KeyIdentity, KeyInsertion,
    KeyReference, KeyUpdate, LastKeyRule, LastUnrestrictedKey, StoreKeyError, UserLabel,
};
use crate::audit::AuditDraft;
use crate::authority::ManagementScope;
use crate::change_feed::ChangeSubject;
use crate::error::StoreError;
use crate::ids::{ApiKeyId, WorkspaceId};
use crate::naming::ResourceName;
use crate::secret::ApiKeyHash;

impl State {
    pub(super) fn live_key(&mut self, name: &KeyReference) -> Option<&mut StoredKey> {
        let stored = match name {
            KeyReference::Id(id) => self.keys.get_mut(id),
            KeyReference::Hash(hash) => self.keys.values_mut().find(|stored| stored.key.hash == *hash),
        };
        stored.filter(|stored| !stored.deleted)
    }

    /// Returns the live keys as of a time, newest first.
    fn live_keys(&self, now: DateTime<Utc>) -> Vec<ApiKey> {
        let live = self.keys.values().filter(|stored| !stored.deleted).map(|stored| at(now, &stored.key));
        let mut keys: Vec<ApiKey> = live.collect();
        keys.sort_by_key(|key| (std::cmp::Reverse(key.created_at), std::cmp::Reverse(key.id)));
        keys
    }

    /// Returns true if the workspaces of the scope exist.
    fn has_workspaces(&self, scope: &ApiKeyScope) -> bool {
        let named = scope.management().and_then(ManagementScope::workspaces).unwrap_or_default();
        scope.workspace_id().iter().chain(named).all(|id| self.workspace(*id).is_some())
    }

    /// Returns true if the guardrail of the key exists in its workspace, or it has none.
    fn has_guardrail(&self, key: &ApiKey) -> bool {
        let is_beside = |id| {
            let found = self.guardrails.iter().find(|guardrail| guardrail.id == id);
            found.map(|guardrail| guardrail.workspace_id) == key.scope.workspace_id() && found.is_some()
        };
        key.guardrail_id.is_none_or(is_beside)
    }

    /// Checks that an unrestricted key is left when `before` becomes `after`.
    fn check_last_key(
        &self,
        before: &ApiKey,
        after: Option<&ApiKey>,
        rule: LastKeyRule,
        now: DateTime<Utc>,
    ) -> Result<(), LastUnrestrictedKey> {
        let others = self.keys.values().filter(|stored| !stored.deleted && stored.key.id != before.id);
        let others = others.map(|stored| (&stored.key, before.expires_at.map(|_| now)));
        let mut left = others.chain(after.map(|after| (after, before.expires_at)));
        let is_left = |(key, until): (&ApiKey, Option<DateTime<Utc>>)| {
            key.is_unrestricted_at(now)
                && (key.expires_at.is_none() || until.is_some_and(|at| key.expires_at >= Some(at)))
        };
        let is_free = rule == LastKeyRule::Waived || !before.is_unrestricted_at(now) || left.any(is_left);
        if is_free { Ok(()) } else { Err(LastUnrestrictedKey) }
    }
}

impl MemoryApiKeys {
    fn add(&self, key: &ApiKey, is_unique: bool, audit: &AuditDraft) -> Result<KeyInsertion, StoreError> {
        let mut state = self.0.begin(audit)?;
        let same = |stored: &StoredKey| stored.key.id == key.id || stored.key.hash == key.hash;
        if state.keys.values().any(same) {
            return Err(StoreError::Corrupt("a key of this id or hash was made before".to_owned()));
        }
        if !state.has_workspaces(&key.scope) {
            return Ok(KeyInsertion::UnknownWorkspace);
        }
        if !state.has_guardrail(key) {
            return Ok(KeyInsertion::UnknownGuardrail);
        }
        let is_beside = |other: &ApiKey| other.scope.workspace_id() == key.scope.workspace_id();
        let has_name = |stored: &StoredKey| !stored.deleted && is_beside(&stored.key) && stored.key.name == key.name;
        if is_unique && state.keys.values().any(has_name) {
            return Ok(KeyInsertion::NameTaken);
        }
        state.keys.insert(key.id, StoredKey { key: key.clone(), deleted: false, assigned: None });
        state.note(audit, self.0.now());
        Ok(KeyInsertion::Inserted)
    }
}

#[async_trait]
impl ApiKeyRepository for MemoryApiKeys {
    async fn insert(&self, key: &ApiKey, audit: &AuditDraft) -> Result<KeyInsertion, StoreError> {
        self.add(key, false, audit)
    }

    async fn insert_unique(&self, key: &ApiKey, audit: &AuditDraft) -> Result<KeyInsertion, StoreError> {
        self.add(key, true, audit)
    }

    async fn find(&self, name: &KeyReference) -> Result<Option<ApiKey>, StoreError> {
        let now = self.0.now();
        Ok(self.0.state().live_key(name).map(|stored| at(now, &stored.key)))
    }

    async fn find_named(&self, name: &ResourceName, within: &ManagementScope) -> Result<Vec<ApiKey>, StoreError> {
        let now = self.0.now();
        let hashes = name.hashes();
        let is_hash = |hash: ApiKeyHash| hashes.is_some_and(|(first, last)| (first..=last).contains(&hash));
        let is_previous = |hash: ApiKeyHash| hashes == Some((hash, hash));
        let has_name = |key: &ApiKey| {
            let is_previous = || key.previous_secret.is_some_and(|secret| is_previous(secret.hash));
            let is_named = || hashes.is_none_or(|(first, last)| first != last) && key.name.as_str() == name.as_str();
            let is_other = || is_hash(key.hash) || is_previous() || is_named();
            name.id::<ApiKeyId>().map_or_else(is_other, |id| key.id == id)
        };
        let is_within = |key: &ApiKey| match key.scope.workspace_id() {
            Some(id) => within.contains(id),
            None => within.is_unrestricted(),
        };
        let keys = self.0.state().live_keys(now);
        let matches = keys.into_iter().filter(|key| is_within(key) && has_name(key));
        Ok(matches.take(ResourceName::MAX_MATCHES).collect())
    }

    async fn page(&self, filter: &KeyFilter, offset: u64, limit: u64) -> Result<(Vec<ApiKey>, u64), StoreError> {
        let is_wanted = |key: &ApiKey| {
            let workspace = key.scope.workspace_id();
            let is_within = filter.workspaces.as_ref().is_none_or(|own| workspace.is_some_and(|id| own.contains(&id)));
            let expires = |at| key.expires_at.is_some_and(|expiry| expiry <= at);
            filter.is_management == workspace.is_none()
                && (filter.is_management || is_within)
                && filter.name.as_ref().is_none_or(|name| key.name.as_str() == name)
                && (filter.external_user.is_none()
                    || filter.external_user.as_deref() == key.users.external.as_ref().map(UserLabel::as_str))
                && (filter.guardrail_id.is_none() || filter.guardrail_id == key.guardrail_id)
                && !(filter.only_enabled && key.disabled)
                && !filter.unexpired_at.is_some_and(expires)
        };
        let mut keys = self.0.state().live_keys(self.0.now());
        keys.retain(is_wanted);
        let total = keys.len() as u64;
        let [offset, limit] = [offset, limit].map(|number| usize::try_from(number).unwrap_or(usize::MAX));
        Ok((keys.into_iter().skip(offset).take(limit).collect(), total))
    }

    async fn identities(&self, names: &[KeyReference]) -> Result<Vec<KeyIdentity>, StoreError> {
        let state = self.0.state();
        let all = state.keys.values().map(|stored| stored.key.identity());
        Ok(all.filter(|key| names.iter().any(|name| key.is(name))).collect())
    }

    async fn list(&self, workspace_id: Option<WorkspaceId>) -> Result<Vec<ApiKey>, StoreError> {
        let mut keys = self.0.state().live_keys(self.0.now());
        keys.retain(|key| key.scope.workspace_id() == workspace_id);
        Ok(keys)
    }

    async fn update(
        &self,
        before: &ApiKey,
        after: &ApiKey,
        rule: LastKeyRule,
        audit: &AuditDraft,
    ) -> Result<KeyUpdate, StoreKeyError> {
        let mut state = self.0.begin(audit)?;
        let now = self.0.now();
        let is_before = |stored: &&mut StoredKey| changeable(&stored.key) == changeable(before);
        let found = state.live_key(&after.id.into()).filter(is_before).map(|stored| stored.key.clone());
        let Some(found) = found else { return Ok(KeyUpdate::Conflict) };
        if changeable(before) == changeable(after) {
            return Ok(KeyUpdate::Updated);
        }
        if before.scope != after.scope && !state.has_workspaces(&after.scope) {
            return Ok(KeyUpdate::UnknownWorkspace);
        }
        if before.guardrail_id != after.guardrail_id && !state.has_guardrail(after) {
            return Ok(KeyUpdate::UnknownGuardrail);
        }
        let subjects: Vec<_> = hashes(&found).map(ChangeSubject::Key).collect();
        let secrets = (found.hash, found.label.clone(), found.previous_secret.filter(|_| !after.disabled));
        let changed = ApiKey { hash: secrets.0, label: secrets.1, previous_secret: secrets.2, ..after.clone() };
        state.check_last_key(&found, Some(&changed), rule, self.0.now())?;
        if let Some(stored) = state.live_key(&after.id.into()) {
            if stored.key.guardrail_id != changed.guardrail_id {
                stored.assigned = changed.guardrail_id.map(|_| (audit.actor.name.clone(), now));
            }
            stored.key = changed;
        }
        if before.limit == after.limit {
            state.changed(now, subjects);
        } else {
            state.limits_changed(now, subjects);
        }
        state.note(audit, now);
        Ok(KeyUpdate::Updated)
    }

    async fn rotate(&self, before: &ApiKey, after: &ApiKey, audit: &AuditDraft) -> Result<bool, StoreError> {
        let mut state = self.0.begin(audit)?;
        let is_before =
            |stored: &&mut StoredKey| stored.key.hash == before.hash && changeable(&stored.key) == changeable(before);
        let Some(stored) = state.live_key(&before.id.into()).filter(is_before) else { return Ok(false) };
        let subjects: Vec<_> = hashes(&stored.key).map(ChangeSubject::Key).collect();
        (stored.key.hash, stored.key.label) = (after.hash, after.label.clone());
        stored.key.previous_secret = after.previous_secret;
        state.changed(self.0.now(), subjects);
        state.note(audit, self.0.now());
        Ok(true)
    }

    async fn delete(&self, before: &ApiKey, rule: LastKeyRule, audit: &AuditDraft) -> Result<bool, StoreKeyError> {
        let mut state = self.0.begin(audit)?;
        let is_before = |stored: &&mut StoredKey| changeable(&stored.key) == changeable(before);
        let found = state.live_key(&before.id.into()).filter(is_before).map(|stored| stored.key.clone());
        let Some(found) = found else { return Ok(false) };
        state.check_last_key(&found, None, rule, self.0.now())?;
        if let Some(stored) = state.live_key(&found.id.into()) {
            stored.deleted = true;
        }
        state.changed(self.0.now(), hashes(&found).map(ChangeSubject::Key).collect::<Vec<_>>());
        state.note(audit, self.0.now());
        Ok(true)
    }
}

/// Returns what an update replaces.
fn changeable(key: &ApiKey) -> impl PartialEq {
    let state = (key.disabled, key.guardrail_id, key.users.clone());
    (key.name.clone(), key.scope.clone(), key.expires_at, key.limit, key.rates, state)
}

/// Returns the key as of a time: without a previous secret that has expired.
fn at(now: DateTime<Utc>, key: &ApiKey) -> ApiKey {
    let previous_secret = key.previous_secret.filter(|secret| secret.expires_at > now);
    ApiKey { previous_secret, ..key.clone() }
}

/// Returns the hash of the key and that of its previous secret.
fn hashes(key: &ApiKey) -> impl Iterator<Item = ApiKeyHash> {
    std::iter::once(key.hash).chain(key.previous_secret.map(|secret| secret.hash))
}

#[async_trait]
impl KeyGrants for MemoryKeyGrants {
    async fn find(&self, hash: &ApiKeyHash) -> Result<Option<Arc<KeyGrant>>, StoreError> {
        let state = self.0.state();
        let keys = state.live_keys(self.0.now());
        let Some(key) = keys.into_iter().find(|key| hashes(key).any(|own| own == *hash)) else { return Ok(None) };
        let previous = key.previous_secret.filter(|secret| secret.hash == *hash).map(|secret| secret.expires_at);
        let scope = match key.scope {
            ApiKeyScope::Management(scope) => GrantScope::Management(scope),
            ApiKeyScope::Inference(id) => {
                let workspace = state
                    .workspace(id)
                    .ok_or_else(|| StoreError::Corrupt("a key's workspace is not there".to_owned()))?;
                GrantScope::Inference {
                    workspace_id: id,
                    workspace_suspended: workspace.suspended,
                    owner_id: workspace.owner_id.clone(),
                    guardrail_id: key.guardrail_id,
                    workspace_guardrail_id: workspace.default_guardrail_id,
                    limited: key.limit.is_some()
                        || workspace.credit.is_some()
                        || workspace.budgets.limits().next().is_some(),
                    rates: key.rates,
                    workspace_rates: workspace.rates,
                }
            }
        };
        let expires_at = key.expires_at.into_iter().chain(previous).min();
        let grant = KeyGrant { id: key.id, hash: *hash, disabled: key.disabled, expires_at, scope };
        Ok(Some(Arc::new(grant)))
    }
}

/// Disables or enables a key by an update, as [`crate::api_key::ManageApiKeys`] does. Returns false if it is not live.
///
/// # Errors
/// The update failed.
pub async fn set_disabled(
    keys: &dyn ApiKeyRepository,
    id: ApiKeyId,
    disabled: bool,
    rule: LastKeyRule,
    audit: &AuditDraft,
) -> Result<bool, StoreKeyError> {
    let Some(before) = keys.find(&id.into()).await? else { return Ok(false) };
    if before.disabled == disabled {
        return Ok(true);
    }
    let after = ApiKey { disabled, ..before.clone() };
    Ok(keys.update(&before, &after, rule, audit).await? == KeyUpdate::Updated)
}

/// Deletes a key in its present state, as [`crate::api_key::ManageApiKeys`] does. Returns false if it is not live.
///
/// # Errors
/// The deletion failed.
pub async fn delete_key(
    keys: &dyn ApiKeyRepository,
    id: ApiKeyId,
    rule: LastKeyRule,
    audit: &AuditDraft,
) -> Result<bool, StoreKeyError> {
    let Some(before) = keys.find(&id.into()).await? else { return Ok(false) };
    keys.delete(&before, rule, audit).await
}
