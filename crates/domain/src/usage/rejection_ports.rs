//! The ports of rejected requests.

use async_trait::async_trait;
use chrono::{DateTime, Utc};

use super::{Rejection, RejectionCount, RejectionReason, RejectionStatus};
use crate::error::StoreError;
use crate::ids::{ApiKeyId, WorkspaceId};

/// Records rejected requests. MUST NOT wait.
#[cfg_attr(feature = "mock", mockall::automock)]
pub trait RejectionRecorder: Send + Sync {
    /// Records a rejected request of a known key.
    fn record(&self, rejection: Rejection);
}

/// A filter for counts of rejected requests. The default matches all counts.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct RejectionFilter {
    /// Only requests of keys of this workspace.
    pub workspace_id: Option<WorkspaceId>,
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
