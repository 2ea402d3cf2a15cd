//! Identical requests in flight share one call.

use super::fixture::*;
use super::*;
use crate::decision::ModelOptions;
use crate::testing::EventCount;

fn sharing(mode: SingleFlightMode) -> GatewaySetup {
    let mut setup = GatewaySetup::new(vec![endpoint("acme/judge", "one", "a"), endpoint("acme/judge", "two", "b")]);
    setup
        .settings
        .models
        .insert("acme/judge".parse().unwrap(), ModelOptions { single_flight: mode, ..ModelOptions::default() });
    setup
}

#[tokio::test(start_paused = true)]
async fn identical_requests_share_call_and_split_cost_exactly() {
    let gateway = sharing(SingleFlightMode::SplitCost).build();
    let mut pending = Vec::new();
    for _ in 0..3 {
        pending.push(gateway.send(nouls(1)).await);
    }
    assert_eq!(gateway.upstreams(), ["a"]);
    gateway.answer(0, 431).await;
    let mut costs = Vec::new();
    let mut ids = Vec::new();
    for pending in pending {
        let decision = pending.end().await.unwrap();
        costs.push(decision.cost.pico());
        ids.push(decision.id);
    }
    assert_eq!(costs.iter().sum::<i64>(), 431 * 42_000);
    assert!(costs.iter().max().unwrap() - costs.iter().min().unwrap() <= 1, "{costs:?}");
    ids.sort();
    ids.dedup();
    assert_eq!(ids.len(), 3, "each has an id of its own");
    let records = gateway.records();
    let mut shares: Vec<(u32, u32)> = records.iter().map(|record| (record.share.index, record.share.of)).collect();
    shares.sort_unstable();
    assert_eq!(shares, [(0, 3), (1, 3), (2, 3)]);
    assert_eq!(records.iter().map(|record| record.cost.pico()).sum::<i64>(), 431 * 42_000);
    assert!(records.iter().all(|record| ids.contains(&record.id) && record.attempts.len() == 1));
}

#[tokio::test(start_paused = true)]
async fn indivisible_cost_is_split_within_one_picodollar() {
    let mut setup = sharing(SingleFlightMode::SplitCost);
    setup.endpoints[0] = at_price(setup.endpoints[0].clone(), "0.000000000001");
    let gateway = setup.build();
    let first = gateway.send(nouls(1)).await;
    let second = gateway.send(nouls(1)).await;
    let third = gateway.send(nouls(1)).await;
    gateway.answer(0, 5).await;
    let mut costs = Vec::new();
    for pending in [first, second, third] {
        costs.push(pending.end().await.unwrap().cost.pico());
    }
    costs.sort_unstable();
    assert_eq!(costs, [1, 2, 2]);
}

#[tokio::test(start_paused = true)]
async fn charge_each_charges_full_cost_to_each_request() {
    let gateway = sharing(SingleFlightMode::ChargeEach).build();
    let first = gateway.send(nouls(1)).await;
    let second = gateway.send(nouls(1)).await;
    assert_eq!(gateway.upstreams(), ["a"]);
    gateway.answer(0, 10).await;
    for pending in [first, second] {
        assert_eq!(pending.end().await.unwrap().cost.pico(), 420_000);
    }
    let whole = crate::usage::UsageShare::WHOLE;
    assert!(gateway.records().iter().all(|record| record.share == whole && record.cost.pico() == 420_000));
}

#[tokio::test(start_paused = true)]
async fn single_flight_is_off_by_default() {
    let gateway = GatewaySetup::new(vec![endpoint("acme/judge", "one", "a")]).build();
    let _asked = [gateway.send(nouls(1)).await, gateway.send(nouls(1)).await];
    assert_eq!(gateway.upstreams(), ["a", "a"]);
}

