use proptest::prelude::*;

use super::*;

fn limit(per_minute: u32) -> NonZeroU32 {
    NonZeroU32::new(per_minute).unwrap()
}

const START: Duration = Duration::from_secs(1_000);

#[test]
fn check_allows_burst_of_one_minute_then_steady_rate() {
    let (limit, mut bucket) = (limit(3), Gcra::default());
    for _ in 0..3 {
        assert_eq!(bucket.check(limit, 1, START), Ok(()));
        bucket.take(limit, 1, START);
    }
    assert_eq!(bucket.remaining(limit, START), 0);
    assert_eq!(bucket.check(limit, 1, START), Err(Duration::from_secs(20)));
    let later = START + Duration::from_secs(20);
    assert_eq!(bucket.remaining(limit, later), 1);
    assert_eq!(bucket.check(limit, 1, later), Ok(()));
    assert_eq!(bucket.check(limit, 2, later), Err(Duration::from_secs(20)));
    assert_eq!(bucket.idle_in(limit, later), Duration::from_secs(40));
}

#[test]
fn check_allows_oversized_amount_only_when_idle() {
    let (limit, mut bucket) = (limit(60), Gcra::default());
    assert_eq!(bucket.check(limit, 600, START), Ok(()));
    bucket.take(limit, 600, START);
    assert_eq!(bucket.check(limit, 1, START), Err(Duration::from_secs(541)));
    assert_eq!(bucket.check(limit, 600, START), Err(Duration::from_mins(10)));
    bucket.correct(limit, 600, 30, START);
    assert_eq!(bucket.remaining(limit, START), 30);
    assert_eq!(bucket.check(limit, 600, START), Err(Duration::from_secs(30)));
}

#[test]
fn correct_limits_debt_to_one_hour() {
    let (limit, mut bucket) = (limit(60), Gcra::default());
    bucket.take(limit, 10, START);
    bucket.correct(limit, 10, 90, START);
    assert_eq!(bucket.check(limit, 1, START), Err(Duration::from_secs(31)));
    bucket.correct(limit, 0, u64::MAX, START);
    assert_eq!(bucket.idle_in(limit, START), Duration::from_hours(1));
    bucket.correct(limit, 0, u64::MAX, START);
    assert_eq!(bucket.idle_in(limit, START), Duration::from_hours(1));
}

#[test]
fn refill_follows_the_current_limit() {
    let mut bucket = Gcra::default();
    bucket.take(limit(60), 60, START);
    assert_eq!(bucket.check(limit(60), 1, START), Err(Duration::from_secs(1)));
    assert_eq!(bucket.check(limit(6), 1, START), Err(Duration::from_secs(550)));
    assert_eq!(bucket.check(limit(600), 1, START), Ok(()));
}

/// A clock that goes back neither refills nor drains the bucket.
#[test]
fn level_is_unchanged_when_the_clock_goes_back() {
    let (limit, mut bucket) = (limit(60), Gcra::default());
    let (early, late) = (Duration::from_secs(970), START + Duration::from_secs(10));
    bucket.take(limit, 60, START);
    assert_eq!((bucket.remaining(limit, early), bucket.idle_in(limit, early)), (0, Duration::from_mins(1)));
    bucket.take(limit, 1, early);
    assert_eq!(bucket.idle_in(limit, early), Duration::from_secs(61));
    bucket.correct(limit, 1, 0, early);
    assert_eq!(bucket.idle_in(limit, early), Duration::from_mins(1));
    // Units taken at an earlier time must not leak twice.
    assert_eq!(bucket.remaining(limit, START), 0);
    assert_eq!(bucket.remaining(limit, late), 10);
    assert_eq!(bucket.check(limit, 11, late), Err(Duration::from_secs(1)));
}

#[test]
fn extreme_numbers_do_not_overflow() {
    let (limit, mut bucket) = (limit(u32::MAX), Gcra::default());
    for now in [Duration::MAX, Duration::ZERO, Duration::MAX] {
        bucket.take(limit, u64::MAX, now);
        assert!(bucket.check(limit, u64::MAX, now).is_err());
        bucket.correct(limit, u64::MAX, 0, now);
        bucket.correct(limit, 0, u64::MAX, now);
    }
    assert_eq!(bucket.remaining(limit, Duration::MAX), 0);
}

/// A naive token bucket: it holds parts and fills up over time.
struct TokenBucket {
    limit: i128,
    inside: i128,
    at: i128,
}

impl TokenBucket {
    const MINUTE: i128 = 60_000_000_000;

    fn new(limit: NonZeroU32, now: Duration) -> Self {
        let limit = i128::from(limit.get());
        Self { limit, inside: limit * Self::MINUTE, at: i128::try_from(now.as_nanos()).unwrap() }
    }

    fn fill(&mut self, now: Duration) {
        let now = i128::try_from(now.as_nanos()).unwrap();
        self.inside = (self.inside + (now - self.at) * self.limit).min(self.limit * Self::MINUTE);
        self.at = now;
    }

    fn takes(&mut self, amount: u64, now: Duration) -> bool {
        self.fill(now);
        let wanted = i128::from(amount) * Self::MINUTE;
        let fits = self.inside >= wanted.min(self.limit * Self::MINUTE);
        if fits {
            self.inside -= wanted;
        }
        fits
    }

