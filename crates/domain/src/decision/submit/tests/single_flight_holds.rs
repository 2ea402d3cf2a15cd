//! Participants of a shared call each hold its ceiling: the bounds of all attempts that its plan allows.

use super::fixture::*;
use super::recording_ledger::{LedgerCall, RecordingLedger, bound, key, setup, usd};
use super::*;
use crate::decision::ModelOptions;

fn sharing(ledger: &Arc<RecordingLedger>, mode: SingleFlightMode) -> GatewaySetup {
    let mut setup = setup(ledger);
    let options = ModelOptions { single_flight: mode, ..ModelOptions::default() };
    setup.settings.models.insert("acme/judge".parse().unwrap(), options);
    setup
}

/// The ceiling of a request at the two endpoints of these tests.
fn ceiling() -> i64 {
    2 * bound(&nouls(1))
}

/// A failure with unknown usage, after the whole request was sent.
fn unknown() -> Outcome {
    let sent_bytes = u64::try_from(nouls(1).provider_input.len_bytes()).unwrap();
    Err(AttemptFailure { sent_bytes, ..failure(TimedOut).unwrap_err() })
}

fn unlimited(number: u64) -> InferenceKey {
    InferenceKey::for_tests(key(number).id(), key(number).workspace_id())
}

#[tokio::test(start_paused = true)]
async fn participant_holds_the_ceiling_and_pays_its_share() {
    let most = bound(&nouls(1));
    let ledger = RecordingLedger::new(None, &[Some(ceiling()), Some(ceiling()), Some(most - 1)]).await;
    let gateway = sharing(&ledger, SingleFlightMode::SplitCost).build();
    let first = gateway.send_with(key(1), nouls(1)).await;
    let second = gateway.send_with(key(2), nouls(1)).await;
    let poor = gateway.send_with(key(3), nouls(1)).await;
    assert_eq!((gateway.upstreams().len(), ledger.spent_and_held(2).await), (1, (0, ceiling())));
    assert_eq!(poor.end().await.unwrap_err().kind(), ErrorKind::InsufficientCredits, "sharing is no way round a limit");
    assert_eq!(ledger.hold_requests()[0].attempts.len(), 2, "the hold accounts for each attempt of the plan");
    gateway.answer(0, 31).await;
    first.end().await.unwrap();
    second.end().await.unwrap();
    let (one, two) = (ledger.spent_and_held(1).await, ledger.spent_and_held(2).await);
    assert_eq!((one.0 + two.0, one.1 + two.1, ledger.spent_and_held(3).await), (31, 0, (0, 0)));
}

#[tokio::test(start_paused = true)]
async fn request_makes_its_own_call_when_it_cannot_hold_the_ceiling() {
    let most = bound(&nouls(1));
    for mode in [SingleFlightMode::SplitCost, SingleFlightMode::ChargeEach] {
        let ledger = RecordingLedger::new(None, &[Some(ceiling() - 1), Some(ceiling())]).await;
        let gateway = sharing(&ledger, mode).build();
        let poor = gateway.send_with(key(1), nouls(1)).await;
        assert_eq!(ledger.spent_and_held(1).await, (0, most), "it holds its first attempt");
        let rich = gateway.send_with(key(2), nouls(1)).await;
        assert_eq!(gateway.upstreams(), ["a", "a"], "{mode:?}");
        gateway.finish(0, unknown()).await;
        let error = poor.end().await.unwrap_err();
        assert_eq!(error.kind(), ErrorKind::TimedOut, "it has no money for a fallback: {error}");
        assert_eq!(ledger.spent_and_held(1).await, (most, 0), "it pays for its own call");
        gateway.answer(1, 1).await;
        assert_eq!(rich.end().await.unwrap().cost, usd(1), "{mode:?}");
        assert_eq!((ledger.spent_and_held(2).await, ledger.records().await.len()), ((1, 0), 2));
    }
}

