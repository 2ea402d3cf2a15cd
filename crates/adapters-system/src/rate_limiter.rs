//! Requests per minute of each key, in this process.

use std::num::NonZeroU32;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use domain::api_key::ApiKeyHash;
use domain::rate::{RateLimited, RateLimiter, RateScope, RateSubject, RateUnit};
use governor::clock::{Clock, DefaultClock};
use governor::middleware::NoOpMiddleware;
use governor::state::keyed::DefaultKeyedStateStore;
use governor::{Quota, RateLimiter as Governor};

/// Lets each key make a number of requests a minute, refilled evenly (the generic cell rate algorithm), so that a
/// key which has been idle may use a minute's worth at once.
pub struct KeyRateLimiter<C: Clock = DefaultClock> {
    limit: NonZeroU32,
    keys: Governor<ApiKeyHash, DefaultKeyedStateStore<ApiKeyHash>, C, NoOpMiddleware<C::Instant>>,
    checks: AtomicU64,
}

/// After this many checks the states of idle keys are thrown away.
const CLEAN_EVERY: u64 = 4_096;

impl KeyRateLimiter {
    /// At most `limit` requests a minute; zero counts as one.
    pub fn per_minute(limit: u32) -> Self {
        Self::with_clock(limit, DefaultClock::default())
    }
}

impl<C: Clock> KeyRateLimiter<C> {
    fn with_clock(limit: u32, clock: C) -> Self {
        let limit = NonZeroU32::new(limit).unwrap_or(NonZeroU32::MIN);
        let keys = Governor::new(Quota::per_minute(limit), DefaultKeyedStateStore::default(), clock);
        Self { limit, keys, checks: AtomicU64::new(0) }
    }

    /// A key that is full again is as good as one never seen, so memory follows the keys of the last minute.
    fn clean_now_and_then(&self) {
        if self.checks.fetch_add(1, Ordering::Relaxed) % CLEAN_EVERY == CLEAN_EVERY - 1 {
            self.keys.retain_recent();
            self.keys.shrink_to_fit();
        }
    }
}

impl<C: Clock + Send + Sync> RateLimiter for KeyRateLimiter<C>
where
    C::Instant: Send + Sync,
{
    fn request(&self, subject: &RateSubject) -> Result<(), RateLimited> {
        self.clean_now_and_then();
        self.keys.check_key(&subject.api_key).map_err(|not_until| RateLimited {
            scope: RateScope::Key,
            unit: RateUnit::Requests,
            limit: self.limit.get(),
            retry_after: not_until.wait_time_from(self.keys.clock().now()).max(Duration::from_millis(1)),
        })
    }

    fn tokens(&self, _: &RateSubject, _: u64) -> Result<(), RateLimited> {
        Ok(())
    }

    fn correct(&self, _: &RateSubject, _: u64, _: u64) {}
}

#[cfg(test)]
mod tests {
    use super::*;
    use governor::clock::FakeRelativeClock;

    fn key(number: u64) -> ApiKeyHash {
        let mut bytes = [0; 32];
        bytes[..8].copy_from_slice(&number.to_le_bytes());
        ApiKeyHash::from_bytes(bytes)
    }

    #[test]
    fn one_request_too_many_is_refused_until_its_time_comes() {
        let clock = FakeRelativeClock::default();
        let limiter = KeyRateLimiter::with_clock(2, clock.clone());
        assert_eq!(limiter.check(&key(1)), Ok(()));
        assert_eq!(limiter.check(&key(1)), Ok(()));
        let refused = limiter.check(&key(1)).unwrap_err();
        assert_eq!(refused.limit, 2);
        assert_eq!(refused.retry_after, Duration::from_secs(30));
        assert_eq!(limiter.check(&key(2)), Ok(()), "another key has its own requests");
        clock.advance(refused.retry_after);
        assert_eq!(limiter.check(&key(1)), Ok(()));
    }

    #[test]
    fn a_steady_key_below_the_limit_is_never_refused() {
        let clock = FakeRelativeClock::default();
        let limiter = KeyRateLimiter::with_clock(60, clock.clone());
        for _ in 0..1_000 {
            assert_eq!(limiter.check(&key(1)), Ok(()));
            clock.advance(Duration::from_secs(1));
        }
    }

    #[test]
    fn idle_keys_are_forgotten() {
        let clock = FakeRelativeClock::default();
        let limiter = KeyRateLimiter::with_clock(60, clock.clone());
        for number in 0..20 * CLEAN_EVERY {
            assert_eq!(limiter.check(&key(number)), Ok(()));
            clock.advance(Duration::from_millis(10));
        }
        let most = usize::try_from(2 * CLEAN_EVERY).unwrap();
        assert!(limiter.keys.len() <= most, "{} keys are kept", limiter.keys.len());
    }

    #[test]
    fn zero_counts_as_one_and_the_systems_clock_works() {
        let limiter = KeyRateLimiter::per_minute(0);
        assert_eq!(limiter.check(&key(1)), Ok(()));
        let refused = limiter.check(&key(1)).unwrap_err();
        assert_eq!(refused.limit, 1);
        assert!(refused.retry_after > Duration::from_secs(50) && refused.retry_after <= Duration::from_mins(1));
    }
}
