//! The port of holds and charges.

use async_trait::async_trait;

use super::{Hold, HoldRequest, LimitExceeded};
use crate::error::StoreError;
use crate::ids::DecisionId;
use crate::money::Usd;
use crate::usage::{AttemptRecord, OutboxMessage, UsageRecord};

/// A usage record to charge, and its messages to destinations.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct UsageCharge {
    /// The record. Its charge ends the hold of its id.
    pub record: UsageRecord,
    /// The messages, added to the outbox with the record.
    pub messages: Vec<OutboxMessage>,
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

    /// Increases a hold by the bound of `attempts`. `Ok(Err(_))` leaves the hold as it was; an id without a hold is
    /// [`StoreError::Corrupt`].
    async fn increase(
        &self,
        id: &DecisionId,
        more: Usd,
        attempts: &[AttemptRecord],
    ) -> Result<Result<(), LimitExceeded>, StoreError>;

    /// Charges a record.
    async fn settle(&self, settlement: UsageCharge) -> Result<(), StoreError>;

    /// Releases the hold of a request that was not sent. An id without a hold changes nothing.
    async fn release(&self, id: &DecisionId) -> Result<(), StoreError>;
}
