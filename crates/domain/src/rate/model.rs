//! Limits of rates, and a refusal by one.

use std::num::NonZeroU32;
use std::time::Duration;

/// What may happen in a minute; `None` is no limit.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct RateLimits {
    /// Requests, at least one.
    pub requests_per_minute: Option<u32>,
    /// Tokens in and out, at least one.
    pub tokens_per_minute: Option<u32>,
}

impl RateLimits {
    /// The limit of one unit; zero counts as one.
    pub fn of(&self, unit: RateUnit) -> Option<NonZeroU32> {
        let limit = match unit {
            RateUnit::Requests => self.requests_per_minute,
            RateUnit::Tokens => self.tokens_per_minute,
        };
        limit.map(|limit| NonZeroU32::new(limit).unwrap_or(NonZeroU32::MIN))
    }

    /// True where nothing is limited.
    pub fn is_none(&self) -> bool {
        self.requests_per_minute.is_none() && self.tokens_per_minute.is_none()
    }

    /// These, and those of `defaults` where these say nothing.
    #[must_use]
    pub fn or(self, defaults: Self) -> Self {
        Self {
            requests_per_minute: self.requests_per_minute.or(defaults.requests_per_minute),
            tokens_per_minute: self.tokens_per_minute.or(defaults.tokens_per_minute),
        }
    }
}

/// The limits of callers that have none of their own.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct DefaultRates {
    /// Of each key.
    pub key: RateLimits,
    /// Of each workspace, over all of its keys.
    pub workspace: RateLimits,
}

/// Whose rate it is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum RateScope {
    /// The key's.
    Key,
    /// The workspace's, over all of its keys.
    Workspace,
}

impl RateScope {
    /// Its name on every surface.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Key => "key",
            Self::Workspace => "workspace",
        }
    }
}

/// What is counted.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum RateUnit {
    /// Requests.
    Requests,
    /// Tokens.
    Tokens,
}

impl RateUnit {
    /// Its name on every surface.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Requests => "requests",
            Self::Tokens => "tokens",
        }
    }
}

/// How a caller stands with a rate that refused it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct RateLimited {
    /// Whose rate.
    pub scope: RateScope,
    /// Of what.
    pub unit: RateUnit,
    /// So many a minute.
    pub limit: u32,
    /// So many could still be taken; fewer than were wanted.
    pub remaining: u32,
    /// How long until the same request would be let through; more than zero.
    pub retry_after: Duration,
}
