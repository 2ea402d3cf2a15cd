//! What attempts tell about endpoints, and what becomes of those that fail.

use super::stage::*;
use super::*;
use rstest::rstest;

fn world() -> World {
    Plan::new(vec![endpoint("acme/judge", "one", "a"), endpoint("acme/judge", "two", "b")]).build()
}

fn without_fallbacks() -> DecisionRequest {
    let mut request = nouls(1);
    request.preferences.allow_fallbacks = false;
    request.preferences.order = vec!["one".to_owned()];
    request
}

/// One request at the first endpoint alone, which ends so.
async fn once(world: &World, outcome: Outcome) -> Result<Decision, SubmitDecisionError> {
    let asked = world.ask(without_fallbacks()).await;
    world.finish(world.upstreams().len() - 1, outcome).await;
    asked.end().await
}

#[rstest]
#[case(Broken)]
#[case(TimedOut)]
#[case(Overloaded)]
#[tokio::test]
async fn five_failures_in_a_row_open_a_breaker(#[case] kind: AttemptFailureKind) {
    let world = world();
    for _ in 0..4 {
        once(&world, failure(kind)).await.unwrap_err();
        assert!(world.admits(0));
    }
    once(&world, failure(kind)).await.unwrap_err();
    assert!(!world.admits(0));
    let asked = world.ask(nouls(1)).await;
    assert_eq!(world.upstreams().last().unwrap(), "b", "who rests is skipped");
    world.answer(5, 1).await;
    assert_eq!(asked.end().await.unwrap().funnel.last(), Some(&("health", 1)));
}

#[tokio::test]
async fn a_wrong_answer_counts_and_a_good_one_starts_the_count_anew() {
    let world = world();
    let wrong = || Ok(ProviderAnswer { answers: Json::parse("{}").unwrap(), usage: None, sent_bytes: 1 });
    for _ in 0..4 {
        once(&world, wrong()).await.unwrap_err();
    }
    let asked = world.ask(without_fallbacks()).await;
    world.answer(4, 1).await;
    asked.end().await.unwrap();
    for _ in 0..4 {
        once(&world, wrong()).await.unwrap_err();
    }
    assert!(world.admits(0));
    once(&world, wrong()).await.unwrap_err();
    assert!(!world.admits(0));
}

#[tokio::test]
async fn where_every_breaker_is_open_the_wait_is_told_and_nothing_is_recorded() {
    let world = world();
    let asked = world.ask(nouls(1)).await;
    world.fail(0, Unauthorised).await;
    world.clock.advance(Duration::from_secs(1));
    world.fail(1, Unauthorised).await;
    assert_eq!(asked.end().await.unwrap_err().kind(), ErrorKind::ProviderFailure);
    let refused = world.ask(nouls(1)).await.end().await.unwrap_err();
    assert_eq!(refused.kind(), ErrorKind::Unavailable);
    let SubmitDecisionError::BreakersOpen { retry_in, funnel, .. } = refused else { panic!("both rest") };
    assert_eq!(retry_in, Duration::from_secs(4), "the first of five seconds each");
    assert_eq!(funnel, [("model", 2), ("price", 2), ("health", 0)]);
    assert_eq!((world.upstreams().len(), world.records().len()), (2, 1));
}

#[tokio::test]
async fn what_only_a_resting_endpoint_can_answer_is_not_impossible() {
    let mut plan = Plan::new(vec![endpoint("acme/judge", "one", "a"), endpoint("acme/judge", "two", "b")]);
    plan.endpoints[1].question_types = Some(vec![crate::decision::QuestionType::Noul]);
    let world = plan.build();
    once(&world, failure(Unauthorised)).await.unwrap_err();
    let both = r#"{"n":{"type":"noul","instructions":"?"},"s":{"type":"score","criteria":["a"]}}"#;
    let refused = world.ask(asking(both)).await.end().await.unwrap_err();
    assert!(matches!(refused, SubmitDecisionError::BreakersOpen { .. }), "{refused}");
    let alone = asking(r#"{"s":{"type":"score","criteria":["a"]}}"#);
    let refused = world.ask(alone).await.end().await.unwrap_err();
    assert!(matches!(refused, SubmitDecisionError::BreakersOpen { .. }), "{refused}");
}

#[tokio::test]
async fn a_wait_that_was_asked_for_is_kept_to_by_the_next_request() {
    let world = world();
    once(&world, Err(AttemptFailure::from_status(429, Some(Duration::from_secs(30))))).await.unwrap_err();
    let Err(SubmitDecisionError::BreakersOpen { retry_in, .. }) = world.ask(without_fallbacks()).await.end().await
    else {
        panic!("it asked for a pause")
    };
    assert_eq!(retry_in, Duration::from_secs(30));
    world.clock.advance(Duration::from_secs(30));
    let asked = world.ask(without_fallbacks()).await;
    world.answer(1, 1).await;
    asked.end().await.unwrap();
    assert!(world.admits(0));
}

#[tokio::test]
async fn credentials_that_do_not_stand_open_at_once() {
    let world = world();
    for status in [401, 403] {
        once(&world, Err(AttemptFailure::from_status(status, None))).await.unwrap_err();
        assert!(!world.admits(0), "{status}");
        world.clock.advance(Duration::from_mins(2));
        assert!(world.admits(0));
    }
}

#[rstest]
#[case::refused(Refused)]
#[case::caller_gone(CallerGone)]
#[case::simulated(AttemptFailureKind::Simulated(SimulatedFailure::ProviderFailure))]
#[case::simulated_overload(AttemptFailureKind::Simulated(SimulatedFailure::ProviderOverloaded))]
#[tokio::test]
async fn what_is_not_the_endpoint_s_doing_is_not_held_against_it(#[case] kind: AttemptFailureKind) {
    let world = world();
    for _ in 0..20 {
        once(&world, failure(kind)).await.unwrap_err();
    }
    assert!(world.admits(0));
    let view = world.health.view(0, Duration::ZERO);
    assert_eq!((view.observations, view.failed_recently), (0, false));
}

#[tokio::test]
async fn a_half_open_breaker_sends_one_probe_and_the_others_elsewhere() {
    let world = world();
    once(&world, failure(Unauthorised)).await.unwrap_err();
    world.clock.advance(Duration::from_secs(5));
    let first = world.ask(without_fallbacks()).await;
    let second = world.ask(nouls(1)).await;
    assert_eq!(world.upstreams(), ["a", "a", "b"]);
    world.answer(1, 1).await;
    world.answer(2, 1).await;
    first.end().await.unwrap();
    second.end().await.unwrap();
    assert_eq!(world.health.view(0, Duration::ZERO).state.as_str(), "closed");
}

#[tokio::test]
async fn a_request_that_is_dropped_gives_its_probe_back() {
    let world = world();
    once(&world, failure(Unauthorised)).await.unwrap_err();
    world.clock.advance(Duration::from_secs(5));
    let probe = world.ask(without_fallbacks()).await;
    assert!(!world.admits(0));
    drop(probe);
    settle().await;
    assert!(world.is_given_up(1));
    assert!(world.admits(0));
}
