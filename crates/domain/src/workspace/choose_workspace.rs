//! The workspace that a management call is about.

use super::{ChooseWorkspaceError, Workspace, WorkspaceRepository};
use crate::authority::Authority;
use crate::ids::WorkspaceId;

/// Returns the named workspace. For `None` it is the default one if the caller sees it, else the caller's only one.
///
/// # Errors
/// An unknown workspace; several workspaces without the default one; a store failure.
pub async fn choose_workspace(
    workspaces: &dyn WorkspaceRepository,
    by: &Authority,
    named: Option<WorkspaceId>,
) -> Result<Workspace, ChooseWorkspaceError> {
    let only = match by.scope().workspaces() {
        Some([only]) => Some(*only),
        _ => None,
    };
    if let Some(id) = named.or(only) {
        let found = if by.sees(id) { workspaces.find(id).await? } else { None };
        return found.ok_or(ChooseWorkspaceError::Unknown);
    }
    let default = workspaces.list().await?.into_iter().find(|workspace| workspace.is_default && by.sees(workspace.id));
    default.ok_or(if by.sees_all() { ChooseWorkspaceError::Unknown } else { ChooseWorkspaceError::Required })
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use super::*;
    use crate::audit::Actor;
    use crate::authority::{ManagementAccess, ManagementScope};
    use crate::change::Change;
    use crate::testing::{FixedClock, MemoryStore, SequentialIds};
    use crate::workspace::{CreateWorkspace, WorkspaceChange};

    fn key_of(workspaces: &[WorkspaceId]) -> Authority {
        let scope = ManagementScope::try_new(ManagementAccess::Read, Some(workspaces.to_vec())).unwrap();
        Authority::of_key(Actor::system(), scope)
    }

    #[tokio::test]
    async fn choice_is_named_only_or_default_workspace_of_the_caller() {
        let workspaces: Arc<dyn WorkspaceRepository> = MemoryStore::new().workspaces();
        let (clock, ids) = (Arc::new(FixedClock::default()), Arc::new(SequentialIds::default()));
        let create = CreateWorkspace::new(Arc::clone(&workspaces), clock, ids);
        let default = create.default(&Authority::system()).await.unwrap().id;
        let a =
            create.execute(&Change::plain(&Authority::system()), &WorkspaceChange::named("a"), false).await.unwrap().id;
        let b =
            create.execute(&Change::plain(&Authority::system()), &WorkspaceChange::named("b"), false).await.unwrap().id;
        let choose = async |by: Authority, named| match choose_workspace(&*workspaces, &by, named).await {
            Ok(workspace) => Ok(workspace.id),
            Err(error) => Err(error.to_string()),
        };
        let (unknown, required) =
            (Err("workspace not found".to_owned()), "workspace_id is required: the key manages several workspaces");
        for by in [Authority::system(), key_of(&[default, a])] {
            assert_eq!(choose(by.clone(), None).await, Ok(default));
            assert_eq!(choose(by, Some(a)).await, Ok(a));
        }
        assert_eq!(choose(key_of(&[a]), None).await, Ok(a));
        assert_eq!(choose(key_of(&[a]), Some(b)).await, unknown);
        assert_eq!(choose(key_of(&[a]), Some(default)).await, unknown);
        assert_eq!(choose(key_of(&[a, b]), None).await, Err(required.to_owned()));
        let gone = WorkspaceId::from_uuid(uuid::Uuid::from_u128(99));
        assert_eq!(choose(Authority::system(), Some(gone)).await, unknown);
        assert_eq!(choose(key_of(&[gone]), None).await, unknown);
    }
}
