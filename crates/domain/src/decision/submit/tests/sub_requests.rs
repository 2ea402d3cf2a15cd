//! Requests that are split into sub-requests.

use super::fixture::*;
use super::*;
use crate::question::AnswerValue;
use crate::routing::EndpointLimits;

/// An endpoint that accepts at most `questions` questions per call.
fn limited_to(questions: usize, provider: &str) -> Endpoint {
    Endpoint {
        own_limits: EndpointLimits { max_questions: Some(questions), ..EndpointLimits::default() },
        ..endpoint("acme/judge", provider, provider)
    }
}

#[tokio::test(start_paused = true)]
async fn sub_requests_run_concurrently_up_to_maximum() {
    let mut setup = GatewaySetup::new(vec![limited_to(1, "one")]);
    setup.settings.max_concurrent_subrequests = 2;
    let gateway = setup.build();
    let pending = gateway.send(nouls(5)).await;
    assert_eq!(gateway.upstreams().len(), 2);
    gateway.answer(1, 1).await;
    assert_eq!(gateway.upstreams().len(), 3, "one ended, one began");
    for attempt in [0, 2, 3, 4] {
        gateway.answer(attempt, 1).await;
    }
    let decision = pending.end().await.unwrap();
    let names: Vec<&str> = decision.answers.typed().unwrap().iter().map(|answer| answer.name.as_str()).collect();
    assert_eq!(names, ["q0", "q1", "q2", "q3", "q4"]);
    assert_eq!(decision.answers.json().members().unwrap().len(), 5);
    let parts: Vec<u32> = gateway.record().attempts.iter().map(|attempt| attempt.part).collect();
    assert_eq!(parts, [0, 1, 2, 3, 4]);
}

#[tokio::test(start_paused = true)]
async fn cost_of_sub_requests_is_rounded_once() {
    // A tenth of a picodollar a token: five parts of one token are half a picodollar.
    let gateway = GatewaySetup::new(vec![at_price(limited_to(1, "one"), "0.0000000000001")]).build();
    let pending = gateway.send(nouls(5)).await;
    for attempt in 0..5 {
        gateway.answer(attempt, 1).await;
    }
    let decision = pending.end().await.unwrap();
    assert_eq!((decision.cost, decision.input_tokens), (Usd::from_pico(1), 5));
    assert_eq!(gateway.record().cost, Usd::from_pico(1));
}

#[tokio::test(start_paused = true)]
async fn each_type_is_sent_to_endpoint_that_supports_it() {
    use crate::question::QuestionType::{Choice, Noul, Score};
    let of_types = |types: &[_], provider| {
        let endpoint = endpoint("acme/judge", provider, provider);
        Endpoint { question_types: Some(types.to_vec()), ..endpoint }
    };
    let endpoints = vec![of_types(&[Noul], "one"), of_types(&[Score], "two"), of_types(&[Choice, Noul], "three")];
    let gateway = GatewaySetup::new(endpoints).build();
    let questions = r#"{"a":{"type":"score","criteria":["l"]},"b":{"type":"noul","instructions":"?"},
        "c":{"type":"choice","criteria":{"x":null}},"d":{"type":"noul","instructions":"?"}}"#;
    let pending = gateway.send(request_with(questions)).await;
    assert_eq!(gateway.upstreams(), ["two", "one", "three"]);
    assert_eq!(gateway.call(1).provider_input.questions.json.text().matches("noul").count(), 2, "both in one call");
    gateway.fail(1, InvalidResponse).await;
    assert_eq!(gateway.upstreams()[3], "three", "the other one that answers such questions");
    for attempt in [3, 0, 2] {
        gateway.answer(attempt, 10).await;
    }
    let decision = pending.end().await.unwrap();
    let answers = r#"{"a":{"type":"score","score":0},"b":{"type":"noul","noul":0},"c":{"type":"choice","choice":"x"},"d":{"type":"noul","noul":0}}"#;
    assert_eq!(decision.answers.json().text(), answers);
    assert_eq!(decision.provider, "TWO, THREE", "each once");
    let record = gateway.record();
    assert_eq!((record.provider.as_str(), record.input_tokens), ("two,three", 30));
    assert_eq!(outcomes(&record.attempts), ["completed", "invalid_response", "completed", "completed"]);
}

