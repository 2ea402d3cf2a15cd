//! Limits of requests and tokens per minute, counted in this process.

use std::collections::HashMap;
use std::num::NonZeroU32;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use async_trait::async_trait;
use domain::ids::{ApiKeyId, WorkspaceId};
use domain::rate::{
    Gcra, RateLimitError, RateLimited, RateLimiter, RateLimits, RateScope, RateSubject, RateUnit, ReplicaCount,
};
use domain::system::Clock;

/// A rate limiter with state in the memory of this process. Idle states are removed, so that memory follows the callers
/// of the last minute and those with token debt.
///
/// It applies its share of each limit: the limit divided by the number of live replicas.
pub struct LocalRateLimiter {
    clock: Arc<dyn Clock>,
    replicas: ReplicaCount,
    shards: Vec<Mutex<Shard>>,
}

/// Enough shards to keep lock contention between workspaces low.
const SHARDS: usize = 64;
/// Shards with fewer states than this are never swept.
const SWEEP_FROM: usize = 64;

/// The states of some workspaces and all of their keys, so that a request needs one lock.
struct Shard {
    states: HashMap<Owner, State>,
    /// The number of states that triggers a sweep: twice as many as the last sweep left, so that the cost per new state
    /// is constant.
    sweep_at: usize,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
enum Owner {
    Key(ApiKeyId),
    Workspace(WorkspaceId),
}

#[derive(Debug, Clone, Copy, Default)]
struct State {
    requests: Gcra,
    tokens: Gcra,
    /// The time at which the state is the same as a new one.
    idle_at: Duration,
}

impl State {
    fn of(&mut self, unit: RateUnit) -> &mut Gcra {
        match unit {
            RateUnit::Requests => &mut self.requests,
            RateUnit::Tokens => &mut self.tokens,
        }
    }
}

/// A limit of a subject.
struct Limit {
    scope: RateScope,
    owner: Owner,
    /// The configured limit.
    configured: NonZeroU32,
    /// The share of this process.
    per_minute: NonZeroU32,
}

impl LocalRateLimiter {
    /// Creates a limiter that uses the monotonic time of `clock`, for one of `replicas`.
    pub fn new(clock: Arc<dyn Clock>, replicas: ReplicaCount) -> Self {
        let shard = || Mutex::new(Shard { states: HashMap::new(), sweep_at: SWEEP_FROM });
        Self { clock, replicas, shards: (0..SHARDS).map(|_| shard()).collect() }
    }

    /// Returns the limits of one unit: of the key, and of its workspace.
    fn limits(&self, subject: &RateSubject, unit: RateUnit) -> [Option<Limit>; 2] {
        let limit = |scope: RateScope, owner: Owner, limits: RateLimits| {
            let configured = limits.for_unit(unit)?;
            Some(Limit { scope, owner, configured, per_minute: self.replicas.share_of(configured) })
        };
        let of_key = limit(RateScope::Key, Owner::Key(subject.api_key), subject.key);
        let of_workspace =
            subject.workspace.and_then(|(id, limits)| limit(RateScope::Workspace, Owner::Workspace(id), limits));
        [of_key, of_workspace]
    }

    fn count_one(&self, subject: &RateSubject) -> Result<(), RateLimited> {
        self.take(subject, RateUnit::Requests, 1)
    }

    fn take_in_advance(&self, subject: &RateSubject, tokens: u64) -> Result<(), RateLimited> {
        self.take(subject, RateUnit::Tokens, tokens)
            .inspect_err(|_| self.correct_unit(subject, RateUnit::Requests, 1, 0))
    }

    fn shard(&self, subject: &RateSubject) -> Option<MutexGuard<'_, Shard>> {
        // The last bytes of both are practically random.
        let last = match &subject.workspace {
            Some((id, _)) => id.uuid().as_bytes()[15],
            None => subject.api_key.uuid().as_bytes()[15],
        };
        let shard = self.shards.get(usize::from(last) % SHARDS)?;
        // No code under the lock panics; even then the counts would be valid.
        Some(shard.lock().unwrap_or_else(PoisonError::into_inner))
    }

    /// Checks every limit before any of them counts.
    fn take(&self, subject: &RateSubject, unit: RateUnit, amount: u64) -> Result<(), RateLimited> {
        let limits = self.limits(subject, unit);
        if limits.iter().all(Option::is_none) {
            return Ok(());
        }
        let now = self.clock.monotonic();
        let Some(mut shard) = self.shard(subject) else { return Ok(()) };
        let refusals = limits.iter().flatten().filter_map(|limit| shard.refusal(limit, unit, amount, now));
        if let Some(refused) = refusals.max_by_key(|refused| refused.retry_after) {
            return Err(refused);
        }
        for limit in limits.iter().flatten() {
            shard.change(limit, unit, now, |bucket| bucket.take(limit.per_minute, amount, now));
        }
        Ok(())
    }

    fn correct_unit(&self, subject: &RateSubject, unit: RateUnit, taken: u64, used: u64) {
        let limits = self.limits(subject, unit);
        if taken == used || limits.iter().all(Option::is_none) {
            return;
        }
        let now = self.clock.monotonic();
        let Some(mut shard) = self.shard(subject) else { return };
        for limit in limits.iter().flatten() {
            shard.change(limit, unit, now, |bucket| bucket.correct(limit.per_minute, taken, used, now));
        }
    }
}

impl Shard {
    fn refusal(&self, limit: &Limit, unit: RateUnit, amount: u64, now: Duration) -> Option<RateLimited> {
        let mut state = self.states.get(&limit.owner).copied().unwrap_or_default();
        let bucket = state.of(unit);
        let retry_after = bucket.check(limit.per_minute, amount, now).err()?;
        let remaining = bucket.remaining(limit.per_minute, now);
        Some(RateLimited { scope: limit.scope, unit, limit: limit.configured.get(), remaining, retry_after })
    }

    fn change(&mut self, limit: &Limit, unit: RateUnit, now: Duration, change: impl FnOnce(&mut Gcra)) {
        if self.states.len() >= self.sweep_at {
            self.states.retain(|_, state| state.idle_at > now);
            self.sweep_at = (2 * self.states.len()).max(SWEEP_FROM);
            self.states.shrink_to(self.sweep_at);
        }
        let state = self.states.entry(limit.owner).or_default();
        let bucket = state.of(unit);
        change(bucket);
        let idle_at = now.saturating_add(bucket.idle_in(limit.per_minute, now));
        state.idle_at = state.idle_at.max(idle_at);
    }
}

#[async_trait]
impl RateLimiter for LocalRateLimiter {
    async fn count_request(&self, subject: &RateSubject) -> Result<(), RateLimitError> {
        Ok(self.count_one(subject)?)
    }

    async fn take_tokens(&self, subject: &RateSubject, tokens: u64) -> Result<(), RateLimitError> {
        Ok(self.take_in_advance(subject, tokens)?)
    }

    fn correct_tokens(&self, subject: &RateSubject, taken: u64, used: u64) {
        self.correct_unit(subject, RateUnit::Tokens, taken, used);
    }
}

#[cfg(test)]
mod tests;