    fn correct(&mut self, taken: u64, used: u64, now: Duration) {
        self.fill(now);
        let back = (i128::from(taken) - i128::from(used)) * Self::MINUTE;
        let least = self.inside.min(-59 * self.limit * Self::MINUTE);
        self.inside = (self.inside + back).clamp(least, self.limit * Self::MINUTE);
    }
}

#[derive(Debug, Clone)]
enum Step {
    Wait(u64),
    Take(u64),
    Correct(u64, u64),
}

fn steps() -> impl Strategy<Value = Vec<Step>> {
    let step = prop_oneof![
        (0_u64..40_000_000_000).prop_map(Step::Wait),
        (0_u64..3).prop_map(Step::Wait),
        (0_u64..50).prop_map(Step::Take),
        (0_u64..5_000).prop_map(Step::Take),
        (0_u64..200, 0_u64..200).prop_map(|(taken, used)| Step::Correct(taken, used)),
        (0_u64..10, 0_u64..1_000_000).prop_map(|(taken, used)| Step::Correct(taken, used)),
    ];
    prop::collection::vec(step, 1..200)
}

fn limits() -> impl Strategy<Value = NonZeroU32> {
    prop_oneof![1_u32..100, 1_u32..100_000, Just(7), Just(u32::MAX)].prop_map(limit)
}

proptest! {
    #[test]
    fn gcra_equals_token_bucket_with_exact_wait(limit in limits(), steps in steps()) {
        let (mut bucket, mut now) = (Gcra::default(), START);
        let mut naive = TokenBucket::new(limit, now);
        for step in steps {
            match step {
                Step::Wait(wait) => now += Duration::from_nanos(wait),
                Step::Correct(taken, used) => {
                    bucket.correct(limit, taken, used, now);
                    naive.correct(taken, used, now);
                }
                Step::Take(amount) => {
                    let checked = bucket.check(limit, amount, now);
                    prop_assert_eq!(checked.is_ok(), naive.takes(amount, now));
                    match checked {
                        Ok(()) => bucket.take(limit, amount, now),
                        Err(wait) => {
                            prop_assert!(wait > Duration::ZERO);
                            let nearly = wait.saturating_sub(Duration::from_nanos(1));
                            prop_assert!(bucket.check(limit, amount, now + nearly).is_err());
                            prop_assert_eq!(bucket.check(limit, amount, now + wait), Ok(()));
                        }
                    }
                }
            }
            naive.fill(now);
            let left = u64::try_from(naive.inside.max(0) / TokenBucket::MINUTE).unwrap();
            prop_assert_eq!(u64::from(bucket.remaining(limit, now)), left);
            prop_assert_eq!(bucket.idle_in(limit, now).is_zero(), naive.inside == naive.limit * TokenBucket::MINUTE);
        }
    }

    #[test]
    fn check_never_rejects_steady_rate_below_the_limit(limit in limits(), slack in 0_u64..1_000, calls in 1_usize..500) {
        // Exactly at the limit, rounded up to whole nanoseconds.
        let pause = Duration::from_nanos(60_000_000_000_u64.div_ceil(u64::from(limit.get())) + slack);
        let (mut bucket, mut now) = (Gcra::default(), START);
        for _ in 0..calls {
            prop_assert_eq!(bucket.check(limit, 1, now), Ok(()));
            bucket.take(limit, 1, now);
            now += pause;
        }
    }

    #[test]
    fn check_allows_at_most_two_limits_per_minute(limit in 1_u32..200, pauses in prop::collection::vec(0_u64..2_000_000_000, 1..600)) {
        let (limit, mut bucket, mut now) = (self::limit(limit), Gcra::default(), START);
        let mut taken = Vec::new();
        for pause in pauses {
            if bucket.check(limit, 1, now).is_ok() {
                bucket.take(limit, 1, now);
                taken.push(now);
            }
            now += Duration::from_nanos(pause);
        }
        for (index, first) in taken.iter().enumerate() {
            let within = taken[index..].iter().filter(|at| at.saturating_sub(*first) < Duration::from_mins(1)).count();
            prop_assert!(within <= 2 * usize::try_from(limit.get()).unwrap(), "{within} in a minute");
        }
    }

    #[test]
    fn repeated_waits_do_not_drift(limit in limits()) {
        // Each unit is taken as soon as possible for one minute. The last one is due exactly one minute after the
        // burst.
        let count = limit.get().min(2_000);
        let (mut bucket, mut now) = (Gcra::default(), START);
        bucket.take(limit, u64::from(limit.get()), now);
        for _ in 0..count {
            now += bucket.check(limit, 1, now).unwrap_err();
            bucket.take(limit, 1, now);
        }
        let exact = Duration::from_nanos(u64::try_from((60_000_000_000 * u128::from(count)).div_ceil(u128::from(limit.get()))).unwrap());
        prop_assert!(now.saturating_sub(START) >= exact);
        // Each wait is rounded up to a nanosecond, and the surplus counts for the next wait.
        prop_assert!(now.saturating_sub(START) <= exact + Duration::from_nanos(1));
    }
}
