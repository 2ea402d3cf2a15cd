//! Who counts.

use super::{RateLimited, RateLimits};
use crate::api_key::{ApiKeyHash, Principal};
use crate::ids::WorkspaceId;

/// Whose requests are counted, and by which limits.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct RateSubject {
    /// The key.
    pub api_key: ApiKeyHash,
    /// The key's limits, defaults filled in.
    pub key: RateLimits,
    /// Its workspace and the workspace's limits; management keys have none.
    pub workspace: Option<(WorkspaceId, RateLimits)>,
}

impl RateSubject {
    /// A caller, with the operator's defaults for keys and workspaces.
    pub fn of(caller: &Principal, key_defaults: RateLimits, workspace_defaults: RateLimits) -> Self {
        match caller {
            Principal::Inference(key) => Self {
                api_key: key.hash(),
                key: key.rates().or(key_defaults),
                workspace: Some((key.workspace_id(), key.workspace_rates().or(workspace_defaults))),
            },
            Principal::Management(key) => Self { api_key: key.hash(), key: key_defaults, workspace: None },
        }
    }
}

/// Limits how often and how much callers may ask, by token buckets that fill evenly (the generic cell rate algorithm).
///
/// # Contract
/// - MUST NOT block or do I/O.
/// - A caller that stays below its limits is never refused; the limits are those of one process.
/// - A request that is refused counts nowhere.
#[cfg_attr(feature = "mock", mockall::automock)]
pub trait RateLimiter: Send + Sync {
    /// Counts one request, or says which limit refuses it.
    fn request(&self, subject: &RateSubject) -> Result<(), RateLimited>;

    /// Takes so many tokens in advance, or says which limit refuses them. More than a whole minute's worth is let
    /// through where the bucket is full.
    fn tokens(&self, subject: &RateSubject, tokens: u64) -> Result<(), RateLimited>;

    /// What was taken in advance turned out to be `used`: the rest is given back, or what is lacking is owed.
    fn correct(&self, subject: &RateSubject, taken: u64, used: u64);
}
