//! The records that a caller may read.

use std::sync::Arc;

use crate::api_key::{ApiKeyRepository, KeyReference, Principal};
use crate::authority::{ManagementAccess, ManagementScope};
use crate::error::{ErrorKind, StoreError};
use crate::ids::{ApiKeyId, WorkspaceId};
use crate::naming::{NameError, ResourceName, only_match};
use crate::usage::{UsageFilter, UsageRepository};
use crate::workspace::{WorkspaceRepository, is_named};

/// The most records that a request may read.
pub const MAX_READ_RECORDS: u64 = 1_000_000;

/// The error of reading usage.
#[derive(Debug, thiserror::Error)]
pub enum ReadUsageError {
    /// An inference key asked for another key.
    #[error("key: an inference key reads its own usage only; leave it out, or use a management key")]
    OtherKey,
    /// The name of the key is unknown to the caller, or ambiguous.
    #[error("key {0}")]
    Key(NameError),
    /// The name of the workspace is unknown to the caller, or ambiguous.
    #[error("workspace {0}")]
    Workspace(NameError),
    /// An inference key asked for another workspace.
    #[error("workspace_id: an inference key reads its own usage only; leave it out, or use a management key")]
    OtherWorkspace,
    /// The range is empty.
    #[error("until must be later than since; without until the range ends with today")]
    EmptyRange,
    /// The range is too long for sums of single records.
    #[error("the range has {days} days; with user it may have up to {max}")]
    TooManyDays {
        /// The days of the range.
        days: i64,
        /// The most days.
        max: i64,
    },
    /// The request would read too many records.
    #[error(
        "the request would read more than {MAX_READ_RECORDS} records; select a shorter range with since and until, or a \
         key"
    )]
    TooManyRecords,
    /// The result would have too many rows.
    #[error("the result has more than {max} rows; select a shorter range with since and until, or fewer groups")]
    TooManyRows {
        /// The most rows.
        max: usize,
    },
    /// The cursor is of another list, filter or caller.
    #[error(transparent)]
    Cursor(#[from] crate::cursor::InvalidCursor),
    /// The store failed.
    #[error("the usage store failed")]
    Store(#[from] StoreError),
}

impl ReadUsageError {
    /// Returns the meaning of the error.
    pub fn kind(&self) -> ErrorKind {
        match self {
            Self::Key(name) | Self::Workspace(name) => name.kind(),
            Self::Store(error) => error.kind(),
            _ => ErrorKind::InvalidRequest,
        }
    }
}

/// A caller that reads usage.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum UsageReader {
    /// An inference key, which reads its own usage.
    Key {
        /// The key.
        api_key: ApiKeyId,
        /// Its workspace.
        workspace_id: WorkspaceId,
    },
    /// A reader of workspaces; `None` is all.
    Workspaces(Option<Vec<WorkspaceId>>),
}

impl From<&Principal> for UsageReader {
    fn from(caller: &Principal) -> Self {
        match caller {
            Principal::Inference(key) => Self::Key { api_key: key.id(), workspace_id: key.workspace_id() },
            Principal::Operator(_) => Self::Workspaces(None),
            Principal::Management(key) => Self::Workspaces(key.scope().workspaces().map(<[WorkspaceId]>::to_vec)),
        }
    }
}

/// Resolves the names of keys and workspaces in filters of usage. Deleted ones have usage, too: a key is found by its id
/// or hash, a workspace by its id.
#[derive(Clone)]
pub struct UsageNames {
    /// The keys.
    pub keys: Arc<dyn ApiKeyRepository>,
    /// The workspaces.
    pub workspaces: Arc<dyn WorkspaceRepository>,
}

/// The selected key, and the selected workspaces; `None` is all.
pub type UsageSelection = (Option<ApiKeyId>, Option<Vec<WorkspaceId>>);

impl UsageNames {
    /// Returns the usage that a caller selects by the name of a key and of a workspace.
    ///
    /// # Errors
    /// An inference key selects another key or workspace; a name is unknown to the caller, or ambiguous; a store failed.
    pub async fn select(
        &self,
        reader: &UsageReader,
        key: Option<&ResourceName>,
        workspace: Option<&ResourceName>,
    ) -> Result<UsageSelection, ReadUsageError> {
        match reader {
            UsageReader::Key { api_key, workspace_id } => {
                self.check_own(*api_key, *workspace_id, key, workspace).await?;
                // A key belongs to one workspace, so the key alone selects.
                Ok((Some(*api_key), None))
            }
            UsageReader::Workspaces(own) => {
                let key = match key {
                    Some(name) => Some(self.find_key(own.as_deref(), name).await?),
                    None => None,
                };
                let workspaces = match workspace {
                    Some(name) => Some(vec![self.find_workspace(own.as_deref(), name).await?]),
                    None => own.clone(),
                };
                Ok((key, workspaces))
            }
        }
    }

