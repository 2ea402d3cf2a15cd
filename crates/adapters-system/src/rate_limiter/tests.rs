use std::thread;

use domain::rate::RateLimits;
use domain::testing::FixedClock;
use domain::testing::contract::RateLimiters;
use uuid::Uuid;

use super::*;

fn key(number: u64) -> ApiKeyId {
    ApiKeyId::from_uuid(Uuid::from_u128(number.into()))
}

fn workspace(number: u128) -> WorkspaceId {
    WorkspaceId::from_uuid(Uuid::from_u128(number))
}

fn limits(requests: u32, tokens: u32) -> RateLimits {
    let some = |limit: u32| (limit > 0).then_some(limit);
    RateLimits { requests_per_minute: some(requests), tokens_per_minute: some(tokens) }
}

/// Returns a key of workspace 1; zero is no limit.
fn subject(number: u64, of_key: RateLimits, of_workspace: RateLimits) -> RateSubject {
    RateSubject { api_key: key(number), key: of_key, workspace: Some((workspace(1), of_workspace)) }
}

const NONE: RateLimits = RateLimits { requests_per_minute: None, tokens_per_minute: None };

fn limiter() -> (LocalRateLimiter, FixedClock) {
    let clock = FixedClock::default();
    (LocalRateLimiter::new(Arc::new(clock.clone()), ReplicaCount::default()), clock)
}

async fn empty_limiter() -> RateLimiters {
    let (limiter, clock) = limiter();
    RateLimiters::immediate(Arc::new(limiter), clock)
}

domain::rate_limiter_contract!(
    #[tokio::test]
    crate::rate_limiter::tests::empty_limiter
);

fn states(limiter: &LocalRateLimiter) -> usize {
    limiter.shards.iter().map(|shard| shard.lock().unwrap().states.len()).sum()
}

#[test]
fn request_above_limit_is_rejected_until_refill() {
    let (limiter, clock) = limiter();
    let (one, two) = (subject(1, limits(2, 0), NONE), subject(2, limits(2, 0), NONE));
    assert_eq!(limiter.count_one(&one), Ok(()));
    assert_eq!(limiter.count_one(&one), Ok(()));
    let refused = limiter.count_one(&one).unwrap_err();
    let (scope, unit, retry_after) = (RateScope::Key, RateUnit::Requests, Duration::from_secs(30));
    assert_eq!(refused, RateLimited { scope, unit, limit: 2, remaining: 0, retry_after });
    assert_eq!(limiter.count_one(&two), Ok(()), "another key has its own requests");
    clock.advance(refused.retry_after.saturating_sub(Duration::from_nanos(1)));
    assert!(limiter.count_one(&one).is_err());
    clock.advance(Duration::from_nanos(1));
    assert_eq!(limiter.count_one(&one), Ok(()));
}

#[test]
fn workspace_limit_applies_to_all_its_keys() {
    let (limiter, _) = limiter();
    for number in 0..3 {
        assert_eq!(limiter.count_one(&subject(number, NONE, limits(3, 0))), Ok(()));
    }
    let refused = limiter.count_one(&subject(9, NONE, limits(3, 0))).unwrap_err();
    assert_eq!((refused.scope, refused.unit, refused.limit), (RateScope::Workspace, RateUnit::Requests, 3));
    let other = RateSubject { workspace: Some((workspace(2), limits(3, 0))), ..subject(9, NONE, NONE) };
    assert_eq!(limiter.count_one(&other), Ok(()));
    let management = RateSubject { api_key: key(1), key: NONE, workspace: None };
    assert_eq!(limiter.count_one(&management), Ok(()));
}

#[test]
fn rejected_request_is_not_counted() {
    let (limiter, _) = limiter();
    let (greedy, modest) = (subject(1, limits(1, 0), limits(3, 0)), subject(2, NONE, limits(3, 0)));
    assert_eq!(limiter.count_one(&greedy), Ok(()));
    for _ in 0..100 {
        assert_eq!(limiter.count_one(&greedy).unwrap_err().scope, RateScope::Key);
    }
    assert_eq!(limiter.count_one(&modest), Ok(()), "what the key's limit refused is none of the workspace's");
    assert_eq!(limiter.count_one(&modest), Ok(()));
    for _ in 0..100 {
        assert_eq!(limiter.count_one(&modest).unwrap_err().scope, RateScope::Workspace);
    }
}

