//! The ports that read the ledger, and remove old records.

use std::time::Duration;

use async_trait::async_trait;

use super::{LedgerAudit, LimitStatus, Payer, PruneReport};
use crate::error::StoreError;

/// Reads the ledger: the current amounts of limits.
///
/// # Contract
/// - All statuses of a call are of one transaction. Amounts may be as old as the last fold.
#[cfg_attr(feature = "mock", mockall::automock)]
#[async_trait]
pub trait LedgerReader: Send + Sync {
    /// Returns the current limits of a payer. `reserved` is the sum of the allowances of all processes; the ledger of a
    /// process leaves out its own free allowances. A payer whose key or workspace never existed is
    /// [`StoreError::Corrupt`].
    async fn limit_statuses(&self, payer: &Payer) -> Result<Vec<LimitStatus>, StoreError>;

    /// Returns once every record that this process charged before the call is stored. The default is for a reader of
    /// the store alone, where no record is pending.
    async fn store_pending(&self) -> Result<(), StoreError> {
        Ok(())
    }
}

/// Audits the ledger, and removes old usage records.
///
/// # Contract
/// - Each discrepancy is of one transaction. An audit may run beside the service: its discrepancies are real at that
///   time. Records that are added meanwhile may be left for the next audit.
#[cfg_attr(feature = "mock", mockall::automock)]
#[async_trait]
pub trait LedgerMaintenance: Send + Sync {
    /// Compares every counter with the records, archived records, adjustments and allowances, and every record with its
    /// tokens and prices.
    async fn audit(&self) -> Result<LedgerAudit, StoreError>;

    /// Removes up to `limit` records that were charged more than `older_than` ago. When none is left, it also removes
    /// counters and adjustments of past periods. The totals of the accounts keep the cost of the records. Records of a
    /// day, week or month that was current within the last hour stay, because running requests are held in it; see
    /// [`super::prunable_before`]. An unreadable record stays and is named. If fewer than `limit` were removed, no other
    /// is left.
    async fn prune(&self, older_than: Duration, limit: u64) -> Result<PruneReport, StoreError>;
}
