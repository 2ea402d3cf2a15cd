//! Cheaper plans for requests whose preferred plan exceeds a limit.

use super::fixture::*;
use super::recording_ledger::{LedgerCall, RecordingLedger, bound, key, setup, usd};
use super::*;

/// `one` at three picodollars a token before `two` at one.
fn dear_first(ledger: &Arc<RecordingLedger>) -> GatewaySetup {
    let mut setup = setup(ledger);
    setup.endpoints[0] = at_price(setup.endpoints[0].clone(), "0.000000000003");
    setup
}

fn in_order(mut request: DecisionRequest) -> DecisionRequest {
    request.preferences.order = vec!["one".to_owned(), "two".to_owned()];
    request
}

#[tokio::test(start_paused = true)]
async fn cheaper_endpoint_is_used_when_preferred_exceeds_limit() {
    let most = bound(&nouls(1));
    let ledger = RecordingLedger::new(None, &[Some(3 * most - 1), Some(3 * most)]).await;
    let gateway = dear_first(&ledger).build();
    let pending = gateway.send_with(key(1), in_order(nouls(1))).await;
    assert_eq!(ledger.spent_and_held(1).await, (0, most));
    gateway.answer(0, 5).await;
    assert_eq!(pending.end().await.unwrap().cost, usd(5));
    assert_eq!(
        ledger.calls(),
        [LedgerCall::Rejected(usd(3 * most)), LedgerCall::Held(usd(most)), LedgerCall::Charged(usd(5))]
    );
    let fits = gateway.send_with(key(2), in_order(nouls(1))).await;
    gateway.answer(1, 5).await;
    fits.end().await.unwrap();
    assert_eq!(gateway.upstreams(), ["b", "a"], "a request that fits keeps its order");
}

#[tokio::test(start_paused = true)]
async fn request_is_rejected_without_fallbacks_when_preferred_exceeds_limit() {
    let most = bound(&nouls(1));
    let ledger = RecordingLedger::new(None, &[Some(3 * most - 1)]).await;
    let gateway = dear_first(&ledger).build();
    let mut request = in_order(nouls(1));
    request.preferences.allow_fallbacks = false;
    let error = gateway.send_with(key(1), request).await.end().await.unwrap_err();
    let SubmitDecisionError::LimitExceeded(exceeded) = error else { panic!("expected a limit error: {error}") };
    assert_eq!((exceeded.wanted, gateway.upstreams().len()), (usd(3 * most), 0));
}

#[tokio::test(start_paused = true)]
async fn rejection_reports_preferred_cost_when_no_plan_fits() {
    let most = bound(&nouls(1));
    let ledger = RecordingLedger::new(None, &[Some(most - 1)]).await;
    let gateway = dear_first(&ledger).build();
    let error = gateway.send_with(key(1), in_order(nouls(1))).await.end().await.unwrap_err();
    let SubmitDecisionError::LimitExceeded(exceeded) = error else { panic!("expected a limit error: {error}") };
    assert_eq!(exceeded.wanted, usd(3 * most));
    assert_eq!(ledger.calls(), [LedgerCall::Rejected(usd(3 * most))]);
}

#[tokio::test(start_paused = true)]
async fn request_waits_for_other_holds_when_only_cheaper_plan_can_fit() {
    let most = bound(&nouls(1));
    let ledger = RecordingLedger::new(None, &[Some(2 * most - 1)]).await;
    let gateway = dear_first(&ledger).build();
    let first = gateway.send_with(key(1), in_order(nouls(1))).await;
    let second = gateway.send_with(key(1), in_order(nouls(1))).await;
    assert_eq!(gateway.upstreams(), ["b"], "the second waits");
    gateway.answer(0, 1).await;
    first.end().await.unwrap();
    gateway.elapse(Duration::from_millis(10)).await;
    gateway.answer(1, 1).await;
    second.end().await.unwrap();
    assert_eq!((gateway.upstreams(), ledger.spent_and_held(1).await), (vec!["b".to_owned(), "b".to_owned()], (2, 0)));
}

