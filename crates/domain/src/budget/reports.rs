//! Reads of the ledger, and the removal of old records: a port for each use.

use std::time::Duration;

use async_trait::async_trait;

use super::{LedgerAudit, LimitStatus, Payer, PruneReport};
use crate::error::StoreError;
use crate::ids::WorkspaceId;

/// Reads the current amounts of limits.
///
/// # Contract
/// - All statuses of a call are of one transaction. Figures may be as old as the last fold.
#[cfg_attr(feature = "mock", mockall::automock)]
#[async_trait]
pub trait LimitStatusReader: Send + Sync {
    /// The current limits of a payer. `reserved` is the sum of the allowances of all processes; the ledger of a process
    /// leaves out what is free in its own. A payer whose key or workspace never existed is [`StoreError::Corrupt`].
    async fn limit_statuses(&self, payer: &Payer) -> Result<Vec<LimitStatus>, StoreError>;
}

/// Reads how many bytes the records of workspaces take.
#[cfg_attr(feature = "mock", mockall::automock)]
#[async_trait]
pub trait RecordVolumeReader: Send + Sync {
    /// The bytes that records of a workspace took which were added today, a UTC day of the store's clock, by
    /// [`crate::usage::UsageRecord::stored_bytes`]. They are counted in the transaction that adds the record.
    async fn recorded_bytes(&self, workspace_id: WorkspaceId) -> Result<u64, StoreError>;
}

/// Audits the ledger.
///
/// # Contract
/// - Each discrepancy is of one transaction. An audit may run while the service does: what it names is wrong at that
///   time. Records that are added meanwhile may be left for the next audit.
#[cfg_attr(feature = "mock", mockall::automock)]
#[async_trait]
pub trait LedgerAuditor: Send + Sync {
    /// Compares every counter with the records, archived records, adjustments and allowances, and every record with its
    /// tokens and prices.
    async fn audit(&self) -> Result<LedgerAudit, StoreError>;
}

/// Removes old usage records.
#[cfg_attr(feature = "mock", mockall::automock)]
#[async_trait]
pub trait UsagePruner: Send + Sync {
    /// Removes records that were charged more than `older_than` ago, up to `limit`, and counters and adjustments of
    /// periods that are over since then; the cost of the records is kept in the totals of the accounts. What was charged
    /// in a day, week or month that has not been over for an hour stays, however short `older_than` is: requests in
    /// flight are held in it. See [`super::prunable_before`]. A record that cannot be read stays and is named, and the
    /// others go all the same; where fewer than `limit` went, no other is left.
    async fn prune(&self, older_than: Duration, limit: u64) -> Result<PruneReport, StoreError>;
}
