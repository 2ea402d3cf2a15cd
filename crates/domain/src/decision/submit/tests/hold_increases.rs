//! Increases of a hold before further attempts.

use super::fixture::*;
use super::recording_ledger::{LedgerCall, RecordingLedger, bound, key, setup, usd};
use super::*;
use crate::decision::{Hedging, ModelOptions};

/// A failure with unknown usage, after the whole request was sent.
fn unknown(request: &DecisionRequest) -> Outcome {
    let sent_bytes = u64::try_from(request.provider_input.len_bytes()).unwrap();
    Err(AttemptFailure { sent_bytes, ..failure(TimedOut).unwrap_err() })
}

#[tokio::test(start_paused = true)]
async fn fallback_increases_hold_by_missing_amount() {
    let most = bound(&nouls(1));
    let ledger = RecordingLedger::new(None, &[Some(10_000)]).await;
    let gateway = setup(&ledger).build();
    let pending = gateway.send_with(key(1), nouls(1)).await;
    let sent = AttemptFailure { sent_bytes: 10, ..failure(InvalidResponse).unwrap_err() };
    gateway.finish(0, Err(sent)).await;
    assert_eq!(ledger.spent_and_held(1).await, (0, 30 + most), "30 for the first, and the bound of the second");
    gateway.answer(1, 5).await;
    pending.end().await.unwrap();
    assert_eq!(
        ledger.calls(),
        [LedgerCall::Held(usd(most)), LedgerCall::Increased(usd(30)), LedgerCall::Charged(usd(35))]
    );
    assert_eq!(ledger.spent_and_held(1).await, (35, 0));
}

#[tokio::test(start_paused = true)]
async fn bound_is_computed_once_per_attempt() {
    let ledger = RecordingLedger::new(None, &[Some(10_000)]).await;
    let gateway = setup(&ledger).build();
    let pending = gateway.send_with(key(1), nouls(1)).await;
    assert_eq!(gateway.bound_computations(), 1, "what was planned is what is tried");
    gateway.finish(0, unknown(&nouls(1))).await;
    assert_eq!(gateway.bound_computations(), 2, "another endpoint has another bound");
    gateway.answer(1, 5).await;
    pending.end().await.unwrap();
    assert_eq!(gateway.bound_computations(), 2);
}

#[tokio::test(start_paused = true)]
async fn fallback_needs_no_increase_after_free_failure() {
    let ledger = RecordingLedger::new(None, &[Some(bound(&nouls(1)))]).await;
    let gateway = setup(&ledger).build();
    let pending = gateway.send_with(key(1), nouls(1)).await;
    gateway.finish(0, Err(AttemptFailure { sent_bytes: 400, ..AttemptFailure::from_status(500, None) })).await;
    gateway.answer(1, 5).await;
    pending.end().await.unwrap();
    assert_eq!(ledger.calls().len(), 2);
}

#[tokio::test(start_paused = true)]
async fn request_fails_with_earlier_failures_when_increase_is_rejected() {
    let most = bound(&nouls(1));
    let ledger = RecordingLedger::new(None, &[Some(2 * most - 1)]).await;
    let gateway = setup(&ledger).build();
    let pending = gateway.send_with(key(1), nouls(1)).await;
    gateway.finish(0, unknown(&nouls(1))).await;
    let error = pending.end().await.unwrap_err();
    let SubmitDecisionError::Attempts(failed) = error else { panic!("an attempt has failed: {error}") };
    assert_eq!((failed.kind, failed.attempts.len()), (ErrorKind::TimedOut, 1));
    assert_eq!((gateway.upstreams(), ledger.spent_and_held(1).await), (vec!["a".to_owned()], (most, 0)));
    assert_eq!(ledger.records().await[0].outcome, UsageOutcome::Failed);
}

#[tokio::test(start_paused = true)]
async fn limit_error_is_returned_when_no_attempt_failed() {
    // The first endpoint is throttled before its attempt, and the second is more expensive.
    let most = bound(&nouls(1));
    let ledger = RecordingLedger::new(None, &[Some(2 * most - 1)]).await;
    let mut setup = setup(&ledger);
    setup.endpoints[1] = at_price(setup.endpoints[1].clone(), "0.000000000002");
    let gateway = setup.build();
    let mut waits = hold_all_funds(&gateway, &ledger).await;
    let pending = gateway.send_with(key(1), nouls(1)).await;
    gateway.reject_credentials(0);
    waits.finish_and_wait(&gateway).await;
    let error = pending.end().await.unwrap_err();
    assert!(matches!(error, SubmitDecisionError::LimitExceeded(_)), "{error}");
    assert_eq!(ledger.spent_and_held(1).await.1, 0, "what was reserved for the first is given back");
}

