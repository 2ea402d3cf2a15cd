//! The records that a caller may read.

use crate::api_key::{ApiKeyRepository, KeyReference, Principal};
use crate::error::{ErrorKind, StoreError};
use crate::ids::{ApiKeyId, WorkspaceId};
use crate::usage::{UsageFilter, UsageRepository};

/// The most records that a request may read.
pub const MAX_READ_RECORDS: u64 = 1_000_000;

/// The error of reading usage.
#[derive(Debug, thiserror::Error)]
pub enum ReadUsageError {
    /// An inference key asked for another key.
    #[error("key: an inference key reads its own usage only; leave it out, or use a management key")]
    OtherKey,
    /// The key does not exist.
    #[error("key not found")]
    KeyNotFound,
    /// An inference key asked for another workspace.
    #[error("workspace_id: an inference key reads its own usage only; leave it out, or use a management key")]
    OtherWorkspace,
    /// The range is empty.
    #[error("until must be later than since")]
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
            Self::KeyNotFound => ErrorKind::NotFound,
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

impl UsageReader {
    /// Returns the id of the key that a caller selects; deleted keys have usage, too.
    ///
    /// # Errors
    /// The key does not exist, or is not that of an inference key.
    pub async fn find_key(&self, keys: &dyn ApiKeyRepository, name: &str) -> Result<ApiKeyId, ReadUsageError> {
        let missing = || match self {
            Self::Key { .. } => ReadUsageError::OtherKey,
            Self::Workspaces(_) => ReadUsageError::KeyNotFound,
        };
        let reference: KeyReference = name.parse().map_err(|_| missing())?;
        let found = keys.identities(&[reference]).await?;
        found.first().map(|key| key.id).ok_or_else(missing)
    }

    /// Narrows a selection of one key and one workspace to the usage that the caller reads. Returns the key and the
    /// workspaces; none of them where the caller does not see the workspace.
    ///
    /// # Errors
    /// An inference key selects another key or workspace.
    pub fn narrow(
        &self,
        key: Option<ApiKeyId>,
        workspace: Option<WorkspaceId>,
    ) -> Result<(Option<ApiKeyId>, Option<Vec<WorkspaceId>>), ReadUsageError> {
        match self {
            Self::Key { api_key, .. } if key.is_some_and(|key| key != *api_key) => Err(ReadUsageError::OtherKey),
            Self::Key { workspace_id, .. } if workspace.is_some_and(|id| id != *workspace_id) => {
                Err(ReadUsageError::OtherWorkspace)
            }
            // A key belongs to one workspace, so the key alone selects.
            Self::Key { api_key, .. } => Ok((Some(*api_key), None)),
            Self::Workspaces(own) => {
                let selected = match (workspace, own) {
                    (None, own) => own.clone(),
                    (Some(id), None) => Some(vec![id]),
                    (Some(id), Some(own)) => Some(own.iter().copied().filter(|own| *own == id).collect()),
                };
                Ok((key, selected))
            }
        }
    }
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
    use crate::testing::SequentialIds;

    fn workspace(number: u64) -> WorkspaceId {
        WorkspaceId::from_uuid(SequentialIds::uuid(number))
    }

    #[test]
    fn inference_key_reads_itself_only() {
        let own = SequentialIds::key(1);
        let reader = UsageReader::Key { api_key: own, workspace_id: workspace(1) };
        for (key, id) in [(None, None), (Some(own), None), (None, Some(workspace(1))), (Some(own), Some(workspace(1)))]
        {
            assert_eq!(reader.narrow(key, id).unwrap(), (Some(own), None));
        }
        let error = |key, id| reader.narrow(key, id).unwrap_err();
        assert!(matches!(error(Some(SequentialIds::key(2)), None), ReadUsageError::OtherKey));
        assert!(matches!(error(None, Some(workspace(2))), ReadUsageError::OtherWorkspace));
        assert_eq!(error(None, Some(workspace(2))).kind(), ErrorKind::InvalidRequest);
    }

    #[test]
    fn management_key_reads_its_workspaces() {
        let (one, two, three) = (workspace(1), workspace(2), workspace(3));
        let narrow = |own: Option<Vec<_>>, id| UsageReader::Workspaces(own).narrow(None, id).unwrap().1;
        assert_eq!(narrow(None, None), None);
        assert_eq!(narrow(None, Some(one)), Some(vec![one]));
        assert_eq!(narrow(Some(vec![one, two]), None), Some(vec![one, two]));
        assert_eq!(narrow(Some(vec![one, two]), Some(two)), Some(vec![two]));
        assert_eq!(narrow(Some(vec![one, two]), Some(three)), Some(Vec::new()), "no usage, not that of others");
    }
}
