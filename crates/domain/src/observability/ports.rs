//! The ports of observability: stores of destinations and messages, and the sender.

use std::sync::Arc;
use std::time::Duration;

use async_trait::async_trait;
use chrono::{DateTime, Utc};

use super::{DeadLetterRetry, Delivery, Destination, DueMessage, NamedDestination, OutboxStatus};
use crate::audit::AuditDraft;
use crate::authority::ManagementScope;
use crate::budget::BudgetAlert;
use crate::decision::TraceContent;
use crate::error::StoreError;
use crate::ids::{DestinationId, OutboxId, WorkspaceId};
use crate::json::Json;
use crate::usage::UsageRecord;

/// Stores destinations.
///
/// # Contract
/// - Every method is one transaction; those that change something write their audit entry in it and
///   [`crate::change_feed::ChangeSubject::Destinations`] to the change feed.
#[cfg_attr(feature = "mock", mockall::automock)]
#[async_trait]
pub trait DestinationRepository: Send + Sync {
    /// Adds a destination, unless its workspace has `most` of its kind already or does not exist.
    async fn insert(
        &self,
        destination: &Destination,
        most: u64,
        audit: &AuditDraft,
    ) -> Result<DestinationInsert, StoreError>;

    /// Replaces all but id, workspace, kind and creation time of a destination that was last changed at `seen`, and
    /// resumes it as [`Self::resume`] does. Returns false if it does not exist, or was changed since.
    async fn update(
        &self,
        destination: &Destination,
        seen: Option<DateTime<Utc>>,
        audit: &AuditDraft,
    ) -> Result<bool, StoreError>;

    /// Deletes a destination that was last changed at `seen`, and its pending messages. Returns false if it does not
    /// exist, or was changed since.
    async fn delete(
        &self,
        id: DestinationId,
        seen: Option<DateTime<Utc>>,
        audit: &AuditDraft,
    ) -> Result<bool, StoreError>;

    /// Ends the pause of a destination that was reached, and makes its messages that failed due now. It writes
    /// neither an audit entry nor a change.
    async fn resume(&self, id: DestinationId) -> Result<(), StoreError>;

    /// Finds a destination.
    async fn find(&self, id: DestinationId) -> Result<Option<Destination>, StoreError>;

    /// Returns a page of the destinations within a scope, oldest first, and their number.
    async fn page(
        &self,
        within: &ManagementScope,
        offset: u64,
        limit: u64,
    ) -> Result<(Vec<Destination>, u64), StoreError>;

    /// Lists the destinations of one workspace, or with `None` of all workspaces, without their settings; oldest first. It
    /// needs no encryption key.
    async fn names(&self, workspace_id: Option<WorkspaceId>) -> Result<Vec<NamedDestination>, StoreError>;

    /// Lists the destinations of one workspace, or with `None` of all workspaces; oldest first.
    async fn list(&self, workspace_id: Option<WorkspaceId>) -> Result<Vec<Destination>, StoreError>;
}

/// The result of adding a destination.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum DestinationInsert {
    /// The destination was added.
    Added,
    /// The workspace has the most destinations of this kind.
    TooMany,
    /// The workspace does not exist.
    UnknownWorkspace,
}

/// The destinations of every workspace, in memory; at most a second older than the store.
pub trait Destinations: Send + Sync {
    /// Returns the destinations of a workspace; `None` if it has none.
    fn for_workspace(&self, workspace_id: WorkspaceId) -> Option<Arc<[Destination]>>;
}

/// Encodes traces of requests and budget alerts as destinations receive them.
///
/// # Contract
/// - It MUST be a function of its arguments: it does no I/O, and the same request encoded again is the same spans.
/// - An alert MUST contain no content of requests.
/// - A private trace MUST NOT contain anything of the input, the answers and the caller's `session_id`, `user` and
///   `trace`, not even in an id.
/// - Any other trace MUST contain the labels of [`TraceContent::labels`] and no others.
#[cfg_attr(feature = "mock", mockall::automock)]
#[expect(clippy::elidable_lifetime_names, reason = "mockall needs the lifetime's name")]
pub trait MessageEncoder: Send + Sync {
    /// Encodes the trace of one request with its input, answers and labels.
    fn encode<'a>(&self, record: &UsageRecord, exchange: &TraceContent<'a>) -> Json;

    /// Encodes the trace of one request without its input, answers and labels.
    fn encode_private(&self, record: &UsageRecord) -> Json;

    /// Encodes an alert.
    fn encode_alert(&self, alert: &BudgetAlert) -> Json;
}

