//! Charges of attempts with unknown usage.

use super::fixture::*;
use super::recording_ledger::{RecordingLedger, key, setup};
use super::*;
use crate::usage::UnknownUsage;
use rstest::rstest;

fn broken(upstream_status: Option<u16>, sent_bytes: u64) -> AttemptFailure {
    AttemptFailure { upstream_status, sent_bytes, ..AttemptFailure::new(InvalidResponse, "it broke") }
}

fn timed_out(upstream_status: Option<u16>, sent_bytes: u64) -> AttemptFailure {
    AttemptFailure { kind: TimedOut, ..broken(upstream_status, sent_bytes) }
}

#[tokio::test(start_paused = true)]
async fn client_address_is_in_hold_and_record() {
    let ledger = RecordingLedger::new(None, &[Some(1_000)]).await;
    let gateway = setup(&ledger).build();
    let pending = gateway.send_with(key(1), nouls(1)).await;
    gateway.answer(0, 30).await;
    pending.end().await.unwrap();
    let client = Some(std::net::IpAddr::from([192, 0, 2, 7]));
    assert_eq!(ledger.hold_requests()[0].client_address, client, "charged if the process dies");
    assert_eq!(ledger.records().await[0].client_address, client);
}

/// Returns the failed attempt and the record of the request.
async fn charged(unknown: UnknownUsage, failure: AttemptFailure) -> (crate::usage::AttemptRecord, UsageRecord) {
    let mut setup = GatewaySetup::new(vec![endpoint("acme/judge", "one", "a"), endpoint("acme/judge", "two", "b")]);
    setup.settings.unknown_usage = unknown;
    let gateway = setup.build();
    let pending = gateway.send(nouls(1)).await;
    let last = failure.kind == ClientDisconnected;
    gateway.finish(0, Err(failure)).await;
    if !last {
        gateway.answer(1, 1).await;
    }
    assert_eq!(pending.end().await.is_ok(), !last);
    let record = gateway.record();
    (record.attempts[0].clone(), record)
}

#[rstest]
#[case::timed_out(timed_out(None, 400), 420)]
#[case::timed_out_in_the_body(timed_out(Some(200), 400), 420)]
#[case::reset(broken(None, 400), 420)]
#[case::half_sent(broken(None, 1), 21)]
#[case::malformed(broken(Some(200), 400), 420)]
#[case::another_success(broken(Some(202), 400), 420)]
#[case::client_disconnected(AttemptFailure { kind: ClientDisconnected, ..broken(None, 400) }, 420)]
#[case::never_sent(broken(None, 0), 0)]
#[case::never_connected(timed_out(None, 0), 0)]
#[case::client_disconnected_before_sending(AttemptFailure { kind: ClientDisconnected, ..broken(None, 0) }, 0)]
#[case::error_status(broken(Some(500), 400), 0)]
#[case::error_status_in_time(timed_out(Some(500), 400), 0)]
#[case::redirect(broken(Some(302), 400), 0)]
#[case::rejected(AttemptFailure { sent_bytes: 400, ..AttemptFailure::from_status(400, None) }, 0)]
#[case::overloaded(AttemptFailure { sent_bytes: 400, ..AttemptFailure::from_status(429, None) }, 0)]
#[tokio::test(start_paused = true)]
async fn sent_attempt_without_usage_is_charged_its_bound(#[case] failure: AttemptFailure, #[case] tokens: u64) {
    let disconnected = failure.kind == ClientDisconnected;
    let (attempt, record) = charged(UnknownUsage::Bound, failure.clone()).await;
    let source = if tokens > 0 { UsageSource::UpperBound } else { UsageSource::None };
    assert_eq!((attempt.input_tokens, attempt.output_tokens, attempt.usage_source), (tokens, 0, source));
    assert_eq!(record.cost.pico(), i64::try_from(tokens + u64::from(!disconnected)).unwrap() * 42_000);
    let answered = if disconnected { UsageSource::None } else { UsageSource::Reported };
    assert_eq!(record.usage_source, source.combine(answered), "one bound makes the sum one");

    let (attempt, record) = charged(UnknownUsage::Free, failure).await;
    assert_eq!((attempt.input_tokens, attempt.usage_source), (0, UsageSource::None));
    assert_eq!(record.cost.pico(), i64::from(!disconnected) * 42_000, "the operator pays for it");
}

#[tokio::test(start_paused = true)]
async fn invalid_response_with_usage_is_charged_its_usage() {
    let usage = Some(ReportedUsage { input_tokens: 7, output_tokens: 3 });
    for unknown in [UnknownUsage::Bound, UnknownUsage::Free] {
        let with_usage = AttemptFailure { usage, ..broken(Some(200), 400) };
        let (attempt, record) = charged(unknown, with_usage).await;
        assert_eq!((attempt.input_tokens, attempt.output_tokens), (7, 3));
        assert_eq!(attempt.usage_source, UsageSource::Reported);
        assert_eq!((record.input_tokens, record.output_tokens), (8, 3));
    }
}

#[tokio::test(start_paused = true)]
async fn answer_to_other_questions_is_charged_its_usage() {
    for (usage, tokens) in [(Some(ReportedUsage { input_tokens: 7, output_tokens: 0 }), 7), (None, 420)] {
        let gateway = GatewaySetup::new(vec![endpoint("acme/judge", "one", "a")]).build();
        let pending = gateway.send(nouls(1)).await;
        let answers = Json::parse(r#"{"q0":{"type":"noul","noul":1.5}}"#).unwrap();
        gateway.finish(0, Ok(ProviderAnswer { answers, usage, sent_bytes: 400 })).await;
        assert_eq!(pending.end().await.unwrap_err().kind(), ErrorKind::ProviderFailure);
        let record = gateway.record();
        assert_eq!((record.outcome, record.input_tokens), (UsageOutcome::Failed, tokens));
        assert_eq!(record.attempts[0].upstream_status, Some(200));
    }
}

#[tokio::test(start_paused = true)]
async fn attempt_is_charged_at_prices_of_its_endpoint() {
    let dear = at_price(endpoint("acme/judge", "one", "a"), "0.000001");
    let cheap = at_price(endpoint("acme/judge", "two", "b"), "0.0000000000001");
    let gateway = GatewaySetup::new(vec![dear, cheap]).build();
    let pending = gateway.send(nouls(1)).await;
    assert_eq!(gateway.upstreams(), ["b"]);
    gateway.finish(0, Err(broken(None, 1))).await;
    gateway.answer(1, 2).await;
    let decision = pending.end().await.unwrap();
    // 21 tokens of a tenth of a picodollar and two of a microdollar.
    assert_eq!(decision.cost.pico(), 2_000_003);
    let record = gateway.record();
    assert_eq!(record.prices.prompt, price("0.000001"), "the prices of the endpoint that answered");
    assert_eq!(record.attempts[0].prices.prompt, price("0.0000000000001"));
}

#[tokio::test(start_paused = true)]
async fn answer_without_usage_is_charged_its_bound_even_when_unreported_usage_is_free() {
    let mut setup = GatewaySetup::new(vec![endpoint("acme/judge", "one", "a")]);
    setup.settings.unknown_usage = UnknownUsage::Free;
    let gateway = setup.build();
    let pending = gateway.send(nouls(1)).await;
    let answers = answers_to(&gateway.call(0).provider_input);
    gateway.finish(0, Ok(ProviderAnswer { answers, usage: None, sent_bytes: 400 })).await;
    assert_eq!(pending.end().await.unwrap().input_tokens, 420);
}
