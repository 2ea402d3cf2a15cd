use super::reference::{Expected, Reference};
use super::*;
use crate::routing::health::{BreakerState, HealthBoard};
use proptest::prelude::*;

#[derive(Debug, Clone, Copy)]
enum Step {
    Admit,
    /// By one of the attempts that are out; the number is reduced to how many there are.
    Report(usize, Observation),
    /// An attempt is lost: it never reports.
    Lose(usize),
    Wait(Duration),
    /// As long as a refusal said.
    WaitAsTold,
    /// As long as a probe's place is kept.
    WaitForLease,
}

fn observation() -> impl Strategy<Value = Observation> {
    prop_oneof![
        4 => (0..5_000_u64, 0..900_u64).prop_map(|(latency, tokens)| {
            Observation::Succeeded { latency: Duration::from_millis(latency), tokens }
        }),
        6 => Just(Observation::Failed),
        1 => Just(Observation::Unauthorised),
        1 => proptest::option::of(0..30_000_u64)
            .prop_map(|wait| Observation::Overloaded { retry_after: wait.map(Duration::from_millis) }),
        1 => Just(Observation::Neutral),
    ]
}

fn step() -> impl Strategy<Value = Step> {
    prop_oneof![
        6 => Just(Step::Admit),
        6 => (any::<usize>(), observation()).prop_map(|(which, what)| Step::Report(which, what)),
        1 => any::<usize>().prop_map(Step::Lose),
        1 => (0..3_000_u64).prop_map(|millis| Step::Wait(Duration::from_millis(millis))),
        1 => (0..200_u64).prop_map(|secs| Step::Wait(Duration::from_secs(secs))),
        3 => Just(Step::WaitAsTold),
        1 => Just(Step::WaitForLease),
    ]
}

prop_compose! {
    fn policy()(
        failures_to_open in 1..6_u32,
        error_rate_to_open in 0.2..0.9_f64,
        error_rate_min_observations in 2..8_u32,
        open_for in 1..8_000_u64,
        open_for_max in 1..40_000_u64,
        max_retry_after in 0..25_000_u64,
        probe_lease in 1..30_000_u64,
        half_life in 1_000..90_007_u64,
    ) -> HealthPolicy {
        HealthPolicy {
            failures_to_open,
            error_rate_to_open,
            error_rate_min_observations,
            open_for: Duration::from_millis(open_for),
            open_for_max: Duration::from_millis(open_for_max),
            max_retry_after: Duration::from_millis(max_retry_after),
            probe_lease: Duration::from_millis(probe_lease),
            half_life: Duration::from_millis(half_life),
            ..HealthPolicy::default()
        }
    }
}

