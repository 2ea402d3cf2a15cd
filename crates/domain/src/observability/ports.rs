//! Where destinations and messages are kept, how messages travel, and who measures.

use std::time::Duration;

use async_trait::async_trait;
use chrono::{DateTime, Utc};

use super::{Destination, DueMessage, OutboxMessage, OutboxStanding};
use crate::audit::AuditDraft;
use crate::budget::BudgetScope;
use crate::error::StoreError;
use crate::ids::{DestinationId, OutboxId, WorkspaceId};
use crate::usage::UsageRecord;

/// Keeps destinations.
///
/// # Contract
/// - Every method is one transaction; those that change something write their audit entry in it and raise the change
///   feed's counter `observability`.
#[cfg_attr(feature = "mock", mockall::automock)]
#[async_trait]
pub trait DestinationRepository: Send + Sync {
    /// Adds a destination, unless the workspace has `most` of its kind already; false then. A workspace that does not
    /// exist is false as well.
    async fn insert(&self, destination: &Destination, most: u64, audit: &AuditDraft) -> Result<bool, StoreError>;

    /// Replaces a destination; false where it is not there.
    async fn update(&self, destination: &Destination, audit: &AuditDraft) -> Result<bool, StoreError>;

    /// Deletes a destination with what waits for it; false where it is not there.
    async fn delete(&self, id: DestinationId, audit: &AuditDraft) -> Result<bool, StoreError>;

    /// One destination.
    async fn find(&self, id: DestinationId) -> Result<Option<Destination>, StoreError>;

    /// Of one workspace, or with `None` all of them; oldest first.
    async fn list(&self, workspace_id: Option<WorkspaceId>) -> Result<Vec<Destination>, StoreError>;
}

/// Messages that wait for delivery. They are put there by [`crate::budget::Ledger::settle`].
///
/// # Contract
/// - A message that was taken is not given to anybody else until `lease` is over: whoever dies with it loses nothing.
#[cfg_attr(feature = "mock", mockall::automock)]
#[async_trait]
pub trait Outbox: Send + Sync {
    /// Up to `limit` messages that are due at `now`, the oldest first, at most `per_destination` of one destination.
    async fn take(
        &self,
        now: DateTime<Utc>,
        lease: Duration,
        limit: u64,
        per_destination: u64,
    ) -> Result<Vec<DueMessage>, StoreError>;

    /// They were delivered.
    async fn delivered(&self, ids: &[OutboxId]) -> Result<(), StoreError>;

    /// It was not; it is due again at `next`, or never where that is `None`. `reason` is a sentence of our own.
    async fn failed(&self, id: &OutboxId, next: Option<DateTime<Utc>>, reason: &str) -> Result<(), StoreError>;

    /// How it stands.
    async fn standing(&self) -> Result<OutboxStanding, StoreError>;

    /// Makes the dead letters of a destination (of all with `None`) due again; how many.
    async fn revive(&self, destination: Option<DestinationId>, now: DateTime<Utc>) -> Result<u64, StoreError>;

    /// Removes dead letters older than `before`, up to `limit`; how many.
    async fn prune(&self, before: DateTime<Utc>, limit: u64) -> Result<u64, StoreError>;
}

/// Why a delivery failed.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{reason}")]
pub struct DeliveryFailed {
    /// A sentence of our own; nothing of the receiver's.
    pub reason: String,
    /// True where trying again is pointless: the address is not allowed.
    pub for_good: bool,
    /// How long the receiver asked to wait.
    pub retry_after: Option<Duration>,
}

/// Brings messages to their receivers.
///
/// # Contract
/// - The target is checked after its name is resolved: loopback, private, link-local and metadata addresses are
///   refused unless the operator allows them. Redirects are never followed.
/// - MUST end within its own deadline.
#[cfg_attr(feature = "mock", mockall::automock)]
#[async_trait]
pub trait MessageSender: Send + Sync {
    /// Delivers one message. With `test`, it is a test of the connection: any 2xx or a 400 will do.
    async fn send(&self, to: &Destination, message: &OutboxMessage, test: bool) -> Result<(), DeliveryFailed>;
}

/// Counts what happens, for the operator. Labels MUST come from configuration or from fixed lists, never from a
/// caller's text.
#[cfg_attr(feature = "mock", mockall::automock)]
pub trait Meter: Send + Sync {
    /// A Decisions request was charged. Its attempts are in the record.
    fn settled(&self, record: &UsageRecord);

    /// Money was reserved, or refused by a limit of that scope; the time it took is that of the store.
    fn reserved(&self, refused_by: Option<BudgetScope>, took: Duration);

    /// A guardrail blocked, redacted or flagged something: `action`.
    fn filtered(&self, action: &'static str);

    /// A charge went beyond what was reserved for it.
    fn beyond_bound(&self);
}

/// Counts nothing: for embedding and for tests.
#[derive(Debug, Clone, Copy, Default)]
pub struct NoMeter;

impl Meter for NoMeter {
    fn settled(&self, _: &UsageRecord) {}
    fn reserved(&self, _: Option<BudgetScope>, _: Duration) {}
    fn filtered(&self, _: &'static str) {}
    fn beyond_bound(&self) {}
}
