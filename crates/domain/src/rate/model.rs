//! Rate limits, the rejection by one, and the limiter.

use std::num::NonZeroU32;
use std::sync::Arc;
use std::sync::atomic::{AtomicU32, Ordering};
use std::time::Duration;

use async_trait::async_trait;
use thiserror::Error;

use crate::error::ErrorKind;
use crate::ids::{ApiKeyId, WorkspaceId};

/// Limits per minute; `None` is no limit.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct RateLimits {
    /// Requests, at least one.
    pub requests_per_minute: Option<u32>,
    /// Input and output tokens, at least one.
    pub tokens_per_minute: Option<u32>,
}

impl RateLimits {
    /// Returns the limit of a unit; zero counts as one.
    pub fn for_unit(&self, unit: RateUnit) -> Option<NonZeroU32> {
        let limit = match unit {
            RateUnit::Requests => self.requests_per_minute,
            RateUnit::Tokens => self.tokens_per_minute,
        };
        limit.map(|limit| NonZeroU32::new(limit).unwrap_or(NonZeroU32::MIN))
    }

    /// Returns true if nothing is limited.
    pub fn is_none(&self) -> bool {
        self.requests_per_minute.is_none() && self.tokens_per_minute.is_none()
    }

    /// Returns these limits, with `defaults` for the missing ones.
    #[must_use]
    pub fn or(self, defaults: Self) -> Self {
        Self {
            requests_per_minute: self.requests_per_minute.or(defaults.requests_per_minute),
            tokens_per_minute: self.tokens_per_minute.or(defaults.tokens_per_minute),
        }
    }
}

/// The default limits of keys and workspaces without limits of their own.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct DefaultRates {
    /// The limits of each key.
    pub key: RateLimits,
    /// The limits of each workspace, over all of its keys.
    pub workspace: RateLimits,
}

named_enum! {
    /// The scope of a rate limit.
    #[derive(Debug, Clone, Copy, PartialEq, Eq)]
    pub enum RateScope {
        /// One key.
        Key = "key",
        /// One workspace, over all of its keys.
        Workspace = "workspace",
    }
}

named_enum! {
    /// The unit of a rate limit.
    #[derive(Debug, Clone, Copy, PartialEq, Eq)]
    pub enum RateUnit {
        /// Requests.
        Requests = "requests",
        /// Tokens.
        Tokens = "tokens",
    }
}

/// The rejection of a request by a rate limit.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct RateLimited {
    /// The scope of the limit.
    pub scope: RateScope,
    /// The unit of the limit.
    pub unit: RateUnit,
    /// The limit per minute.
    pub limit: u32,
    /// The units that are still available; fewer than the request needs.
    pub remaining: u32,
    /// The time until the same request would be accepted; above zero.
    pub retry_after: Duration,
}

/// A request that a rate limiter does not accept.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Error)]
pub enum RateLimitError {
    /// A limit is exceeded.
    #[error("the rate limit of the {} is exceeded", .0.scope.as_str())]
    Exceeded(RateLimited),
    /// The shared counts are unavailable, and the configuration accepts no request without them.
    #[error("the shared rate limits are unavailable")]
    Unavailable {
        /// The time after which a retry makes sense.
        retry_after: Duration,
    },
}

impl RateLimitError {
    /// Returns the meaning of the error.
    pub fn kind(&self) -> ErrorKind {
        match self {
            Self::Exceeded(_) => ErrorKind::RateLimited,
            Self::Unavailable { .. } => ErrorKind::Unavailable,
        }
    }

    /// Returns the exceeded limit.
    pub fn exceeded(self) -> Option<RateLimited> {
        match self {
            Self::Exceeded(limited) => Some(limited),
            Self::Unavailable { .. } => None,
        }
    }
}

impl From<RateLimited> for RateLimitError {
    fn from(limited: RateLimited) -> Self {
        Self::Exceeded(limited)
    }
}

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

/// The number of live replicas, over which the rate limits are divided. Clones share the number.
#[derive(Debug, Clone)]
pub struct ReplicaCount(Arc<AtomicU32>);

impl Default for ReplicaCount {
    /// Returns the count of a single replica.
    fn default() -> Self {
        Self(Arc::new(AtomicU32::new(1)))
    }
}

impl ReplicaCount {
    /// Sets the number of live replicas; zero counts as one.
    pub fn set(&self, replicas: usize) {
        self.0.store(u32::try_from(replicas).unwrap_or(u32::MAX).max(1), Ordering::Relaxed);
    }

    /// Returns the number of live replicas.
    pub fn get(&self) -> u32 {
        self.0.load(Ordering::Relaxed)
    }

    /// Returns the share of one replica in a limit: at least one. All shares together do not exceed a limit that is at
    /// least the number of replicas.
    pub fn share_of(&self, limit: NonZeroU32) -> NonZeroU32 {
        NonZeroU32::new(limit.get() / self.get().max(1)).unwrap_or(NonZeroU32::MIN)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn share_is_the_quotient_and_at_least_one() {
        let replicas = ReplicaCount::default();
        let share = |limit: u32| replicas.share_of(NonZeroU32::new(limit).unwrap()).get();
        assert_eq!((share(1), share(7), share(u32::MAX)), (1, 7, u32::MAX));
        replicas.clone().set(3);
        assert_eq!((share(1), share(2), share(3), share(7), share(600)), (1, 1, 1, 2, 200));
        replicas.set(0);
        assert_eq!(share(7), 7, "a replica that counts is live");
        replicas.set(usize::MAX);
        assert_eq!(share(u32::MAX), 1);
    }
}
