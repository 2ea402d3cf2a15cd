//! Keys in memory.

use std::sync::Arc;

use async_trait::async_trait;

use super::memory_state::{State, StoredKey};
use super::memory_store::{MemoryApiKeys, MemoryKeyGrants};
use crate::api_key::{
    ApiKey, ApiKeyRepository, ApiKeyScope, GrantScope, KeyGrant, KeyGrants, KeyIdentity, KeyInsertion, KeyReference,
    LastKeyRule, LastUnrestrictedKey, StoreKeyError,
};
use crate::audit::AuditDraft;
use crate::change_feed::ChangeSubject;
use crate::error::StoreError;
use crate::ids::{ApiKeyId, WorkspaceId};
use crate::secret::ApiKeyHash;

impl State {
    pub(super) fn live_key(&mut self, name: &KeyReference) -> Option<&mut StoredKey> {
        let stored = match name {
            KeyReference::Id(id) => self.keys.get_mut(id),
            KeyReference::Hash(hash) => self.keys.values_mut().find(|stored| stored.key.hash == *hash),
        };
        stored.filter(|stored| !stored.deleted)
    }

    /// Checks that a lasting unrestricted key is left when `before` becomes `after`.
    fn check_last_key(
        &self,
        before: &ApiKey,
        after: Option<&ApiKey>,
        rule: LastKeyRule,
    ) -> Result<(), LastUnrestrictedKey> {
        let is_other = |stored: &&StoredKey| !stored.deleted && stored.key.id != before.id;
        let is_left = || self.keys.values().filter(is_other).any(|stored| stored.key.is_lasting_unrestricted());
        let loses = before.is_lasting_unrestricted() && !after.is_some_and(ApiKey::is_lasting_unrestricted);
        if rule == LastKeyRule::Enforced && loses && !is_left() { Err(LastUnrestrictedKey) } else { Ok(()) }
    }
}

