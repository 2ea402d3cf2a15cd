//! Workspaces in memory.

use async_trait::async_trait;

use super::MemoryStore;
use super::memory_store::{State, StoredKey};
use crate::api_key::{ApiKey, ApiKeyScope};
use crate::error::StoreError;
use crate::ids::WorkspaceId;
use crate::money::Usd;
use crate::workspace::{Workspace, WorkspaceRepository};

impl State {
    fn seen(&self, workspace: &Workspace) -> Workspace {
        Workspace { storage_used_bytes: self.used_bytes(workspace.id), ..workspace.clone() }
    }

    fn default_or_insert(&mut self, workspace: &Workspace) -> Workspace {
        if let Some(found) = self.workspaces.iter().find(|stored| stored.is_default) {
            return self.seen(found);
        }
        let made = Workspace { is_default: true, ..workspace.clone() };
        self.workspaces.push(made.clone());
        made
    }

    pub(super) fn workspace(&self, id: WorkspaceId) -> Option<&Workspace> {
        self.workspaces.iter().find(|stored| stored.id == id)
    }
}

#[async_trait]
impl WorkspaceRepository for MemoryStore {
    async fn insert(&self, workspace: &Workspace) -> Result<(), StoreError> {
        let mut state = self.state();
        if state.workspace(workspace.id).is_some() {
            return Err(StoreError::Corrupt("a workspace of this id is there already".to_owned()));
        }
        state.workspaces.push(Workspace { is_default: false, ..workspace.clone() });
        Ok(())
    }

    async fn default_or_insert(&self, workspace: &Workspace) -> Result<Workspace, StoreError> {
        Ok(self.state().default_or_insert(workspace))
    }

    async fn bootstrap(&self, workspace: &Workspace, key: &ApiKey) -> Result<bool, StoreError> {
        let mut state = self.state();
        state.default_or_insert(workspace);
        if state.keys.values().any(|stored| stored.key.scope == ApiKeyScope::Management) {
            return Ok(false);
        }
        state.keys.insert(key.hash, StoredKey { key: key.clone(), deleted: false });
        Ok(true)
    }

    async fn find(&self, id: WorkspaceId) -> Result<Option<Workspace>, StoreError> {
        let state = self.state();
        Ok(state.workspace(id).map(|found| state.seen(found)))
    }

    async fn list(&self) -> Result<Vec<Workspace>, StoreError> {
        let state = self.state();
        let mut all: Vec<Workspace> = state.workspaces.iter().map(|workspace| state.seen(workspace)).collect();
        all.sort_by_key(|workspace| (workspace.created_at, workspace.id));
        Ok(all)
    }

    async fn set_suspended(&self, id: WorkspaceId, suspended: bool) -> Result<bool, StoreError> {
        let mut state = self.state();
        let Some(workspace) = state.workspaces.iter_mut().find(|stored| stored.id == id) else { return Ok(false) };
        workspace.suspended = suspended;
        state.versions.keys += 1;
        Ok(true)
    }

    async fn add_credit(&self, id: WorkspaceId, amount: Usd) -> Result<Option<Usd>, StoreError> {
        let mut state = self.state();
        let Some(workspace) = state.workspaces.iter_mut().find(|stored| stored.id == id) else { return Ok(None) };
        let sum = workspace
            .credit
            .unwrap_or(Usd::ZERO)
            .checked_add(amount)
            .ok_or_else(|| StoreError::Corrupt("the credit leaves the range of money".to_owned()))?;
        workspace.credit = Some(sum);
        Ok(Some(sum))
    }
}