/// Stores messages until they are delivered. [`crate::budget::Ledger::settle`] adds them.
///
/// # Contract
/// - A taken message MUST NOT be handed out again before its `lease` ends, also to concurrent takers. Then it is due
///   again, so that a process that dies loses nothing.
/// - The cost of a call for one destination does not depend on the messages of others.
#[cfg_attr(feature = "mock", mockall::automock)]
#[async_trait]
pub trait Outbox: Send + Sync {
    /// Returns the destinations with messages due at `now`, in any order, without those of `except` and those paused at
    /// `now`. Without due messages it costs one read.
    async fn due(&self, now: DateTime<Utc>, except: &[DestinationId]) -> Result<Vec<DestinationId>, StoreError>;

    /// Pauses a destination in every process until `until`, or [`DestinationRepository::resume`], or
    /// [`Self::retry_dead_letters`]. A longer pause stays. A destination that was changed or deleted since it was read
    /// is not paused; the operator's collector, which no store has, always is.
    async fn pause(&self, destination: &Destination, until: DateTime<Utc>) -> Result<(), StoreError>;

    /// Takes messages of one destination that are due at `now`, the longest due first: up to `most`, with up to `bytes`
    /// of payload in total, but at least one.
    async fn take(
        &self,
        destination: DestinationId,
        now: DateTime<Utc>,
        lease: Duration,
        most: u64,
        bytes: usize,
    ) -> Result<Vec<DueMessage>, StoreError>;

    /// Removes delivered messages.
    async fn delivered(&self, ids: &[OutboxId]) -> Result<(), StoreError>;

    /// Records a failed delivery. The messages are due again at `next`, or become dead letters if that is `None`.
    /// `reason` is in our own words.
    async fn failed(&self, ids: &[OutboxId], next: Option<DateTime<Utc>>, reason: &str) -> Result<(), StoreError>;

    /// Makes messages that were taken and not sent due again at `next`, without counting a failure.
    async fn postponed(&self, ids: &[OutboxId], next: DateTime<Utc>) -> Result<(), StoreError>;

    /// Removes pending messages of a deleted destination that were added before `before`. Returns their number.
    async fn discard(&self, destination: DestinationId, before: DateTime<Utc>) -> Result<u64, StoreError>;

    /// Returns the status of the outbox.
    async fn status(&self) -> Result<OutboxStatus, StoreError>;

    /// Ends the pause of a destination, and makes its dead letters and other messages that failed due at `now`,
    /// without failures. Returns their number; `None` if the destination was seen, and was changed or deleted
    /// since. Unless the number is zero, the audit entry of [`DeadLetterRetry::audited`] is written in the same
    /// transaction.
    async fn retry_dead_letters(&self, retry: &DeadLetterRetry, now: DateTime<Utc>) -> Result<Option<u64>, StoreError>;

    /// Removes up to `limit` dead letters that were added before `before`. Returns their number.
    async fn prune(&self, before: DateTime<Utc>, limit: u64) -> Result<u64, StoreError>;
}

/// An error of a delivery.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{reason}")]
pub struct DeliveryError {
    /// The reason in our own words, without text of the destination and without a full stop.
    pub reason: String,
    /// The kind of the error, which decides on the next attempt.
    pub kind: DeliveryErrorKind,
    /// The delay that the destination asked for.
    pub retry_after: Option<Duration>,
}

/// The kind of a delivery error.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum DeliveryErrorKind {
    /// The destination is unreachable or busy: other messages would fail as well.
    Receiver,
    /// The destination rejects this body; another body may be accepted.
    Body,
    /// The address is invalid or not allowed: retries are pointless until the destination is changed.
    Address,
}

/// Sends messages to their destinations.
///
/// # Contract
/// - The address is checked after name resolution: loopback, private, link-local and metadata addresses are rejected
///   unless the operator allows them. Redirects are never followed.
/// - The traces of a delivery are sent as one body, in their order.
/// - MUST end within its own deadline.
#[cfg_attr(feature = "mock", mockall::automock)]
#[async_trait]
pub trait MessageSender: Send + Sync {
    /// Sends a delivery to a destination.
    async fn send(&self, to: &Destination, delivery: &Delivery) -> Result<(), DeliveryError>;
}
