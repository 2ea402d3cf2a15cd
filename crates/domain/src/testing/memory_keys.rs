//! Keys in memory.

use std::sync::Arc;

use async_trait::async_trait;

use super::MemoryStore;
use super::memory_store::{State, StoredKey};
use crate::api_key::{ApiKey, ApiKeyHash, ApiKeyRepository, ApiKeyScope, GrantScope, KeyGrant, KeyGrants};
use crate::audit::AuditDraft;
use crate::change_feed::ChangeSubject;
use crate::error::StoreError;
use crate::ids::WorkspaceId;

impl State {
    pub(super) fn live_key(&mut self, hash: &ApiKeyHash) -> Option<&mut StoredKey> {
        self.keys.get_mut(hash).filter(|stored| !stored.deleted)
    }
}

#[async_trait]
impl ApiKeyRepository for MemoryStore {
    async fn insert(&self, key: &ApiKey, audit: &AuditDraft) -> Result<bool, StoreError> {
        let mut state = self.state();
        if state.keys.contains_key(&key.hash) {
            return Err(StoreError::Corrupt("a key of this hash was made before".to_owned()));
        }
        if key.scope.workspace_id().is_some_and(|id| state.workspace(id).is_none()) {
            return Ok(false);
        }
        state.keys.insert(key.hash, StoredKey { key: key.clone(), deleted: false, assigned: None });
        state.note(audit, self.now());
        Ok(true)
    }

    async fn find(&self, hash: &ApiKeyHash) -> Result<Option<ApiKey>, StoreError> {
        Ok(self.state().live_key(hash).map(|stored| stored.key.clone()))
    }

    async fn list(&self, workspace_id: Option<WorkspaceId>) -> Result<Vec<ApiKey>, StoreError> {
        let state = self.state();
        let live = state.keys.values().filter(|stored| !stored.deleted).map(|stored| &stored.key);
        let mut keys: Vec<ApiKey> = live.filter(|key| key.scope.workspace_id() == workspace_id).cloned().collect();
        keys.sort_by_key(|key| (std::cmp::Reverse(key.created_at), key.hash));
        Ok(keys)
    }

    async fn set_disabled(&self, hash: &ApiKeyHash, disabled: bool, audit: &AuditDraft) -> Result<bool, StoreError> {
        let mut state = self.state();
        let Some(stored) = state.live_key(hash) else { return Ok(false) };
        if stored.key.disabled == disabled {
            return Ok(true);
        }
        stored.key.disabled = disabled;
        state.changed(self.now(), [ChangeSubject::Key(*hash)]);
        state.note(audit, self.now());
        Ok(true)
    }

    async fn update(&self, before: &ApiKey, after: &ApiKey, audit: &AuditDraft) -> Result<bool, StoreError> {
        let mut state = self.state();
        let changeable =
            |key: &ApiKey| ApiKey { guardrail_id: None, disabled: false, label: String::new(), ..key.clone() };
        let is_before = |stored: &&mut StoredKey| changeable(&stored.key) == changeable(before);
        let Some(stored) = state.live_key(&after.hash).filter(is_before) else { return Ok(false) };
        let ApiKey { name, expires_at, limit, rates, .. } = after.clone();
        if changeable(before) == changeable(after) {
            return Ok(true);
        }
        stored.key = ApiKey { name, expires_at, limit, rates, ..stored.key.clone() };
        let subjects = [ChangeSubject::Key(after.hash)];
        if before.limit == after.limit {
            state.changed(self.now(), subjects);
        } else {
            state.limits_changed(self.now(), subjects);
        }
        state.note(audit, self.now());
        Ok(true)
    }

    async fn delete(&self, hash: &ApiKeyHash, audit: &AuditDraft) -> Result<bool, StoreError> {
        let mut state = self.state();
        let Some(stored) = state.live_key(hash) else { return Ok(false) };
        stored.deleted = true;
        state.changed(self.now(), [ChangeSubject::Key(*hash)]);
        state.note(audit, self.now());
        Ok(true)
    }
}

#[async_trait]
impl KeyGrants for MemoryStore {
    async fn find(&self, hash: &ApiKeyHash) -> Result<Option<Arc<KeyGrant>>, StoreError> {
        let mut state = self.state();
        let Some(key) = state.live_key(hash).map(|stored| stored.key.clone()) else { return Ok(None) };
        let scope = match key.scope {
            ApiKeyScope::Management => GrantScope::Management,
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
        let grant = KeyGrant { hash: key.hash, disabled: key.disabled, expires_at: key.expires_at, scope };
        Ok(Some(Arc::new(grant)))
    }
}
