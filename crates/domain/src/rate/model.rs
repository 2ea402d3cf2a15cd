//! Rate limits, and the rejection by one.

use std::num::NonZeroU32;
use std::time::Duration;

use thiserror::Error;

use crate::error::ErrorKind;

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

/// The scope of a rate limit.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum RateScope {
    /// One key.
    Key,
    /// One workspace, over all of its keys.
    Workspace,
}

impl RateScope {
    /// Returns the name on all interfaces.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Key => "key",
            Self::Workspace => "workspace",
        }
    }
}

/// The unit of a rate limit.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum RateUnit {
    /// Requests.
    Requests,
    /// Tokens.
    Tokens,
}

impl RateUnit {
    /// Returns the name on all interfaces.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Requests => "requests",
            Self::Tokens => "tokens",
        }
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