#[test]
fn request_rejected_by_token_limit_is_not_counted() {
    let (limiter, clock) = limiter();
    let caller = subject(1, limits(2, 100), limits(2, 0));
    for _ in 0..50 {
        assert_eq!(limiter.count_one(&caller), Ok(()));
        if limiter.take_in_advance(&caller, 60).is_err() {
            continue;
        }
        limiter.correct_tokens(&caller, 60, 80);
    }
    let refused = limiter.take_in_advance(&caller, 60).unwrap_err();
    assert_eq!((refused.unit, refused.limit, refused.remaining), (RateUnit::Tokens, 100, 20));
    assert_eq!(refused.retry_after, Duration::from_secs(24));
    clock.advance(refused.retry_after);
    assert_eq!((limiter.count_one(&caller), limiter.take_in_advance(&caller, 60)), (Ok(()), Ok(())));
}

#[test]
fn rejection_reports_limit_with_longest_wait() {
    let (limiter, clock) = limiter();
    let caller = subject(1, limits(6, 0), limits(2, 0));
    assert_eq!((limiter.count_one(&caller), limiter.count_one(&caller)), (Ok(()), Ok(())));
    let narrow = subject(1, limits(2, 0), limits(1, 0));
    let refused = limiter.count_one(&narrow).unwrap_err();
    assert_eq!((refused.scope, refused.retry_after), (RateScope::Workspace, Duration::from_mins(2)));
    clock.advance(refused.retry_after);
    assert_eq!(limiter.count_one(&narrow), Ok(()));
}

#[test]
fn tokens_are_released_and_owed() {
    let (limiter, clock) = limiter();
    let caller = subject(1, limits(0, 60), limits(0, 600));
    assert_eq!(limiter.take_in_advance(&caller, 60), Ok(()));
    assert!(limiter.take_in_advance(&caller, 1).is_err());
    limiter.correct_tokens(&caller, 60, 0);
    assert_eq!(limiter.take_in_advance(&caller, 60), Ok(()));
    limiter.correct_tokens(&caller, 60, 90);
    assert_eq!(limiter.take_in_advance(&caller, 1).unwrap_err().retry_after, Duration::from_secs(31));
    clock.advance(Duration::from_mins(2));
    // More than the limit of a minute: accepted if no other tokens were taken.
    assert_eq!(limiter.take_in_advance(&caller, 300), Ok(()));
    assert_eq!(limiter.take_in_advance(&caller, 1).unwrap_err().retry_after, Duration::from_secs(241));
}

#[test]
fn changed_limits_apply_to_next_call() {
    let (limiter, _) = limiter();
    for _ in 0..5 {
        assert_eq!(limiter.count_one(&subject(1, limits(5, 0), NONE)), Ok(()));
    }
    assert!(limiter.count_one(&subject(1, limits(5, 0), NONE)).is_err());
    assert_eq!(limiter.count_one(&subject(1, limits(6, 0), NONE)), Ok(()));
    assert_eq!(limiter.count_one(&subject(1, NONE, NONE)), Ok(()));
    assert!(limiter.count_one(&subject(1, limits(2, 0), NONE)).is_err());
}

#[test]
fn sweep_removes_idle_states_and_keeps_debts() {
    let (limiter, clock) = limiter();
    let debtor = subject(u64::MAX, limits(0, 1), NONE);
    assert_eq!(limiter.take_in_advance(&debtor, 1), Ok(()));
    limiter.correct_tokens(&debtor, 1, 1_000);
    for number in 0..20_000 {
        assert_eq!(limiter.count_one(&subject(number, limits(60, 0), limits(100_000, 0))), Ok(()));
        clock.advance(Duration::from_millis(10));
    }
    // Each key is idle after a second, which is after a hundred others.
    assert!(states(&limiter) <= 2 * (100 + SWEEP_FROM), "{} states are kept", states(&limiter));
    assert!(limiter.take_in_advance(&debtor, 1).is_err());
}

