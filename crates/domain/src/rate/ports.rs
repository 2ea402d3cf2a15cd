//! The rate limiter.

use async_trait::async_trait;

use super::{RateLimitError, RateLimits};
use crate::ids::{ApiKeyId, WorkspaceId};

/// The caller of a request and its rate limits.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct RateSubject {
    /// The key.
    pub api_key: ApiKeyId,
    /// The key's limits, with defaults applied.
    pub key: RateLimits,
    /// The workspace and its limits; `None` for management keys.
    pub workspace: Option<(WorkspaceId, RateLimits)>,
}

/// Limits the rates of callers with evenly filling token buckets (the generic cell rate algorithm).
///
/// # Contract
/// - MUST be almost free for a subject without limits. Only a limiter that replicas share does I/O; it MUST bound the
///   time of each call, and MUST NOT reject by a limit that it could not count.
/// - A caller below its limits is never rejected. The limits apply per process, or to all processes that share the
///   limiter.
/// - All limits of a subject are checked before any of them counts, and a rejected request counts nowhere.
/// - Limits may change between calls; taken units stay taken.
#[cfg_attr(feature = "mock", mockall::automock)]
#[async_trait]
pub trait RateLimiter: Send + Sync {
    /// Counts one request.
    ///
    /// # Errors
    /// Returns the limit with the longest wait. After that time the same request is accepted, unless others came first.
    async fn count_request(&self, subject: &RateSubject) -> Result<(), RateLimitError>;

    /// Takes tokens in advance for a counted request. If they are rejected, the request is not counted any more. More
    /// than a minute's limit is accepted if the bucket is full.
    ///
    /// # Errors
    /// Fails like [`Self::count_request`].
    async fn take_tokens(&self, subject: &RateSubject, tokens: u64) -> Result<(), RateLimitError>;

    /// Corrects tokens taken in advance to the tokens really used. It releases the rest, or adds the difference as a
    /// debt of at most one hour of the limit. It returns at once and MAY take effect later.
    fn correct_tokens(&self, subject: &RateSubject, taken: u64, used: u64);
}
