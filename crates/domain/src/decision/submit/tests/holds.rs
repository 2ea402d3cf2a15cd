//! Holds before the first attempt, and charges after the last one.

use super::fixture::*;
use super::recording_ledger::{LedgerCall, RecordingLedger, bound, key, setup, usd};
use super::*;
use crate::budget::{BudgetScope, HoldRequest};
use crate::decision::{MockMetrics, TokenFactor};

#[tokio::test(start_paused = true)]
async fn request_holds_bound_and_is_charged_usage() {
    let ledger = RecordingLedger::new(None, &[Some(1_000)]).await;
    let gateway = setup(&ledger).build();
    let most = bound(&nouls(1));
    let pending = gateway.send_with(key(1), nouls(1)).await;
    assert_eq!(ledger.spent_and_held(1).await, (0, most), "before the provider answers");
    gateway.clock.advance(Duration::from_secs(3));
    gateway.answer(0, 30).await;
    let decision = pending.end().await.unwrap();
    assert_eq!((decision.cost, ledger.spent_and_held(1).await), (usd(30), (30, 0)));
    assert_eq!(ledger.calls(), [LedgerCall::Held(usd(most)), LedgerCall::Charged(usd(30))]);
    let claim = ledger.hold_requests().remove(0);
    assert_eq!(claim.id, decision.id);
    assert_eq!((claim.attempts.len(), claim.attempts[0].usage_source), (1, UsageSource::UpperBound));
    let record = ledger.records().await.remove(0);
    assert_eq!(record.charged_at, crate::system::Clock::now(&FixedClock::default()), "the time of the hold");
}

/// The store and each process have separate clocks. The periods of limits use the store's clock.
#[tokio::test(start_paused = true)]
async fn charge_counts_in_the_day_of_its_hold_when_clocks_differ() {
    let ledger = RecordingLedger::new(None, &[Some(1_000)]).await;
    let held_at: DateTime<chrono::Utc> = "2026-07-15T23:59:59.999Z".parse().unwrap();
    ledger.clock.set(held_at);
    let gateway = setup(&ledger).build();
    // The clock of the process is days ahead.
    gateway.clock.set("2026-07-20T12:00:00Z".parse().unwrap());
    let pending = gateway.send_with(key(1), nouls(1)).await;
    // Midnight passes at the store before the provider answers.
    ledger.clock.set("2026-07-16T00:00:05Z".parse().unwrap());
    gateway.answer(0, 30).await;
    pending.end().await.unwrap();
    let record = ledger.records().await.remove(0);
    assert_eq!(record.charged_at, held_at, "the store's day, not the process's");
    assert_eq!(record.created_at, "2026-07-20T12:00:00Z".parse::<DateTime<chrono::Utc>>().unwrap());
}

#[tokio::test(start_paused = true)]
async fn hold_is_rejected_one_picodollar_above_limit() {
    let most = bound(&nouls(1));
    let ledger = RecordingLedger::new(None, &[Some(most), Some(most - 1)]).await;
    let gateway = setup(&ledger).build();
    let fits = gateway.send_with(key(1), nouls(1)).await;
    gateway.answer(0, 1).await;
    fits.end().await.unwrap();
    let rejected = gateway.send_with(key(2), nouls(1)).await.end().await.unwrap_err();
    assert_eq!(rejected.kind(), ErrorKind::InsufficientCredits);
    let SubmitDecisionError::LimitExceeded(exceeded) = rejected else { panic!("a limit refuses it: {rejected}") };
    assert_eq!((exceeded.scope, exceeded.limit, exceeded.wanted), (BudgetScope::Key, usd(most - 1), usd(most)));
    assert_eq!((gateway.upstreams().len(), ledger.records().await.len()), (1, 1), "the rejected request was not sent");
}

#[tokio::test(start_paused = true)]
async fn bound_uses_factor_overhead_and_higher_price() {
    let ledger = RecordingLedger::new(None, &[Some(1_000_000)]).await;
    let mut setup = setup(&ledger);
    setup.settings.max_tokens_per_byte = "1.5".parse::<TokenFactor>().unwrap();
    for endpoint in &mut setup.endpoints {
        endpoint.prices = Some(TokenPrices { prompt: price("1e-12"), completion: price("3e-12") });
    }
    let gateway = setup.build();
    let tokens = (bound(&nouls(1)) * 3 + 1) / 2;
    let pending = gateway.send_with(key(1), nouls(1)).await;
    assert_eq!(ledger.spent_and_held(1).await, (0, tokens * 3));
    let sent_bytes = u64::try_from(nouls(1).provider_input.len_bytes()).unwrap();
    gateway.finish(0, Err(AttemptFailure { sent_bytes, ..failure(TimedOut).unwrap_err() })).await;
    gateway.fail(1, InvalidResponse).await;
    pending.end().await.unwrap_err();
    let record = ledger.records().await.remove(0);
    assert_eq!((record.input_tokens, record.output_tokens), (0, u64::try_from(tokens).unwrap()));
    assert_eq!(ledger.spent_and_held(1).await, (tokens * 3, 0), "unknown usage is charged by the same rule");
}

