//! Who counts.

use super::{RateLimited, RateLimits};
use crate::ids::{ApiKeyId, WorkspaceId};

/// Whose requests are counted, and by which limits.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct RateSubject {
    /// The key.
    pub api_key: ApiKeyId,
    /// The key's limits, defaults filled in.
    pub key: RateLimits,
    /// Its workspace and the workspace's limits; management keys have none.
    pub workspace: Option<(WorkspaceId, RateLimits)>,
}

/// Limits how often and how much callers may ask, by token buckets that fill evenly (the generic cell rate algorithm).
///
/// # Contract
/// - MUST NOT block or do I/O, and costs next to nothing where a subject has no limits.
/// - A caller that stays below its limits is never refused; the limits are those of one process.
/// - All limits of a subject are looked at before any of them counts, and a request that is refused counts nowhere.
/// - Limits may be others at each call; what was taken stays taken.
#[cfg_attr(feature = "mock", mockall::automock)]
pub trait RateLimiter: Send + Sync {
    /// Counts one request, or says which limit refuses it.
    ///
    /// # Errors
    /// The limit that has to be waited for the longest: after that time the same request is let through, unless others
    /// were meanwhile.
    fn request(&self, subject: &RateSubject) -> Result<(), RateLimited>;

    /// Takes so many tokens in advance for a request that was counted, or says which limit refuses them; the request
    /// then does not count any more. More than a whole minute's worth is let through where the bucket is full.
    ///
    /// # Errors
    /// As of [`Self::request`].
    fn tokens(&self, subject: &RateSubject, tokens: u64) -> Result<(), RateLimited>;

    /// What was taken in advance turned out to be `used`: the rest is given back, or what is lacking is owed, an
    /// hour's worth at most.
    fn correct(&self, subject: &RateSubject, taken: u64, used: u64);
}