/// Another request of the same key, which holds the whole limit.
struct OtherRequest(Option<PendingRequest>);

async fn hold_all_funds(gateway: &TestGateway, ledger: &RecordingLedger) -> OtherRequest {
    let pending = gateway.send_with(key(1), nouls(1)).await;
    assert!(ledger.spent_and_held(1).await.1 > 0);
    OtherRequest(Some(pending))
}

impl OtherRequest {
    async fn finish_and_wait(&mut self, gateway: &TestGateway) {
        gateway.answer(0, 0).await;
        self.0.take().unwrap().end().await.unwrap();
        gateway.elapse(Duration::from_millis(10)).await;
    }
}

#[tokio::test(start_paused = true)]
async fn request_is_unavailable_and_charged_when_increase_fails() {
    let most = bound(&nouls(1));
    let ledger = RecordingLedger::new(None, &[Some(10_000)]).await;
    let gateway = setup(&ledger).build();
    let pending = gateway.send_with(key(1), nouls(1)).await;
    ledger.is_unavailable.store(true, std::sync::atomic::Ordering::SeqCst);
    gateway.finish(0, unknown(&nouls(1))).await;
    assert_eq!(pending.end().await.unwrap_err().kind(), ErrorKind::Unavailable);
    assert_eq!((gateway.upstreams().len(), ledger.spent_and_held(1).await), (1, (most, 0)));
}

fn hedged(ledger: &Arc<RecordingLedger>) -> GatewaySetup {
    let mut setup = setup(ledger);
    let hedging = Some(Hedging { after: Some(Duration::from_millis(50)) });
    let options = ModelOptions { hedging, ..ModelOptions::default() };
    setup.settings.models.insert("acme/judge".parse().unwrap(), options);
    setup
}

#[tokio::test(start_paused = true)]
async fn hedge_increases_hold() {
    let most = bound(&nouls(1));
    let ledger = RecordingLedger::new(None, &[Some(2 * most)]).await;
    let gateway = hedged(&ledger).build();
    let pending = gateway.send_with(key(1), nouls(1)).await;
    gateway.elapse(Duration::from_millis(50)).await;
    assert_eq!((gateway.upstreams().len(), ledger.spent_and_held(1).await), (2, (0, 2 * most)));
    gateway.answer(1, 3).await;
    pending.end().await.unwrap();
    assert_eq!(ledger.spent_and_held(1).await, (most + 3, 0), "the loser is charged its bound");
}

#[tokio::test(start_paused = true)]
async fn hedge_is_skipped_when_increase_is_rejected() {
    let most = bound(&nouls(1));
    let ledger = RecordingLedger::new(None, &[Some(2 * most - 1)]).await;
    let gateway = hedged(&ledger).build();
    let pending = gateway.send_with(key(1), nouls(1)).await;
    gateway.elapse(Duration::from_millis(50)).await;
    assert_eq!(gateway.upstreams().len(), 1);
    assert!(ledger.calls().contains(&LedgerCall::Rejected(usd(most))));
    gateway.finish(0, Err(AttemptFailure::from_status(500, None))).await;
    assert_eq!(gateway.upstreams(), ["a", "b"], "it is still there as a fallback, which the same money pays for");
    gateway.answer(1, 3).await;
    pending.end().await.unwrap();
    assert_eq!(ledger.spent_and_held(1).await, (3, 0));
}