#[tokio::test(start_paused = true)]
async fn fallback_of_a_shared_call_asks_the_ledger_for_nothing() {
    let most = bound(&nouls(1));
    let ledger = RecordingLedger::new(None, &[Some(ceiling()), Some(ceiling())]).await;
    let gateway = sharing(&ledger, SingleFlightMode::SplitCost).build();
    let requests = [gateway.send_with(key(1), nouls(1)).await, gateway.send_with(key(2), nouls(1)).await];
    gateway.finish(0, unknown()).await;
    assert_eq!(gateway.upstreams(), ["a", "b"]);
    gateway.finish(1, unknown()).await;
    for request in requests {
        assert_eq!(request.end().await.unwrap_err().kind(), ErrorKind::TimedOut);
    }
    let (one, two) = (ledger.spent_and_held(1).await, ledger.spent_and_held(2).await);
    assert_eq!((one.0 + two.0, one.1 + two.1), (2 * most, 0));
    let increased =
        ledger.calls().iter().any(|entry| matches!(entry, LedgerCall::Increased(_) | LedgerCall::Rejected(_)));
    assert!(!increased, "{:?}", ledger.calls());
}

#[tokio::test(start_paused = true)]
async fn late_participant_holds_the_ceiling_and_pays_for_attempts_before_it() {
    let most = bound(&nouls(1));
    let ledger = RecordingLedger::new(None, &[Some(ceiling()), Some(ceiling()), Some(ceiling() - 1)]).await;
    let gateway = sharing(&ledger, SingleFlightMode::ChargeEach).build();
    let first = gateway.send_with(key(1), nouls(1)).await;
    gateway.finish(0, unknown()).await;
    let late = gateway.send_with(key(2), nouls(1)).await;
    assert_eq!((gateway.upstreams().len(), ledger.spent_and_held(2).await), (2, (0, ceiling())));
    let alone = gateway.send_with(key(3), nouls(1)).await;
    assert_eq!(gateway.upstreams().len(), 3, "it cannot hold the ceiling");
    gateway.answer(2, 4).await;
    assert_eq!(alone.end().await.unwrap().cost, usd(4));
    gateway.answer(1, 1).await;
    for request in [first, late] {
        assert_eq!(request.end().await.unwrap().cost, usd(most + 1));
    }
    assert_eq!((ledger.spent_and_held(1).await, ledger.spent_and_held(2).await), ((most + 1, 0), (most + 1, 0)));
}

#[tokio::test(start_paused = true)]
async fn unlimited_request_shares_a_call_with_a_limited_one() {
    let most = bound(&nouls(1));
    let ledger = RecordingLedger::new(None, &[Some(ceiling()), None]).await;
    let gateway = sharing(&ledger, SingleFlightMode::SplitCost).build();
    let first = gateway.send_with(unlimited(2), nouls(1)).await;
    let second = gateway.send_with(key(1), nouls(1)).await;
    assert_eq!(gateway.upstreams().len(), 1);
    gateway.finish(0, unknown()).await;
    gateway.answer(1, 2).await;
    let costs = [first.end().await.unwrap().cost.pico(), second.end().await.unwrap().cost.pico()];
    assert_eq!(costs.iter().sum::<i64>(), most + 2);
    assert_eq!(ledger.spent_and_held(1).await.1, 0);
}

#[tokio::test(start_paused = true)]
async fn ceiling_contains_the_smaller_sub_requests_of_a_split() {
    let ledger = RecordingLedger::new(None, &[Some(100_000)]).await;
    let mut setup = sharing(&ledger, SingleFlightMode::SplitCost);
    setup.endpoints[1].own_limits.max_questions = Some(1);
    let gateway = setup.build();
    let request = gateway.send_with(key(1), nouls(2)).await;
    assert_eq!(ledger.spent_and_held(1).await, (0, bound(&nouls(2)) + 2 * bound(&nouls(1))));
    gateway.fail(0, ConnectFailed).await;
    assert_eq!(gateway.upstreams(), ["a", "b", "b"]);
    gateway.answer(1, 1).await;
    gateway.answer(2, 1).await;
    assert_eq!(request.end().await.unwrap().cost, usd(2));
    assert_eq!(ledger.calls().len(), 2, "{:?}", ledger.calls());
}

#[tokio::test(start_paused = true)]
async fn request_is_not_sent_when_the_hold_of_its_ceiling_fails() {
    let ledger = RecordingLedger::new(None, &[Some(ceiling())]).await;
    ledger.is_unavailable.store(true, std::sync::atomic::Ordering::SeqCst);
    let gateway = sharing(&ledger, SingleFlightMode::SplitCost).build();
    let error = gateway.send_with(key(1), nouls(1)).await.end().await.unwrap_err();
    assert_eq!((error.kind(), gateway.upstreams().len()), (ErrorKind::Unavailable, 0));
}
