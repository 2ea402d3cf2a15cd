//! Where money is counted.

use std::time::Duration;

use async_trait::async_trait;

use super::{Claim, ExpiryReport, LedgerAudit, Overspent, Payer, PruneReport, Reservation, StandingLimit};
use crate::decision::UnknownUsage;
use crate::error::StoreError;
use crate::ids::{DecisionId, WorkspaceId};
use crate::money::Usd;
use crate::observability::OutboxMessage;
use crate::usage::{AttemptRecord, UsageRecord};

/// A record to be charged, and what is to be told of it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Settlement {
    /// The record. A reservation of its id ends with it.
    pub record: UsageRecord,
    /// What is to be broadcast, put into the outbox in the same transaction.
    pub messages: Vec<OutboxMessage>,
}

/// Reserves money and charges it.
///
/// # Contract
/// - Every method is one transaction with every other, over all processes. What fails changes nothing, for nobody else
///   either.
/// - `reserve` and `extend` read the limits of the payer (the key's limit, the workspace's credit and budgets, the
///   budgets of the guardrails) as they stand in that transaction and decide by [`super::admit`]; what is spent and
///   reserved together never exceeds a limit. Money is counted in every account of [`Payer::accounts`], in total and in
///   the day, the week and the month of the store's clock; what is added by `extend`, in those of the reservation. A
///   payer whose key or workspace was never there is [`StoreError::Corrupt`]: nobody knows its limits.
/// - When `settle` returns, the record is durable: the death of the process does not lose it. In one transaction it
///   adds the record, its cost to every account in the periods of `charged_at`, and the messages, and it ends the
///   reservation of that id. Settling the same id again MUST change nothing and be no error. A record that
///   `expire` wrote in the meantime MUST be replaced by the real one, and the accounts with it. What became of the key
///   and the workspace in the meantime does not matter: what was used is charged.
/// - `expire` concerns reservations whose lease is over by the store's clock. One whose record is there already is given
///   back.
/// - A sum that leaves the range of money is [`StoreError::Corrupt`], and so is a negative amount.
#[cfg_attr(feature = "mock", mockall::automock)]
#[async_trait]
pub trait Ledger: Send + Sync {
    /// Keeps the money of a request for it, or says which limit leaves no room. Reserving the same id again returns the
    /// reservation that is there.
    async fn reserve(&self, claim: Claim) -> Result<Result<Reservation, Overspent>, StoreError>;

    /// Keeps so much more for it, which is the bound of `attempts`. `Ok(Err(_))` leaves the reservation as it was; a
    /// reservation that is not there is [`StoreError::Corrupt`].
    async fn extend(
        &self,
        id: &DecisionId,
        more: Usd,
        attempts: &[AttemptRecord],
    ) -> Result<Result<(), Overspent>, StoreError>;

    /// Charges a record.
    async fn settle(&self, settlement: Settlement) -> Result<(), StoreError>;

    /// Gives a reservation back, because nothing was sent; one that is not there is none.
    async fn release(&self, id: &DecisionId) -> Result<(), StoreError>;

    /// Ends up to `limit` reservations that outlived their processes: charged in full with a record of the outcome
    /// [`crate::usage::UsageOutcome::Abandoned`], or given back.
    async fn expire(&self, unknown: UnknownUsage, limit: u64) -> Result<ExpiryReport, StoreError>;

    /// The limits of a payer as they stand.
    async fn standing(&self, payer: &Payer) -> Result<Vec<StandingLimit>, StoreError>;

    /// The bytes that records of a workspace took which were added today, a UTC day of the store's clock, by
    /// [`UsageRecord::stored_bytes`]. They are counted in the transaction that adds the record. A ledger that counts
    /// none returns zero, and no bound holds.
    async fn recorded_bytes(&self, workspace_id: WorkspaceId) -> Result<u64, StoreError> {
        let _ = workspace_id;
        Ok(0)
    }

    /// Compares every counter with the ledger and every record with its tokens and prices.
    async fn audit(&self) -> Result<LedgerAudit, StoreError>;

    /// Removes records that were charged more than `older_than` ago, up to `limit`, and counters of periods that are
    /// over since then; what they came to is kept in the accounts' totals. What was charged in a day, week or month
    /// that is not over, or that an open reservation was made in, stays, however short `older_than` is: limits are kept
    /// by it. See [`super::prunable_before`]. A record that cannot be read stays and is named, and the others go all the
    /// same; where fewer than `limit` went, no other is left.
    async fn prune(&self, older_than: Duration, limit: u64) -> Result<PruneReport, StoreError>;
}
