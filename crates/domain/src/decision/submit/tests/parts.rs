//! Split and merge, seen from outside.

use super::stage::*;
use super::*;
use crate::question::AnswerValue;
use crate::routing::EndpointLimits;

/// An endpoint that takes so many questions at a time.
fn taking(questions: usize, provider: &str) -> Endpoint {
    Endpoint {
        own_limits: EndpointLimits { max_questions: Some(questions), ..EndpointLimits::default() },
        ..endpoint("acme/judge", provider, provider)
    }
}

#[tokio::test]
async fn parts_are_asked_at_once_but_not_all_at_once() {
    let mut plan = Plan::new(vec![taking(1, "one")]);
    plan.settings.max_concurrent_subrequests = 2;
    let world = plan.build();
    let asked = world.ask(nouls(5)).await;
    assert_eq!(world.upstreams().len(), 2);
    world.answer(1, 1).await;
    assert_eq!(world.upstreams().len(), 3, "one ended, one began");
    for attempt in [0, 2, 3, 4] {
        world.answer(attempt, 1).await;
    }
    let decision = asked.end().await.unwrap();
    let names: Vec<&str> = decision.answers.typed().unwrap().iter().map(|answer| answer.name.as_str()).collect();
    assert_eq!(names, ["q0", "q1", "q2", "q3", "q4"]);
    assert_eq!(decision.answers.json().members().unwrap().len(), 5);
    let parts: Vec<u32> = world.record().attempts.iter().map(|attempt| attempt.part).collect();
    assert_eq!(parts, [0, 1, 2, 3, 4]);
}

#[tokio::test]
async fn the_sum_over_parts_is_rounded_once() {
    // A tenth of a picodollar a token: five parts of one token are half a picodollar.
    let world = Plan::new(vec![at_price(taking(1, "one"), "0.0000000000001")]).build();
    let asked = world.ask(nouls(5)).await;
    for attempt in 0..5 {
        world.answer(attempt, 1).await;
    }
    let decision = asked.end().await.unwrap();
    assert_eq!((decision.cost, decision.input_tokens), (Usd::from_pico(1), 5));
    assert_eq!(world.record().cost, Usd::from_pico(1));
}

#[tokio::test]
async fn each_type_goes_where_it_is_answered() {
    use crate::question::QuestionType::{Choice, Noul, Score};
    let of_types = |types: &[_], provider| {
        let endpoint = endpoint("acme/judge", provider, provider);
        Endpoint { question_types: Some(types.to_vec()), ..endpoint }
    };
    let endpoints = vec![of_types(&[Noul], "one"), of_types(&[Score], "two"), of_types(&[Choice, Noul], "three")];
    let world = Plan::new(endpoints).build();
    let questions = r#"{"a":{"type":"score","criteria":["l"]},"b":{"type":"noul","instructions":"?"},
        "c":{"type":"choice","criteria":{"x":null}},"d":{"type":"noul","instructions":"?"}}"#;
    let asked = world.ask(asking(questions)).await;
    assert_eq!(world.upstreams(), ["two", "one", "three"]);
    assert_eq!(world.call(1).provider_input.questions.json.text().matches("noul").count(), 2, "both in one call");
    world.fail(1, InvalidResponse).await;
    assert_eq!(world.upstreams()[3], "three", "the other one that answers such questions");
    for attempt in [3, 0, 2] {
        world.answer(attempt, 10).await;
    }
    let decision = asked.end().await.unwrap();
    let answers = r#"{"a":{"type":"score","score":0},"b":{"type":"noul","noul":0},"c":{"type":"choice","choice":"x"},"d":{"type":"noul","noul":0}}"#;
    assert_eq!(decision.answers.json().text(), answers);
    assert_eq!(decision.provider, "TWO, THREE", "each once");
    let record = world.record();
    assert_eq!((record.provider.as_str(), record.input_tokens), ("two,three", 30));
    assert_eq!(outcomes(&record.attempts), ["completed", "invalid_response", "completed", "completed"]);
}

