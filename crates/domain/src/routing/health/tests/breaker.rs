use super::*;
use crate::routing::health::BreakerState::{self, Closed, HalfOpen, Open};
use crate::routing::{AttemptFailure, AttemptFailureKind, SimulatedFailure};
use rstest::rstest;

const MOMENT: Duration = Duration::from_nanos(1);

fn state(bench: &Bench) -> BreakerState {
    bench.view().state
}

#[test]
fn a_new_endpoint_is_closed_and_unknown() {
    let mut bench = Bench::new();
    let view = bench.view();
    assert_eq!((view.state, view.retry_in, view.observations), (Closed, None, 0));
    assert_eq!((view.last_failure_at, view.failed_recently, view.consecutive_failures), (None, false, 0));
    assert!(!bench.admit().is_probe());
}

#[test]
fn failures_in_a_row_open_it_and_one_less_does_not() {
    let mut bench = Bench::new();
    bench.attempts(4, Observation::Failed);
    assert_eq!((state(&bench), bench.view().consecutive_failures), (Closed, 4));
    bench.attempt(Observation::Failed);
    assert_eq!((state(&bench), bench.view().retry_in), (Open, Some(secs(5))));
    assert_eq!(bench.refusal(), secs(5));
    assert!(!bench.health.would_admit(&bench.policy, bench.now));
}

#[test]
fn a_success_in_between_starts_the_count_anew() {
    let mut bench = Bench::new();
    bench.attempts(20, OK).attempts(4, Observation::Failed).attempt(OK).attempts(4, Observation::Failed);
    assert_eq!((state(&bench), bench.view().consecutive_failures), (Closed, 4));
}

#[test]
fn what_says_nothing_neither_counts_nor_starts_anew() {
    let mut bench = Bench::new();
    bench.attempts(4, Observation::Failed).attempts(50, Observation::Neutral);
    assert_eq!((state(&bench), bench.view().observations), (Closed, 4));
    bench.attempt(Observation::Failed);
    assert_eq!(state(&bench), Open);
}

#[test]
fn overload_without_a_wait_counts_as_a_failure() {
    for observation in [UNTOLD, told(Duration::ZERO)] {
        let mut bench = Bench::new();
        bench.attempts(4, observation);
        assert_eq!(state(&bench), Closed, "{observation:?}");
        bench.attempt(observation);
        assert_eq!(bench.refusal(), secs(5), "{observation:?}");
    }
}

#[test]
fn more_failures_than_successes_open_it_without_a_row() {
    let mut bench = Bench::new();
    // 5 of 10: as many as successes are not more.
    for _ in 0..5 {
        bench.attempt(OK).attempt(Observation::Failed);
    }
    assert_eq!(state(&bench), Closed);
    assert!((bench.view().error_rate - 0.5).abs() < 1e-12);
    bench.attempt(Observation::Failed);
    assert_eq!(state(&bench), Open);
}

#[test]
fn a_rate_over_few_attempts_opens_nothing() {
    let mut bench = Bench::new();
    // 6 of 9; the tenth attempt is the first that can open it.
    bench.attempts(4, Observation::Failed).attempts(3, OK).attempts(2, Observation::Failed);
    assert_eq!(state(&bench), Closed);
    bench.attempt(Observation::Failed);
    assert_eq!(state(&bench), Open);
}

#[test]
fn the_rate_forgets_with_time() {
    let run = |pause: Duration| {
        let mut bench = Bench::new();
        bench.attempts(20, OK).wait(pause);
        for _ in 0..2 {
            bench.attempts(3, Observation::Failed).attempt(OK);
        }
        bench.attempts(2, Observation::Failed);
        state(&bench)
    };
    // 8 failures of 30 attempts, or of 10 where the other 20 are long ago.
    assert_eq!((run(Duration::ZERO), run(secs(600))), (Closed, Open));
}

