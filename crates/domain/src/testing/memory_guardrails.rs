//! Guardrails in memory.

use async_trait::async_trait;

use super::MemoryStore;
use super::memory_store::State;
use crate::api_key::{ApiKeyHash, ApiKeyScope};
use crate::error::StoreError;
use crate::guardrail::{Guardrail, GuardrailRepository};
use crate::ids::{GuardrailId, WorkspaceId};

impl State {
    fn guardrail(&self, id: GuardrailId) -> Option<&Guardrail> {
        self.guardrails.iter().find(|stored| stored.id == id)
    }
}

#[async_trait]
impl GuardrailRepository for MemoryStore {
    async fn insert(&self, guardrail: &Guardrail) -> Result<bool, StoreError> {
        let mut state = self.state();
        if state.workspace(guardrail.workspace_id).is_none() {
            return Ok(false);
        }
        if state.guardrail(guardrail.id).is_some() {
            return Err(StoreError::Corrupt("a guardrail of this id is there already".to_owned()));
        }
        state.guardrails.push(guardrail.clone());
        Ok(true)
    }

    async fn find(&self, id: GuardrailId) -> Result<Option<Guardrail>, StoreError> {
        Ok(self.state().guardrail(id).cloned())
    }

    async fn list(&self, workspace_id: WorkspaceId) -> Result<Vec<Guardrail>, StoreError> {
        let state = self.state();
        let mut found: Vec<Guardrail> =
            state.guardrails.iter().filter(|stored| stored.workspace_id == workspace_id).cloned().collect();
        found.sort_by_key(|guardrail| std::cmp::Reverse((guardrail.created_at, guardrail.id)));
        Ok(found)
    }

    async fn delete(&self, id: GuardrailId) -> Result<bool, StoreError> {
        let mut state = self.state();
        let before = state.guardrails.len();
        state.guardrails.retain(|stored| stored.id != id);
        if state.guardrails.len() == before {
            return Ok(false);
        }
        let mut changed = false;
        for stored in state.keys.values_mut().filter(|stored| stored.key.guardrail_id == Some(id)) {
            stored.key.guardrail_id = None;
            changed = true;
        }
        state.versions.keys += u64::from(changed);
        Ok(true)
    }

    async fn assign_keys(&self, id: GuardrailId, hashes: &[ApiKeyHash]) -> Result<Option<u64>, StoreError> {
        let mut state = self.state();
        let Some(workspace_id) = state.guardrail(id).map(|guardrail| guardrail.workspace_id) else { return Ok(None) };
        let (mut holding, mut changed) = (0, false);
        for hash in hashes {
            let Some(stored) = state.live_key(hash) else { continue };
            if stored.key.scope == ApiKeyScope::Inference(workspace_id) {
                holding += 1;
                changed |= stored.key.guardrail_id.replace(id) != Some(id);
            }
        }
        state.versions.keys += u64::from(changed);
        Ok(Some(holding))
    }

    async fn count_keys(&self, id: GuardrailId) -> Result<u64, StoreError> {
        let state = self.state();
        let holding = state.keys.values().filter(|stored| !stored.deleted && stored.key.guardrail_id == Some(id));
        Ok(holding.map(|_| 1).sum())
    }
}
