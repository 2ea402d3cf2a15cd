//! Where destinations and messages are kept, how messages travel, and who measures.

use std::sync::Arc;
use std::time::Duration;

use async_trait::async_trait;
use chrono::{DateTime, Utc};

use super::{DeadLetterRetry, Delivery, Destination, DueMessage, Exchange, OutboxStatus};
use crate::audit::AuditDraft;
use crate::error::StoreError;
use crate::ids::{DestinationId, OutboxId, WorkspaceId};
use crate::json::Json;
use crate::usage::UsageRecord;

/// Keeps destinations.
///
/// # Contract
/// - Every method is one transaction; those that change something write their audit entry in it and
///   [`crate::change_feed::ChangeSubject::Destinations`] to the change feed.
#[cfg_attr(feature = "mock", mockall::automock)]
#[async_trait]
pub trait DestinationRepository: Send + Sync {
    /// Adds a destination, unless the workspace has `most` of its kind already or is not there.
    async fn insert(
        &self,
        destination: &Destination,
        most: u64,
        audit: &AuditDraft,
    ) -> Result<DestinationInsert, StoreError>;

    /// Replaces all but id, workspace, kind and birth of a destination that was last changed at `seen`; false where it
    /// is not there, or was changed since.
    async fn update(
        &self,
        destination: &Destination,
        seen: Option<DateTime<Utc>>,
        audit: &AuditDraft,
    ) -> Result<bool, StoreError>;

    /// Deletes a destination with what waits for it; false where it is not there.
    async fn delete(&self, id: DestinationId, audit: &AuditDraft) -> Result<bool, StoreError>;

    /// One destination.
    async fn find(&self, id: DestinationId) -> Result<Option<Destination>, StoreError>;

    /// Of one workspace, or with `None` all of them; oldest first.
    async fn list(&self, workspace_id: Option<WorkspaceId>) -> Result<Vec<Destination>, StoreError>;
}

/// What became of a destination that was to be added.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum DestinationInsert {
    /// It is there.
    Added,
    /// The workspace has as many of its kind as it may have.
    TooMany,
    /// There is no such workspace.
    UnknownWorkspace,
}

/// The destinations of every workspace, at hand without waiting; at most a second older than the store.
pub trait Destinations: Send + Sync {
    /// Those of a workspace; `None` where it has none.
    fn of(&self, workspace_id: WorkspaceId) -> Option<Arc<[Destination]>>;
}

/// Encodes the trace of a request as its destinations receive it.
///
/// # Contract
/// - It MUST be a function of its arguments: it does no I/O, and the same request encoded again is the same spans.
/// - A private trace MUST NOT contain anything of the input, the answers and the caller's `session_id`, `user` and
///   `trace`, not even in an id.
/// - Any other trace MUST contain the labels of [`Exchange::labels`] and no others.
#[cfg_attr(feature = "mock", mockall::automock)]
#[expect(clippy::elidable_lifetime_names, reason = "mockall needs the lifetime's name")]
pub trait TraceEncoder: Send + Sync {
    /// Encodes the trace of one request with its input, answers and labels.
    fn encode<'a>(&self, record: &UsageRecord, exchange: &Exchange<'a>) -> Json;

    /// Encodes the trace of one request without its input, answers and labels.
    fn encode_private(&self, record: &UsageRecord) -> Json;
}

/// Messages that wait for delivery. They are put there by [`crate::budget::Ledger::settle`].
///
/// # Contract
/// - A message that was taken is not given to anybody else until `lease` is over, whoever takes at the same time, and
///   is then given out again: whoever dies with it loses nothing.
/// - What concerns one destination costs no more for what waits for others.
#[cfg_attr(feature = "mock", mockall::automock)]
#[async_trait]
pub trait Outbox: Send + Sync {
    /// Destinations that messages are due for at `now`, in any order, without those of `except`. Costs one read where
    /// there are none.
    async fn due(&self, now: DateTime<Utc>, except: &[DestinationId]) -> Result<Vec<DestinationId>, StoreError>;

    /// Takes messages of one destination that are due at `now`, those that have been due longest first: up to `most`,
    /// and no more than have `bytes` of payload together, but one at least.
    async fn take(
        &self,
        destination: DestinationId,
        now: DateTime<Utc>,
        lease: Duration,
        most: u64,
        bytes: usize,
    ) -> Result<Vec<DueMessage>, StoreError>;

    /// They were delivered.
    async fn delivered(&self, ids: &[OutboxId]) -> Result<(), StoreError>;

    /// A delivery of them failed. They are due again at `next`; where that is `None` they never are and become dead
    /// letters. `reason` is a sentence of our own.
    async fn failed(&self, ids: &[OutboxId], next: Option<DateTime<Utc>>, reason: &str) -> Result<(), StoreError>;

    /// They were taken and not sent: they are due again at `next`, and no failure is counted.
    async fn postponed(&self, ids: &[OutboxId], next: DateTime<Utc>) -> Result<(), StoreError>;

    /// Removes what waits for a destination that is not there and was put there before `before`; how many.
    async fn discard(&self, destination: DestinationId, before: DateTime<Utc>) -> Result<u64, StoreError>;

    /// How it stands.
    async fn status(&self) -> Result<OutboxStatus, StoreError>;

    /// Makes dead letters due again at `now` as if they had never failed; how many. Where there are any, the audit entry
    /// of [`DeadLetterRetry::audited`] is written in the same transaction.
    async fn retry_dead_letters(&self, retry: &DeadLetterRetry, now: DateTime<Utc>) -> Result<u64, StoreError>;

    /// Removes dead letters that were put there before `before`, up to `limit`; how many.
    async fn prune(&self, before: DateTime<Utc>, limit: u64) -> Result<u64, StoreError>;
}

/// Why a delivery failed.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{reason}")]
pub struct DeliveryError {
    /// A sentence of our own, without its full stop; nothing of the receiver's.
    pub reason: String,
    /// What it means for the next attempt.
    pub kind: DeliveryErrorKind,
    /// How long the receiver asked to wait.
    pub retry_after: Option<Duration>,
}

/// What a failed delivery means for the next attempt.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum DeliveryErrorKind {
    /// The receiver is away or busy: whatever else is sent now fails alike.
    Receiver,
    /// The receiver will not have this body; another one may do.
    Body,
    /// The address is not allowed, or is none: trying again is pointless until the destination is changed.
    Address,
}

/// Brings messages to their receivers.
///
/// # Contract
/// - The target is checked after its name is resolved: loopback, private, link-local and metadata addresses are
///   refused unless the operator allows them. Redirects are never followed.
/// - The traces of a delivery are sent as one body, in their order.
/// - MUST end within its own deadline.
#[cfg_attr(feature = "mock", mockall::automock)]
#[async_trait]
pub trait MessageSender: Send + Sync {
    /// Sends a delivery to a destination.
    async fn send(&self, to: &Destination, delivery: &Delivery) -> Result<(), DeliveryError>;
}