/// A caller has token debt for an hour and request debt for a second, or vice versa, in either order.
#[test]
fn state_with_debt_in_either_unit_is_kept() {
    let (owing, brief) = (limits(0, 1), limits(60, 0));
    let both = limits(60, 1);
    for requests_last in [true, false] {
        let (limiter, clock) = limiter();
        let debtor = subject(u64::MAX, both, NONE);
        if requests_last {
            assert_eq!(limiter.take_in_advance(&subject(u64::MAX, owing, NONE), 1), Ok(()));
            limiter.correct_tokens(&debtor, 1, 1_000);
            assert_eq!(limiter.count_one(&subject(u64::MAX, brief, NONE)), Ok(()));
        } else {
            let slow = subject(u64::MAX, limits(1, 0), NONE);
            assert_eq!(limiter.count_one(&slow), Ok(()));
            // A thousand tokens at 60,000 per minute are refilled in a second.
            assert_eq!(limiter.take_in_advance(&subject(u64::MAX, limits(0, 60_000), NONE), 1_000), Ok(()));
        }
        clock.advance(Duration::from_secs(2));
        // Other callers fill the same shard until it is swept several times.
        for number in 0..4 * u64::try_from(SWEEP_FROM).unwrap() {
            assert_eq!(limiter.count_one(&subject(number, brief, NONE)), Ok(()));
            clock.advance(Duration::from_millis(100));
        }
        assert!(states(&limiter) < 3 * SWEEP_FROM, "others were forgotten");
        if requests_last {
            assert!(limiter.take_in_advance(&debtor, 1).is_err(), "the tokens are owed still");
        } else {
            let again = limiter.count_one(&subject(u64::MAX, limits(1, 0), NONE)).unwrap_err();
            assert_eq!(again.unit, RateUnit::Requests);
            assert!(again.retry_after > Duration::from_secs(30), "{:?}", again.retry_after);
        }
    }
}

#[test]
fn unlimited_subjects_have_no_state() {
    let (limiter, _) = limiter();
    let call = |subject: &RateSubject| {
        assert_eq!((limiter.count_one(subject), limiter.take_in_advance(subject, 5)), (Ok(()), Ok(())));
        limiter.correct_tokens(subject, 5, 4);
    };
    (0..1_000).for_each(|number| call(&subject(number, NONE, NONE)));
    assert_eq!(states(&limiter), 0);
    call(&subject(1, limits(u32::MAX, u32::MAX), limits(u32::MAX, u32::MAX)));
    assert_eq!(states(&limiter), 2, "the key's and the workspace's");
}

#[test]
fn concurrent_requests_get_exactly_the_limit() {
    let (limiter, _) = limiter();
    let taken: usize = thread::scope(|scope| {
        let ask = |number| {
            let caller = subject(number, limits(40, 0), limits(100, 0));
            (0..200).filter(|_| limiter.count_one(&caller).is_ok()).count()
        };
        let threads: Vec<_> = (0..8).map(|number| scope.spawn(move || ask(number % 4))).collect();
        threads.into_iter().map(|thread| thread.join().unwrap()).sum()
    });
    assert_eq!(taken, 100, "no more than the workspace has, and no less");
}

#[test]
fn replica_applies_its_share_and_names_the_limit() {
    let (clock, replicas) = (FixedClock::default(), ReplicaCount::default());
    let limiter = LocalRateLimiter::new(Arc::new(clock.clone()), replicas.clone());
    let caller = subject(1, limits(6, 0), NONE);
    let accepted = || (0..100).take_while(|_| limiter.count_one(&caller).is_ok()).count();
    replicas.set(3);
    assert_eq!(accepted(), 2);
    let rejected = limiter.count_one(&caller).unwrap_err();
    assert_eq!((rejected.limit, rejected.remaining, rejected.retry_after), (6, 0, Duration::from_secs(30)));
    replicas.set(2);
    assert_eq!(accepted(), 1, "another replica ended: two requests were taken before");
    replicas.set(60);
    clock.advance(Duration::from_hours(1));
    assert_eq!(accepted(), 1, "a share is at least one");
}