#[tokio::test(start_paused = true)]
async fn failed_sub_request_cancels_others_and_fails_request() {
    let gateway = GatewaySetup::new(vec![limited_to(1, "one")]).build();
    let pending = gateway.send(nouls(3)).await;
    gateway.answer(0, 1).await;
    gateway.fail(1, TimedOut).await;
    assert!(gateway.is_cancelled(2));
    assert_eq!(pending.end().await.unwrap_err().kind(), ErrorKind::TimedOut);
    let record = gateway.record();
    assert_eq!(record.outcome, UsageOutcome::Failed);
    assert_eq!(outcomes(&record.attempts), ["completed", "timed_out", "cancelled"]);
    // `"s"` and a question of 37 bytes in its object, and the overhead.
    let bytes = gateway.call(2).provider_input.len_bytes();
    let tokens: Vec<u64> = record.attempts.iter().map(|attempt| attempt.input_tokens).collect();
    assert_eq!(tokens, [1, 0, u64::try_from(bytes).unwrap() + 20], "what may have been used is paid");
    assert!(gateway.has_no_backoff(0), "a cancelled attempt does not count for the endpoint");
}

#[tokio::test(start_paused = true)]
async fn partial_answer_contains_failure_of_each_unanswered_question() {
    let gateway = GatewaySetup::new(vec![limited_to(1, "one")]).build();
    let pending = gateway.send(DecisionRequest { partial: true, ..nouls(4) }).await;
    gateway.fail(0, InvalidResponse).await;
    gateway.fail(2, TimedOut).await;
    gateway.answer(1, 3).await;
    gateway.finish(3, Err(AttemptFailure::from_status(400, None))).await;
    let decision = pending.end().await.unwrap();
    let answers = r#"{"q0":{"type":"error","error":"provider_failure"},"q1":{"type":"noul","noul":0},"q2":{"type":"error","error":"timed_out"},"q3":{"type":"error","error":"invalid_request"}}"#;
    assert_eq!(decision.answers.json().text(), answers);
    assert_eq!(decision.answers.typed().unwrap()[2].value, AnswerValue::Unanswered(ErrorKind::TimedOut));
    assert_eq!(decision.provider, "ONE");
    let record = gateway.record();
    assert_eq!((record.outcome, record.input_tokens), (UsageOutcome::Completed, 3));
}

#[tokio::test(start_paused = true)]
async fn partial_request_fails_without_any_answer() {
    let gateway = GatewaySetup::new(vec![limited_to(1, "one")]).build();
    let pending = gateway.send(DecisionRequest { partial: true, ..nouls(2) }).await;
    gateway.fail(1, Overloaded).await;
    gateway.fail(0, Overloaded).await;
    assert_eq!(pending.end().await.unwrap_err().kind(), ErrorKind::ProviderOverloaded);
    assert_eq!(gateway.record().outcome, UsageOutcome::Failed);
}

#[tokio::test(start_paused = true)]
async fn disconnected_client_gets_no_partial_answer() {
    let gateway = GatewaySetup::new(vec![limited_to(1, "one")]).build();
    let pending = gateway.send(DecisionRequest { partial: true, ..nouls(3) }).await;
    gateway.fail(0, InvalidResponse).await;
    gateway.answer(1, 3).await;
    pending.disconnect();
    assert_eq!(pending.end().await.unwrap_err().kind(), ErrorKind::ClientDisconnected);
    let record = gateway.record();
    assert_eq!(record.outcome, UsageOutcome::Cancelled);
    assert_eq!(outcomes(&record.attempts), ["invalid_response", "completed", "client_disconnected"]);
}