#[test]
fn a_success_never_opens_it() {
    let mut bench = Bench::new();
    bench.attempts(4, Observation::Failed).attempt(OK).attempts(4, Observation::Failed);
    assert_eq!(state(&bench), Closed, "8 of 9, but 9 are too few");
    bench.attempt(OK);
    assert_eq!(state(&bench), Closed, "8 of 10, but nothing failed just now");
}

#[test]
fn refused_credentials_open_it_at_once() {
    let mut bench = Bench::new();
    bench.attempts(100, OK).attempt(Observation::Unauthorised);
    assert_eq!((state(&bench), bench.refusal()), (Open, secs(5)));
}

#[rstest]
#[case::as_told(30, 30)]
#[case::shorter_than_an_opening(1, 1)]
#[case::at_the_cap(600, 600)]
#[case::cut_to_the_cap(601, 600)]
#[case::absurd(u64::MAX, 600)]
fn overload_opens_it_for_as_long_as_told(#[case] asked: u64, #[case] kept: u64) {
    let mut bench = Bench::new();
    bench.attempts(100, OK).attempt(told(secs(asked)));
    assert_eq!((state(&bench), bench.refusal()), (Open, secs(kept)));
    bench.wait(secs(kept)).attempt(OK);
    assert_eq!(state(&bench), Closed);
}

#[test]
fn with_a_cap_of_zero_a_told_wait_is_a_failure_like_another() {
    let mut bench = Bench::with(HealthPolicy { max_retry_after: Duration::ZERO, ..HealthPolicy::default() });
    bench.attempts(4, told(secs(30)));
    assert_eq!(state(&bench), Closed);
    bench.attempt(told(secs(30)));
    assert_eq!(bench.refusal(), secs(5));
}

#[test]
fn it_is_half_open_from_the_moment_the_opening_is_over() {
    let mut bench = Bench::new();
    bench.attempt(Observation::Unauthorised).wait(just_under(secs(5)));
    assert_eq!((state(&bench), bench.refusal()), (Open, MOMENT));
    bench.wait(MOMENT);
    assert_eq!((state(&bench), bench.view().retry_in), (HalfOpen, None));
    assert!(bench.health.would_admit(&bench.policy, bench.now));
    assert!(bench.admit().is_probe());
}

#[test]
fn half_open_lets_one_probe_out_at_a_time() {
    let mut bench = Bench::new();
    let probe = bench.half_open().admit();
    assert_eq!((bench.refusal(), bench.view().retry_in, state(&bench)), (secs(5), Some(secs(5)), HalfOpen));
    bench.wait(secs(118));
    assert_eq!(bench.refusal(), secs(2), "what is left of the lease, where that is less");
    bench.report(probe, OK);
    assert_eq!(state(&bench), Closed);
    assert!(!bench.admit().is_probe());
}

#[test]
fn a_probes_success_clears_what_failures_were_remembered() {
    let mut bench = Bench::new();
    bench.half_open().attempt(OK);
    let view = bench.view();
    assert_eq!((view.state, view.consecutive_failures, view.retry_in), (Closed, 0, None));
    assert!(view.error_rate.abs() < f64::EPSILON);
    assert!(view.failed_recently, "that it failed a moment ago stays true");
    bench.attempts(4, Observation::Failed);
    assert_eq!(state(&bench), Closed);
    bench.attempt(Observation::Failed);
    assert_eq!(bench.refusal(), secs(5), "the length starts anew as well");
}

#[test]
fn each_failed_probe_doubles_the_opening_up_to_the_longest() {
    for failure in [Observation::Failed, Observation::Unauthorised, UNTOLD] {
        let mut bench = Bench::new();
        bench.half_open();
        for expected in [10, 20, 40, 60, 60] {
            bench.attempt(failure);
            assert_eq!(bench.refusal(), secs(expected), "{failure:?}");
            bench.wait(secs(expected));
        }
    }
}

