//! What use cases need from the machine they run on.

use std::time::Duration;

use async_trait::async_trait;
use chrono::{DateTime, Utc};

use crate::api_key::ApiKeySecret;
use crate::error::StoreError;
use crate::ids::{DecisionId, DestinationId, DocumentId, GuardrailId, OutboxId, RequestId, WorkspaceId};

/// Tells the time.
#[cfg_attr(feature = "mock", mockall::automock)]
pub trait Clock: Send + Sync {
    /// The wall clock, in UTC.
    fn now(&self) -> DateTime<Utc>;

    /// Time since some fixed moment of this process. MUST never go backwards; for durations and deadlines.
    fn monotonic(&self) -> Duration;
}

/// Waits.
#[cfg_attr(feature = "mock", mockall::automock)]
#[async_trait]
pub trait Timer: Send + Sync {
    /// Returns after `duration`, not before.
    async fn sleep(&self, duration: Duration);
}

/// Makes ids. Ids MUST be unique over all processes and SHOULD sort by creation time (UUIDv7).
#[cfg_attr(feature = "mock", mockall::automock)]
pub trait IdGenerator: Send + Sync {
    /// A fresh workspace id.
    fn workspace_id(&self) -> WorkspaceId;
    /// A fresh guardrail id.
    fn guardrail_id(&self) -> GuardrailId;
    /// A fresh document id.
    fn document_id(&self) -> DocumentId;
    /// A fresh decision id.
    fn decision_id(&self) -> DecisionId;
    /// A fresh request id.
    fn request_id(&self) -> RequestId;
    /// A fresh id of a destination.
    fn destination_id(&self) -> DestinationId;
    /// A fresh id of a message.
    fn outbox_id(&self) -> OutboxId;
}

/// Draws random numbers, for spreading load; never for secrets. A seeded one makes routing repeatable.
#[cfg_attr(feature = "mock", mockall::automock)]
pub trait Randomness: Send + Sync {
    /// Uniform over all 64 bits.
    fn next_u64(&self) -> u64;
}

/// Makes secrets from the operating system's cryptographic random source.
#[cfg_attr(feature = "mock", mockall::automock)]
pub trait SecretGenerator: Send + Sync {
    /// A fresh API key with 256 random bits.
    ///
    /// # Errors
    /// The random source failed; no key may be made then.
    fn api_key_secret(&self) -> Result<ApiKeySecret, StoreError>;
}

/// Tells whether a store answers now: for readiness probes and for `doctor`.
#[cfg_attr(feature = "mock", mockall::automock)]
#[async_trait]
pub trait HealthProbe: Send + Sync {
    /// What is probed, in a word: `database`, `blobs`.
    fn name(&self) -> &'static str;

    /// Ends well where the store answers. MUST end within two seconds.
    async fn probe(&self) -> Result<(), StoreError>;
}
