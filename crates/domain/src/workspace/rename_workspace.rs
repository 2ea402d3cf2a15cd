//! Renaming a workspace.

use std::sync::Arc;

use super::model::before_and_after;
use super::{ChangeWorkspaceError, MAX_ATTEMPTS, WorkspaceName, WorkspaceRepository};
use crate::audit::{Actor, AuditDraft};
use crate::ids::WorkspaceId;
use crate::json::Json;

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