#[tokio::test(start_paused = true)]
async fn split_request_holds_bound_of_each_sub_request() {
    let ledger = RecordingLedger::new(None, &[Some(1_000_000)]).await;
    let mut setup = setup(&ledger);
    for endpoint in &mut setup.endpoints {
        endpoint.own_limits.max_questions = Some(1);
    }
    setup.settings.max_concurrent_subrequests = 1;
    let gateway = setup.build();
    let pending = gateway.send_with(key(1), nouls(3)).await;
    assert_eq!(ledger.spent_and_held(1).await, (0, 3 * bound(&nouls(1))));
    for part in 0..3 {
        gateway.answer(part, 2).await;
    }
    pending.end().await.unwrap();
    assert_eq!(ledger.calls().len(), 2, "one hold for all sub-requests");
    assert_eq!(ledger.spent_and_held(1).await, (6, 0));
}

#[tokio::test(start_paused = true)]
async fn free_request_is_granted_when_credit_is_used_up() {
    let ledger = RecordingLedger::new(Some(0), &[Some(1)]).await;
    let mut setup = setup(&ledger);
    for endpoint in &mut setup.endpoints {
        endpoint.prices = Some(TokenPrices { prompt: price("0"), completion: price("0") });
    }
    let gateway = setup.build();
    let pending = gateway.send_with(key(1), nouls(1)).await;
    gateway.answer(0, 30).await;
    assert_eq!(pending.end().await.unwrap().cost, Usd::ZERO);
    assert_eq!(ledger.calls(), [LedgerCall::Held(Usd::ZERO), LedgerCall::Charged(Usd::ZERO)]);
}

#[tokio::test(start_paused = true)]
async fn attempts_of_unlimited_key_are_held_outside_any_limit() {
    let ledger = RecordingLedger::new(None, &[None]).await;
    let gateway = setup(&ledger).build();
    let key = InferenceKey::for_tests(key(1).id(), key(1).workspace_id());
    let pending = gateway.send_with(key, nouls(1)).await;
    gateway.answer(0, 30).await;
    pending.end().await.unwrap();
    assert_eq!(ledger.calls(), [LedgerCall::Held(usd(bound(&nouls(1)))), LedgerCall::Charged(usd(30))]);
    let held = ledger.hold_requests().remove(0);
    assert_eq!((held.is_limited, held.attempts.len()), (false, 1));
}

#[tokio::test(start_paused = true)]
async fn request_is_not_sent_when_ledger_is_unavailable() {
    let ledger = RecordingLedger::new(None, &[Some(1_000)]).await;
    ledger.is_unavailable.store(true, std::sync::atomic::Ordering::SeqCst);
    let gateway = setup(&ledger).build();
    let error = gateway.send_with(key(1), nouls(1)).await.end().await.unwrap_err();
    assert_eq!((error.kind(), gateway.upstreams().len()), (ErrorKind::Unavailable, 0));
}

#[tokio::test(start_paused = true)]
async fn hold_is_released_when_nothing_was_sent() {
    let ledger = RecordingLedger::new(None, &[Some(1_000)]).await;
    let mut setup = setup(&ledger);
    setup.settings.deadline = Duration::ZERO;
    let gateway = setup.build();
    let error = gateway.send_with(key(1), nouls(1)).await.end().await.unwrap_err();
    assert_eq!(error.kind(), ErrorKind::TimedOut);
    assert_eq!((ledger.spent_and_held(1).await, ledger.calls().pop()), ((0, 0), Some(LedgerCall::Released)));
    assert!(ledger.records().await.is_empty());
}

#[tokio::test(start_paused = true)]
async fn disconnected_request_is_charged_within_its_hold() {
    let ledger = RecordingLedger::new(None, &[Some(1_000)]).await;
    let gateway = setup(&ledger).build();
    let pending = gateway.send_with(key(1), nouls(1)).await;
    pending.disconnect();
    run_until_idle().await;
    assert_eq!(pending.end().await.unwrap_err().kind(), ErrorKind::ClientDisconnected);
    let spent = i64::try_from(SENT_ON_DISCONNECT).unwrap() + 20;
    assert_eq!(ledger.spent_and_held(1).await, (spent, 0));
}