    /// Checks that the names of an inference key are its own.
    async fn check_own(
        &self,
        api_key: ApiKeyId,
        workspace_id: WorkspaceId,
        key: Option<&ResourceName>,
        workspace: Option<&ResourceName>,
    ) -> Result<(), ReadUsageError> {
        if let Some(name) = key {
            let named = self.keys.find_named(name, &ManagementScope::of_one(workspace_id)).await?;
            if !matches!(&named[..], [only] if only.id == api_key) {
                return Err(ReadUsageError::OtherKey);
            }
        }
        match workspace {
            Some(name) if !is_named(&*self.workspaces, workspace_id, name).await? => {
                Err(ReadUsageError::OtherWorkspace)
            }
            _ => Ok(()),
        }
    }

    async fn find_key(&self, own: Option<&[WorkspaceId]>, name: &ResourceName) -> Result<ApiKeyId, ReadUsageError> {
        let live = self.keys.find_named(name, &scope(own)?).await?;
        match only_match(live, |key| key.id.to_string()) {
            Ok(key) => return Ok(key.id),
            Err(NameError::Unknown) => {}
            Err(ambiguous) => return Err(ReadUsageError::Key(ambiguous)),
        }
        let reference: KeyReference = name.id().ok_or(ReadUsageError::Key(NameError::Unknown))?;
        let found = self.keys.identities(&[reference]).await?;
        let is_visible = |id: WorkspaceId| own.is_none_or(|own| own.contains(&id));
        let key = found.first().filter(|key| key.workspace_id.is_some_and(is_visible));
        key.map(|key| key.id).ok_or(ReadUsageError::Key(NameError::Unknown))
    }

    async fn find_workspace(
        &self,
        own: Option<&[WorkspaceId]>,
        name: &ResourceName,
    ) -> Result<WorkspaceId, ReadUsageError> {
        if let Some(id) = name.id() {
            let is_visible = own.is_none_or(|own| own.contains(&id));
            return if is_visible { Ok(id) } else { Err(ReadUsageError::Workspace(NameError::Unknown)) };
        }
        let found = self.workspaces.find_named(name, &scope(own)?).await?;
        only_match(found, |one| one.id.to_string()).map(|one| one.id).map_err(ReadUsageError::Workspace)
    }
}

/// Returns the scope of a reader of workspaces.
fn scope(own: Option<&[WorkspaceId]>) -> Result<ManagementScope, ReadUsageError> {
    let scope = ManagementScope::try_new(ManagementAccess::Read, own.map(<[WorkspaceId]>::to_vec));
    scope.map_err(|_| ReadUsageError::Workspace(NameError::Unknown))
}

