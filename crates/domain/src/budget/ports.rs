//! Holds and charges.

use async_trait::async_trait;

use super::{Hold, HoldRequest, LimitExceeded};
use crate::error::StoreError;
use crate::ids::DecisionId;
use crate::money::Usd;
use crate::usage::{AttemptRecord, OutboxMessage, UsageRecord};

/// A record to be charged, and the messages to its destinations.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct UsageCharge {
    /// The record. The hold of its id ends with it.
    pub record: UsageRecord,
    /// The messages, put into the outbox with the record.
    pub messages: Vec<OutboxMessage>,
}

/// Holds the money of requests and charges them.
///
/// # Contract
/// - Over all processes, the spent and the held amount together do not exceed a limit. Money counts in every account of
///   [`super::Payer::accounts`], in total and in the day, week and month of the hold. A payer whose key or workspace never
///   existed is [`StoreError::Corrupt`].
/// - When `reserve` returns a hold, a process that dies leaves enough behind for the request to be accounted for.
/// - When `settle` returns, the charge survives the death of the process. Its record may reach the store a moment later.
///   A charge that `settle` could not write is written later by the ledger itself: the caller gets the error and does
///   not try again. An id is charged once, however often it is settled. A record of the outcome `abandoned` is replaced
///   by the real one, and its cost with it. A key or workspace that was deleted in between is charged all the same.
/// - A negative amount is [`StoreError::Corrupt`].
#[cfg_attr(feature = "mock", mockall::automock)]
#[async_trait]
pub trait Ledger: Send + Sync {
    /// Holds the money of a request, or returns the limit that leaves no room. An id that has a hold returns that hold.
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

    /// Releases a hold, because nothing was sent. An id without a hold changes nothing.
    async fn release(&self, id: &DecisionId) -> Result<(), StoreError>;
}