#[tokio::test(start_paused = true)]
async fn different_requests_do_not_share_call() {
    let gateway = sharing(SingleFlightMode::SplitCost).build();
    let mut pending = vec![gateway.send(nouls(1)).await];
    pending.push(gateway.send_in(902, nouls(1)).await);
    let other_state = |state: &str| {
        let mut request = nouls(1);
        let provider_input = (*request.provider_input).clone();
        request.provider_input = Arc::new(ProviderInput { state: Json::parse(state).ok(), ..provider_input });
        request
    };
    pending.push(gateway.send(other_state("\"S\"")).await);
    pending.push(gateway.send(nouls(2)).await);
    let mut ordered = nouls(1);
    ordered.preferences.order = vec!["one".to_owned()];
    pending.push(gateway.send(ordered).await);
    pending.push(gateway.send(DecisionRequest { partial: true, ..nouls(1) }).await);
    assert_eq!(gateway.upstreams().len(), pending.len());
    // Labels are not part of the key of a call.
    let same = DecisionRequest { user: Some("u".to_owned()), session_id: Some("x".to_owned()), ..nouls(1) };
    let joined = gateway.send(DecisionRequest { trace: Json::parse("{}").ok(), ..same }).await;
    assert_eq!(gateway.upstreams().len(), pending.len());
    gateway.answer(0, 1).await;
    assert!(joined.end().await.is_ok());
}

#[tokio::test(start_paused = true)]
async fn shared_call_continues_when_leader_disconnects() {
    let gateway = sharing(SingleFlightMode::SplitCost).build();
    let first = gateway.send(nouls(1)).await;
    let second = gateway.send(nouls(1)).await;
    first.disconnect();
    run_until_idle().await;
    assert!(!gateway.is_cancelled(0));
    gateway.answer(0, 5).await;
    assert_eq!(second.end().await.unwrap().provider, "ONE");
    first.end().await.unwrap();
    let records = gateway.records();
    assert_eq!(records.len(), 2, "a disconnected client is charged its share");
    assert_eq!(records.iter().map(|record| record.cost.pico()).sum::<i64>(), 210_000);
}

#[tokio::test(start_paused = true)]
async fn shared_call_is_cancelled_when_all_clients_disconnect() {
    let gateway = sharing(SingleFlightMode::SplitCost).build();
    let first = gateway.send(nouls(1)).await;
    let second = gateway.send(nouls(1)).await;
    second.disconnect();
    run_until_idle().await;
    first.disconnect();
    run_until_idle().await;
    assert!(gateway.is_cancelled(0));
    for pending in [first, second] {
        assert_eq!(pending.end().await.unwrap_err().kind(), ErrorKind::ClientDisconnected);
    }
    let records = gateway.records();
    assert!(records.iter().all(|record| record.outcome == UsageOutcome::Cancelled));
    assert_eq!(records.iter().map(|record| record.cost.pico()).sum::<i64>(), (77 + 20) * 42_000, "its bound, shared");
}

#[tokio::test(start_paused = true)]
async fn disconnected_call_cannot_be_joined() {
    let gateway = sharing(SingleFlightMode::SplitCost).build();
    let first = gateway.send(nouls(1)).await;
    first.disconnect();
    // The second request arrives before the first one notices the disconnect.
    let second = gateway.send(nouls(1)).await;
    assert_eq!(first.end().await.unwrap_err().kind(), ErrorKind::ClientDisconnected);
    gateway.answer(1, 5).await;
    let decision = second.end().await.unwrap();
    assert_eq!(decision.cost.pico(), 210_000, "all of its own call and nothing of the other's");
}

#[tokio::test(start_paused = true)]
async fn failure_of_shared_call_is_recorded_for_each_request() {
    let gateway = sharing(SingleFlightMode::SplitCost).build();
    let first = gateway.send(nouls(1)).await;
    let second = gateway.send(nouls(1)).await;
    gateway.fail(0, InvalidResponse).await;
    gateway.finish(1, Err(AttemptFailure { sent_bytes: 1, ..failure(TimedOut).unwrap_err() })).await;
    let mut ids = Vec::new();
    for pending in [first, second] {
        let Err(SubmitDecisionError::Attempts(failed)) = pending.end().await else { panic!("it failed") };
        assert_eq!((failed.kind, failed.attempts.len()), (ErrorKind::TimedOut, 2));
        ids.push(failed.id);
    }
    let records = gateway.records();
    assert_ne!(ids[0], ids[1]);
    assert!(ids.iter().all(|id| records.iter().any(|record| record.id == *id)));
    assert_eq!(records.iter().map(|record| record.cost.pico()).sum::<i64>(), 21 * 42_000);
}