#[tokio::test(start_paused = true)]
async fn cheaper_plan_fits_into_every_limit() {
    // The key's limit has room for the second endpoint, the workspace's credit only for the cheapest one.
    let most = bound(&nouls(1));
    let ledger = RecordingLedger::new(Some(most), &[Some(3 * most - 1)]).await;
    let mut setup = dear_first(&ledger);
    let middle = at_price(endpoint("acme/judge", "three", "c"), "0.000000000002");
    setup.endpoints.insert(1, middle);
    let gateway = setup.build();
    let mut request = nouls(1);
    request.preferences.order = ["one", "three", "two"].map(str::to_owned).into();
    let pending = gateway.send_with(key(1), request).await;
    gateway.answer(0, 5).await;
    pending.end().await.unwrap();
    assert_eq!(gateway.upstreams(), ["b"]);
    assert!(ledger.calls().contains(&LedgerCall::Held(usd(most))));
}

#[tokio::test(start_paused = true)]
async fn split_request_replaces_as_few_endpoints_as_needed() {
    let most = bound(&nouls(1));
    let ledger = RecordingLedger::new(None, &[Some(4 * most)]).await;
    let mut setup = dear_first(&ledger);
    for endpoint in &mut setup.endpoints {
        endpoint.own_limits.max_questions = Some(1);
    }
    setup.settings.max_concurrent_subrequests = 1;
    let gateway = setup.build();
    let pending = gateway.send_with(key(1), in_order(nouls(2))).await;
    assert_eq!(ledger.spent_and_held(1).await, (0, 4 * most), "one of two sub-requests at the cheaper endpoint");
    for part in 0..2 {
        gateway.answer(part, 2).await;
    }
    pending.end().await.unwrap();
    let mut upstreams = gateway.upstreams();
    upstreams.sort();
    assert_eq!(upstreams, ["a", "b"]);
}

#[tokio::test(start_paused = true)]
async fn fallback_skips_to_affordable_endpoint_after_charged_failure() {
    // After the failure of `one`, the limit has room for `two`, but not for `three`.
    let most = bound(&nouls(1));
    let ledger = RecordingLedger::new(None, &[Some(3 * most - 1)]).await;
    let mut setup = setup(&ledger);
    setup.endpoints.insert(1, at_price(endpoint("acme/judge", "three", "c"), "0.000000000002"));
    let gateway = setup.build();
    let mut request = nouls(1);
    request.preferences.order = ["one", "three", "two"].map(str::to_owned).into();
    let sent_bytes = u64::try_from(request.provider_input.len_bytes()).unwrap();
    let pending = gateway.send_with(key(1), request).await;
    gateway.finish(0, Err(AttemptFailure { sent_bytes, ..failure(TimedOut).unwrap_err() })).await;
    gateway.answer(1, 5).await;
    pending.end().await.unwrap();
    assert_eq!(gateway.upstreams(), ["a", "b"]);
    let rejected = ledger.calls().iter().filter(|entry| matches!(entry, LedgerCall::Rejected(_))).count();
    assert_eq!((rejected, ledger.spent_and_held(1).await), (1, (most + 5, 0)));
}

#[tokio::test(start_paused = true)]
async fn remaining_candidates_keep_their_order_behind_a_cheaper_endpoint() {
    let most = bound(&nouls(1));
    let ledger = RecordingLedger::new(None, &[Some(3 * most)]).await;
    let mut setup = dear_first(&ledger);
    setup.endpoints.insert(1, at_price(endpoint("acme/judge", "three", "c"), "0.000000000002"));
    let gateway = setup.build();
    let preferring = |order: &[&str]| {
        let mut request = nouls(1);
        request.preferences.order = order.iter().map(|slug| (*slug).to_owned()).collect();
        request
    };
    let first = gateway.send_with(key(1), preferring(&["three"])).await;
    assert_eq!((gateway.upstreams(), ledger.spent_and_held(1).await), (vec!["c".to_owned()], (0, 2 * most)));
    // The limit has room only for the last endpoint of the order beside it.
    let second = gateway.send_with(key(1), preferring(&["one", "three", "two"])).await;
    assert_eq!(gateway.upstreams(), ["c", "b"]);
    gateway.answer(0, 0).await;
    first.end().await.unwrap();
    // The first hold is released, and the failure costs nothing.
    gateway.finish(1, Err(AttemptFailure::from_status(500, None))).await;
    assert_eq!(gateway.upstreams(), ["c", "b", "a"], "the first of the order comes before the second");
    gateway.answer(2, 5).await;
    second.end().await.unwrap();
}
