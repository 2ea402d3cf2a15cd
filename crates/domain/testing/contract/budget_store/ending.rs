//! The ends of processes.

use super::super::Stores;
use super::super::ledger::fixtures::{insert_fixtures, limit_key, payer, record, usd};
use super::setup::{Holder, entry, key_of, noon};
use crate::budget::{BudgetStoreError, ProcessState, RemainingAllowances};

pub(super) async fn end_returns_allowances(stores: &Stores) {
    insert_fixtures(stores).await;
    limit_key(stores, 1, Some((100, None))).await;
    let (payer, first) = (payer(1), Holder::register(stores, 1).await);
    let second = Holder::register(stores, 2).await;
    let counter = key_of(&payer);
    first.draw_one(stores, &payer, 80, &[counter]).await.unwrap();
    second.draw_one(stores, &payer, 20, &[counter]).await.unwrap();
    for remaining in [RemainingAllowances::Return, RemainingAllowances::Adjust, RemainingAllowances::Return] {
        stores.budget.end(first.id, remaining).await.expect("the first one counts");
    }
    let state = stores.budget.process(first.id).await.unwrap().unwrap().state;
    assert_eq!(state, ProcessState::Ended);
    let denied = second.draw_one(stores, &payer, 81, &[counter]).await.unwrap_err();
    assert_eq!((denied.spent, denied.reserved), (usd(0), usd(20)));
    second.draw_one(stores, &payer, 80, &[counter]).await.unwrap();
    // The journal of an ended process can still be folded.
    first.fold(stores, vec![entry(record(1, payer.clone(), 5, noon()), &[(counter, 5)])]).await;
    let denied = second.draw_one(stores, &payer, 1, &[counter]).await.unwrap_err();
    assert_eq!((denied.spent, denied.reserved), (usd(5), usd(100)), "no allowance of another process is taken");
}

pub(super) async fn end_counts_allowances_as_spent_when_adjusted(stores: &Stores) {
    insert_fixtures(stores).await;
    limit_key(stores, 1, Some((100, None))).await;
    let (payer, first) = (payer(1), Holder::register(stores, 1).await);
    let second = Holder::register(stores, 2).await;
    let counter = key_of(&payer);
    first.draw_one(stores, &payer, 60, &[counter]).await.unwrap();
    first.fold(stores, vec![entry(record(1, payer.clone(), 10, noon()), &[(counter, 10)])]).await;
    for _ in 0..2 {
        stores.budget.end(first.id, RemainingAllowances::Adjust).await.unwrap();
    }
    let denied = second.draw_one(stores, &payer, 41, &[counter]).await.unwrap_err();
    assert_eq!((denied.spent, denied.reserved), (usd(60), usd(0)));
    second.draw_one(stores, &payer, 40, &[counter]).await.unwrap();
    let drawn = stores.budget.draw(&first.request(&[], &[(counter, 1)])).await;
    assert!(matches!(drawn, Err(BudgetStoreError::NotLive(Some(ProcessState::Lost)))), "{drawn:?}");
}

pub(super) async fn lost_process_gives_up_its_adjustments_when_its_journal_was_folded(stores: &Stores) {
    insert_fixtures(stores).await;
    limit_key(stores, 1, Some((100, None))).await;
    let (payer, first) = (payer(1), Holder::register(stores, 1).await);
    let second = Holder::register(stores, 2).await;
    let counter = key_of(&payer);
    first.draw_one(stores, &payer, 60, &[counter]).await.unwrap();
    stores.budget.end(first.id, RemainingAllowances::Adjust).await.unwrap();
    first.fold(stores, vec![entry(record(1, payer.clone(), 25, noon()), &[(counter, 25)])]).await;
    let spent = async || second.draw_one(stores, &payer, 1_000, &[counter]).await.unwrap_err().spent;
    assert_eq!(spent().await, usd(60));
    for remaining in [RemainingAllowances::Return, RemainingAllowances::Adjust] {
        stores.budget.end(first.id, remaining).await.unwrap();
        assert_eq!(spent().await, usd(25));
    }
    let state = stores.budget.process(first.id).await.unwrap().unwrap().state;
    assert_eq!(state, ProcessState::Ended);
}

pub(super) async fn fold_takes_adjustments_after_end(stores: &Stores) {
    insert_fixtures(stores).await;
    limit_key(stores, 1, Some((100, None))).await;
    let (payer, first) = (payer(1), Holder::register(stores, 1).await);
    let second = Holder::register(stores, 2).await;
    let counter = key_of(&payer);
    first.draw_one(stores, &payer, 60, &[counter]).await.unwrap();
    stores.budget.end(first.id, RemainingAllowances::Adjust).await.unwrap();
    let spent = async || second.draw_one(stores, &payer, 1_000, &[counter]).await.unwrap_err().spent;
    assert_eq!(spent().await, usd(60));
    let borne = vec![
        entry(record(1, payer.clone(), 25, noon()), &[(counter, 25)]),
        entry(record(2, payer.clone(), 12, noon()), &[(counter, 10)]),
    ];
    first.fold(stores, borne).await;
    assert_eq!(spent().await, usd(62), "the charges take the place of the adjustment");
    first.fold(stores, vec![entry(record(3, payer.clone(), 40, noon()), &[(counter, 40)])]).await;
    assert_eq!(spent().await, usd(77), "as far as there is any");
}