#[tokio::test]
async fn a_part_that_fails_ends_the_others_and_the_request() {
    let world = Plan::new(vec![taking(1, "one")]).build();
    let asked = world.ask(nouls(3)).await;
    world.answer(0, 1).await;
    world.fail(1, TimedOut).await;
    assert!(world.is_given_up(2));
    assert_eq!(asked.end().await.unwrap_err().kind(), ErrorKind::TimedOut);
    let record = world.record();
    assert_eq!(record.outcome, UsageOutcome::Failed);
    assert_eq!(outcomes(&record.attempts), ["completed", "timed_out", "cancelled"]);
    // `"s"` and a question of 37 bytes in its object, and the overhead.
    let bytes = world.call(2).provider_input.len_bytes();
    let tokens: Vec<u64> = record.attempts.iter().map(|attempt| attempt.input_tokens).collect();
    assert_eq!(tokens, [1, 0, u64::try_from(bytes).unwrap() + 20], "what may have been used is paid");
    assert!(world.admits(0), "nothing is said against who was given up");
}

#[tokio::test]
async fn a_partial_answer_names_what_it_lacks_each_by_its_own_failure() {
    let world = Plan::new(vec![taking(1, "one")]).build();
    let asked = world.ask(DecisionRequest { partial: true, ..nouls(4) }).await;
    world.fail(0, InvalidResponse).await;
    world.fail(2, TimedOut).await;
    world.answer(1, 3).await;
    world.finish(3, Err(AttemptFailure::from_status(400, None))).await;
    let decision = asked.end().await.unwrap();
    let answers = r#"{"q0":{"type":"error","error":"provider_failure"},"q1":{"type":"noul","noul":0},"q2":{"type":"error","error":"timed_out"},"q3":{"type":"error","error":"invalid_request"}}"#;
    assert_eq!(decision.answers.json().text(), answers);
    assert_eq!(decision.answers.typed().unwrap()[2].value, AnswerValue::Unanswered(ErrorKind::TimedOut));
    assert_eq!(decision.provider, "ONE");
    let record = world.record();
    assert_eq!((record.outcome, record.input_tokens), (UsageOutcome::Completed, 3));
}

#[tokio::test]
async fn a_partial_request_of_which_nothing_was_answered_fails() {
    let world = Plan::new(vec![taking(1, "one")]).build();
    let asked = world.ask(DecisionRequest { partial: true, ..nouls(2) }).await;
    world.fail(1, Overloaded).await;
    world.fail(0, Overloaded).await;
    assert_eq!(asked.end().await.unwrap_err().kind(), ErrorKind::ProviderOverloaded);
    assert_eq!(world.record().outcome, UsageOutcome::Failed);
}

#[tokio::test]
async fn who_has_left_gets_no_part() {
    let world = Plan::new(vec![taking(1, "one")]).build();
    let asked = world.ask(DecisionRequest { partial: true, ..nouls(3) }).await;
    world.fail(0, InvalidResponse).await;
    world.answer(1, 3).await;
    asked.leave();
    assert_eq!(asked.end().await.unwrap_err().kind(), ErrorKind::ClientDisconnected);
    let record = world.record();
    assert_eq!(record.outcome, UsageOutcome::Cancelled);
    assert_eq!(outcomes(&record.attempts), ["invalid_response", "completed", "client_disconnected"]);
}