#[tokio::test(start_paused = true)]
async fn charge_above_hold_is_charged_and_counted() {
    let ledger = RecordingLedger::new(None, &[Some(1_000)]).await;
    let mut setup = setup(&ledger);
    let mut metrics = MockMetrics::new();
    metrics.expect_record_hold().times(1).withf(|rejected, _| rejected.is_none()).return_const(());
    metrics.expect_record_hold_exceeded().times(1).return_const(());
    metrics.expect_record_charge().times(1).withf(|record| record.cost == usd(5_000)).return_const(());
    setup.metrics = Arc::new(metrics);
    let gateway = setup.build();
    let pending = gateway.send_with(key(1), nouls(1)).await;
    gateway.answer(0, 5_000).await;
    assert_eq!(pending.end().await.unwrap().cost, usd(5_000));
    assert_eq!(ledger.spent_and_held(1).await, (5_000, 0), "the charge exceeds the limit of the key");
}

/// The provider counts a hidden prompt of 5,000 tokens with every request.
#[tokio::test(start_paused = true)]
async fn second_request_holds_bound_that_the_first_answer_raised() {
    let most = bound(&nouls(1));
    let ledger = RecordingLedger::new(None, &[Some(100_000)]).await;
    let mut setup = setup(&ledger);
    setup.endpoints.truncate(1);
    let gateway = setup.build();
    let first = gateway.send_with(key(1), nouls(1)).await;
    gateway.answer(0, 5_000).await;
    first.end().await.unwrap();
    let second = gateway.send_with(key(1), nouls(1)).await;
    assert_eq!(ledger.spent_and_held(1).await, (5_000, 5_000));
    gateway.answer(1, 5_000).await;
    second.end().await.unwrap();
    let larger = gateway.send_with(key(1), nouls(20)).await;
    let hidden = 5_000 - most;
    assert_eq!(ledger.spent_and_held(1).await, (10_000, bound(&nouls(20)) + hidden), "the prompt, not its ratio");
    gateway.answer(2, 5_000).await;
    larger.end().await.unwrap();
    let timed_out = gateway.send_with(key(1), nouls(1)).await;
    let sent_bytes = u64::try_from(nouls(1).provider_input.len_bytes()).unwrap();
    gateway.finish(3, Err(AttemptFailure { sent_bytes, ..failure(TimedOut).unwrap_err() })).await;
    timed_out.end().await.unwrap_err();
    assert_eq!(ledger.spent_and_held(1).await, (20_000, 0), "unknown usage is charged by the raised bound");
    gateway.clock.advance(Duration::from_hours(2));
    let later = gateway.send_with(key(1), nouls(1)).await;
    assert_eq!(ledger.spent_and_held(1).await, (20_000, most), "the raise has expired");
    gateway.answer(4, 1).await;
    later.end().await.unwrap();
}

/// A limit that is one picodollar too low for two concurrent requests.
async fn limit_below_two_requests() -> (Arc<RecordingLedger>, GatewaySetup) {
    let ledger = RecordingLedger::new(None, &[Some(2 * bound(&nouls(1)) - 1)]).await;
    let setup = setup(&ledger);
    (ledger, setup)
}

#[tokio::test(start_paused = true)]
async fn request_waits_for_holds_of_others() {
    let (ledger, setup) = limit_below_two_requests().await;
    let gateway = setup.build();
    let first = gateway.send_with(key(1), nouls(1)).await;
    let second = gateway.send_with(key(1), nouls(1)).await;
    assert_eq!(gateway.timer.waiting(), [Duration::from_millis(10)]);
    gateway.elapse(Duration::from_millis(10)).await;
    assert_eq!(gateway.timer.waiting(), [Duration::from_millis(20)]);
    gateway.answer(0, 1).await;
    first.end().await.unwrap();
    gateway.elapse(Duration::from_millis(20)).await;
    assert_eq!(gateway.upstreams().len(), 2, "the first has settled");
    gateway.answer(1, 1).await;
    second.end().await.unwrap();
    assert_eq!(ledger.spent_and_held(1).await, (2, 0));
}

