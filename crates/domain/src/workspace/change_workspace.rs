//! Renaming and suspending a workspace, and setting its rates.

use std::sync::Arc;

use super::model::{before_and_after, rates};
use super::{ChangeWorkspaceError, MAX_ATTEMPTS, WorkspaceName, WorkspaceRepository};
use crate::audit::{Actor, AuditDraft};
use crate::edit::Edit;
use crate::ids::WorkspaceId;
use crate::json::Json;
use crate::rate::RateLimits;

/// Renames workspaces.
pub struct RenameWorkspace {
    workspaces: Arc<dyn WorkspaceRepository>,
}

impl RenameWorkspace {
    /// Wires the port.
    pub fn new(workspaces: Arc<dyn WorkspaceRepository>) -> Self {
        Self { workspaces }
    }

    /// Renames a workspace, the default one included. The same name writes nothing.
    ///
    /// # Errors
    /// An invalid name; an unknown workspace; concurrent changes; a store failure.
    pub async fn execute(&self, actor: &Actor, id: WorkspaceId, name: &str) -> Result<(), ChangeWorkspaceError> {
        let after = WorkspaceName::try_new(name)?;
        for _ in 0..MAX_ATTEMPTS {
            let found = self.workspaces.find(id).await?.ok_or(ChangeWorkspaceError::UnknownWorkspace(id))?;
            if found.name == after {
                return Ok(());
            }
            let view = |name: &WorkspaceName| Json::object([("name", Json::string(name.as_str()).text())]);
            let details = before_and_after(&view(&found.name), &view(&after));
            let audit = AuditDraft::done(actor, "workspace.rename", format!("workspace {id}"), details);
            if self.workspaces.rename(id, &found.name, &after, &audit).await? {
                return Ok(());
            }
        }
        Err(ChangeWorkspaceError::Contended)
    }
}

/// Suspends and resumes workspaces.
pub struct SuspendWorkspace {
    workspaces: Arc<dyn WorkspaceRepository>,
}

impl SuspendWorkspace {
    /// Wires the port.
    pub fn new(workspaces: Arc<dyn WorkspaceRepository>) -> Self {
        Self { workspaces }
    }

    /// Suspends or resumes a workspace. All calls of a suspended workspace's keys are rejected.
    pub async fn execute(&self, actor: &Actor, id: WorkspaceId, suspended: bool) -> Result<(), ChangeWorkspaceError> {
        let unknown = || ChangeWorkspaceError::UnknownWorkspace(id);
        let before = self.workspaces.find(id).await?.ok_or_else(unknown)?.suspended;
        let state = |suspended: bool| Json::object([("suspended", if suspended { "true" } else { "false" })]);
        let details = before_and_after(&state(before), &state(suspended));
        let audit = AuditDraft::done(actor, "workspace.set_suspended", format!("workspace {id}"), details);
        if self.workspaces.set_suspended(id, suspended, &audit).await? { Ok(()) } else { Err(unknown()) }
    }
}

/// The changes of rates. A cleared rate follows the configuration.
#[derive(Debug, Clone, Copy, Default)]
pub struct RatesChange {
    /// At least 1.
    pub requests_per_minute: Edit<u32>,
    /// At least 1.
    pub tokens_per_minute: Edit<u32>,
}

impl RatesChange {
    fn of(self, before: RateLimits) -> Result<RateLimits, ChangeWorkspaceError> {
        let after = RateLimits {
            requests_per_minute: self.requests_per_minute.of(before.requests_per_minute),
            tokens_per_minute: self.tokens_per_minute.of(before.tokens_per_minute),
        };
        let none = [after.requests_per_minute, after.tokens_per_minute].contains(&Some(0));
        if none { Err(ChangeWorkspaceError::NoRate) } else { Ok(after) }
    }
}

/// Sets the rate limits of a workspace.
pub struct SetWorkspaceRates {
    workspaces: Arc<dyn WorkspaceRepository>,
}

impl SetWorkspaceRates {
    /// Wires the port.
    pub fn new(workspaces: Arc<dyn WorkspaceRepository>) -> Self {
        Self { workspaces }
    }

    /// Changes rates, and returns all of them. Concurrent changes are not lost.
    pub async fn execute(
        &self,
        actor: &Actor,
        id: WorkspaceId,
        change: RatesChange,
    ) -> Result<RateLimits, ChangeWorkspaceError> {
        for _ in 0..MAX_ATTEMPTS {
            let found = self.workspaces.find(id).await?.ok_or(ChangeWorkspaceError::UnknownWorkspace(id))?;
            let (before, after) = (found.rates, change.of(found.rates)?);
            if after == before {
                return Ok(after);
            }
            let details = before_and_after(&rates(before), &rates(after));
            let audit = AuditDraft::done(actor, "workspace.set_rates", format!("workspace {id}"), details);
            if self.workspaces.set_rates(id, before, after, &audit).await? {
                return Ok(after);
            }
        }
        Err(ChangeWorkspaceError::Contended)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing::{FixedClock, MemoryStore, SequentialIds};
    use crate::workspace::CreateWorkspace;

    #[tokio::test]
    async fn execute_renames_and_rejects_invalid_names() {
        let store = MemoryStore::new().workspaces();
        let create =
            CreateWorkspace::new(store.clone(), Arc::new(FixedClock::default()), Arc::new(SequentialIds::default()));
        let id = create.execute(&Actor::system(), "one", None).await.unwrap().id;
        let rename = RenameWorkspace::new(store.clone());
        rename.execute(&Actor::system(), id, "two").await.unwrap();
        let found = store.find(id).await.unwrap().unwrap();
        assert_eq!(found.name.as_str(), "two");
        let invalid = rename.execute(&Actor::system(), id, "").await.unwrap_err();
        assert!(matches!(invalid, ChangeWorkspaceError::InvalidName(_)));
        let unknown = WorkspaceId::from_uuid(uuid::Uuid::nil());
        let unknown = rename.execute(&Actor::system(), unknown, "x").await.unwrap_err();
        assert!(matches!(unknown, ChangeWorkspaceError::UnknownWorkspace(_)));
    }
}