#[tokio::test(start_paused = true)]
async fn fallback_does_not_use_hold_of_waiting_sub_request() {
    let most = bound(&nouls(1));
    let ledger = RecordingLedger::new(None, &[Some(2 * most)]).await;
    let mut setup = setup(&ledger);
    for endpoint in &mut setup.endpoints {
        endpoint.own_limits.max_questions = Some(1);
    }
    setup.settings.max_concurrent_subrequests = 1;
    let gateway = setup.build();
    let pending = gateway.send_with(key(1), DecisionRequest { partial: true, ..nouls(2) }).await;
    gateway.finish(0, unknown(&nouls(1))).await;
    // The first sub-request cannot hold a fallback; the second one has its own hold.
    assert_eq!(gateway.call(1).provider_input.questions.json.text(), r#"{"q1":{"type":"noul","instructions":"?"}}"#);
    gateway.answer(1, 1).await;
    let decision = pending.end().await.unwrap();
    assert_eq!(
        decision.answers.json().text(),
        r#"{"q0":{"type":"error","error":"timed_out"},"q1":{"type":"noul","noul":0}}"#
    );
    assert_eq!(ledger.spent_and_held(1).await, (most + 1, 0));
}

#[tokio::test(start_paused = true)]
async fn smaller_sub_requests_increase_hold() {
    let ledger = RecordingLedger::new(None, &[Some(10_000)]).await;
    let mut setup = setup(&ledger);
    setup.endpoints[1].own_limits.max_questions = Some(1);
    let gateway = setup.build();
    let pending = gateway.send_with(key(1), nouls(2)).await;
    gateway.finish(0, unknown(&nouls(2))).await;
    assert_eq!(gateway.upstreams(), ["a", "b", "b"]);
    assert_eq!(ledger.spent_and_held(1).await, (0, bound(&nouls(2)) + 2 * bound(&nouls(1))));
    gateway.answer(1, 1).await;
    gateway.answer(2, 1).await;
    pending.end().await.unwrap();
    assert_eq!(ledger.spent_and_held(1).await, (bound(&nouls(2)) + 2, 0));

    let ledger = RecordingLedger::new(None, &[Some(bound(&nouls(2)))]).await;
    let mut setup = super::recording_ledger::setup(&ledger);
    setup.endpoints[1].own_limits.max_questions = Some(1);
    let gateway = setup.build();
    let pending = gateway.send_with(key(1), nouls(2)).await;
    gateway.finish(0, unknown(&nouls(2))).await;
    assert_eq!(pending.end().await.unwrap_err().kind(), ErrorKind::TimedOut);
    assert_eq!((gateway.upstreams().len(), ledger.spent_and_held(1).await.1), (1, 0));
}

/// Two requests of a key whose limit has room for both first attempts, but not for a fallback.
async fn two_requests_near_limit() -> (Arc<RecordingLedger>, TestGateway, PendingRequest, PendingRequest) {
    let ledger = RecordingLedger::new(None, &[Some(3 * bound(&nouls(1)) - 1)]).await;
    let gateway = setup(&ledger).build();
    let other = gateway.send_with(key(1), nouls(1)).await;
    let pending = gateway.send_with(key(1), nouls(1)).await;
    gateway.finish(1, unknown(&nouls(1))).await;
    assert_eq!((gateway.upstreams().len(), gateway.timer.waiting()), (2, vec![Duration::from_millis(10)]));
    (ledger, gateway, other, pending)
}

#[tokio::test(start_paused = true)]
async fn fallback_waits_for_other_holds() {
    let (ledger, gateway, other, pending) = two_requests_near_limit().await;
    gateway.answer(0, 1).await;
    other.end().await.unwrap();
    gateway.elapse(Duration::from_millis(10)).await;
    assert_eq!(gateway.upstreams().len(), 3, "the other one has settled");
    gateway.answer(2, 1).await;
    pending.end().await.unwrap();
    assert_eq!(ledger.spent_and_held(1).await, (bound(&nouls(1)) + 2, 0));
}

#[tokio::test(start_paused = true)]
async fn fallback_stops_waiting_at_budget_or_disconnect() {
    let (_ledger, gateway, _other, pending) = two_requests_near_limit().await;
    while let [wait] = gateway.timer.waiting()[..] {
        gateway.elapse(wait).await;
    }
    assert_eq!(pending.end().await.unwrap_err().kind(), ErrorKind::TimedOut);
    assert_eq!(crate::system::Clock::monotonic(&gateway.clock), Duration::from_millis(250));

    let (_ledger, gateway, _other, pending) = two_requests_near_limit().await;
    pending.disconnect();
    assert_eq!(pending.end().await.unwrap_err().kind(), ErrorKind::TimedOut);
    assert_eq!(gateway.upstreams().len(), 2);
}
