//! Identical requests in flight share one call.

use super::stage::*;
use super::*;
use crate::decision::ModelOptions;

fn sharing(way: SingleFlightMode) -> Plan {
    let mut plan = Plan::new(vec![endpoint("acme/judge", "one", "a"), endpoint("acme/judge", "two", "b")]);
    plan.settings
        .models
        .insert("acme/judge".parse().unwrap(), ModelOptions { single_flight: way, ..ModelOptions::default() });
    plan
}

#[tokio::test]
async fn identical_requests_make_one_call_and_share_its_cost_to_the_picodollar() {
    let world = sharing(SingleFlightMode::SplitCost).build();
    let mut asked = Vec::new();
    for _ in 0..3 {
        asked.push(world.ask(nouls(1)).await);
    }
    assert_eq!(world.upstreams(), ["a"]);
    world.answer(0, 431).await;
    let mut costs = Vec::new();
    let mut ids = Vec::new();
    for asked in asked {
        let decision = asked.end().await.unwrap();
        costs.push(decision.cost.pico());
        ids.push(decision.id);
    }
    assert_eq!(costs.iter().sum::<i64>(), 431 * 42_000);
    assert!(costs.iter().max().unwrap() - costs.iter().min().unwrap() <= 1, "{costs:?}");
    ids.sort();
    ids.dedup();
    assert_eq!(ids.len(), 3, "each has an id of its own");
    let records = world.records();
    let mut shares: Vec<(u32, u32)> = records.iter().map(|record| (record.share.index, record.share.of)).collect();
    shares.sort_unstable();
    assert_eq!(shares, [(0, 3), (1, 3), (2, 3)]);
    assert_eq!(records.iter().map(|record| record.cost.pico()).sum::<i64>(), 431 * 42_000);
    assert!(records.iter().all(|record| ids.contains(&record.id) && record.attempts.len() == 1));
}

#[tokio::test]
async fn what_does_not_divide_is_borne_by_some() {
    let mut plan = sharing(SingleFlightMode::SplitCost);
    plan.endpoints[0] = at_price(plan.endpoints[0].clone(), "0.000000000001");
    let world = plan.build();
    let first = world.ask(nouls(1)).await;
    let second = world.ask(nouls(1)).await;
    let third = world.ask(nouls(1)).await;
    world.answer(0, 5).await;
    let mut costs = Vec::new();
    for asked in [first, second, third] {
        costs.push(asked.end().await.unwrap().cost.pico());
    }
    costs.sort_unstable();
    assert_eq!(costs, [1, 2, 2]);
}

#[tokio::test]
async fn each_pays_all_where_that_is_configured() {
    let world = sharing(SingleFlightMode::ChargeEach).build();
    let first = world.ask(nouls(1)).await;
    let second = world.ask(nouls(1)).await;
    assert_eq!(world.upstreams(), ["a"]);
    world.answer(0, 10).await;
    for asked in [first, second] {
        assert_eq!(asked.end().await.unwrap().cost.pico(), 420_000);
    }
    let whole = crate::usage::UsageShare::WHOLE;
    assert!(world.records().iter().all(|record| record.share == whole && record.cost.pico() == 420_000));
}

#[tokio::test]
async fn off_by_default() {
    let world = Plan::new(vec![endpoint("acme/judge", "one", "a")]).build();
    let _asked = [world.ask(nouls(1)).await, world.ask(nouls(1)).await];
    assert_eq!(world.upstreams(), ["a", "a"]);
}

#[tokio::test]
async fn what_differs_is_not_shared() {
    let world = sharing(SingleFlightMode::SplitCost).build();
    let mut asked = vec![world.ask(nouls(1)).await];
    asked.push(world.ask_in(902, nouls(1)).await);
    let other_state = |state: &str| {
        let mut request = nouls(1);
        let provider_input = (*request.provider_input).clone();
        request.provider_input = Arc::new(ProviderInput { state: Json::parse(state).ok(), ..provider_input });
        request
    };
    asked.push(world.ask(other_state("\"S\"")).await);
    asked.push(world.ask(nouls(2)).await);
    let mut ordered = nouls(1);
    ordered.preferences.order = vec!["one".to_owned()];
    asked.push(world.ask(ordered).await);
    asked.push(world.ask(DecisionRequest { partial: true, ..nouls(1) }).await);
    assert_eq!(world.upstreams().len(), asked.len());
    // Who asks, and why, is not part of the question.
    let same = DecisionRequest { user: Some("u".to_owned()), session_id: Some("x".to_owned()), ..nouls(1) };
    let joined = world.ask(DecisionRequest { trace: Json::parse("{}").ok(), ..same }).await;
    assert_eq!(world.upstreams().len(), asked.len());
    world.answer(0, 1).await;
    assert!(joined.end().await.is_ok());
}

#[tokio::test]
async fn the_first_may_leave_and_the_call_goes_on_for_the_others() {
    let world = sharing(SingleFlightMode::SplitCost).build();
    let first = world.ask(nouls(1)).await;
    let second = world.ask(nouls(1)).await;
    first.leave();
    settle().await;
    assert!(!world.is_given_up(0));
    world.answer(0, 5).await;
    assert_eq!(second.end().await.unwrap().provider, "ONE");
    first.end().await.unwrap();
    let records = world.records();
    assert_eq!(records.len(), 2, "who left is charged like the others");
    assert_eq!(records.iter().map(|record| record.cost.pico()).sum::<i64>(), 210_000);
}