/// Runs steps on the real thing; `check` sees it after each, with what an admission said.
fn run<F>(policy: HealthPolicy, steps: &[Step], mut check: F) -> Result<(Bench, Vec<(usize, Permit)>), TestCaseError>
where
    F: FnMut(&mut Bench, Did<'_>) -> Result<(), TestCaseError>,
{
    let mut bench = Bench::with(policy);
    let mut out: Vec<(usize, Permit)> = Vec::new();
    let mut asked = 0;
    for step in steps {
        match *step {
            Step::Admit => {
                let admission = bench.ask();
                check(&mut bench, Did::Asked(asked, &admission))?;
                if let Admission::Admitted(permit) = admission {
                    out.push((asked, permit));
                }
                asked += 1;
            }
            Step::Report(which, what) if !out.is_empty() => {
                let (attempt, permit) = out.remove(which % out.len());
                let probe = permit.is_probe();
                bench.report(permit, what);
                check(&mut bench, Did::Reported { attempt, probe, what })?;
            }
            Step::Lose(which) if !out.is_empty() => drop(out.remove(which % out.len())),
            Step::Report(..) | Step::Lose(_) => {}
            Step::Wait(time) => bench.now += time,
            Step::WaitAsTold => bench.now += bench.view().retry_in.unwrap_or_default(),
            Step::WaitForLease => bench.now += policy.probe_lease,
        }
        check(&mut bench, Did::Nothing)?;
    }
    Ok((bench, out))
}

enum Did<'a> {
    Asked(usize, &'a Admission),
    Reported { attempt: usize, probe: bool, what: Observation },
    Nothing,
}

fn near(left: f64, right: f64) -> bool {
    (left - right).abs() <= 1e-6 * right.abs().max(1.0)
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(crate::testing::property_cases(512, ProptestConfig::default().cases)))]

    #[test]
    fn it_is_what_the_naive_model_says(policy in policy(), steps in proptest::collection::vec(step(), 1..90)) {
        let mut model = Reference::new(policy);
        run(policy, &steps, |bench, did| {
            match did {
                Did::Asked(attempt, admission) => {
                    let found = match admission {
                        Admission::Admitted(permit) if permit.is_probe() => Expected::Probe,
                        Admission::Admitted(_) => Expected::Attempt,
                        Admission::Refused { retry_in } => Expected::Refused(*retry_in),
                    };
                    prop_assert_eq!(found, model.admit(attempt, bench.now));
                }
                Did::Reported { attempt, what, .. } => model.report(attempt, what, bench.now),
                Did::Nothing => {}
            }
            let (view, now) = (bench.view(), bench.now);
            let retry_in = match model.expect(now) {
                Expected::Refused(retry_in) => Some(retry_in),
                Expected::Attempt | Expected::Probe => None,
            };
            prop_assert_eq!((view.state, view.retry_in), (model.state(now), retry_in));
            prop_assert_eq!(bench.health.would_admit(&policy, now), retry_in.is_none());
            prop_assert_eq!(view.consecutive_failures as usize, model.consecutive_failures());
            prop_assert_eq!(view.observations, model.observations() as u64);
            prop_assert_eq!(view.last_failure_at, model.last_failure_at());
            prop_assert!(near(view.error_rate, model.error_rate(now)), "{} {}", view.error_rate, model.error_rate(now));
            prop_assert_eq!(view.latency.is_some(), model.latency(now).is_some());
            if let (Some(found), Some(expected)) = (view.latency, model.latency(now)) {
                prop_assert!(near(found.as_secs_f64(), expected), "{:?} {}", found, expected);
            }
            Ok(())
        })?;
    }

    /// Needs no model: what the endpoint itself said is held against what it does later.
    #[test]
    fn one_probe_at_a_time_and_nobody_before_the_opening_is_over(
        policy in policy(),
        steps in proptest::collection::vec(step(), 1..200),
    ) {
        let mut closed_until = Duration::ZERO;
        let mut probe_out: Option<(usize, Duration)> = None;
        run(policy, &steps, |bench, did| {
            let (view, now) = (bench.view(), bench.now);
            match did {
                Did::Asked(attempt, Admission::Admitted(permit)) => {
                    prop_assert!(now >= closed_until, "admitted {:?} too early", closed_until.saturating_sub(now));
                    prop_assert_eq!(permit.is_probe(), view.state == BreakerState::HalfOpen);
                    if permit.is_probe() {
                        let held = probe_out.is_some_and(|(_, expires)| now < expires);
                        prop_assert!(!held, "two probes are out");
                        probe_out = Some((attempt, now + policy.probe_lease));
                    }
                }
                Did::Reported { attempt, probe, what } => {
                    if probe_out.is_some_and(|(out, _)| out == attempt) {
                        probe_out = None;
                    } else if !probe && view.state == BreakerState::Closed {
                        // A late or ordinary report closes nothing.
                        prop_assert!(closed_until <= now, "{:?} closed it", what);
                    }
                }
                Did::Asked(_, Admission::Refused { .. }) => prop_assert!(view.state != BreakerState::Closed),
                Did::Nothing => {}
            }
            if view.state == BreakerState::Open {
                closed_until = closed_until.max(now + view.retry_in.unwrap_or_default());
            }
            Ok(())
        })?;
    }

    #[test]
    fn where_nobody_reports_any_more_it_admits_again(
        policy in policy(),
        steps in proptest::collection::vec(step(), 1..120),
        keep in any::<bool>(),
    ) {
        let (mut bench, out) = run(policy, &steps, |_, _| Ok(()))?;
        if !keep {
            drop(out);
        }
        let longest = policy.open_for_max.max(policy.max_retry_after) + policy.probe_lease;
        let last = bench.now + longest;
        loop {
            match bench.ask() {
                Admission::Admitted(_) => break,
                Admission::Refused { retry_in } => {
                    prop_assert!(!retry_in.is_zero(), "to ask again at once is no advice");
                    bench.now += retry_in;
                    prop_assert!(bench.now <= last, "still refused after {:?}", longest);
                }
            }
        }
    }

    #[test]
    fn nothing_panics(
        numbers in proptest::collection::vec(extreme(), 7),
        counts in [prop_oneof![Just(0), Just(u32::MAX), any::<u32>()], prop_oneof![Just(0), Just(2), any::<u32>()]],
        rate in prop_oneof![any::<f64>(), Just(f64::NAN)],
        steps in proptest::collection::vec((0..4_u8, extreme(), extreme(), any::<u64>()), 1..60),
    ) {
        let policy = HealthPolicy {
            failures_to_open: counts[0],
            error_rate_to_open: rate,
            error_rate_min_observations: counts[1],
            open_for: numbers[0],
            open_for_max: numbers[1],
            max_retry_after: numbers[2],
            probe_lease: numbers[3],
            half_life: numbers[4],
            window: numbers[5],
            recent_failure: numbers[6],
        };
        let board = HealthBoard::new(1, policy);
        for (kind, now, time, tokens) in steps {
            let what = match kind {
                0 => Observation::Succeeded { latency: time, tokens },
                1 => told(time),
                2 => Observation::Failed,
                _ => Observation::Unauthorised,
            };
            if let Admission::Admitted(permit) = board.admit(0, now) {
                board.report(permit, what, now);
            }
            let view = board.view(0, now);
            prop_assert!((0.0..=1.0).contains(&view.error_rate), "{}", view.error_rate);
            prop_assert_eq!(view.retry_in.is_none(), board.would_admit(0, now));
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
