//! Throttled candidates: rejected ones, and admitted ones that come last.

use super::*;

#[test]
fn choose_excludes_and_reports_rejected_candidate() {
    let fixture = SelectionFixture::of_three();
    fixture.reject_credentials(2);
    let outcome = fixture.choose();
    assert_eq!(outcome.funnel, [("health", 2)]);
    let chosen = outcome.chosen.unwrap();
    assert_eq!((names(&chosen.candidates), names(&chosen.rejected)), (slugs(&["b", "a"]), slugs(&["c"])));
    assert_eq!(chosen.rejections.unwrap().to_string(), "c throttled, last failed with 401; retry in 5 s");
}

#[test]
fn choose_excludes_paused_providers_and_names_them() {
    let fixture = SelectionFixture::of_three();
    let pause =
        |slugs: &[&str]| fixture.board.paused().replace(slugs.iter().map(|slug| slug.parse().unwrap()).collect());
    pause(&["c", "other"]);
    fixture.reject_credentials(1);
    let outcome = fixture.choose();
    assert_eq!(outcome.funnel, [("paused", 2), ("health", 1)]);
    assert_eq!(names(&outcome.chosen.unwrap().candidates), slugs(&["a"]));
    pause(&["a", "b", "c"]);
    let outcome = fixture.choose();
    let Err(NoCandidates::Throttled(endpoints)) = outcome.chosen else { panic!("all are paused") };
    assert_eq!((outcome.funnel, endpoints.retry_in), (vec![("paused", 0)], Duration::from_mins(1)));
    assert!(endpoints.to_string().contains("b paused by the operator; "), "{endpoints}");
    pause(&[]);
    assert_eq!(fixture.names(), ["c", "a"], "b is still in its back-off");
}

#[test]
fn choose_reports_shortest_wait_when_all_reject() {
    let fixture = SelectionFixture::of_three();
    let told = |seconds| Observation::from(&AttemptFailure::from_status(429, Some(Duration::from_secs(seconds))));
    fixture.report(0, told(9), NOW);
    fixture.report(1, told(2), NOW);
    fixture.report(2, told(30), NOW);
    let outcome = fixture.choose();
    let Err(NoCandidates::Throttled(endpoints)) = outcome.chosen else { panic!("all of them are in a back-off") };
    assert_eq!(endpoints.retry_in, Duration::from_secs(2));
    let sentence = "b throttled, last failed with 429; a throttled, last failed with 429; \
                    c throttled, last failed with 429; retry in 2 s";
    let mut sentences: Vec<&str> = sentence.split("; ").collect();
    let told = endpoints.to_string();
    let mut found: Vec<&str> = told.split("; ").collect();
    sentences.sort_unstable();
    found.sort_unstable();
    assert_eq!((found, outcome.funnel), (sentences, vec![("health", 0)]));
    let other = SelectionFixture { workspace: WorkspaceId::from_uuid(uuid::Uuid::from_u128(2)), ..fixture };
    assert_eq!(other.names(), ["c", "b", "a"], "another workspace keeps no back-off");
}

#[test]
fn choose_orders_throttled_candidates_last() {
    let mut fixture = SelectionFixture::of_three();
    for _ in 0..20 {
        fixture.report(2, failed(), NOW);
    }
    // The first draw orders the two healthy candidates; 20 of 21 draws reject the throttled one.
    fixture.draws = vec![0, u64::MAX / 21 * 20 + u64::MAX / 1_000];
    let chosen = fixture.choose().chosen.unwrap();
    assert_eq!((names(&chosen.candidates), names(&chosen.throttled)), (slugs(&["b", "a"]), slugs(&["c"])));
    fixture.draws = vec![0, u64::MAX / 21 * 20 - u64::MAX / 1_000];
    let chosen = fixture.choose().chosen.unwrap();
    assert_eq!((chosen.throttled, names(&chosen.rejected)), (Vec::new(), slugs(&["c"])));
}

#[test]
fn choose_keeps_position_of_due_probe() {
    let fixture = SelectionFixture::new(vec![candidate(0, "a", "1e-6")]);
    let policy = HealthPolicy::default();
    fixture.report(0, unauthorised(), NOW.saturating_sub(policy.auth_backoff));
    assert_eq!(fixture.names(), ["a"], "the back-off is over, to the nanosecond");
    assert!(matches!(fixture.choose().chosen, Err(NoCandidates::Throttled(_))), "and the probe is taken");
}