#[tokio::test(start_paused = true)]
async fn wait_ends_with_budget() {
    let (ledger, setup) = limit_below_two_requests().await;
    let gateway = setup.build();
    let _first = gateway.send_with(key(1), nouls(1)).await;
    let second = gateway.send_with(key(1), nouls(1)).await;
    let mut waits = Vec::new();
    while let [wait] = gateway.timer.waiting()[..] {
        waits.push(u64::try_from(wait.as_millis()).unwrap());
        gateway.elapse(wait).await;
    }
    assert_eq!(waits, [10, 20, 40, 80, 100], "a quarter of a second in all");
    let error = second.end().await.unwrap_err();
    let SubmitDecisionError::LimitExceeded(exceeded) = error else { panic!("expected a limit error: {error}") };
    assert!(exceeded.waits_for_others() && exceeded.reserved == usd(bound(&nouls(1))));
    assert_eq!(ledger.spent_and_held(1).await, (0, bound(&nouls(1))), "the rejected request holds no money");
}

#[tokio::test(start_paused = true)]
async fn request_does_not_wait_when_holds_of_others_are_not_the_cause() {
    let most = bound(&nouls(1));
    let ledger = RecordingLedger::new(Some(most - 1), &[None]).await;
    let gateway = setup(&ledger).build();
    let error = gateway.send_with(key(1), nouls(1)).await.end().await.unwrap_err();
    let SubmitDecisionError::LimitExceeded(exceeded) = error else { panic!("expected a limit error: {error}") };
    assert!(exceeded.is_credit && gateway.timer.waiting().is_empty());
}

#[tokio::test(start_paused = true)]
async fn request_is_rejected_at_once_without_wait_budget() {
    let (_ledger, mut setup) = limit_below_two_requests().await;
    setup.settings.budget_wait = Duration::ZERO;
    let gateway = setup.build();
    let _first = gateway.send_with(key(1), nouls(1)).await;
    let error = gateway.send_with(key(1), nouls(1)).await.end().await.unwrap_err();
    assert_eq!(error.kind(), ErrorKind::InsufficientCredits);
}

#[tokio::test(start_paused = true)]
async fn wait_ends_when_client_disconnects() {
    let (ledger, setup) = limit_below_two_requests().await;
    let gateway = setup.build();
    let _first = gateway.send_with(key(1), nouls(1)).await;
    let second = gateway.send_with(key(1), nouls(1)).await;
    second.disconnect();
    run_until_idle().await;
    assert_eq!(second.end().await.unwrap_err().kind(), ErrorKind::InsufficientCredits);
    assert_eq!(ledger.spent_and_held(1).await, (0, bound(&nouls(1))));
}

#[tokio::test(start_paused = true)]
async fn latency_of_ledger_does_not_reduce_wait_budget() {
    let most = bound(&nouls(1));
    let busy = crate::budget::LimitExceeded {
        scope: BudgetScope::Key,
        guardrail_id: None,
        is_credit: false,
        limit: usd(most),
        reset: None,
        spent: usd(0),
        reserved: usd(1),
        wanted: usd(most),
        resets_at: None,
        is_uncertain: false,
    };
    let clock = Arc::new(std::sync::OnceLock::<FixedClock>::new());
    let (passing, refusals) = (Arc::clone(&clock), Mutex::new(vec![busy]));
    let mut mock = MockLedger::new();
    mock.expect_reserve().times(2).returning(move |claim| {
        passing.get().unwrap().advance(Duration::from_millis(300));
        let refusal = refusals.lock().unwrap().pop();
        let reservation = Hold { id: claim.id, at: DateTime::UNIX_EPOCH, payer: claim.payer, amount: claim.amount };
        Ok(refusal.map_or(Ok(reservation), Err))
    });
    mock.expect_settle().times(1).returning(|_| Ok(()));
    let ledger = RecordingLedger::new(None, &[]).await;
    let gateway = GatewaySetup { ledger: Some(Arc::new(mock)), ..setup(&ledger) }.build();
    assert!(clock.set(gateway.clock.clone()).is_ok());
    let pending = gateway.send_with(key(1), nouls(1)).await;
    assert_eq!(
        gateway.timer.waiting(),
        [Duration::from_millis(10)],
        "the ledger is asked again, regardless of its latency"
    );
    gateway.elapse(Duration::from_millis(10)).await;
    gateway.answer(0, 1).await;
    pending.end().await.unwrap();
}

#[tokio::test(start_paused = true)]
async fn request_is_unavailable_when_holder_does_not_respond() {
    let most = bound(&nouls(1));
    for is_uncertain in [true, false] {
        let held_by_others = crate::budget::LimitExceeded {
            scope: BudgetScope::Key,
            guardrail_id: None,
            is_credit: false,
            limit: usd(most),
            reset: None,
            spent: usd(0),
            reserved: usd(1),
            wanted: usd(most),
            resets_at: None,
            is_uncertain,
        };
        let mut mock = MockLedger::new();
        mock.expect_reserve().returning(move |_| Ok(Err(held_by_others)));
        let ledger = RecordingLedger::new(None, &[]).await;
        let gateway = GatewaySetup { ledger: Some(Arc::new(mock)), ..setup(&ledger) }.build();
        let pending = gateway.send_with(key(1), nouls(1)).await;
        while let [wait] = gateway.timer.waiting()[..] {
            gateway.elapse(wait).await;
        }
        let expected = if is_uncertain { ErrorKind::Unavailable } else { ErrorKind::InsufficientCredits };
        assert_eq!(pending.end().await.unwrap_err().kind(), expected);
    }
}

