//! Cases of [`RateLimiter`].

use std::sync::Arc;
use std::time::Duration;

use futures_util::future::{BoxFuture, join_all};

use super::super::{FixedClock, MemoryRateLimiter, SequentialIds};
use crate::ids::WorkspaceId;
use crate::rate::{RateLimitError, RateLimited, RateLimiter, RateLimits, RateScope, RateSubject, RateUnit};

suite! {
    /// Every case of the port's contract.
    rate_limiter_cases as rate_limiter_contract over RateLimiters {
        request_above_limit_is_rejected,
        rejected_request_is_accepted_after_its_wait,
        idle_subject_may_use_a_whole_minute,
        keys_are_limited_separately,
        workspace_limit_spans_its_keys,
        subject_without_limits_is_never_rejected,
        rejected_request_counts_nowhere,
        rejection_names_limit_with_longest_wait,
        rejected_tokens_release_their_request,
        full_bucket_accepts_more_than_its_size,
        unused_tokens_are_released,
        excess_tokens_are_a_bounded_debt,
        changed_limits_keep_taken_units,
        concurrent_requests_never_exceed_limit,
    }
}

/// A limiter without any counts, and its clock.
pub struct RateLimiters {
    /// The limiter.
    pub limiter: Arc<dyn RateLimiter>,
    /// The clock of the limiter.
    pub clock: FixedClock,
    /// Waits until all corrections have taken effect.
    pub corrected: Box<dyn Fn() -> BoxFuture<'static, ()> + Send + Sync>,
}

impl RateLimiters {
    /// Returns the fake.
    pub fn memory() -> Self {
        let clock = FixedClock::default();
        Self::immediate(Arc::new(MemoryRateLimiter::new(clock.clone())), clock)
    }

    /// Returns a limiter that corrects tokens at once.
    pub fn immediate(limiter: Arc<dyn RateLimiter>, clock: FixedClock) -> Self {
        Self { limiter, clock, corrected: Box::new(|| Box::pin(std::future::ready(()))) }
    }

    async fn request(&self, subject: &RateSubject) -> Result<(), RateLimited> {
        self.limiter.count_request(subject).await.map_err(limit_of)
    }

    async fn tokens(&self, subject: &RateSubject, tokens: u64) -> Result<(), RateLimited> {
        self.limiter.take_tokens(subject, tokens).await.map_err(limit_of)
    }

    async fn correct(&self, subject: &RateSubject, taken: u64, used: u64) {
        self.limiter.correct_tokens(subject, taken, used);
        (self.corrected)().await;
    }

    /// Returns the number of requests that are accepted before the first rejection.
    async fn accepted(&self, subject: &RateSubject) -> usize {
        let mut accepted = 0;
        while accepted < 10_000 && self.request(subject).await.is_ok() {
            accepted += 1;
        }
        accepted
    }
}

fn limit_of(error: RateLimitError) -> RateLimited {
    error.exceeded().expect("the limiter is available")
}

const NONE: RateLimits = RateLimits { requests_per_minute: None, tokens_per_minute: None };

fn requests(limit: u32) -> RateLimits {
    RateLimits { requests_per_minute: Some(limit), ..NONE }
}

fn tokens(limit: u32) -> RateLimits {
    RateLimits { tokens_per_minute: Some(limit), ..NONE }
}

/// Returns a key of workspace 1.
fn subject(number: u64, key: RateLimits, workspace: RateLimits) -> RateSubject {
    let workspace_id = WorkspaceId::from_uuid(SequentialIds::uuid(1));
    RateSubject { api_key: SequentialIds::key(number), key, workspace: Some((workspace_id, workspace)) }
}

async fn request_above_limit_is_rejected(limiters: &RateLimiters) {
    let caller = subject(1, requests(3), NONE);
    assert_eq!(limiters.accepted(&caller).await, 3);
    let rejected = limiters.request(&caller).await.unwrap_err();
    assert_eq!((rejected.scope, rejected.unit), (RateScope::Key, RateUnit::Requests));
    assert_eq!((rejected.limit, rejected.remaining), (3, 0));
}

async fn rejected_request_is_accepted_after_its_wait(limiters: &RateLimiters) {
    let caller = subject(1, requests(7), NONE);
    limiters.accepted(&caller).await;
    let wait = limiters.request(&caller).await.unwrap_err().retry_after;
    assert!(wait > Duration::ZERO && wait <= Duration::from_mins(1), "{wait:?}");
    limiters.clock.advance(wait.saturating_sub(Duration::from_nanos(1)));
    assert!(limiters.request(&caller).await.is_err(), "the wait is not over");
    limiters.clock.advance(Duration::from_nanos(1));
    assert_eq!(limiters.request(&caller).await, Ok(()));
}

async fn idle_subject_may_use_a_whole_minute(limiters: &RateLimiters) {
    let caller = subject(1, requests(5), NONE);
    assert_eq!(limiters.accepted(&caller).await, 5);
    limiters.clock.advance(Duration::from_hours(3));
    assert_eq!(limiters.accepted(&caller).await, 5, "no more than a minute is saved");
}

async fn keys_are_limited_separately(limiters: &RateLimiters) {
    assert_eq!(limiters.accepted(&subject(1, requests(2), NONE)).await, 2);
    assert_eq!(limiters.accepted(&subject(2, requests(2), NONE)).await, 2);
}

