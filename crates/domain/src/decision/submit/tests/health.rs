//! Reports of attempts to the health of endpoints, and throttling of failing endpoints.

use super::fixture::*;
use super::*;
use rstest::rstest;

fn gateway() -> TestGateway {
    GatewaySetup::new(vec![endpoint("acme/judge", "one", "a"), endpoint("acme/judge", "two", "b")]).build()
}

fn without_fallbacks() -> DecisionRequest {
    let mut request = nouls(1);
    request.preferences.allow_fallbacks = false;
    request.preferences.order = vec!["one".to_owned()];
    request
}

/// Sends one request to the first endpoint only, which ends with `outcome`.
async fn once(gateway: &TestGateway, outcome: Outcome) -> Result<Decision, SubmitDecisionError> {
    let pending = gateway.send(without_fallbacks()).await;
    gateway.finish(gateway.upstreams().len() - 1, outcome).await;
    pending.end().await
}

/// Sends `count` failing requests to the first endpoint only.
async fn fail(gateway: &TestGateway, count: usize, outcome: impl Fn() -> Outcome) {
    for _ in 0..count {
        once(gateway, outcome()).await.unwrap_err();
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
#[tokio::test(start_paused = true)]
async fn failing_endpoint_is_throttled_and_the_other_one_answers(#[case] outcome: Outcome, #[case] count: usize) {
    let gateway = gateway();
    fail(&gateway, count - 1, || outcome.clone()).await;
    fail(&gateway, 1, || outcome.clone()).await;
    let pending = gateway.send(nouls(1)).await;
    assert_eq!(gateway.upstreams().last().unwrap(), "b", "the throttled one is left out");
    gateway.answer(count, 1).await;
    assert_eq!(pending.end().await.unwrap().funnel.last(), Some(&("health", 1)));
    let rejected = gateway.send(without_fallbacks()).await.end().await.unwrap_err();
    assert!(matches!(rejected, SubmitDecisionError::Throttled { .. }), "{rejected}");
    assert_eq!(gateway.upstreams().len(), count + 1);
}

#[tokio::test(start_paused = true)]
async fn running_attempt_ends_and_no_new_one_begins_at_a_paused_provider() {
    let gateway = gateway();
    let pause =
        |slugs: &[&str]| gateway.health.paused().replace(slugs.iter().map(|slug| slug.parse().unwrap()).collect());
    let pending = gateway.send(nouls(1)).await;
    pause(&["one", "two"]);
    gateway.answer(0, 1).await;
    assert!(pending.end().await.is_ok(), "its attempt was running");
    let rejected = gateway.send(nouls(1)).await.end().await.unwrap_err();
    assert!(rejected.to_string().contains("one paused by the operator"), "{rejected}");
    assert_eq!((rejected.kind(), gateway.upstreams().len()), (ErrorKind::Unavailable, 1));
    // A pause during the first attempt keeps the request from its fallback.
    pause(&[]);
    let pending = gateway.send(nouls(1)).await;
    pause(&["one", "two"]);
    gateway.finish(1, failure(InvalidResponse)).await;
    assert_eq!(pending.end().await.unwrap_err().kind(), ErrorKind::ProviderFailure);
    assert_eq!(gateway.upstreams().len(), 2);
}

#[tokio::test(start_paused = true)]
async fn endpoint_is_throttled_when_failures_exceed_accepts() {
    let gateway = gateway();
    for _ in 0..10 {
        let pending = gateway.send(without_fallbacks()).await;
        gateway.answer(gateway.upstreams().len() - 1, 1).await;
        pending.end().await.unwrap();
    }
    fail(&gateway, 11, wrong).await;
    let rejected = gateway.send(without_fallbacks()).await.end().await.unwrap_err();
    assert!(matches!(rejected, SubmitDecisionError::Throttled { .. }), "11 of 21 failed: {rejected}");
}

#[tokio::test(start_paused = true)]
async fn request_is_rejected_with_endpoints_when_all_are_throttled() {
    let gateway = gateway();
    let pending = gateway.send(nouls(1)).await;
    gateway.fail(0, ProviderAuthFailed).await;
    gateway.clock.advance(Duration::from_secs(1));
    gateway.finish(1, Err(AttemptFailure::from_status(401, None))).await;
    assert_eq!(pending.end().await.unwrap_err().kind(), ErrorKind::ProviderFailure);
    let rejected = gateway.send(nouls(1)).await.end().await.unwrap_err();
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
    assert_eq!((gateway.upstreams().len(), gateway.records().len()), (2, 1));
}

#[tokio::test(start_paused = true)]
async fn request_is_throttled_when_only_throttled_endpoint_supports_it() {
    let mut setup = GatewaySetup::new(vec![endpoint("acme/judge", "one", "a"), endpoint("acme/judge", "two", "b")]);
    setup.endpoints[1].question_types = Some(vec![crate::question::QuestionType::Noul]);
    let gateway = setup.build();
    once(&gateway, failure(ProviderAuthFailed)).await.unwrap_err();
    let both = r#"{"n":{"type":"noul","instructions":"?"},"s":{"type":"score","criteria":["a"]}}"#;
    let rejected = gateway.send(request_with(both)).await.end().await.unwrap_err();
    assert!(matches!(rejected, SubmitDecisionError::Throttled { .. }), "{rejected}");
    let alone = request_with(r#"{"s":{"type":"score","criteria":["a"]}}"#);
    let rejected = gateway.send(alone).await.end().await.unwrap_err();
    assert!(matches!(rejected, SubmitDecisionError::Throttled { .. }), "{rejected}");
}

#[tokio::test(start_paused = true)]
async fn retry_after_applies_to_workspace_that_received_it() {
    let gateway = gateway();
    once(&gateway, Err(AttemptFailure::from_status(429, Some(Duration::from_secs(30))))).await.unwrap_err();
    let Err(SubmitDecisionError::Throttled { endpoints, .. }) = gateway.send(without_fallbacks()).await.end().await
    else {
        panic!("it asked for a pause")
    };
    assert_eq!(endpoints.retry_in, Duration::from_secs(30));
    let other = gateway.send_in(17, without_fallbacks()).await;
    gateway.answer(1, 1).await;
    other.end().await.unwrap();
    gateway.clock.advance(Duration::from_secs(30));
    let pending = gateway.send(without_fallbacks()).await;
    gateway.answer(2, 1).await;
    pending.end().await.unwrap();
    assert!(gateway.has_no_backoff(0));
}

#[tokio::test(start_paused = true)]
async fn retry_after_for_clients_is_bounded() {
    let gateway = gateway();
    let ten_minutes = || Err(AttemptFailure::from_status(429, Some(Duration::from_mins(10))));
    let Err(SubmitDecisionError::Attempts(failed)) = once(&gateway, ten_minutes()).await else { panic!("it failed") };
    assert_eq!(failed.retry_after, Some(Duration::from_mins(1)));
    let Err(SubmitDecisionError::Throttled { endpoints, .. }) = gateway.send(without_fallbacks()).await.end().await
    else {
        panic!("it asked for a pause")
    };
    assert_eq!(endpoints.retry_in, Duration::from_mins(1));
}

#[tokio::test(start_paused = true)]
async fn rejected_request_has_no_retry_after() {
    let gateway = gateway();
    let rejected = Err(AttemptFailure::from_status(400, Some(Duration::from_secs(7))));
    let Err(SubmitDecisionError::Attempts(failed)) = once(&gateway, rejected).await else { panic!("it failed") };
    assert_eq!((failed.kind, failed.retry_after), (ErrorKind::InvalidRequest, None));
}

#[tokio::test(start_paused = true)]
async fn rejected_credentials_back_off_at_once_and_403_does_not() {
    let gateway = gateway();
    once(&gateway, Err(AttemptFailure::from_status(403, None))).await.unwrap_err();
    assert!(gateway.has_no_backoff(0), "content can provoke it");
    once(&gateway, Err(AttemptFailure::from_status(401, None))).await.unwrap_err();
    assert!(!gateway.has_no_backoff(0));
    let other = gateway.send_in(17, without_fallbacks()).await.end().await.unwrap_err();
    assert!(matches!(other, SubmitDecisionError::Throttled { .. }), "for all workspaces: {other}");
    gateway.clock.advance(HealthPolicy::default().auth_backoff);
    assert!(gateway.has_no_backoff(0));
}

#[rstest]
#[case::garbled(wrong())]
#[case::forbidden(Err(AttemptFailure::from_status(403, None)))]
#[case::not_found(Err(AttemptFailure::from_status(404, None)))]
#[case::overloaded(Err(AttemptFailure::from_status(429, Some(Duration::from_mins(10)))))]
#[tokio::test(start_paused = true)]
async fn failures_of_one_workspace_do_not_affect_another(#[case] outcome: Outcome) {
    let gateway = gateway();
    for _ in 0..40 {
        let pending = gateway.send(without_fallbacks()).await;
        if gateway.upstreams().len() > gateway.records().len() {
            gateway.finish(gateway.upstreams().len() - 1, outcome.clone()).await;
        }
        pending.end().await.unwrap_err();
    }
    for _ in 0..40 {
        let pending = gateway.send_in(17, without_fallbacks()).await;
        gateway.answer(gateway.upstreams().len() - 1, 1).await;
        pending.end().await.unwrap();
    }
}

#[rstest]
#[case::client_disconnected(ClientDisconnected)]
#[case::never_sent(RejectedByProvider)]
#[case::simulated(AttemptFailureKind::Simulated(ErrorKind::ProviderFailure))]
#[case::simulated_overload(AttemptFailureKind::Simulated(ErrorKind::ProviderOverloaded))]
#[tokio::test(start_paused = true)]
async fn failures_that_say_nothing_about_the_endpoint_do_not_count(#[case] kind: AttemptFailureKind) {
    let gateway = gateway();
    fail(&gateway, 20, || failure(kind)).await;
    assert!(gateway.has_no_backoff(0));
    let workspace = WorkspaceId::from_uuid(SequentialIds::uuid(900));
    let recent = gateway.health.failed_recently(0, workspace, Duration::ZERO);
    assert_eq!((gateway.health.view(0, Duration::ZERO).observations, recent), (0, false));
}

#[tokio::test(start_paused = true)]
async fn throttled_endpoint_gets_one_probe_and_others_use_fallback() {
    let gateway = gateway();
    once(&gateway, failure(ProviderAuthFailed)).await.unwrap_err();
    gateway.clock.advance(Duration::from_secs(5));
    let first = gateway.send(without_fallbacks()).await;
    let second = gateway.send(nouls(1)).await;
    assert_eq!(gateway.upstreams(), ["a", "a", "b"]);
    gateway.answer(1, 1).await;
    gateway.answer(2, 1).await;
    first.end().await.unwrap();
    second.end().await.unwrap();
}
