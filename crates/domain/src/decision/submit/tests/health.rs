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

/// So many requests at the first endpoint alone, which end so.
async fn fail(world: &World, count: usize, outcome: impl Fn() -> Outcome) {
    for _ in 0..count {
        once(world, outcome()).await.unwrap_err();
    }
}

#[expect(clippy::unnecessary_wraps, reason = "the outcomes of a provider are results")]
fn wrong() -> Outcome {
    Ok(ProviderAnswer { answers: Json::parse("{}").unwrap(), usage: None, sent_bytes: 1 })
}

#[rstest]
#[case::broken(failure(InvalidResponse), 10)]
#[case::timed_out(failure(TimedOut), 2)]
#[case::overloaded(failure(Overloaded), 10)]
#[case::connect_failed(failure(ConnectFailed), 10)]
#[case::wrong_answer(wrong(), 10)]
#[tokio::test]
async fn failing_endpoint_is_throttled_and_the_other_one_answers(#[case] outcome: Outcome, #[case] count: usize) {
    let world = world();
    fail(&world, count - 1, || outcome.clone()).await;
    fail(&world, 1, || outcome.clone()).await;
    let asked = world.ask(nouls(1)).await;
    assert_eq!(world.upstreams().last().unwrap(), "b", "the throttled one is left out");
    world.answer(count, 1).await;
    assert_eq!(asked.end().await.unwrap().funnel.last(), Some(&("health", 1)));
    let rejected = world.ask(without_fallbacks()).await.end().await.unwrap_err();
    assert!(matches!(rejected, SubmitDecisionError::Throttled { .. }), "{rejected}");
    assert_eq!(world.upstreams().len(), count + 1);
}

#[tokio::test]
async fn accepts_outweigh_as_many_failures() {
    let world = world();
    for _ in 0..10 {
        let asked = world.ask(without_fallbacks()).await;
        world.answer(world.upstreams().len() - 1, 1).await;
        asked.end().await.unwrap();
    }
    fail(&world, 11, wrong).await;
    let rejected = world.ask(without_fallbacks()).await.end().await.unwrap_err();
    assert!(matches!(rejected, SubmitDecisionError::Throttled { .. }), "11 of 21 failed: {rejected}");
}

#[tokio::test]
async fn rejection_by_all_endpoints_names_them_and_records_nothing() {
    let world = world();
    let asked = world.ask(nouls(1)).await;
    world.fail(0, Unauthorised).await;
    world.clock.advance(Duration::from_secs(1));
    world.finish(1, Err(AttemptFailure::from_status(401, None))).await;
    assert_eq!(asked.end().await.unwrap_err().kind(), ErrorKind::ProviderFailure);
    let rejected = world.ask(nouls(1)).await.end().await.unwrap_err();
    assert_eq!(rejected.kind(), ErrorKind::Unavailable);
    let sentence = rejected.to_string();
    assert!(sentence.starts_with("no endpoint of acme/judge is available: "), "{sentence}");
    assert!(
        sentence.contains("two throttled, last failed with 401") && sentence.ends_with("; retry in 4 s"),
        "{sentence}"
    );
    let SubmitDecisionError::Throttled { endpoints, funnel, .. } = rejected else { panic!("both are throttled") };
    assert_eq!(endpoints.retry_in, Duration::from_secs(4), "the first of five seconds each");
    assert_eq!(funnel, [("model", 2), ("price", 2), ("health", 0)]);
    assert_eq!((world.upstreams().len(), world.records().len()), (2, 1));
}

