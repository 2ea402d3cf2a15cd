//! The ports of the ledger: holds and charges, and the readers of its reports.

use std::time::Duration;

use async_trait::async_trait;
use chrono::{DateTime, Utc};

use super::{Hold, HoldRequest, KeySpend, LedgerAudit, LimitExceeded, LimitStatus, Payer, PruneReport};
use crate::error::StoreError;
use crate::ids::{ApiKeyId, DecisionId, WorkspaceId};
use crate::money::Usd;
use crate::usage::{AnswerEvidence, AttemptRecord, OutboxMessage, UsageRecord};

/// A usage record to charge, and what the store adds with it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct UsageCharge {
    /// The record. Its charge ends the hold of its id.
    pub record: UsageRecord,
    /// The messages, added to the outbox with the record.
    pub messages: Vec<OutboxMessage>,
    /// The evidence of its answers, of a request with a preset.
    pub evidence: Vec<AnswerEvidence>,
}

impl UsageCharge {
    /// Creates the charge of a record alone.
    pub const fn new(record: UsageRecord) -> Self {
        Self { record, messages: Vec::new(), evidence: Vec::new() }
    }

    /// Estimates the bytes that the record and its evidence take in a store.
    pub fn stored_bytes(&self) -> u64 {
        let evidence = self.evidence.iter().map(AnswerEvidence::stored_bytes);
        evidence.fold(self.record.stored_bytes(), u64::saturating_add)
    }
}

/// Holds amounts for requests, and charges them.
///
/// # Contract
/// - Over all processes, the spent and the held amount together do not exceed a limit. Money counts in every account of
///   [`super::Payer::accounts`], in total and in the day, week and month of the hold. A payer whose key or workspace
///   never existed is [`StoreError::Corrupt`].
/// - When `reserve` returns a hold, the request can be charged even if the process dies.
/// - When `settle` returns, the charge survives the death of the process. Its record may reach the store later. A
///   charge that `settle` could not write is written later by the ledger itself: the caller gets the error and does not
///   retry. An id is charged once, however often it is settled. The real record replaces a record of the outcome
///   `abandoned` and its cost. A deleted key or workspace is still charged.
/// - A negative amount is [`StoreError::Corrupt`].
#[cfg_attr(feature = "mock", mockall::automock)]
#[async_trait]
pub trait Ledger: Send + Sync {
    /// Holds the amount of a request, or returns the exceeded limit. An id with a hold returns that hold.
    async fn reserve(&self, claim: HoldRequest) -> Result<Result<Hold, LimitExceeded>, StoreError>;

    /// Increases a hold by the bound of `attempts`, which begin now; by zero if the hold covers them. `Ok(Err(_))` leaves
    /// the hold as it was; an id without a hold is [`StoreError::Corrupt`].
    async fn increase(
        &self,
        id: &DecisionId,
        more: Usd,
        attempts: &[AttemptRecord],
    ) -> Result<Result<(), LimitExceeded>, StoreError>;

    /// Charges a record.
    async fn settle(&self, settlement: &UsageCharge) -> Result<(), StoreError>;

    /// Releases the hold of a request that was not sent. An id without a hold changes nothing.
    async fn release(&self, id: &DecisionId) -> Result<(), StoreError>;
}

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

    /// Returns the current limits of a workspace: the credit, then the budgets from the shortest to the longest period.
    /// `reserved` is as that of [`Self::limit_statuses`]. A workspace that does not exist has none.
    async fn workspace_limit_statuses(&self, id: WorkspaceId) -> Result<Vec<LimitStatus>, StoreError>;

    /// Returns the spend of each inference key, with its workspace, in the order of the ids. `reserved` is as that of
    /// [`Self::limit_statuses`]. A key without spend, or that never existed, has zeros.
    async fn key_spend(&self, keys: &[(WorkspaceId, ApiKeyId)]) -> Result<Vec<KeySpend>, StoreError>;

    /// Returns once every record that this process charged before the call is stored.
    async fn store_pending(&self) -> Result<(), StoreError>;
}

/// Audits the ledger, and removes old usage records.
///
/// # Contract
/// - Each discrepancy is of one transaction. An audit may run beside the service: its discrepancies are real at that
///   time. Records that are added meanwhile may be left for the next audit.
#[cfg_attr(feature = "mock", mockall::automock)]
#[async_trait]
pub trait LedgerMaintenance: Send + Sync {
    /// Compares every counter with the records, archived records, adjustments and allowances, every record with its
    /// tokens and prices, and the sums of each day with the records of the day: equal where no retention may have
    /// removed records, otherwise not below them.
    async fn audit(&self) -> Result<LedgerAudit, StoreError>;

    /// Removes up to `limit` records that were charged more than `older_than` ago. When none is left, it also removes
    /// counters and adjustments of past periods. The totals of the accounts keep the cost of the records. Records of a
    /// day, week or month that was current within the last hour stay, because running requests are held in it; see
    /// [`super::prunable_before`]. An unreadable record stays and is named. If fewer than `limit` were removed, no other
    /// is left.
    async fn prune(&self, older_than: Duration, limit: u64) -> Result<PruneReport, StoreError>;

    /// Removes up to `limit` sums of usage of days that ended at `before` or earlier, and returns their number.
    async fn prune_sums(&self, before: DateTime<Utc>, limit: u64) -> Result<u64, StoreError>;
}

/// Rejects every hold, so that no request is sent that could not be charged.
#[derive(Debug, Clone, Copy, Default)]
pub struct ReadOnlyLedger;

fn read_only() -> StoreError {
    StoreError::unavailable("the database is read-only")
}

#[async_trait]
impl Ledger for ReadOnlyLedger {
    async fn reserve(&self, _: HoldRequest) -> Result<Result<Hold, LimitExceeded>, StoreError> {
        Err(read_only())
    }

    async fn increase(
        &self,
        _: &DecisionId,
        _: Usd,
        _: &[AttemptRecord],
    ) -> Result<Result<(), LimitExceeded>, StoreError> {
        Err(read_only())
    }

    async fn settle(&self, _: &UsageCharge) -> Result<(), StoreError> {
        Err(read_only())
    }

    async fn release(&self, _: &DecisionId) -> Result<(), StoreError> {
        Ok(())
    }
}
