//! Thousands of requests against endpoints that fail in part, with seeded draws.

use super::*;
use crate::system::Randomness;
use rstest::rstest;
use std::sync::atomic::{AtomicU64, Ordering};

/// `SplitMix64`.
struct SeededRandom(AtomicU64);

impl SeededRandom {
    fn new(seed: u64) -> Self {
        Self(AtomicU64::new(seed))
    }
}

impl Randomness for SeededRandom {
    fn next_u64(&self) -> u64 {
        let step = 0x9e37_79b9_7f4a_7c15;
        let state = self.0.fetch_add(step, Ordering::Relaxed).wrapping_add(step);
        let mixed = (state ^ (state >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        let mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        mixed ^ (mixed >> 31)
    }
}

/// Sends `count` requests, one per `gap`, to an endpoint with these outcomes. Returns the attempts and the answers.
fn run(
    count: u32,
    gap: Duration,
    seed: u64,
    mut outcome: impl FnMut(u32, &dyn Randomness) -> Observation,
) -> (u32, u32) {
    let random = SeededRandom::new(seed);
    let mut fixture = EndpointFixture::new();
    let (mut attempts, mut answers) = (0, 0);
    for number in 0..count {
        fixture.wait(gap);
        let admission = fixture.health.throttle.admit(&fixture.policy, workspace(1), &random, fixture.now);
        if matches!(admission, Admission::Rejected { .. }) {
            continue;
        }
        let observation = outcome(number, &random);
        attempts += 1;
        answers += u32::from(observation == OK);
        fixture.report(1, observation);
    }
    (attempts, answers)
}

/// Returns true for `percent` per cent of draws.
fn happens(percent: u64, random: &dyn Randomness) -> bool {
    random.next_u64() % 100 < percent
}

#[rstest]
fn half_working_endpoint_gets_nearly_all_requests(
    #[values(1, 2, 3, 4, 5, 6, 7, 8)] seed: u64,
    #[values(1, 20, 300)] gap_ms: u64,
) {
    let gap = Duration::from_millis(gap_ms);
    let (_, answers) = run(6_000, gap, seed, |_, random| if happens(50, random) { OK } else { status(500) });
    assert!(answers > 2_700, "{answers} of the 3,000 that it can answer");
    let (_, answers) = run(6_000, gap, seed, |number, _| if number % 2 == 0 { status(500) } else { OK });
    assert!(answers > 2_700, "{answers} of the 3,000 that it can answer");
}

#[rstest]
fn dead_endpoint_gets_only_probes(#[values(1, 2, 3)] seed: u64, #[values(1, 20, 300)] gap_ms: u64) {
    let (attempts, _) = run(6_000, Duration::from_millis(gap_ms), seed, |_, _| status(500));
    let probes = u32::try_from(6_000 * gap_ms / 5_000).unwrap();
    assert!(attempts >= probes.max(10), "{attempts}: at least one per 5 s");
    assert!(attempts < 900, "{attempts} of 6,000");
}

#[rstest]
fn recovered_endpoint_is_used_within_a_minute(#[values(1, 2, 3)] seed: u64) {
    // 50 requests a second: a minute of outage, a minute to recover, and a minute that is counted.
    let mut late_answers = 0;
    run(9_000, Duration::from_millis(20), seed, |number, _| {
        if number < 3_000 {
            return status(500);
        }
        late_answers += u32::from(number >= 6_000);
        OK
    });
    assert!(late_answers > 2_900, "{late_answers} of 3,000");
}

#[rstest]
fn failures_of_one_workspace_do_not_throttle_another(#[values(1, 2, 3)] seed: u64) {
    let random = SeededRandom::new(seed);
    let mut fixture = EndpointFixture::new();
    for number in 0..5_000_u32 {
        fixture.wait(Duration::from_millis(5));
        let garbled = [malformed(), status(403), overloaded(429, secs(600)), failed(AttemptFailureKind::TimedOut)];
        let admission = fixture.health.throttle.admit(&fixture.policy, workspace(1), &random, fixture.now);
        if !matches!(admission, Admission::Rejected { .. }) {
            fixture.report(1, garbled[number as usize % garbled.len()]);
        }
        let admission = fixture.health.throttle.admit(&fixture.policy, workspace(2), &random, fixture.now);
        assert_eq!(admission, Admission::Normal, "request {number}");
        fixture.report(2, OK);
    }
}