#[tokio::test(start_paused = true)]
async fn request_after_end_makes_new_call() {
    let gateway = sharing(SingleFlightMode::SplitCost).build();
    let first = gateway.send(nouls(1)).await;
    gateway.answer(0, 5).await;
    first.end().await.unwrap();
    let second = gateway.send(nouls(1)).await;
    assert_eq!(gateway.upstreams(), ["a", "a"]);
    gateway.answer(1, 5).await;
    assert_eq!(second.end().await.unwrap().cost.pico(), 210_000);
}

#[tokio::test(start_paused = true)]
async fn call_is_dropped_with_its_last_request() {
    let gateway = sharing(SingleFlightMode::SplitCost).build();
    let first = gateway.send(nouls(1)).await;
    let second = gateway.send(nouls(1)).await;
    drop(first);
    run_until_idle().await;
    assert!(!gateway.is_cancelled(0), "one still waits");
    drop(second);
    run_until_idle().await;
    assert!(gateway.is_cancelled(0), "a call without participants is dropped");
    let third = gateway.send(nouls(1)).await;
    assert_eq!(gateway.upstreams(), ["a", "a"], "it does not join the dropped call");
    gateway.answer(1, 5).await;
    assert_eq!(third.end().await.unwrap().cost.pico(), 210_000);
}

#[tokio::test(start_paused = true)]
async fn dropped_request_bears_no_share() {
    let gateway = sharing(SingleFlightMode::SplitCost).build();
    let first = gateway.send(nouls(1)).await;
    let second = gateway.send(nouls(1)).await;
    let third = gateway.send(nouls(1)).await;
    drop(first);
    run_until_idle().await;
    second.disconnect();
    run_until_idle().await;
    assert!(!gateway.is_cancelled(0));
    third.disconnect();
    run_until_idle().await;
    assert!(gateway.is_cancelled(0), "all remaining clients have disconnected");
    for pending in [second, third] {
        pending.end().await.unwrap_err();
    }
    let costs: Vec<i64> = gateway.records().iter().map(|record| record.cost.pico()).collect();
    assert_eq!((costs.len(), costs.iter().sum::<i64>()), (2, (77 + 20) * 42_000));
}

/// Requests start, disconnect and are dropped on several threads while calls end. Every request ends, and no charge is
/// lost or doubled.
#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn every_request_ends_when_many_join_and_leave_concurrently() {
    let gateway = Arc::new(sharing(SingleFlightMode::SplitCost).build());
    let (mut tasks, started) = (TaskSet::new(), EventCount::default());
    for round in 0..40_u64 {
        for number in 0..8_u64 {
            let (gateway, started) = (Arc::clone(&gateway), started.clone());
            tasks.spawn(async move {
                let pending = gateway.start(key_of(FIRST_WORKSPACE), nouls(1));
                started.add();
                match (round + number) % 5 {
                    0 => pending.disconnect(),
                    1 => return None,
                    _ => {}
                }
                Some(pending.wait().await)
            });
        }
        // Some of the requests have reached the provider by now, some join a call that is ending.
        started.reached(usize::try_from(8 * (round + 1)).unwrap()).await;
        gateway.answer_all(100);
    }
    let ended = tokio::time::timeout(Duration::from_secs(20), async {
        let mut ended = 0;
        loop {
            gateway.answer_all(100);
            match tokio::time::timeout(Duration::from_millis(2), tasks.join_next()).await {
                Ok(None) => return ended,
                Ok(Some(result)) => ended += usize::from(result.unwrap().is_some()),
                Err(_) => {}
            }
        }
    });
    let ended = ended.await.expect("every request ends");
    // A dropped request may have ended before.
    let records = gateway.records().len();
    assert!((256..=320).contains(&records) && ended == 256, "{ended} have ended, of {records} on record");
}

type TaskSet = tokio::task::JoinSet<Option<Result<Decision, SubmitDecisionError>>>;
