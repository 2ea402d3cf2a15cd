//! The stores of usage records and of counts of rejected requests.

use std::collections::HashMap;

use async_trait::async_trait;
use chrono::{DateTime, Utc};

use super::{
    Rejection, RejectionCount, RejectionReason, RejectionStatus, UsageOutcome, UsageRecord, UsageSum, UsageSumQuery,
};
use crate::error::StoreError;
use crate::ids::{ApiKeyId, DecisionId, WorkspaceId};

/// A filter for usage records. The default matches all records of all workspaces.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct UsageFilter {
    /// Only records of these workspaces; `None` is every workspace.
    pub workspaces: Option<Vec<WorkspaceId>>,
    /// Only records of this key.
    pub api_key: Option<ApiKeyId>,
    /// Only records of this model.
    pub model: Option<String>,
    /// Only records of this provider.
    pub provider: Option<String>,
    /// Only records of this end user.
    pub user: Option<String>,
    /// Only records of this group of requests.
    pub session_id: Option<String>,
    /// Only records with this outcome.
    pub outcome: Option<UsageOutcome>,
    /// Only records charged at this time or later.
    pub since: Option<DateTime<Utc>>,
    /// Only records charged before this time.
    pub until: Option<DateTime<Utc>>,
    /// Only records after the one with this time of the charge and id, for the next page.
    pub after: Option<(DateTime<Utc>, DecisionId)>,
}

impl UsageFilter {
    /// Matches all records of a workspace.
    pub fn for_workspace(workspace_id: WorkspaceId) -> Self {
        Self { workspaces: Some(vec![workspace_id]), ..Self::default() }
    }

    /// Returns true if the filter has conditions that no index of a store covers: a page may read many more records
    /// than it returns.
    pub fn reads_more_than_it_returns(&self) -> bool {
        let Self { model, provider, user, session_id, outcome, .. } = self;
        model.is_some() || provider.is_some() || user.is_some() || session_id.is_some() || outcome.is_some()
    }
}

/// Reads usage records; [`crate::budget::Ledger`] writes them.
///
/// # Contract
/// - Records are returned as they were recorded (times to the millisecond), opaque JSON byte for byte.
#[cfg_attr(feature = "mock", mockall::automock)]
#[async_trait]
pub trait UsageRepository: Send + Sync {
    /// Returns one record of any workspace, for operators.
    async fn find(&self, id: &DecisionId) -> Result<Option<UsageRecord>, StoreError>;

    /// Returns up to `limit` records, newest first by the time of the charge, then by id.
    async fn list(&self, filter: &UsageFilter, limit: u64) -> Result<Vec<UsageRecord>, StoreError>;

    /// Counts the records that a store reads for the filter: those of its workspaces, key and times, after its position.
    /// Stops at `limit`.
    async fn count_read(&self, filter: &UsageFilter, limit: u64) -> Result<u64, StoreError>;

    /// Returns up to `limit` sums, one for each combination of the groups that has usage, in the order of the groups, in
    /// which requests without an end user come first. The totals are those of the days of the charges, also of records that retention removed; those of a query that needs
    /// records ([`UsageSumQuery::needs_records`]) are of the records that exist.
    async fn sum(&self, query: &UsageSumQuery, limit: u64) -> Result<Vec<UsageSum>, StoreError>;

    /// Returns the start of the last recorded request of each key that has one.
    async fn last_use(&self, keys: &[ApiKeyId]) -> Result<HashMap<ApiKeyId, DateTime<Utc>>, StoreError>;

    /// Returns the bytes ([`UsageRecord::stored_bytes`]) of the records that a workspace added today, a UTC day of the
    /// store's clock. They are counted in the transaction that adds the record.
    async fn recorded_bytes(&self, workspace_id: WorkspaceId) -> Result<u64, StoreError>;
}

/// Records rejected requests. MUST NOT wait.
#[cfg_attr(feature = "mock", mockall::automock)]
pub trait RejectionRecorder: Send + Sync {
    /// Records a rejected request of a known key.
    fn record(&self, rejection: Rejection);
}

/// A filter for counts of rejected requests. The default matches all counts.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct RejectionFilter {
    /// Only requests of keys of these workspaces; `None` is every workspace, and management keys.
    pub workspaces: Option<Vec<WorkspaceId>>,
    /// Only requests of this key.
    pub api_key: Option<ApiKeyId>,
    /// Only the hour of this time and later ones.
    pub since: Option<DateTime<Utc>>,
    /// Only hours that began before this time.
    pub until: Option<DateTime<Utc>>,
}

/// Stores counts of rejected requests.
///
/// # Contract
/// - `add` is one transaction: all counts are added, or none.
/// - Counts of one key, status, reason and hour add up, over all processes.
#[cfg_attr(feature = "mock", mockall::automock)]
#[async_trait]
pub trait RejectionStore: Send + Sync {
    /// Adds counts to those of earlier calls.
    async fn add(&self, counts: &[RejectionCount]) -> Result<(), StoreError>;

    /// Returns up to `limit` counts, the newest hour and then the highest count first.
    async fn list(&self, filter: &RejectionFilter, limit: u64) -> Result<Vec<RejectionCount>, StoreError>;

    /// Returns the sums per status and reason over all matching keys and hours, the highest count first.
    async fn sum(&self, filter: &RejectionFilter) -> Result<Vec<RejectionSum>, StoreError>;

    /// Removes up to `limit` counts of hours that ended at `before` or earlier, and returns their number.
    async fn prune(&self, before: DateTime<Utc>, limit: u64) -> Result<u64, StoreError>;
}

/// The number of rejected requests with one status and reason.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct RejectionSum {
    /// The status.
    pub status: RejectionStatus,
    /// The reason.
    pub reason: RejectionReason,
    /// The number of requests.
    pub count: u64,
    /// The start of the newest hour with such a request.
    pub last_hour: DateTime<Utc>,
}
