//! All rules of throttling together, over random histories.

use super::reference::{Expected, Reference};
use super::*;
use crate::routing::HealthBoard;
use proptest::prelude::*;

#[derive(Debug, Clone, Copy)]
enum Step {
    /// A workspace asks for an attempt, with this draw.
    Admit(u128, f64),
    /// Attempts of a workspace end: their age, their outcome and their number.
    Report(u128, Duration, Observation, u32),
    Wait(Duration),
    /// Waits for the time in a rejection of this workspace.
    WaitAsAdvised(u128),
}

fn observation() -> impl Strategy<Value = Observation> {
    prop_oneof![
        8 => Just(OK),
        3 => Just(status(500)),
        1 => Just(status(404)),
        1 => Just(malformed()),
        1 => Just(status(401)),
        2 => Just(failed(AttemptFailureKind::TimedOut)),
        2 => Just(failed(AttemptFailureKind::ConnectFailed)),
        2 => (0..90_000_u64).prop_map(|wait| overloaded(429, Duration::from_millis(wait))),
        1 => Just(status(503)),
        1 => Just(Observation::Neutral),
    ]
}

fn step() -> impl Strategy<Value = Step> {
    let of = || 0..5_u128;
    prop_oneof![
        4 => (of(), 0.0..1.0_f64).prop_map(|(of, draw)| Step::Admit(of, draw)),
        6 => (of(), 0..3_000_u64, observation(), 1..9_u32)
            .prop_map(|(of, age, what, times)| Step::Report(of, Duration::from_millis(age), what, times)),
        3 => (0..3_000_u64).prop_map(|millis| Step::Wait(Duration::from_millis(millis))),
        1 => (0..200_u64).prop_map(|secs| Step::Wait(Duration::from_secs(secs))),
        1 => of().prop_map(Step::WaitAsAdvised),
    ]
}

prop_compose! {
    fn policy()(
        throttle_window in 24..200_000_u64,
        accept_multiplier in 1.0..4.0_f64,
        min_requests in 0..20_u32,
        timeout_weight in 1..9_u32,
        max_backoff in 0..70_000_u64,
        auth_backoff in 0..20_000_u64,
        probe_interval in 0..20_000_u64,
        max_workspaces in 1..7_usize,
        recent_failure in 1..40_000_u64,
    ) -> HealthPolicy {
        HealthPolicy {
            throttle_window: Duration::from_millis(throttle_window),
            accept_multiplier,
            min_requests,
            timeout_weight,
            max_backoff: Duration::from_millis(max_backoff),
            auth_backoff: Duration::from_millis(auth_backoff),
            probe_interval: Duration::from_millis(probe_interval),
            max_workspaces,
            recent_failure: Duration::from_millis(recent_failure),
            ..HealthPolicy::default()
        }
    }
}