#[test]
fn no_number_of_openings_is_too_large() {
    let policy = HealthPolicy::default();
    assert_eq!(
        [0, 1, 2, 31, 32, 33, u32::MAX].map(|number| policy.opening(number).as_secs()),
        [5, 5, 10, 60, 60, 60, 60]
    );
    let endless = HealthPolicy { open_for: Duration::MAX, open_for_max: Duration::MAX, ..policy };
    assert_eq!([1, u32::MAX].map(|number| endless.opening(number)), [Duration::MAX; 2]);
}

#[test]
fn a_probe_that_is_told_to_wait_opens_it_for_that_time() {
    let mut bench = Bench::new();
    bench.half_open().attempt(told(secs(3)));
    assert_eq!(bench.refusal(), secs(3));
    bench.wait(secs(3)).attempt(Observation::Failed);
    assert_eq!(bench.refusal(), secs(20), "the told opening was the second, this is the third");
}

#[test]
fn a_neutral_probe_gives_its_place_back_and_changes_nothing() {
    let mut bench = Bench::new();
    bench.half_open().attempt(Observation::Neutral);
    assert_eq!((state(&bench), bench.view().consecutive_failures), (HalfOpen, 5));
    bench.attempt(Observation::Failed);
    assert_eq!(bench.refusal(), secs(10), "a neutral probe is no opening");
}

#[test]
fn a_lost_probe_keeps_its_place_until_its_lease_is_over() {
    let mut bench = Bench::new();
    let lost = bench.half_open().admit();
    bench.wait(just_under(secs(120)));
    assert_eq!(bench.refusal(), MOMENT);
    let next = bench.wait(MOMENT).admit();
    assert!(lost.is_probe() && next.is_probe());
    for late in [OK, Observation::Failed, Observation::Neutral] {
        let mut bench = Bench::new();
        let lost = bench.half_open().admit();
        let next = bench.wait(secs(120)).admit();
        bench.report(lost, late);
        assert_eq!(state(&bench), HalfOpen, "{late:?} of an expired probe decides nothing");
        let _ = bench.refusal();
        bench.report(next, OK);
        assert_eq!(state(&bench), Closed, "after {late:?}");
    }
}

#[test]
fn an_expired_probe_decides_nothing_even_where_nobody_took_its_place() {
    for late in [OK, Observation::Failed, Observation::Unauthorised] {
        let mut bench = Bench::new();
        let lost = bench.half_open().admit();
        bench.wait(secs(120)).report(lost, late);
        assert_eq!(state(&bench), HalfOpen, "{late:?}");
        assert!(bench.admit().is_probe());
    }
}

#[test]
fn attempts_from_before_the_opening_neither_close_nor_extend_it() {
    for late in [OK, Observation::Failed, Observation::Unauthorised, UNTOLD, Observation::Neutral] {
        let mut bench = Bench::new();
        let early = [bench.admit(), bench.admit()];
        bench.attempts(5, Observation::Failed).wait(secs(2));
        let [first, second] = early;
        bench.report(first, late);
        assert_eq!((bench.refusal(), bench.view().consecutive_failures), (secs(3), 5), "{late:?} while open");
        bench.wait(secs(3));
        let probe = bench.admit();
        bench.report(second, late);
        assert_eq!(state(&bench), HalfOpen, "{late:?} while half-open");
        bench.report(probe, OK);
        assert_eq!(state(&bench), Closed);
    }
}

#[test]
fn attempts_from_before_the_opening_do_not_count_after_the_closing() {
    let mut bench = Bench::new();
    let early: Vec<Permit> = (0..20).map(|_| bench.admit()).collect();
    bench.half_open().attempt(OK).attempts(4, Observation::Failed);
    for (number, permit) in early.into_iter().enumerate() {
        let late = [Observation::Failed, Observation::Unauthorised, OK][number % 3];
        bench.report(permit, late);
    }
    assert_eq!((state(&bench), bench.view().consecutive_failures), (Closed, 4));
    bench.attempt(Observation::Failed);
    assert_eq!(state(&bench), Open, "nor do they take anything back");
}

