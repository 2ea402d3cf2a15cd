//! Where usage is kept.

use async_trait::async_trait;

use super::UsageRecord;
use crate::error::StoreError;
use crate::ids::{DecisionId, WorkspaceId};

/// Keeps usage records.
///
/// # Contract
/// - When `record` returns, the record is durable: the death of the process does not lose it.
/// - Recording the same id again MUST change nothing and be no error, so that a retry never counts twice.
/// - Records are returned field by field as they were recorded (times to the millisecond), opaque JSON byte for byte.
#[cfg_attr(feature = "mock", mockall::automock)]
#[async_trait]
pub trait UsageRepository: Send + Sync {
    /// Adds a record.
    async fn record(&self, record: UsageRecord) -> Result<(), StoreError>;

    /// One record, of any workspace: for operators.
    async fn find(&self, id: &DecisionId) -> Result<Option<UsageRecord>, StoreError>;

    /// Up to `limit` records of a workspace, newest first.
    async fn list(&self, workspace_id: WorkspaceId, limit: u64) -> Result<Vec<UsageRecord>, StoreError>;
}
