//! Recalls of allowances.

use std::time::Duration;

use super::super::Stores;
use super::super::ledger::fixtures::{insert_fixtures, limit_key, payer, usd};
use super::setup::{Holder, ask, key_of};
use crate::budget::allowances::CounterId;

async fn recalled(stores: &Stores) -> Vec<CounterId> {
    let signals = stores.budget.signals().await.expect("the store answers");
    signals.recalled.into_iter().map(|recall| recall.counter).collect()
}

/// Registers two processes: the first has 90 of 100.
async fn held(stores: &Stores) -> (Holder, Holder) {
    insert_fixtures(stores).await;
    limit_key(stores, 1, Some((100, None))).await;
    let (first, second) = (Holder::register(stores, 1).await, Holder::register(stores, 2).await);
    first.draw_one(stores, &payer(1), 90, &[key_of(&payer(1))]).await.unwrap();
    (first, second)
}

pub(super) async fn refusal_is_uncertain_until_every_holder_has_answered(stores: &Stores) {
    let (first, second) = held(stores).await;
    let (payer, counter) = (payer(1), key_of(&payer(1)));
    let third = Holder::register(stores, 3).await;
    third.draw_one(stores, &payer, 5, &[counter]).await.unwrap();
    // An answer to an earlier recall does not count for this one.
    first.answer(stores).await;
    stores.clock.advance(Duration::from_millis(100));
    let refused = async || second.draw_one(stores, &payer, 20, &[counter]).await.unwrap_err();
    assert!(refused().await.is_uncertain, "no recall before");
    first.answer(stores).await;
    assert!(refused().await.is_uncertain, "one of two has answered");
    third.answer(stores).await;
    let certain = refused().await;
    assert!(certain.waits_for_others() && !certain.is_uncertain, "{certain:?}");
    let beyond = second.draw_one(stores, &payer, 101, &[counter]).await.unwrap_err();
    assert!(!beyond.is_uncertain, "no return makes room for it");
    assert!(!first.draw_one(stores, &payer, 8, &[counter]).await.unwrap_err().is_uncertain, "third has answered");
}

pub(super) async fn answer_counts_for_three_seconds(stores: &Stores) {
    let (first, second) = held(stores).await;
    let (payer, counter) = (payer(1), key_of(&payer(1)));
    let refused = async || second.draw_one(stores, &payer, 20, &[counter]).await.unwrap_err();
    refused().await;
    first.answer(stores).await;
    stores.clock.advance(Duration::from_millis(2_999));
    assert!(!refused().await.is_uncertain, "the recall goes on, and so does its answer");
    stores.clock.advance(Duration::from_millis(1));
    assert!(refused().await.is_uncertain, "the holder is silent");
    first.answer(stores).await;
    assert!(!refused().await.is_uncertain);
    stores.budget.end(first.id, crate::budget::RemainingAllowances::Adjust).await.unwrap();
    stores.clock.advance(Duration::from_secs(10));
    assert!(!refused().await.is_uncertain, "what is spent needs no answer");
}

pub(super) async fn live_processes_are_listed_with_their_silence(stores: &Stores) {
    let (first, second) = held(stores).await;
    stores.clock.advance(Duration::from_secs(7));
    second.answer(stores).await;
    let third = Holder::register(stores, 3).await;
    stores.budget.end(third.id, crate::budget::RemainingAllowances::Return).await.unwrap();
    stores.clock.advance(Duration::from_secs(2));
    let live = stores.budget.live_processes().await.unwrap();
    let silences: Vec<_> = live.iter().map(|found| (found.process, found.silent_for.as_secs())).collect();
    assert_eq!(silences, [(first.id, 9), (second.id, 2)]);
    assert_eq!(live[1].seen_at - live[0].seen_at, chrono::TimeDelta::seconds(7));
}

pub(super) async fn draw_recalls_allowances_of_others(stores: &Stores) {
    insert_fixtures(stores).await;
    limit_key(stores, 1, Some((100, None))).await;
    let (payer, first) = (payer(1), Holder::register(stores, 1).await);
    let second = Holder::register(stores, 2).await;
    let counter = key_of(&payer);
    first.draw_one(stores, &payer, 90, &[counter]).await.unwrap();
    assert_eq!(recalled(stores).await, []);
    let denied = second.draw_one(stores, &payer, 20, &[counter]).await.unwrap_err();
    assert!(denied.waits_for_others());
    assert_eq!((denied.spent, denied.reserved), (usd(0), usd(90)));
    assert_eq!(recalled(stores).await, [counter]);
    first.return_allowances(stores, &[(counter, 60)]).await;
    second.draw_one(stores, &payer, 20, &[counter]).await.unwrap();
    let beyond = second.draw_one(stores, &payer, 200, &[counter]).await.unwrap_err();
    assert!(!beyond.waits_for_others());
}

pub(super) async fn own_allowances_are_not_recalled(stores: &Stores) {
    insert_fixtures(stores).await;
    limit_key(stores, 1, Some((100, None))).await;
    let (payer, process) = (payer(1), Holder::register(stores, 1).await);
    let counter = key_of(&payer);
    process.draw_one(stores, &payer, 90, &[counter]).await.unwrap();
    process.draw_one(stores, &payer, 20, &[counter]).await.unwrap_err();
    assert_eq!(recalled(stores).await, [], "no other process has any");
    let other = Holder::register(stores, 2).await;
    other.draw_one(stores, &payer, 101, &[counter]).await.unwrap_err();
    assert_eq!(recalled(stores).await, [], "no return makes room for it");
}

pub(super) async fn draw_exact_while_recalled(stores: &Stores) {
    insert_fixtures(stores).await;
    limit_key(stores, 1, Some((100, None))).await;
    let (payer, first) = (payer(1), Holder::register(stores, 1).await);
    let second = Holder::register(stores, 2).await;
    let counter = key_of(&payer);
    first.draw_one(stores, &payer, 60, &[counter]).await.unwrap();
    let reply = second.draw(stores, &[ask(&payer, 50, &[counter])], &[(counter, 40)]).await;
    assert!(reply.answers[0].is_err());
    assert_eq!(reply.grants, [], "nothing is filled ahead while a request lacks it");
    let reply = first.draw(stores, &[ask(&payer, 10, &[counter])], &[(counter, 40)]).await;
    assert_eq!(reply.grants, [(counter, usd(10))], "no process draws ahead");
    let reply = first.draw(stores, &[], &[(counter, 40)]).await;
    assert_eq!(reply.grants, []);
}

pub(super) async fn recall_ends_after_five_seconds(stores: &Stores) {
    insert_fixtures(stores).await;
    limit_key(stores, 1, Some((100, None))).await;
    let (payer, first) = (payer(1), Holder::register(stores, 1).await);
    let second = Holder::register(stores, 2).await;
    let counter = key_of(&payer);
    first.draw_one(stores, &payer, 90, &[counter]).await.unwrap();
    second.draw_one(stores, &payer, 20, &[counter]).await.unwrap_err();
    stores.clock.advance(Duration::from_secs(3));
    second.draw_one(stores, &payer, 20, &[counter]).await.expect_err("it lacks the same and renews the mark");
    stores.clock.advance(Duration::from_millis(4_999));
    assert_eq!(recalled(stores).await, [counter]);
    stores.clock.advance(Duration::from_millis(1));
    assert_eq!(recalled(stores).await, []);
    let reply = first.draw(stores, &[], &[(counter, 40)]).await;
    assert_eq!(reply.grants, [(counter, usd(2))], "a quarter of what is left");
}