#[test]
fn a_later_and_longer_wait_extends_the_opening_and_a_shorter_one_does_not() {
    let mut bench = Bench::new();
    let early = [bench.admit(), bench.admit()];
    bench.attempt(told(secs(30))).wait(secs(10));
    let [shorter, longer] = early;
    bench.report(shorter, told(secs(19)));
    assert_eq!(bench.refusal(), secs(20));
    bench.report(longer, told(secs(21)));
    assert_eq!(bench.refusal(), secs(21));
    bench.wait(secs(21)).attempt(Observation::Failed);
    assert_eq!(bench.refusal(), secs(10), "an extension is no opening of its own");
}

#[test]
fn a_wait_told_to_a_late_attempt_is_kept_to_after_the_closing_too() {
    let mut bench = Bench::new();
    let early = bench.admit();
    bench.half_open().attempt(OK);
    let before = bench.admit();
    bench.report(early, told(secs(7)));
    assert_eq!((state(&bench), bench.refusal()), (Open, secs(7)));
    bench.report(before, OK);
    assert_eq!(state(&bench), Open, "what began before this opening is late as well");
}

#[test]
fn a_wait_told_while_a_probe_is_out_holds_whatever_the_probe_says() {
    for (outcome, retry_in) in [
        (OK, secs(9)),
        (Observation::Failed, secs(9)),
        (Observation::Neutral, secs(9)),
        (told(secs(4)), secs(9)),
        (told(secs(11)), secs(11)),
    ] {
        let mut bench = Bench::new();
        let early = bench.admit();
        let probe = bench.half_open().admit();
        bench.report(early, told(secs(9)));
        assert_eq!((state(&bench), bench.refusal()), (Open, secs(9)));
        bench.report(probe, outcome);
        assert_eq!((state(&bench), bench.refusal()), (Open, retry_in), "{outcome:?}");
        bench.wait(retry_in);
        assert!(bench.admit().is_probe(), "its place is free after {outcome:?}");
    }
}

#[test]
fn a_probe_that_outlasts_an_extension_still_has_its_place() {
    let mut bench = Bench::new();
    let early = bench.admit();
    let probe = bench.half_open().admit();
    bench.report(early, told(secs(9)));
    bench.wait(secs(9));
    assert_eq!((state(&bench), bench.refusal()), (HalfOpen, secs(5)));
    bench.report(probe, OK);
    assert_eq!(state(&bench), Closed);
}

#[test]
fn a_failure_is_recent_for_half_a_minute() {
    let mut bench = Bench::new();
    bench.attempt(Observation::Failed);
    let at = bench.now;
    bench.wait(just_under(secs(30))).attempt(OK);
    assert_eq!((bench.view().last_failure_at, bench.view().failed_recently), (Some(at), true));
    bench.wait(MOMENT);
    assert_eq!((bench.view().last_failure_at, bench.view().failed_recently), (Some(at), false));
}

#[rstest]
#[case(AttemptFailureKind::Broken, Observation::Failed)]
#[case(AttemptFailureKind::TimedOut, Observation::Failed)]
#[case(AttemptFailureKind::Unauthorised, Observation::Unauthorised)]
#[case(AttemptFailureKind::Overloaded, told(secs(4)))]
#[case(AttemptFailureKind::Refused, Observation::Neutral)]
#[case(AttemptFailureKind::CallerGone, Observation::Neutral)]
#[case(AttemptFailureKind::Simulated(SimulatedFailure::Unavailable), Observation::Neutral)]
fn each_failure_tells_something(#[case] kind: AttemptFailureKind, #[case] expected: Observation) {
    let failure = AttemptFailure { retry_after: Some(secs(4)), ..AttemptFailure::new(kind, "of a test") };
    assert_eq!(Observation::from(&failure), expected);
}

#[test]
fn states_have_names() {
    assert_eq!([Closed, Open, HalfOpen].map(BreakerState::as_str), ["closed", "open", "half_open"]);
}