#[tokio::test]
async fn when_all_have_left_the_call_is_given_up() {
    let world = sharing(SingleFlightMode::SplitCost).build();
    let first = world.ask(nouls(1)).await;
    let second = world.ask(nouls(1)).await;
    second.leave();
    settle().await;
    first.leave();
    settle().await;
    assert!(world.is_given_up(0));
    for asked in [first, second] {
        assert_eq!(asked.end().await.unwrap_err().kind(), ErrorKind::ClientDisconnected);
    }
    let records = world.records();
    assert!(records.iter().all(|record| record.outcome == UsageOutcome::Cancelled));
    assert_eq!(records.iter().map(|record| record.cost.pico()).sum::<i64>(), (77 + 20) * 42_000, "its bound, shared");
}

#[tokio::test]
async fn nobody_joins_a_call_that_all_have_left() {
    let world = sharing(SingleFlightMode::SplitCost).build();
    let first = world.ask(nouls(1)).await;
    first.leave();
    // The first has not been told yet; the second comes in the same turn.
    let second = world.ask(nouls(1)).await;
    assert_eq!(first.end().await.unwrap_err().kind(), ErrorKind::ClientDisconnected);
    world.answer(1, 5).await;
    let decision = second.end().await.unwrap();
    assert_eq!(decision.cost.pico(), 210_000, "all of its own call and nothing of the other's");
}

#[tokio::test]
async fn a_failure_is_shared_and_each_has_its_record() {
    let world = sharing(SingleFlightMode::SplitCost).build();
    let first = world.ask(nouls(1)).await;
    let second = world.ask(nouls(1)).await;
    world.fail(0, InvalidResponse).await;
    world.finish(1, Err(AttemptFailure { sent_bytes: 1, ..failure(TimedOut).unwrap_err() })).await;
    let mut ids = Vec::new();
    for asked in [first, second] {
        let Err(SubmitDecisionError::Attempts(failed)) = asked.end().await else { panic!("it failed") };
        assert_eq!((failed.kind, failed.attempts.len()), (ErrorKind::TimedOut, 2));
        ids.push(failed.id);
    }
    let records = world.records();
    assert_ne!(ids[0], ids[1]);
    assert!(ids.iter().all(|id| records.iter().any(|record| record.id == *id)));
    assert_eq!(records.iter().map(|record| record.cost.pico()).sum::<i64>(), 21 * 42_000);
}

#[tokio::test]
async fn after_the_end_a_new_call_is_made() {
    let world = sharing(SingleFlightMode::SplitCost).build();
    let first = world.ask(nouls(1)).await;
    world.answer(0, 5).await;
    first.end().await.unwrap();
    let second = world.ask(nouls(1)).await;
    assert_eq!(world.upstreams(), ["a", "a"]);
    world.answer(1, 5).await;
    assert_eq!(second.end().await.unwrap().cost.pico(), 210_000);
}

#[tokio::test]
async fn requests_that_are_dropped_leave_nothing_behind() {
    let world = sharing(SingleFlightMode::SplitCost).build();
    let first = world.ask(nouls(1)).await;
    let second = world.ask(nouls(1)).await;
    drop(first);
    settle().await;
    assert!(!world.is_given_up(0), "one still waits");
    drop(second);
    settle().await;
    assert!(world.is_given_up(0), "nobody drives the call any more, and nobody keeps it");
    let third = world.ask(nouls(1)).await;
    assert_eq!(world.upstreams(), ["a", "a"], "it does not join what is dead");
    world.answer(1, 5).await;
    assert_eq!(third.end().await.unwrap().cost.pico(), 210_000);
}

#[tokio::test]
async fn who_is_dropped_bears_no_share_and_holds_nobody_up() {
    let world = sharing(SingleFlightMode::SplitCost).build();
    let first = world.ask(nouls(1)).await;
    let second = world.ask(nouls(1)).await;
    let third = world.ask(nouls(1)).await;
    drop(first);
    settle().await;
    second.leave();
    settle().await;
    assert!(!world.is_given_up(0));
    third.leave();
    settle().await;
    assert!(world.is_given_up(0), "everyone who is still counted has left");
    for asked in [second, third] {
        asked.end().await.unwrap_err();
    }
    let costs: Vec<i64> = world.records().iter().map(|record| record.cost.pico()).collect();
    assert_eq!((costs.len(), costs.iter().sum::<i64>()), (2, (77 + 20) * 42_000));
}

/// Requests come, leave and are dropped at random on several threads, and calls end whenever they like. Nobody gets
/// stuck, and no charge is lost or doubled.
#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn a_crowd_on_several_threads_comes_to_its_end() {
    let world = Arc::new(sharing(SingleFlightMode::SplitCost).build());
    let mut crowd = JoinSetOf::new();
    for round in 0..40_u64 {
        for one in 0..8_u64 {
            let world = Arc::clone(&world);
            crowd.spawn(async move {
                let asked = world.ask(nouls(1)).await;
                match (round + one) % 5 {
                    0 => asked.leave(),
                    1 => return None,
                    _ => {}
                }
                Some(asked.wait().await)
            });
        }
        for _ in 0..20 {
            tokio::task::yield_now().await;
        }
        world.end_all(100);
    }
    let ended = tokio::time::timeout(Duration::from_secs(20), async {
        let mut ended = 0;
        loop {
            world.end_all(100);
            match tokio::time::timeout(Duration::from_millis(2), crowd.join_next()).await {
                Ok(None) => return ended,
                Ok(Some(result)) => ended += usize::from(result.unwrap().is_some()),
                Err(_) => {}
            }
        }
    });
    let ended = ended.await.expect("nobody is stuck");
    // Who was dropped may have had an end before.
    let records = world.records().len();
    assert!((256..=320).contains(&records) && ended == 256, "{ended} have ended, of {records} on record");
}

type JoinSetOf = tokio::task::JoinSet<Option<Result<Decision, SubmitDecisionError>>>;