type RecordedHolds = Arc<Mutex<Vec<Option<BudgetScope>>>>;

/// Records holds by the scope that rejected them.
fn counting_metrics() -> (RecordedHolds, Arc<MockMetrics>) {
    let recorded = Arc::new(Mutex::new(Vec::new()));
    let mut metrics = MockMetrics::new();
    let counts = Arc::clone(&recorded);
    metrics.expect_record_hold().returning(move |rejected_by, _| counts.lock().unwrap().push(rejected_by));
    metrics.expect_record_charge().return_const(());
    (recorded, Arc::new(metrics))
}

#[tokio::test(start_paused = true)]
async fn rejected_hold_is_counted_once_when_final() {
    let (_ledger, setup) = limit_below_two_requests().await;
    let (recorded, metrics) = counting_metrics();
    let gateway = GatewaySetup { metrics, ..setup }.build();
    let first = gateway.send_with(key(1), nouls(1)).await;
    let rejected = gateway.send_with(key(1), nouls(1)).await;
    while let [wait] = gateway.timer.waiting()[..] {
        gateway.elapse(wait).await;
    }
    rejected.end().await.unwrap_err();
    assert_eq!(*recorded.lock().unwrap(), [None, Some(BudgetScope::Key)], "five tries count as one rejection");
    let admitted = gateway.send_with(key(1), nouls(1)).await;
    gateway.answer(0, 1).await;
    first.end().await.unwrap();
    gateway.elapse(Duration::from_millis(10)).await;
    gateway.answer(1, 1).await;
    admitted.end().await.unwrap();
    assert_eq!(
        *recorded.lock().unwrap(),
        [None, Some(BudgetScope::Key), None],
        "a request that waited was not rejected"
    );
}

#[tokio::test(start_paused = true)]
async fn rejected_increase_is_counted_for_fallback_not_for_hedge() {
    let most = bound(&nouls(1));
    let ledger = RecordingLedger::new(None, &[Some(2 * most - 1)]).await;
    let mut setup = setup(&ledger);
    let hedging = Some(crate::decision::Hedging { after: Some(Duration::from_millis(50)) });
    let options = crate::decision::ModelOptions { hedging, ..Default::default() };
    setup.settings.models.insert("acme/judge".parse().unwrap(), options);
    let (recorded, metrics) = counting_metrics();
    let gateway = GatewaySetup { metrics, ..setup }.build();
    let pending = gateway.send_with(key(1), nouls(1)).await;
    gateway.elapse(Duration::from_millis(50)).await;
    assert_eq!(*recorded.lock().unwrap(), [None], "a hedge is optional");
    let sent_bytes = u64::try_from(nouls(1).provider_input.len_bytes()).unwrap();
    gateway.finish(0, Err(AttemptFailure { sent_bytes, ..failure(TimedOut).unwrap_err() })).await;
    pending.end().await.unwrap_err();
    assert_eq!(*recorded.lock().unwrap(), [None, Some(BudgetScope::Key)]);
}

#[tokio::test(start_paused = true)]
async fn release_is_retried_after_error() {
    let mut mock = MockLedger::new();
    mock.expect_reserve().times(1).returning(|claim| {
        let HoldRequest { id, payer, amount, .. } = claim;
        Ok(Ok(Hold { id, at: DateTime::UNIX_EPOCH, payer, amount }))
    });
    let answers = Mutex::new(vec![Ok(()), Err(StoreError::unavailable("away"))]);
    mock.expect_release().times(2).returning(move |_| answers.lock().unwrap().pop().unwrap());
    let ledger = RecordingLedger::new(None, &[]).await;
    let mut setup = GatewaySetup { ledger: Some(Arc::new(mock)), ..setup(&ledger) };
    setup.settings.deadline = Duration::ZERO;
    let gateway = setup.build();
    let pending = gateway.send_with(key(1), nouls(1)).await;
    gateway.elapse(Duration::from_millis(10)).await;
    assert_eq!(pending.end().await.unwrap_err().kind(), ErrorKind::TimedOut);
}
