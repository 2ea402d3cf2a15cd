//! Deleting a workspace.

use std::sync::Arc;

use super::{ChangeWorkspaceError, Workspace, WorkspaceDeletion, WorkspaceRepository};
use crate::audit::{Actor, AuditDraft};
use crate::ids::WorkspaceId;
use crate::json::Json;

/// Deletes workspaces.
pub struct DeleteWorkspace {
    workspaces: Arc<dyn WorkspaceRepository>,
}

impl DeleteWorkspace {
    /// Wires the port.
    pub fn new(workspaces: Arc<dyn WorkspaceRepository>) -> Self {
        Self { workspaces }
    }

    /// Deletes an empty workspace and returns it. Its usage records and its spending stay. The id is never reused.
    ///
    /// # Errors
    /// An unknown workspace; the default workspace; a workspace with keys, documents, guardrails or destinations; a
    /// store failure.
    pub async fn execute(&self, actor: &Actor, id: WorkspaceId) -> Result<Workspace, ChangeWorkspaceError> {
        let unknown = || ChangeWorkspaceError::UnknownWorkspace(id);
        let before = self.workspaces.find(id).await?.ok_or_else(unknown)?;
        let name = Json::string(before.name.as_str());
        let details = Json::object([("before", Json::object([("name", name.text())]).text())]);
        let audit = AuditDraft::done(actor, "workspace.delete", format!("workspace {id}"), details);
        match self.workspaces.delete(id, &audit).await? {
            WorkspaceDeletion::Deleted => Ok(before),
            WorkspaceDeletion::Unknown => Err(unknown()),
            WorkspaceDeletion::IsDefault => Err(ChangeWorkspaceError::IsDefault),
            WorkspaceDeletion::NotEmpty(contents) => Err(ChangeWorkspaceError::NotEmpty(contents)),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing::{FixedClock, MemoryStore, SequentialIds};
    use crate::workspace::{CreateWorkspace, MockWorkspaceRepository, WorkspaceContents};

    #[tokio::test]
    async fn execute_deletes_all_but_the_default_workspace() {
        let store = MemoryStore::new().workspaces();
        let create =
            CreateWorkspace::new(store.clone(), Arc::new(FixedClock::default()), Arc::new(SequentialIds::default()));
        let default = create.default(&Actor::system()).await.unwrap().id;
        let other = create.execute(&Actor::system(), "other", None).await.unwrap();
        let delete = DeleteWorkspace::new(store.clone());
        let rejected = delete.execute(&Actor::system(), default).await.unwrap_err();
        assert!(matches!(rejected, ChangeWorkspaceError::IsDefault));
        assert_eq!(delete.execute(&Actor::system(), other.id).await.unwrap(), other);
        let gone = delete.execute(&Actor::system(), other.id).await.unwrap_err();
        assert!(matches!(gone, ChangeWorkspaceError::UnknownWorkspace(_)));
    }

    #[tokio::test]
    async fn execute_names_contents() {
        let store = MemoryStore::new().workspaces();
        let create =
            CreateWorkspace::new(store.clone(), Arc::new(FixedClock::default()), Arc::new(SequentialIds::default()));
        let workspace = create.execute(&Actor::system(), "w", None).await.unwrap();
        let id = workspace.id;
        let mut repository = MockWorkspaceRepository::new();
        repository.expect_find().returning(move |_| Ok(Some(workspace.clone())));
        let contents = WorkspaceContents { keys: 2, destinations: 1, ..WorkspaceContents::default() };
        repository.expect_delete().returning(move |_, _| Ok(WorkspaceDeletion::NotEmpty(contents)));
        let rejected = DeleteWorkspace::new(Arc::new(repository)).execute(&Actor::system(), id).await.unwrap_err();
        assert_eq!(rejected.to_string(), "the workspace still has keys: 2, destinations: 1");
    }
}