#[tokio::test]
async fn parts_share_one_deadline() {
    let mut plan = Plan::new(vec![taking(1, "one")]);
    plan.settings.max_concurrent_subrequests = 1;
    let world = plan.build();
    let asked = world.ask(DecisionRequest { partial: true, ..nouls(3) }).await;
    world.clock.advance(Duration::from_secs(19));
    world.answer(0, 1).await;
    assert_eq!(world.call(1).timeout, Duration::from_secs(6), "what is left of 25 seconds");
    world.clock.advance(Duration::from_secs(6));
    world.answer(1, 1).await;
    let decision = asked.end().await.unwrap();
    assert_eq!(world.upstreams().len(), 2, "nothing begins after the deadline");
    let text = decision.answers.json().text().to_owned();
    assert!(text.ends_with(r#""q2":{"type":"error","error":"timed_out"}}"#), "{text}");
}

#[tokio::test]
async fn a_part_of_whom_all_rest_by_then_is_told_with_its_wait() {
    let mut plan = Plan::new(vec![taking(1, "one")]);
    plan.settings.max_concurrent_subrequests = 1;
    let world = plan.build();
    let asked = world.ask(nouls(2)).await;
    // Another request learns that the endpoint is overloaded.
    let other = world.ask(nouls(1)).await;
    world.finish(1, Err(AttemptFailure::from_status(429, Some(Duration::from_secs(8))))).await;
    assert_eq!(other.end().await.unwrap_err().kind(), ErrorKind::ProviderOverloaded);
    world.answer(0, 1).await;
    let Err(SubmitDecisionError::Attempts(failed)) = asked.end().await else { panic!("the second part fails") };
    assert_eq!((failed.kind, failed.retry_after), (ErrorKind::Unavailable, Some(Duration::from_secs(8))));
}

#[tokio::test]
async fn one_part_leaves_byte_for_byte() {
    let world = Plan::new(vec![endpoint("acme/judge", "one", "a")]).build();
    let asked = world.ask(nouls(1)).await;
    let odd = Json::parse(r#"{ "q0" : {"type":"noul","noul":5.0e-1, "more":[1e999]} }"#).unwrap();
    world.finish(0, Ok(ProviderAnswer { answers: odd.clone(), usage: None, sent_bytes: 1 })).await;
    assert_eq!(asked.end().await.unwrap().answers.json(), &odd);
}

#[tokio::test]
async fn who_takes_less_at_a_time_is_a_fallback_all_the_same() {
    for failure in [InvalidResponse, Overloaded, Refused, TimedOut] {
        let world = Plan::new(vec![taking(3, "one"), taking(2, "two")]).build();
        let asked = world.ask(nouls(3)).await;
        assert_eq!(world.upstreams(), ["one"], "whoever takes it whole comes first");
        world.fail(0, failure).await;
        assert_eq!(world.upstreams(), ["one", "two", "two"], "{failure:?}");
        world.answer(1, 4).await;
        world.answer(2, 5).await;
        let decision = asked.end().await.unwrap();
        assert_eq!((decision.answers.typed().unwrap().len(), decision.provider.as_str()), (3, "TWO"));
        let parts: Vec<u32> = world.record().attempts.iter().map(|attempt| attempt.part).collect();
        assert_eq!(parts, [0, 1, 2]);
    }
}

#[tokio::test]
async fn what_failed_before_the_smaller_parts_counts_in_the_verdict() {
    let world = Plan::new(vec![taking(3, "one"), taking(2, "two")]).build();
    let asked = world.ask(nouls(3)).await;
    world.fail(0, InvalidResponse).await;
    world.fail(1, Overloaded).await;
    assert_eq!(asked.end().await.unwrap_err().kind(), ErrorKind::ProviderFailure);
}

#[tokio::test]
async fn nothing_smaller_is_tried_for_nobody() {
    let world = Plan::new(vec![taking(3, "one"), taking(2, "two")]).build();
    let asked = world.ask(nouls(3)).await;
    world.fail(0, ClientDisconnected).await;
    assert_eq!(asked.end().await.unwrap_err().kind(), ErrorKind::ClientDisconnected);
    assert_eq!(world.upstreams(), ["one"]);
}

#[tokio::test]
async fn smaller_parts_have_an_end() {
    // Two parts of 64 questions each: 64 smaller ones may stand in for one of them, and no more for the other.
    let mut plan = Plan::new(vec![taking(64, "one"), taking(1, "two")]);
    plan.settings.max_concurrent_subrequests = 2;
    let world = plan.build();
    let mut request = nouls(128);
    request.preferences.order = vec!["one".to_owned()];
    let asked = world.ask(request).await;
    assert_eq!(world.upstreams(), ["one", "one"]);
    world.fail(0, InvalidResponse).await;
    assert_eq!(world.upstreams(), ["one", "one", "two"]);
    world.fail(1, InvalidResponse).await;
    assert_eq!(asked.end().await.unwrap_err().kind(), ErrorKind::ProviderFailure);
    assert_eq!(outcomes(&world.record().attempts), ["invalid_response", "invalid_response", "cancelled"]);
}