impl MemoryApiKeys {
    fn add(&self, key: &ApiKey, is_unique: bool, audit: &AuditDraft) -> Result<KeyInsertion, StoreError> {
        let mut state = self.0.begin(audit)?;
        let same = |stored: &StoredKey| stored.key.id == key.id || stored.key.hash == key.hash;
        if state.keys.values().any(same) {
            return Err(StoreError::Corrupt("a key of this id or hash was made before".to_owned()));
        }
        if key.scope.workspace_id().is_some_and(|id| state.workspace(id).is_none()) {
            return Ok(KeyInsertion::UnknownWorkspace);
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
    async fn insert(&self, key: &ApiKey, audit: &AuditDraft) -> Result<bool, StoreError> {
        Ok(self.add(key, false, audit)? == KeyInsertion::Inserted)
    }

    async fn insert_unique(&self, key: &ApiKey, audit: &AuditDraft) -> Result<KeyInsertion, StoreError> {
        self.add(key, true, audit)
    }

    async fn find(&self, name: &KeyReference) -> Result<Option<ApiKey>, StoreError> {
        Ok(self.0.state().live_key(name).map(|stored| stored.key.clone()))
    }

    async fn identities(&self, names: &[KeyReference]) -> Result<Vec<KeyIdentity>, StoreError> {
        let state = self.0.state();
        let all = state.keys.values().map(|stored| stored.key.identity());
        Ok(all.filter(|key| names.iter().any(|name| key.is(name))).collect())
    }

    async fn list(&self, workspace_id: Option<WorkspaceId>) -> Result<Vec<ApiKey>, StoreError> {
        let state = self.0.state();
        let live = state.keys.values().filter(|stored| !stored.deleted).map(|stored| &stored.key);
        let mut keys: Vec<ApiKey> = live.filter(|key| key.scope.workspace_id() == workspace_id).cloned().collect();
        keys.sort_by_key(|key| (std::cmp::Reverse(key.created_at), std::cmp::Reverse(key.id)));
        Ok(keys)
    }

    async fn set_disabled(
        &self,
        id: ApiKeyId,
        disabled: bool,
        rule: LastKeyRule,
        audit: &AuditDraft,
    ) -> Result<bool, StoreKeyError> {
        let mut state = self.0.begin(audit)?;
        let Some(before) = state.live_key(&id.into()).map(|stored| stored.key.clone()) else { return Ok(false) };
        if before.disabled == disabled {
            return Ok(true);
        }
        let (hash, after) = (before.hash, ApiKey { disabled, ..before.clone() });
        state.check_last_key(&before, Some(&after), rule)?;
        if let Some(stored) = state.live_key(&id.into()) {
            stored.key = after;
        }
        state.changed(self.0.now(), [ChangeSubject::Key(hash)]);
        state.note(audit, self.0.now());
        Ok(true)
    }

    async fn update(
        &self,
        before: &ApiKey,
        after: &ApiKey,
        rule: LastKeyRule,
        audit: &AuditDraft,
    ) -> Result<bool, StoreKeyError> {
        let mut state = self.0.begin(audit)?;
        let changeable = |key: &ApiKey| (key.name.clone(), key.scope.clone(), key.expires_at, key.limit, key.rates);
        let is_before = |stored: &&mut StoredKey| changeable(&stored.key) == changeable(before);
        let found = state.live_key(&after.id.into()).filter(is_before).map(|stored| stored.key.clone());
        let Some(found) = found else { return Ok(false) };
        if changeable(before) == changeable(after) {
            return Ok(true);
        }
        let (subjects, ApiKey { name, scope, expires_at, limit, rates, .. }) =
            ([ChangeSubject::Key(found.hash)], after.clone());
        let changed = ApiKey { name, scope, expires_at, limit, rates, ..found.clone() };
        state.check_last_key(&found, Some(&changed), rule)?;
        if let Some(stored) = state.live_key(&after.id.into()) {
            stored.key = changed;
        }
        if before.limit == after.limit {
            state.changed(self.0.now(), subjects);
        } else {
            state.limits_changed(self.0.now(), subjects);
        }
        state.note(audit, self.0.now());
        Ok(true)
    }

    async fn rotate(&self, before: &ApiKey, after: &ApiKey, audit: &AuditDraft) -> Result<bool, StoreError> {
        let mut state = self.0.begin(audit)?;
        let is_before = |stored: &&mut StoredKey| stored.key.hash == before.hash;
        let Some(stored) = state.live_key(&before.id.into()).filter(is_before) else { return Ok(false) };
        (stored.key.hash, stored.key.label) = (after.hash, after.label.clone());
        state.changed(self.0.now(), [ChangeSubject::Key(before.hash)]);
        state.note(audit, self.0.now());
        Ok(true)
    }

    async fn delete(&self, id: ApiKeyId, rule: LastKeyRule, audit: &AuditDraft) -> Result<bool, StoreKeyError> {
        let mut state = self.0.begin(audit)?;
        let Some(before) = state.live_key(&id.into()).map(|stored| stored.key.clone()) else { return Ok(false) };
        state.check_last_key(&before, None, rule)?;
        if let Some(stored) = state.live_key(&id.into()) {
            stored.deleted = true;
        }
        let hash = before.hash;
        state.changed(self.0.now(), [ChangeSubject::Key(hash)]);
        state.note(audit, self.0.now());
        Ok(true)
    }
}

#[async_trait]
impl KeyGrants for MemoryKeyGrants {
    async fn find(&self, hash: &ApiKeyHash) -> Result<Option<Arc<KeyGrant>>, StoreError> {
        let mut state = self.0.state();
        let Some(key) = state.live_key(&(*hash).into()).map(|stored| stored.key.clone()) else { return Ok(None) };
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
        let (id, hash) = (key.id, key.hash);
        let grant = KeyGrant { id, hash, disabled: key.disabled, expires_at: key.expires_at, scope };
        Ok(Some(Arc::new(grant)))
    }
}
