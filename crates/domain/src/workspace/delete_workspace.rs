//! Deleting a workspace.

use std::fmt;
use std::sync::Arc;

use super::{ChangeWorkspaceError, Workspace, WorkspaceRepository};
use crate::audit::{Actor, AuditDraft};
use crate::ids::WorkspaceId;
use crate::json::Json;

/// The contents that keep a workspace from being deleted, by number.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct WorkspaceContents {
    /// Keys that are not deleted.
    pub keys: u64,
    /// Documents, pending ones included.
    pub documents: u64,
    /// Guardrails.
    pub guardrails: u64,
    /// Destinations of traces.
    pub destinations: u64,
}

impl WorkspaceContents {
    /// Returns true if there are none.
    pub fn is_empty(&self) -> bool {
        *self == Self::default()
    }
}

impl fmt::Display for WorkspaceContents {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { keys, documents, guardrails, destinations } = self;
        let counts =
            [(keys, "keys"), (documents, "documents"), (guardrails, "guardrails"), (destinations, "destinations")];
        let present: Vec<String> =
            counts.iter().filter(|(count, _)| **count > 0).map(|(count, name)| format!("{name}: {count}")).collect();
        f.write_str(&present.join(", "))
    }
}

/// The result of [`WorkspaceRepository::delete`].
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum WorkspaceDeletion {
    /// The workspace is deleted.
    Deleted,
    /// The workspace does not exist.
    Unknown,
    /// It is the default workspace; nothing was changed.
    IsDefault,
    /// It has contents; nothing was changed.
    NotEmpty(WorkspaceContents),
}

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
    use crate::workspace::{CreateWorkspace, MockWorkspaceRepository};

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
