//! What an attempt costs of whose usage nothing is known.

use super::stage::*;
use super::*;
use crate::usage::UnknownUsage;
use rstest::rstest;

fn broken(upstream_status: Option<u16>, sent_bytes: u64) -> AttemptFailure {
    AttemptFailure { upstream_status, sent_bytes, ..AttemptFailure::new(InvalidResponse, "it broke") }
}

fn timed_out(upstream_status: Option<u16>, sent_bytes: u64) -> AttemptFailure {
    AttemptFailure { kind: TimedOut, ..broken(upstream_status, sent_bytes) }
}

/// The failed attempt, and what the request cost in all.
async fn charged(unknown: UnknownUsage, failure: AttemptFailure) -> (crate::usage::AttemptRecord, UsageRecord) {
    let mut plan = Plan::new(vec![endpoint("acme/judge", "one", "a"), endpoint("acme/judge", "two", "b")]);
    plan.settings.unknown_usage = unknown;
    let world = plan.build();
    let asked = world.ask(nouls(1)).await;
    let last = failure.kind == ClientDisconnected;
    world.finish(0, Err(failure)).await;
    if !last {
        world.answer(1, 1).await;
    }
    assert_eq!(asked.end().await.is_ok(), !last);
    let record = world.record();
    (record.attempts[0].clone(), record)
}

#[rstest]
#[case::timed_out(timed_out(None, 400), 420)]
#[case::timed_out_in_the_body(timed_out(Some(200), 400), 420)]
#[case::reset(broken(None, 400), 420)]
#[case::half_sent(broken(None, 1), 21)]
#[case::malformed(broken(Some(200), 400), 420)]
#[case::another_success(broken(Some(202), 400), 420)]
#[case::caller_left(AttemptFailure { kind: ClientDisconnected, ..broken(None, 400) }, 420)]
#[case::never_sent(broken(None, 0), 0)]
#[case::never_connected(timed_out(None, 0), 0)]
#[case::caller_left_before(AttemptFailure { kind: ClientDisconnected, ..broken(None, 0) }, 0)]
#[case::error_status(broken(Some(500), 400), 0)]
#[case::error_status_in_time(timed_out(Some(500), 400), 0)]
#[case::redirect(broken(Some(302), 400), 0)]
#[case::refused(AttemptFailure { sent_bytes: 400, ..AttemptFailure::from_status(400, None) }, 0)]
#[case::overloaded(AttemptFailure { sent_bytes: 400, ..AttemptFailure::from_status(429, None) }, 0)]
#[tokio::test]
async fn what_was_sent_and_not_accounted_for_is_charged_its_bound(
    #[case] failure: AttemptFailure,
    #[case] tokens: u64,
) {
    let gone = failure.kind == ClientDisconnected;
    let (attempt, record) = charged(UnknownUsage::Bound, failure.clone()).await;
    let source = if tokens > 0 { UsageSource::UpperBound } else { UsageSource::None };
    assert_eq!((attempt.input_tokens, attempt.output_tokens, attempt.usage_source), (tokens, 0, source));
    assert_eq!(record.cost.pico(), i64::try_from(tokens + u64::from(!gone)).unwrap() * 42_000);
    let answered = if gone { UsageSource::None } else { UsageSource::Reported };
    assert_eq!(record.usage_source, source.combine(answered), "one bound makes the sum one");

    let (attempt, record) = charged(UnknownUsage::Free, failure).await;
    assert_eq!((attempt.input_tokens, attempt.usage_source), (0, UsageSource::None));
    assert_eq!(record.cost.pico(), i64::from(!gone) * 42_000, "the operator bears it");
}

#[tokio::test]
async fn a_bad_answer_that_says_what_it_used_is_charged_by_that() {
    let usage = Some(ReportedUsage { input_tokens: 7, output_tokens: 3 });
    for unknown in [UnknownUsage::Bound, UnknownUsage::Free] {
        let told = AttemptFailure { usage, ..broken(Some(200), 400) };
        let (attempt, record) = charged(unknown, told).await;
        assert_eq!((attempt.input_tokens, attempt.output_tokens), (7, 3));
        assert_eq!(attempt.usage_source, UsageSource::Reported);
        assert_eq!((record.input_tokens, record.output_tokens), (8, 3));
    }
}

#[tokio::test]
async fn an_answer_to_something_else_is_charged_by_what_it_says_it_used() {
    for (usage, tokens) in [(Some(ReportedUsage { input_tokens: 7, output_tokens: 0 }), 7), (None, 420)] {
        let world = Plan::new(vec![endpoint("acme/judge", "one", "a")]).build();
        let asked = world.ask(nouls(1)).await;
        let answers = Json::parse(r#"{"q0":{"type":"noul","noul":1.5}}"#).unwrap();
        world.finish(0, Ok(ProviderAnswer { answers, usage, sent_bytes: 400 })).await;
        assert_eq!(asked.end().await.unwrap_err().kind(), ErrorKind::ProviderFailure);
        let record = world.record();
        assert_eq!((record.outcome, record.input_tokens), (UsageOutcome::Failed, tokens));
        assert_eq!(record.attempts[0].upstream_status, Some(200));
    }
}

#[tokio::test]
async fn each_attempt_is_charged_at_the_prices_of_its_endpoint() {
    let dear = at_price(endpoint("acme/judge", "one", "a"), "0.000001");
    let cheap = at_price(endpoint("acme/judge", "two", "b"), "0.0000000000001");
    let world = Plan::new(vec![dear, cheap]).build();
    let asked = world.ask(nouls(1)).await;
    assert_eq!(world.upstreams(), ["b"]);
    world.finish(0, Err(broken(None, 1))).await;
    world.answer(1, 2).await;
    let decision = asked.end().await.unwrap();
    // 21 tokens of a tenth of a picodollar and two of a microdollar.
    assert_eq!(decision.cost.pico(), 2_000_003);
    let record = world.record();
    assert_eq!(record.prices.prompt, price("0.000001"), "of who answered");
    assert_eq!(record.attempts[0].prices.prompt, price("0.0000000000001"));
}

#[tokio::test]
async fn without_a_stated_usage_an_answer_is_charged_its_bound_whatever_is_configured() {
    let mut plan = Plan::new(vec![endpoint("acme/judge", "one", "a")]);
    plan.settings.unknown_usage = UnknownUsage::Free;
    let world = plan.build();
    let asked = world.ask(nouls(1)).await;
    let answers = answers_to(&world.call(0).provider_input);
    world.finish(0, Ok(ProviderAnswer { answers, usage: None, sent_bytes: 400 })).await;
    assert_eq!(asked.end().await.unwrap().input_tokens, 420);
}