fn check(fixture: &mut EndpointFixture, model: &Reference) -> Result<(), TestCaseError> {
    let now = fixture.now;
    let view = fixture.throttling();
    let (probability, retry_in) = (model.probability_for_all(now), model.retry_in_for_all(now));
    let expected = if retry_in.is_some() { 1.0 } else { probability };
    prop_assert!((view.rejection_probability - expected).abs() < f64::EPSILON);
    prop_assert_eq!(view.throttled, retry_in.is_some() || probability >= 0.1);
    prop_assert_eq!((view.retry_in, view.accept_rate), (retry_in, model.accept_rate(now)));
    prop_assert_eq!(view.throttled_workspaces as usize, model.throttled_workspaces(now));
    for of in 0..5 {
        let recent = fixture.health.throttle.failed_recently(&fixture.policy, workspace(of), now);
        prop_assert_eq!(recent, model.failed_recently(of, now), "{}", of);
    }
    Ok(())
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(crate::testing::property_cases(512, ProptestConfig::default().cases)))]

    #[test]
    fn throttle_matches_reference_model(policy in policy(), steps in proptest::collection::vec(step(), 1..90)) {
        let (mut fixture, mut model) = (EndpointFixture::with(policy), Reference::new(policy));
        for step in steps {
            match step {
                Step::Admit(of, draw) => {
                    let (found, expected) = (fixture.admit(of, draw), model.expect(of, fixture.now));
                    match (found, expected) {
                        (Admission::Normal, Expected::Normal) => {}
                        (Admission::Rejected { retry_in, .. }, Expected::Backoff(wait)) => prop_assert_eq!(retry_in, wait),
                        (Admission::Rejected { retry_in, .. }, Expected::Chance { rejection, retry_in: wait }) => {
                            prop_assert!(draw < rejection, "{} {}", draw, rejection);
                            prop_assert_eq!(retry_in, wait);
                        }
                        (Admission::Throttled, Expected::Chance { rejection, .. }) => prop_assert!(draw + 1e-15 >= rejection),
                        other => prop_assert!(false, "{:?}", other),
                    }
                    if !matches!(found, Admission::Rejected { .. }) {
                        model.admitted(of, fixture.now);
                    }
                }
                Step::Report(of, age, observation, times) => {
                    let began = fixture.now.checked_sub(age).unwrap();
                    for _ in 0..times {
                        let report = AttemptReport { endpoint: 0, workspace: workspace(of), began, observation };
                        fixture.health.report(&fixture.policy, &report, fixture.now);
                        model.report(of, began, observation, fixture.now);
                    }
                }
                Step::Wait(time) => fixture.now += time,
                Step::WaitAsAdvised(of) => match model.expect(of, fixture.now) {
                    Expected::Backoff(wait) | Expected::Chance { retry_in: wait, .. } => fixture.now += wait,
                    Expected::Normal => {}
                },
            }
            check(&mut fixture, &model)?;
        }
    }

    /// After any history, the wait is bounded, and then even the worst draw is admitted.
    #[test]
    fn workspace_is_admitted_again_within_bounds(
        policy in policy(),
        steps in proptest::collection::vec(step(), 1..90),
    ) {
        let mut fixture = EndpointFixture::with(policy);
        for step in steps {
            match step {
                Step::Report(of, _, observation, times) => drop(fixture.reports(times, of, observation)),
                Step::Wait(time) => fixture.now += time,
                Step::Admit(..) | Step::WaitAsAdvised(_) => {}
            }
        }
        for of in 0..5 {
            let last = fixture.now + policy.max_backoff + policy.probe_interval;
            while let Admission::Rejected { retry_in, .. } = fixture.admit(of, 0.0) {
                prop_assert!(retry_in <= policy.max_backoff);
                fixture.now += retry_in.max(Duration::from_millis(1));
                prop_assert!(fixture.now <= last + Duration::from_millis(1), "still rejected");
            }
        }
    }

    #[test]
    fn health_accepts_extreme_values_without_panic(
        numbers in proptest::collection::vec(extreme(), 7),
        counts in [prop_oneof![Just(0), Just(u32::MAX), any::<u32>()], prop_oneof![Just(0), Just(2), any::<u32>()]],
        multiplier in prop_oneof![any::<f64>(), Just(f64::NAN)],
        max_workspaces in 0..3_usize,
        steps in proptest::collection::vec((observation(), 0..4_u128, extreme(), extreme(), extreme()), 1..60),
    ) {
        let policy = HealthPolicy {
            throttle_window: numbers[0],
            accept_multiplier: multiplier,
            min_requests: counts[0],
            timeout_weight: counts[1],
            max_backoff: numbers[1],
            auth_backoff: numbers[2],
            probe_interval: numbers[3],
            max_workspaces,
            half_life: numbers[4],
            window: numbers[5],
            recent_failure: numbers[6],
        };
        let board = HealthBoard::new(1, policy);
        for (observation, of, now, began, wait) in steps {
            let observation = if observation == status(503) { overloaded(503, wait) } else { observation };
            let random = ScriptedRandomness::default();
            if let Admission::Rejected { retry_in, .. } = board.admit(0, workspace(of), &random, now) {
                prop_assert!(retry_in <= policy.max_backoff);
            }
            board.report(&AttemptReport { endpoint: 0, workspace: workspace(of), began, observation }, now);
            let view = board.throttling(0, now);
            prop_assert!((0.0..=1.0).contains(&view.rejection_probability), "{}", view.rejection_probability);
            prop_assert!(view.accept_rate.is_none_or(|rate| (0.0..=1.0).contains(&rate)));
            board.failed_recently(0, workspace(of), now);
        }
    }
}

/// Times at the ends of what a `Duration` holds, in any order.
fn extreme() -> impl Strategy<Value = Duration> {
    prop_oneof![
        Just(Duration::ZERO),
        Just(Duration::from_nanos(1)),
        Just(Duration::MAX),
        any::<u64>().prop_map(Duration::from_nanos),
        any::<u64>().prop_map(Duration::from_secs),
    ]
}
