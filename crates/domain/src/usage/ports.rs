//! Where usage is kept.

use async_trait::async_trait;

use chrono::{DateTime, Utc};

use super::UsageRecord;
use crate::error::StoreError;
use crate::ids::{ApiKeyId, DecisionId, WorkspaceId};

/// Which records are wanted.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct UsageFilter {
    /// Of this workspace; `None` is of any, for operators.
    pub workspace_id: Option<WorkspaceId>,
    /// Of this key alone.
    pub api_key: Option<ApiKeyId>,
    /// Begun at this moment or later.
    pub since: Option<DateTime<Utc>>,
    /// Begun before this moment.
    pub until: Option<DateTime<Utc>>,
    /// What follows the record of this moment and id, for the next page.
    pub after: Option<(DateTime<Utc>, DecisionId)>,
}

impl UsageFilter {
    /// All of a workspace.
    pub fn of(workspace_id: WorkspaceId) -> Self {
        Self { workspace_id: Some(workspace_id), api_key: None, since: None, until: None, after: None }
    }

    /// All of a key, whichever workspace it is or was of.
    pub fn of_key(api_key: ApiKeyId) -> Self {
        Self { workspace_id: None, api_key: Some(api_key), since: None, until: None, after: None }
    }
}

/// Reads usage records; [`crate::budget::Ledger`] writes them.
///
/// # Contract
/// - Records are returned field by field as they were recorded (times to the millisecond), opaque JSON byte for byte.
#[cfg_attr(feature = "mock", mockall::automock)]
#[async_trait]
pub trait UsageRepository: Send + Sync {
    /// One record, of any workspace: for operators.
    async fn find(&self, id: &DecisionId) -> Result<Option<UsageRecord>, StoreError>;

    /// Up to `limit` records, newest first.
    async fn list(&self, filter: &UsageFilter, limit: u64) -> Result<Vec<UsageRecord>, StoreError>;
}

/// Makes records readable that were charged and are still on their way to the store.
#[cfg_attr(feature = "mock", mockall::automock)]
#[async_trait]
pub trait PendingRecords: Send + Sync {
    /// Returns once every record that was charged before is in the store.
    async fn store_pending(&self) -> Result<(), StoreError>;
}