#[tokio::test(start_paused = true)]
async fn sub_requests_share_one_deadline() {
    let mut setup = GatewaySetup::new(vec![limited_to(1, "one")]);
    setup.settings.max_concurrent_subrequests = 1;
    let gateway = setup.build();
    let pending = gateway.send(DecisionRequest { partial: true, ..nouls(3) }).await;
    gateway.clock.advance(Duration::from_secs(19));
    gateway.answer(0, 1).await;
    assert_eq!(gateway.call(1).timeout, Duration::from_secs(6), "what is left of 25 seconds");
    gateway.clock.advance(Duration::from_secs(6));
    gateway.answer(1, 1).await;
    let decision = pending.end().await.unwrap();
    assert_eq!(gateway.upstreams().len(), 2, "nothing begins after the deadline");
    let text = decision.answers.json().text().to_owned();
    assert!(text.ends_with(r#""q2":{"type":"error","error":"timed_out"}}"#), "{text}");
}

#[tokio::test(start_paused = true)]
async fn sub_request_reports_wait_when_its_endpoints_are_throttled() {
    let mut setup = GatewaySetup::new(vec![limited_to(1, "one")]);
    setup.settings.max_concurrent_subrequests = 1;
    let gateway = setup.build();
    let pending = gateway.send(nouls(2)).await;
    // Another request learns that the endpoint is overloaded.
    let other = gateway.send(nouls(1)).await;
    gateway.finish(1, Err(AttemptFailure::from_status(429, Some(Duration::from_secs(8))))).await;
    assert_eq!(other.end().await.unwrap_err().kind(), ErrorKind::ProviderOverloaded);
    gateway.answer(0, 1).await;
    let Err(SubmitDecisionError::Attempts(failed)) = pending.end().await else { panic!("the second part fails") };
    assert_eq!((failed.kind, failed.retry_after), (ErrorKind::Unavailable, Some(Duration::from_secs(8))));
}

#[tokio::test(start_paused = true)]
async fn answer_of_single_sub_request_is_returned_byte_for_byte() {
    let gateway = GatewaySetup::new(vec![endpoint("acme/judge", "one", "a")]).build();
    let pending = gateway.send(nouls(1)).await;
    let odd = Json::parse(r#"{ "q0" : {"type":"noul","noul":5.0e-1, "more":[1e999]} }"#).unwrap();
    gateway.finish(0, Ok(ProviderAnswer { answers: odd.clone(), usage: None, sent_bytes: 1 })).await;
    assert_eq!(pending.end().await.unwrap().answers.json(), &odd);
}

#[tokio::test(start_paused = true)]
async fn endpoint_with_lower_limit_is_fallback_in_smaller_sub_requests() {
    for failure in [InvalidResponse, Overloaded, RejectedByProvider, TimedOut] {
        let gateway = GatewaySetup::new(vec![limited_to(3, "one"), limited_to(2, "two")]).build();
        let pending = gateway.send(nouls(3)).await;
        assert_eq!(gateway.upstreams(), ["one"], "the endpoint that needs no split comes first");
        gateway.fail(0, failure).await;
        assert_eq!(gateway.upstreams(), ["one", "two", "two"], "{failure:?}");
        gateway.answer(1, 4).await;
        gateway.answer(2, 5).await;
        let decision = pending.end().await.unwrap();
        assert_eq!((decision.answers.typed().unwrap().len(), decision.provider.as_str()), (3, "TWO"));
        let parts: Vec<u32> = gateway.record().attempts.iter().map(|attempt| attempt.part).collect();
        assert_eq!(parts, [0, 1, 2]);
    }
}

#[tokio::test(start_paused = true)]
async fn failures_before_smaller_sub_requests_count_in_verdict() {
    let gateway = GatewaySetup::new(vec![limited_to(3, "one"), limited_to(2, "two")]).build();
    let pending = gateway.send(nouls(3)).await;
    gateway.fail(0, InvalidResponse).await;
    gateway.fail(1, Overloaded).await;
    assert_eq!(pending.end().await.unwrap_err().kind(), ErrorKind::ProviderFailure);
}

#[tokio::test(start_paused = true)]
async fn no_smaller_sub_requests_after_client_disconnected() {
    let gateway = GatewaySetup::new(vec![limited_to(3, "one"), limited_to(2, "two")]).build();
    let pending = gateway.send(nouls(3)).await;
    gateway.fail(0, ClientDisconnected).await;
    assert_eq!(pending.end().await.unwrap_err().kind(), ErrorKind::ClientDisconnected);
    assert_eq!(gateway.upstreams(), ["one"]);
}

#[tokio::test(start_paused = true)]
async fn number_of_smaller_sub_requests_is_bounded() {
    // Two sub-requests of 64 questions each: only one of them may be replaced by 64 smaller ones.
    let mut setup = GatewaySetup::new(vec![limited_to(64, "one"), limited_to(1, "two")]);
    setup.settings.max_concurrent_subrequests = 2;
    let gateway = setup.build();
    let mut request = nouls(128);
    request.preferences.order = vec!["one".to_owned()];
    let pending = gateway.send(request).await;
    assert_eq!(gateway.upstreams(), ["one", "one"]);
    gateway.fail(0, InvalidResponse).await;
    assert_eq!(gateway.upstreams(), ["one", "one", "two"]);
    gateway.fail(1, InvalidResponse).await;
    assert_eq!(pending.end().await.unwrap_err().kind(), ErrorKind::ProviderFailure);
    assert_eq!(outcomes(&gateway.record().attempts), ["invalid_response", "invalid_response", "cancelled"]);
}