async fn workspace_limit_spans_its_keys(limiters: &RateLimiters) {
    for number in 1..=3 {
        assert_eq!(limiters.request(&subject(number, NONE, requests(3))).await, Ok(()));
    }
    let rejected = limiters.request(&subject(4, NONE, requests(3))).await.unwrap_err();
    assert_eq!((rejected.scope, rejected.limit), (RateScope::Workspace, 3));
    let other = WorkspaceId::from_uuid(SequentialIds::uuid(2));
    let elsewhere = RateSubject { workspace: Some((other, requests(3))), ..subject(4, NONE, NONE) };
    assert_eq!(limiters.accepted(&elsewhere).await, 3);
}

async fn subject_without_limits_is_never_rejected(limiters: &RateLimiters) {
    let unlimited = subject(1, NONE, NONE);
    let management = RateSubject { workspace: None, ..unlimited };
    for caller in [unlimited, management] {
        for _ in 0..1_000 {
            assert_eq!((limiters.request(&caller).await, limiters.tokens(&caller, u64::MAX).await), (Ok(()), Ok(())));
            limiters.correct(&caller, 0, u64::MAX).await;
        }
    }
}

async fn rejected_request_counts_nowhere(limiters: &RateLimiters) {
    let greedy = subject(1, requests(1), requests(3));
    assert_eq!(limiters.request(&greedy).await, Ok(()));
    for _ in 0..10 {
        assert_eq!(limiters.request(&greedy).await.unwrap_err().scope, RateScope::Key);
    }
    assert_eq!(limiters.accepted(&subject(2, NONE, requests(3))).await, 2, "the workspace counted one request");
    let other = subject(3, requests(1), requests(3));
    assert_eq!(limiters.request(&other).await.unwrap_err().scope, RateScope::Workspace);
    let raised = subject(3, requests(1), requests(4));
    assert_eq!(limiters.request(&raised).await, Ok(()), "the key counted no request");
}

async fn rejection_names_limit_with_longest_wait(limiters: &RateLimiters) {
    let wide = subject(1, requests(10), requests(10));
    assert_eq!((limiters.request(&wide).await, limiters.request(&wide).await), (Ok(()), Ok(())));
    let narrow = subject(1, requests(2), requests(1));
    let rejected = limiters.request(&narrow).await.unwrap_err();
    assert_eq!((rejected.scope, rejected.limit), (RateScope::Workspace, 1));
    limiters.clock.advance(rejected.retry_after);
    assert_eq!(limiters.request(&narrow).await, Ok(()), "no limit needs a longer wait");
}

async fn rejected_tokens_release_their_request(limiters: &RateLimiters) {
    let limits = RateLimits { requests_per_minute: Some(2), tokens_per_minute: Some(100) };
    let caller = subject(1, limits, requests(2));
    assert_eq!((limiters.request(&caller).await, limiters.tokens(&caller, 80).await), (Ok(()), Ok(())));
    for _ in 0..10 {
        assert_eq!(limiters.request(&caller).await, Ok(()), "the rejected requests are not counted");
        let rejected = limiters.tokens(&caller, 30).await.unwrap_err();
        assert_eq!((rejected.unit, rejected.limit, rejected.remaining), (RateUnit::Tokens, 100, 20));
    }
    assert_eq!((limiters.request(&caller).await, limiters.tokens(&caller, 20).await), (Ok(()), Ok(())));
}

async fn full_bucket_accepts_more_than_its_size(limiters: &RateLimiters) {
    let caller = subject(1, tokens(60), NONE);
    assert_eq!(limiters.tokens(&caller, 300).await, Ok(()));
    let rejected = limiters.tokens(&caller, 1).await.unwrap_err();
    assert_eq!(rejected.retry_after, Duration::from_secs(241), "five minutes of tokens are taken");
    limiters.clock.advance(rejected.retry_after);
    assert_eq!(limiters.tokens(&caller, 1).await, Ok(()));
}

async fn unused_tokens_are_released(limiters: &RateLimiters) {
    let caller = subject(1, tokens(100), tokens(100));
    assert_eq!(limiters.tokens(&caller, 100).await, Ok(()));
    limiters.correct(&caller, 100, 40).await;
    assert_eq!(limiters.tokens(&caller, 60).await, Ok(()));
    assert!(limiters.tokens(&caller, 1).await.is_err(), "exactly the unused tokens are released");
}

async fn excess_tokens_are_a_bounded_debt(limiters: &RateLimiters) {
    let caller = subject(1, tokens(60), NONE);
    assert_eq!(limiters.tokens(&caller, 60).await, Ok(()));
    limiters.correct(&caller, 60, 90).await;
    assert_eq!(limiters.tokens(&caller, 1).await.unwrap_err().retry_after, Duration::from_secs(31));
    limiters.correct(&caller, 0, u64::MAX).await;
    let wait = limiters.tokens(&caller, 1).await.unwrap_err().retry_after;
    assert!(wait <= Duration::from_hours(1), "{wait:?}");
    limiters.clock.advance(wait);
    assert_eq!(limiters.tokens(&caller, 1).await, Ok(()));
}

async fn changed_limits_keep_taken_units(limiters: &RateLimiters) {
    assert_eq!(limiters.accepted(&subject(1, requests(5), NONE)).await, 5);
    assert_eq!(limiters.accepted(&subject(1, requests(7), NONE)).await, 2, "five were taken before");
    assert_eq!(limiters.request(&subject(1, NONE, NONE)).await, Ok(()));
    assert!(limiters.request(&subject(1, requests(2), NONE)).await.is_err());
}

async fn concurrent_requests_never_exceed_limit(limiters: &RateLimiters) {
    let callers: Vec<_> = (0..4).map(|number| subject(number, NONE, requests(60))).collect();
    let accepted = join_all(callers.iter().map(|caller| limiters.accepted(caller))).await;
    assert_eq!(accepted.iter().sum::<usize>(), 60);
}
