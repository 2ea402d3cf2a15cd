//! A fake of the rate limiter.

use std::collections::HashMap;
use std::num::NonZeroU32;
use std::sync::{Arc, Mutex};
use std::time::Duration;

use async_trait::async_trait;

use super::FixedClock;
use super::system::lock;
use crate::ids::{ApiKeyId, WorkspaceId};
use crate::rate::{Gcra, RateLimitError, RateLimited, RateLimiter, RateScope, RateSubject, RateUnit};
use crate::system::Clock;

/// A rate limiter with one lock, which forgets nothing. Clones share the counts.
#[derive(Debug, Clone)]
pub struct MemoryRateLimiter {
    clock: FixedClock,
    buckets: Arc<Mutex<HashMap<Bucket, Gcra>>>,
}

/// The limited unit of a key or of a workspace.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
enum Bucket {
    KeyRequests(ApiKeyId),
    KeyTokens(ApiKeyId),
    WorkspaceRequests(WorkspaceId),
    WorkspaceTokens(WorkspaceId),
}

/// The limits of a subject for one unit.
fn limits(subject: &RateSubject, unit: RateUnit) -> Vec<(RateScope, Bucket, NonZeroU32)> {
    let key = match unit {
        RateUnit::Requests => Bucket::KeyRequests(subject.api_key),
        RateUnit::Tokens => Bucket::KeyTokens(subject.api_key),
    };
    let of_key = subject.key.for_unit(unit).map(|limit| (RateScope::Key, key, limit));
    let of_workspace = subject.workspace.and_then(|(id, limits)| {
        let workspace = match unit {
            RateUnit::Requests => Bucket::WorkspaceRequests(id),
            RateUnit::Tokens => Bucket::WorkspaceTokens(id),
        };
        limits.for_unit(unit).map(|limit| (RateScope::Workspace, workspace, limit))
    });
    of_key.into_iter().chain(of_workspace).collect()
}

impl MemoryRateLimiter {
    /// Creates a limiter without counts.
    pub fn new(clock: FixedClock) -> Self {
        Self { clock, buckets: Arc::default() }
    }

    fn take(&self, subject: &RateSubject, unit: RateUnit, amount: u64) -> Result<(), RateLimited> {
        let (now, mut buckets) = (self.clock.monotonic(), lock(&self.buckets));
        let limits = limits(subject, unit);
        let rejections = limits.iter().filter_map(|(scope, bucket, limit)| {
            let bucket = buckets.get(bucket).copied().unwrap_or_default();
            let retry_after = bucket.check(*limit, amount, now).err()?;
            let remaining = bucket.remaining(*limit, now);
            Some(RateLimited { scope: *scope, unit, limit: limit.get(), remaining, retry_after })
        });
        if let Some(rejected) = rejections.max_by_key(|rejected| rejected.retry_after) {
            return Err(rejected);
        }
        for (_, bucket, limit) in limits {
            buckets.entry(bucket).or_default().take(limit, amount, now);
        }
        Ok(())
    }

    fn correct(&self, subject: &RateSubject, unit: RateUnit, taken: u64, used: u64) {
        let (now, mut buckets): (Duration, _) = (self.clock.monotonic(), lock(&self.buckets));
        for (_, bucket, limit) in limits(subject, unit) {
            buckets.entry(bucket).or_default().correct(limit, taken, used, now);
        }
    }
}

#[async_trait]
impl RateLimiter for MemoryRateLimiter {
    async fn count_request(&self, subject: &RateSubject) -> Result<(), RateLimitError> {
        Ok(self.take(subject, RateUnit::Requests, 1)?)
    }

    async fn take_tokens(&self, subject: &RateSubject, tokens: u64) -> Result<(), RateLimitError> {
        let taken = self.take(subject, RateUnit::Tokens, tokens);
        Ok(taken.inspect_err(|_| self.correct(subject, RateUnit::Requests, 1, 0))?)
    }

    fn correct_tokens(&self, subject: &RateSubject, taken: u64, used: u64) {
        self.correct(subject, RateUnit::Tokens, taken, used);
    }
}

#[cfg(test)]
mod tests {
    use std::thread;

    use futures_util::FutureExt as _;

    use super::*;
    use crate::rate::RateLimits;
    use crate::testing::SequentialIds;

    #[test]
    fn threads_never_exceed_the_limit() {
        let limiter = MemoryRateLimiter::new(FixedClock::default());
        let limits = RateLimits { requests_per_minute: Some(60), tokens_per_minute: None };
        let workspace = Some((WorkspaceId::from_uuid(SequentialIds::uuid(1)), limits));
        let subject = RateSubject { api_key: SequentialIds::key(1), key: RateLimits::default(), workspace };
        let count = || (0..100).filter(|_| limiter.count_request(&subject).now_or_never() == Some(Ok(()))).count();
        let accepted: usize = thread::scope(|scope| {
            let threads: Vec<_> = (0..4).map(|_| scope.spawn(count)).collect();
            threads.into_iter().map(|thread| thread.join().unwrap()).sum()
        });
        assert_eq!(accepted, 60);
    }
}