#[tokio::test]
async fn question_that_only_a_throttled_endpoint_can_answer_is_not_impossible() {
    let mut plan = Plan::new(vec![endpoint("acme/judge", "one", "a"), endpoint("acme/judge", "two", "b")]);
    plan.endpoints[1].question_types = Some(vec![crate::question::QuestionType::Noul]);
    let world = plan.build();
    once(&world, failure(Unauthorised)).await.unwrap_err();
    let both = r#"{"n":{"type":"noul","instructions":"?"},"s":{"type":"score","criteria":["a"]}}"#;
    let rejected = world.ask(asking(both)).await.end().await.unwrap_err();
    assert!(matches!(rejected, SubmitDecisionError::Throttled { .. }), "{rejected}");
    let alone = asking(r#"{"s":{"type":"score","criteria":["a"]}}"#);
    let rejected = world.ask(alone).await.end().await.unwrap_err();
    assert!(matches!(rejected, SubmitDecisionError::Throttled { .. }), "{rejected}");
}

#[tokio::test]
async fn retry_after_is_kept_by_the_workspace_that_met_it() {
    let world = world();
    once(&world, Err(AttemptFailure::from_status(429, Some(Duration::from_secs(30))))).await.unwrap_err();
    let Err(SubmitDecisionError::Throttled { endpoints, .. }) = world.ask(without_fallbacks()).await.end().await else {
        panic!("it asked for a pause")
    };
    assert_eq!(endpoints.retry_in, Duration::from_secs(30));
    let other = world.ask_in(17, without_fallbacks()).await;
    world.answer(1, 1).await;
    other.end().await.unwrap();
    world.clock.advance(Duration::from_secs(30));
    let asked = world.ask(without_fallbacks()).await;
    world.answer(2, 1).await;
    asked.end().await.unwrap();
    assert!(world.admits(0));
}

#[tokio::test]
async fn retry_after_that_callers_are_told_is_bounded() {
    let world = world();
    let ten_minutes = || Err(AttemptFailure::from_status(429, Some(Duration::from_mins(10))));
    let Err(SubmitDecisionError::Attempts(failed)) = once(&world, ten_minutes()).await else { panic!("it failed") };
    assert_eq!(failed.retry_after, Some(Duration::from_mins(1)));
    let Err(SubmitDecisionError::Throttled { endpoints, .. }) = world.ask(without_fallbacks()).await.end().await else {
        panic!("it asked for a pause")
    };
    assert_eq!(endpoints.retry_in, Duration::from_mins(1));
}

#[tokio::test]
async fn rejected_credentials_back_off_at_once_and_403_does_not() {
    let world = world();
    once(&world, Err(AttemptFailure::from_status(403, None))).await.unwrap_err();
    assert!(world.admits(0), "content can provoke it");
    once(&world, Err(AttemptFailure::from_status(401, None))).await.unwrap_err();
    assert!(!world.admits(0));
    let other = world.ask_in(17, without_fallbacks()).await.end().await.unwrap_err();
    assert!(matches!(other, SubmitDecisionError::Throttled { .. }), "for all workspaces: {other}");
    world.clock.advance(HealthPolicy::default().auth_backoff);
    assert!(world.admits(0));
}

#[rstest]
#[case::garbled(wrong())]
#[case::forbidden(Err(AttemptFailure::from_status(403, None)))]
#[case::not_found(Err(AttemptFailure::from_status(404, None)))]
#[case::overloaded(Err(AttemptFailure::from_status(429, Some(Duration::from_mins(10)))))]
#[tokio::test]
async fn failures_of_one_workspace_do_not_affect_another(#[case] outcome: Outcome) {
    let world = world();
    for _ in 0..40 {
        let asked = world.ask(without_fallbacks()).await;
        if world.upstreams().len() > world.records().len() {
            world.finish(world.upstreams().len() - 1, outcome.clone()).await;
        }
        asked.end().await.unwrap_err();
    }
    for _ in 0..40 {
        let asked = world.ask_in(17, without_fallbacks()).await;
        world.answer(world.upstreams().len() - 1, 1).await;
        asked.end().await.unwrap();
    }
}

#[rstest]
#[case::caller_gone(ClientDisconnected)]
#[case::never_sent(Refused)]
#[case::simulated(AttemptFailureKind::Simulated(SimulatedFailure::ProviderFailure))]
#[case::simulated_overload(AttemptFailureKind::Simulated(SimulatedFailure::ProviderOverloaded))]
#[tokio::test]
async fn failures_that_say_nothing_about_the_endpoint_do_not_count(#[case] kind: AttemptFailureKind) {
    let world = world();
    fail(&world, 20, || failure(kind)).await;
    assert!(world.admits(0));
    let workspace = WorkspaceId::from_uuid(SequentialIds::uuid(900));
    let recent = world.health.failed_recently(0, workspace, Duration::ZERO);
    assert_eq!((world.health.view(0, Duration::ZERO).observations, recent), (0, false));
}

#[tokio::test]
async fn throttled_endpoint_gets_one_probe_and_the_others_go_elsewhere() {
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
}
