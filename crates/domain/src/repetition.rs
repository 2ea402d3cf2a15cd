//! Repeated requests: a request with an `Idempotency-Key` takes effect once, and its repetitions get its response.

use std::str::FromStr;

use async_trait::async_trait;
use chrono::{DateTime, TimeDelta, Utc};

use crate::error::StoreError;
use crate::version::Version;

/// The time for which a request is stored.
pub const REPETITION_KEPT: TimeDelta = TimeDelta::hours(24);

/// A key that is not 1 to 255 visible ASCII characters.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error("Idempotency-Key must be 1 to 255 visible ASCII characters")]
pub struct InvalidIdempotencyKey;

/// A caller's `Idempotency-Key`: 1 to 255 visible ASCII characters.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub struct IdempotencyKey(String);

text_access!(IdempotencyKey);

impl FromStr for IdempotencyKey {
    type Err = InvalidIdempotencyKey;

    fn from_str(text: &str) -> Result<Self, InvalidIdempotencyKey> {
        let fits = (1..=255).contains(&text.len()) && text.bytes().all(|b| b.is_ascii_graphic());
        if fits { Ok(Self(text.to_owned())) } else { Err(InvalidIdempotencyKey) }
    }
}

/// The scope of an idempotency key: keys of other callers and routes are unrelated.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub struct RepetitionScope {
    /// The name of the actor, such as `key:<id>`.
    pub caller: String,
    /// Method and pattern of the route.
    pub route: String,
    /// The caller's key.
    pub key: IdempotencyKey,
}

/// A request that can be repeated.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Repetition {
    /// The scope.
    pub scope: RepetitionScope,
    /// SHA-256 over path, query and body. A request with another fingerprint is no repetition.
    pub fingerprint: [u8; 32],
}

/// The stored response to a request.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum StoredResponse {
    /// A response that is sent again.
    Content {
        /// The HTTP status.
        status: u16,
        /// The body, byte for byte. It MUST NOT contain a secret.
        body: String,
        /// The version of the record in the body.
        version: Option<Version>,
    },
    /// A response that contained a secret, which is never stored.
    Secret {
        /// The id of the record with the secret.
        id: String,
    },
}

/// A request that succeeded, with its response.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct StoredRepetition {
    /// The request.
    pub request: Repetition,
    /// Its response.
    pub response: StoredResponse,
}

/// Stores requests. Repositories store them with the audit entries of their changes
/// ([`crate::audit::AuditDraft::repetition`]), or with labels.
///
/// # Contract
/// - A change whose entry has a stored request MUST store it in its own transaction. If a request of this scope is
///   stored already, the change, or `store`, MUST fail with [`StoreError::Repeated`] and change nothing, also when both
///   run at once.
/// - A request older than [`REPETITION_KEPT`] does not count as stored.
#[cfg_attr(feature = "mock", mockall::automock)]
#[async_trait]
pub trait IdempotentRequests: Send + Sync {
    /// Returns the stored request of this scope.
    async fn find(&self, scope: &RepetitionScope) -> Result<Option<StoredRepetition>, StoreError>;

    /// Stores a request that changed nothing.
    async fn store(&self, stored: &StoredRepetition) -> Result<(), StoreError>;

    /// Removes up to `limit` requests that were stored before `before`, oldest first. Returns their number.
    async fn prune(&self, before: DateTime<Utc>, limit: u64) -> Result<u64, StoreError>;
}
