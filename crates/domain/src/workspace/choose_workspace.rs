//! The workspace that a management call is about, and that of a call about files.

use std::sync::Arc;

use super::{ChooseWorkspaceError, Workspace, WorkspaceError, WorkspaceRepository, choose_named};
use crate::api_key::{ContentAccess, Principal, WrongKeyKind};
use crate::audit::Actor;
use crate::authority::{Authority, ManagementScope, Restricted, Right};
use crate::error::{ErrorKind, StoreError};
use crate::ids::WorkspaceId;
use crate::naming::ResourceName;

/// An error of [`ChooseFilesWorkspace`].
#[derive(Debug, thiserror::Error)]
pub enum ChooseFilesWorkspaceError {
    /// An inference key names another workspace.
    #[error("workspace_id is not the workspace of this key")]
    NotOwn,
    /// The caller's key is of the wrong kind.
    #[error(transparent)]
    WrongKeyKind(#[from] WrongKeyKind),
    /// The management key lacks the right.
    #[error(transparent)]
    Restricted(#[from] Restricted),
    /// No workspace can be chosen.
    #[error(transparent)]
    Workspace(#[from] WorkspaceError),
}

impl ChooseFilesWorkspaceError {
    /// Returns the meaning of the error.
    pub fn kind(&self) -> ErrorKind {
        match self {
            Self::NotOwn => ErrorKind::InvalidRequest,
            Self::WrongKeyKind(error) => error.kind(),
            Self::Restricted(error) => error.kind(),
            Self::Workspace(error) => error.kind(),
        }
    }
}

/// Chooses the workspace whose documents, container files or presets a call is about: that of an inference key; for other
/// callers the named one, else the default one, else the only one of the caller.
pub struct ChooseFilesWorkspace(Arc<dyn WorkspaceRepository>);

impl ChooseFilesWorkspace {
    /// Wires the port.
    pub fn new(workspaces: Arc<dyn WorkspaceRepository>) -> Self {
        Self(workspaces)
    }

    /// Returns the workspace whose records the caller lists, reads or deletes; `right` is what a management key needs.
    ///
    /// # Errors
    /// The caller lacks the right, or no workspace can be chosen.
    pub async fn of_records(
        &self,
        caller: &Principal,
        right: Right,
        named: Option<&ResourceName>,
    ) -> Result<WorkspaceId, ChooseFilesWorkspaceError> {
        if let Principal::Inference(key) = caller {
            let own = key.workspace_id();
            let is_own = match named {
                Some(name) => is_named(&*self.0, own, name).await.map_err(WorkspaceError::Store)?,
                None => true,
            };
            return if is_own { Ok(own) } else { Err(ChooseFilesWorkspaceError::NotOwn) };
        }
        let by = caller.authority(|_| Actor::system())?;
        by.check(right)?;
        Ok(choose_named(&*self.0, &by, named).await?.id)
    }

    /// Returns the access to the content of files of an inference key or the operator.
    ///
    /// # Errors
    /// The caller has a management key, or no workspace can be chosen.
    pub async fn of_content(
        &self,
        caller: &Principal,
        named: Option<&ResourceName>,
    ) -> Result<ContentAccess, ChooseFilesWorkspaceError> {
        if let Principal::Management(_) = caller {
            return Err(WrongKeyKind::InferenceNeeded.into());
        }
        let workspace = self.of_records(caller, Right::Read, named).await?;
        let access = match caller {
            Principal::Inference(key) => Some(ContentAccess::of_key(key)),
            Principal::Operator(by) => ContentAccess::of_operator(by, workspace),
            Principal::Management(_) => None,
        };
        access.ok_or_else(|| WrongKeyKind::InferenceNeeded.into())
    }
}

/// Returns true if the workspace has the name.
pub(crate) async fn is_named(
    workspaces: &dyn WorkspaceRepository,
    workspace: WorkspaceId,
    name: &ResourceName,
) -> Result<bool, StoreError> {
    let is_id = name.id() == Some(workspace);
    Ok(is_id || !workspaces.find_named(name, &ManagementScope::of_one(workspace)).await?.is_empty())
}

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
    use crate::api_key::{InferenceKey, ManagementKey};
    use crate::audit::Actor;
    use crate::authority::{Authority, ManagementAccess, ManagementScope};
    use crate::change::Change;
    use crate::testing::{FixedClock, MemoryStore, SequentialIds};
    use crate::workspace::{CreateWorkspace, WorkspaceChange};

    fn key(access: ManagementAccess, workspaces: Option<Vec<WorkspaceId>>) -> Principal {
        let scope = ManagementScope::try_new(access, workspaces).unwrap();
        Principal::Management(ManagementKey::for_tests(SequentialIds::key(8)).with_scope(scope))
    }

    /// The caller, the named workspace, and the results for reading, for deletion and for content.
    type Row<'a> = (&'a Principal, Option<ResourceName>, [Result<WorkspaceId, ErrorKind>; 3]);

    #[tokio::test]
    async fn callers_reach_records_and_content_of_their_workspaces() {
        let store = MemoryStore::new();
        let (clock, ids) = (Arc::new(FixedClock::default()), Arc::new(SequentialIds::default()));
        let create = CreateWorkspace::new(store.workspaces(), clock, ids);
        let default = create.default(&Authority::system()).await.unwrap().id;
        let other = create
            .execute(&Change::plain(&Authority::system()), &WorkspaceChange::named("other"), false)
            .await
            .unwrap()
            .id;
        let unknown = WorkspaceId::from_uuid(uuid::Uuid::from_u128(77));
        let choose = ChooseFilesWorkspace::new(store.workspaces());
        let inference = Principal::Inference(InferenceKey::for_tests(SequentialIds::key(1), other));
        let operator = Principal::Operator(Authority::system());
        let of_default = key(ManagementAccess::Write, Some(vec![default]));
        let reader = key(ManagementAccess::Read, None);
        let id = |id: &WorkspaceId| Some(ResourceName::from(id));
        let name = |text: &str| Some(ResourceName::new(text));
        let (forbidden, missing) = (Err(ErrorKind::Forbidden), Err(ErrorKind::NotFound));
        let not_own = Err(ErrorKind::InvalidRequest);
        let table: [Row<'_>; 16] = [
            (&inference, None, [Ok(other); 3]),
            (&inference, id(&other), [Ok(other); 3]),
            (&inference, name("other"), [Ok(other); 3]),
            (&inference, id(&default), [not_own; 3]),
            (&inference, name("default"), [not_own; 3]),
            (&inference, name("nowhere"), [not_own; 3]),
            (&operator, None, [Ok(default); 3]),
            (&operator, id(&other), [Ok(other); 3]),
            (&operator, name("other"), [Ok(other); 3]),
            (&operator, name("nowhere"), [missing; 3]),
            (&operator, id(&unknown), [missing; 3]),
            (&reader, id(&other), [Ok(other), forbidden, forbidden]),
            (&of_default, None, [Ok(default), Ok(default), forbidden]),
            (&of_default, id(&default), [Ok(default), Ok(default), forbidden]),
            (&of_default, id(&other), [missing, missing, forbidden]),
            (&of_default, name("other"), [missing, missing, forbidden]),
        ];
        for (caller, named, expected) in table {
            let found = [
                choose.of_records(caller, Right::Read, named.as_ref()).await.map_err(|error| error.kind()),
                choose.of_records(caller, Right::Write, named.as_ref()).await.map_err(|error| error.kind()),
                choose
                    .of_content(caller, named.as_ref())
                    .await
                    .map(ContentAccess::workspace_id)
                    .map_err(|error| error.kind()),
            ];
            assert_eq!(found, expected, "{caller:?} {named:?}");
        }
    }

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