/// Checks that a page of records does not read too many.
pub(super) async fn check_read_records(
    usage: &dyn UsageRepository,
    filter: &UsageFilter,
) -> Result<(), ReadUsageError> {
    if filter.reads_more_than_it_returns() && usage.count_read(filter, MAX_READ_RECORDS + 1).await? > MAX_READ_RECORDS {
        return Err(ReadUsageError::TooManyRecords);
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::api_key::{ApiKey, ApiKeyName, ApiKeyScope, LastKeyRule};
    use crate::audit::{Actor, AuditDraft};
    use crate::authority::Authority;
    use crate::change::Change;
    use crate::testing::contract::{inference_key, key_id};
    use crate::testing::{FixedClock, MemoryStore, SequentialIds, delete_key};
    use crate::workspace::{CreateWorkspace, WorkspaceChange};

    /// A workspace with the key `bot`, one with two keys of that name, and a deleted key in each.
    struct Fixture {
        names: UsageNames,
        workspaces: [WorkspaceId; 2],
    }

    impl Fixture {
        async fn new() -> Self {
            let store = MemoryStore::new();
            let ids = Arc::new(SequentialIds::default());
            let create = CreateWorkspace::new(store.workspaces(), Arc::new(FixedClock::default()), ids);
            let mut workspaces = Vec::new();
            for name in ["one", "two"] {
                let (by, named) = (Authority::system(), WorkspaceChange::named(name));
                workspaces.push(create.execute(&Change::plain(&by), &named, false).await.unwrap().id);
            }
            let names = UsageNames { keys: store.api_keys(), workspaces: store.workspaces() };
            let audit =
                AuditDraft::done(&Actor::system(), "key.create", "key", crate::json::Json::parse("{}").unwrap());
            for (number, workspace, name) in
                [(1, 0, "bot"), (2, 1, "bot"), (3, 1, "bot"), (4, 0, "gone"), (5, 1, "gone")]
            {
                let scope = ApiKeyScope::Inference(workspaces[workspace]);
                let name = ApiKeyName::try_new(name).unwrap();
                let key = ApiKey { name, scope, ..inference_key(number, 1) };
                assert!(names.keys.insert(&key, &audit).await.unwrap().is_inserted());
            }
            for number in [4, 5] {
                assert!(delete_key(&*names.keys, key_id(number), LastKeyRule::Waived, &audit).await.unwrap());
            }
            Self { names, workspaces: workspaces.try_into().unwrap() }
        }

        async fn select(
            &self,
            reader: &UsageReader,
            key: Option<&str>,
            workspace: Option<&str>,
        ) -> Result<UsageSelection, String> {
            let [key, workspace] = [key, workspace].map(|name| name.map(ResourceName::new));
            let selected = self.names.select(reader, key.as_ref(), workspace.as_ref()).await;
            selected.map_err(|error| format!("{:?}: {error}", error.kind()))
        }
    }

    #[tokio::test]
    async fn inference_key_selects_itself_only() {
        let fixture = Fixture::new().await;
        let [one, two] = fixture.workspaces;
        let reader = UsageReader::Key { api_key: key_id(1), workspace_id: one };
        let (id, hash) = (key_id(1).to_string(), inference_key(1, 1).hash.to_string());
        let of_one = one.to_string();
        for key in [None, Some("bot"), Some(&*id), Some(&*hash), Some(&hash[..8])] {
            for workspace in [None, Some("one"), Some(&*of_one)] {
                let selected = fixture.select(&reader, key, workspace).await;
                assert_eq!(selected, Ok((Some(key_id(1)), None)), "{key:?} {workspace:?}");
            }
        }
        for key in [key_id(2).to_string(), key_id(4).to_string(), "gone".to_owned(), "nobody".to_owned()] {
            let error = fixture.select(&reader, Some(&key), None).await.unwrap_err();
            assert!(error.starts_with("InvalidRequest: key: an inference key"), "{error}");
        }
        for workspace in [two.to_string(), "two".to_owned(), "nowhere".to_owned()] {
            let error = fixture.select(&reader, None, Some(&workspace)).await.unwrap_err();
            assert!(error.starts_with("InvalidRequest: workspace_id: an inference key"), "{error}");
        }
        let ambiguous = UsageReader::Key { api_key: key_id(2), workspace_id: two };
        assert!(fixture.select(&ambiguous, Some("bot"), None).await.is_err(), "two keys have the name");
    }

    #[tokio::test]
    async fn management_key_selects_what_it_sees_by_name_and_deleted_keys_by_id() {
        let fixture = Fixture::new().await;
        let [one, two] = fixture.workspaces;
        let all = UsageReader::Workspaces(None);
        let of_one = UsageReader::Workspaces(Some(vec![one]));
        let none = UsageReader::Workspaces(Some(Vec::new()));
        let (gone, foreign) = (key_id(4).to_string(), key_id(5).to_string());
        let unknown_workspace = WorkspaceId::from_uuid(uuid::Uuid::from_u128(77));
        let (first, second, third) = (one.to_string(), two.to_string(), unknown_workspace.to_string());
        for (reader, key, workspace, expected) in [
            (&all, None, None, (None, None)),
            (&all, None, Some("two"), (None, Some(vec![two]))),
            (&all, Some(&*gone), Some(&*second), (Some(key_id(4)), Some(vec![two]))),
            (&all, Some(&*foreign), Some(&*third), (Some(key_id(5)), Some(vec![unknown_workspace]))),
            (&of_one, None, None, (None, Some(vec![one]))),
            (&of_one, Some("bot"), Some("one"), (Some(key_id(1)), Some(vec![one]))),
            (&of_one, Some(&*gone), Some(&*first), (Some(key_id(4)), Some(vec![one]))),
            (&none, None, None, (None, Some(Vec::new()))),
        ] {
            let selected = fixture.select(reader, key, workspace).await;
            assert_eq!(selected, Ok(expected), "{reader:?} {key:?} {workspace:?}");
        }
        let ids = [key_id(1), key_id(2), key_id(3)].map(|id| id.to_string());
        let error = fixture.select(&all, Some("bot"), None).await.unwrap_err();
        assert!(error.starts_with("Conflict: key is ambiguous"), "{error}");
        assert!(ids.iter().all(|id| error.contains(id)), "{error}");
        for (reader, key) in [(&all, "gone"), (&of_one, &*foreign), (&of_one, &*ids[1]), (&none, &*ids[0])] {
            let error = fixture.select(reader, Some(key), None).await.unwrap_err();
            assert!(error.starts_with("NotFound: "), "{error}");
        }
        for (reader, workspace) in [(&all, "nowhere"), (&of_one, "two"), (&of_one, &*second), (&none, &*first)] {
            let error = fixture.select(reader, None, Some(workspace)).await.unwrap_err();
            assert_eq!(error, "NotFound: workspace not found");
        }
    }
}
