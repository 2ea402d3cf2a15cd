//! Who rests, and when it is worth to ask again.

use super::*;

#[test]
fn who_rests_is_left_out_and_named() {
    let field = Field::of_three();
    field.open(2);
    let outcome = field.choose();
    assert_eq!(outcome.funnel, [("health", 2)]);
    let chosen = outcome.chosen.unwrap();
    assert_eq!((names(&chosen.candidates), names(&chosen.resting)), (slugs(&["b", "a"]), slugs(&["c"])));
}

#[test]
fn where_all_rest_the_shortest_wait_is_told() {
    let field = Field::of_three();
    let told = |seconds| Observation::Overloaded { retry_after: Some(Duration::from_secs(seconds)) };
    field.report(0, told(9), NOW);
    field.report(1, told(2), NOW);
    field.report(2, told(30), NOW);
    assert_eq!(field.choose().chosen, Err(Emptied::BreakersOpen { retry_in: Duration::from_secs(2) }));
    assert_eq!(field.choose().funnel, [("health", 0)]);
}

#[test]
fn a_half_open_breaker_lets_one_be_tried() {
    let field = Field::new(vec![candidate(0, "a", "1e-6")]);
    let policy = HealthPolicy::default();
    field.report(0, Observation::Unauthorised, NOW.saturating_sub(policy.open_for));
    assert_eq!(field.names(), ["a"], "its time is over, to the nanosecond");
    let Admission::Admitted(_probe) = field.board.admit(0, NOW) else { panic!("one probe") };
    assert!(matches!(field.choose().chosen, Err(Emptied::BreakersOpen { .. })), "and the probe is out");
}
