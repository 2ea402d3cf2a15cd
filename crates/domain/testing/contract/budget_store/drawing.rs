//! Draws and returns.

use std::time::Duration;

use super::super::Stores;
use super::super::ledger::fixtures::{
    insert_fixtures, limit_key, limit_workspace, payer, payer_under, record, usd, utc,
};
use super::super::samples::{add_guardrail, audit, guardrail, guardrail_id, workspace_id};
use super::setup::{Holder, ask, ask_at, entry, is_corrupt, key_of, lifetime, noon, period, workspace_of};
use crate::budget::{
    Account, BudgetScope, BudgetStoreError, FOLD_AGAIN_FOR, ProcessState, RemainingAllowances, ResetInterval,
    SpendLimit, WorkspaceBudgets,
};
use crate::guardrail::Guardrail;
use crate::ids::ProcessId;
use crate::system::Clock;
use crate::testing::add_credit;

pub(super) async fn draw_grants_no_more_than_each_limit_leaves(stores: &Stores) {
    insert_fixtures(stores).await;
    limit_workspace(stores, 1, WorkspaceBudgets { lifetime: Some(usd(90)), ..WorkspaceBudgets::default() }).await;
    add_credit(&*stores.workspaces, workspace_id(1), usd(60), &audit()).await.unwrap();
    let (payer, process) = (payer(1), Holder::register(stores, 1).await);
    let counter = workspace_of(&payer);
    let denied = process.draw_one(stores, &payer, 61, &[counter]).await.unwrap_err();
    assert!(denied.is_credit, "the credit leaves less than the budget");
    assert_eq!((denied.limit, denied.spent, denied.reserved, denied.wanted), (usd(60), usd(0), usd(0), usd(61)));
    process.draw_one(stores, &payer, 60, &[counter]).await.unwrap();
    process.draw_one(stores, &payer, 1, &[counter]).await.unwrap_err();
    add_credit(&*stores.workspaces, workspace_id(1), usd(940), &audit()).await.unwrap();
    let denied = process.draw_one(stores, &payer, 31, &[counter]).await.unwrap_err();
    assert!(!denied.is_credit, "now the budget leaves less");
    process.draw_one(stores, &payer, 30, &[counter]).await.unwrap();
}

pub(super) async fn draw_counts_credit_from_its_base(stores: &Stores) {
    insert_fixtures(stores).await;
    let (payer, process) = (payer(1), Holder::register(stores, 1).await);
    process.fold(stores, vec![entry(record(1, payer.clone(), 500, noon()), &[])]).await;
    add_credit(&*stores.workspaces, workspace_id(1), usd(100), &audit()).await.unwrap();
    let counter = workspace_of(&payer);
    process.draw_one(stores, &payer, 101, &[counter]).await.unwrap_err();
    process.draw_one(stores, &payer, 100, &[counter]).await.expect("earlier spending is not taken from the credit");
    assert_eq!(stores.workspaces.find(workspace_id(1)).await.unwrap().unwrap().credit, Some(usd(100)));
}

pub(super) async fn draw_counts_each_period_on_its_own(stores: &Stores) {
    insert_fixtures(stores).await;
    limit_workspace(stores, 1, WorkspaceBudgets { daily: Some(usd(50)), ..WorkspaceBudgets::default() }).await;
    let (payer, process) = (payer(1), Holder::register(stores, 1).await);
    let account = Account::Workspace(payer.workspace_id);
    let today = period(account, ResetInterval::Daily, noon());
    process.draw_one(stores, &payer, 50, &[today]).await.unwrap();
    let denied = process.draw_one(stores, &payer, 1, &[today]).await.unwrap_err();
    assert_eq!((denied.scope, denied.reset), (BudgetScope::Workspace, Some(ResetInterval::Daily)));
    assert_eq!(denied.resets_at, Some(utc("2026-07-16T00:00:00Z")));
    let later = utc("2026-07-16T00:00:00Z");
    stores.clock.set(later);
    let tomorrow = period(account, ResetInterval::Daily, later);
    let reply = process.draw(stores, &[ask_at(&payer, later, 50, &[tomorrow])], &[]).await;
    assert_eq!((reply.grants, reply.answers), (vec![(tomorrow, usd(50))], vec![Ok(())]));
    let reply = process.draw(stores, &[ask_at(&payer, noon(), 1, &[today])], &[]).await;
    assert!(reply.answers[0].is_err(), "the day before is used up as it was");
}

pub(super) async fn draw_grants_all_counters_or_none(stores: &Stores) {
    insert_fixtures(stores).await;
    let budget = Some(SpendLimit { amount: usd(40), reset: Some(ResetInterval::Monthly) });
    add_guardrail(stores, &Guardrail { budget, ..guardrail(1, 1) }).await;
    limit_key(stores, 1, Some((100, None))).await;
    let (payer, process) = (payer_under(1, &[1]), Holder::register(stores, 1).await);
    let (of_key, account) = (key_of(&payer), Account::Guardrail(guardrail_id(1), payer.api_key));
    let of_guardrail = period(account, ResetInterval::Monthly, noon());
    let denied = process.draw_one(stores, &payer, 41, &[of_key, of_guardrail]).await.unwrap_err();
    assert_eq!((denied.scope, denied.guardrail_id), (BudgetScope::Guardrail, Some(guardrail_id(1))));
    process.draw_one(stores, &payer, 100, &[of_key]).await.expect("nothing of the key was taken");
    process.draw_one(stores, &payer, 40, &[of_guardrail]).await.expect("nor of the guardrail");
}

pub(super) async fn draw_serves_asks_in_order(stores: &Stores) {
    insert_fixtures(stores).await;
    limit_key(stores, 1, Some((100, None))).await;
    let (payer, process) = (payer(1), Holder::register(stores, 1).await);
    let counter = key_of(&payer);
    let asks: Vec<_> = [60, 70, 30, 20].into_iter().map(|pico| ask(&payer, pico, &[counter])).collect();
    let reply = process.draw(stores, &asks, &[]).await;
    let granted: Vec<bool> = reply.answers.iter().map(Result::is_ok).collect();
    assert_eq!(granted, [true, false, true, false], "one that is refused holds up none behind it");
    assert_eq!(reply.grants, [(counter, usd(90))]);
}

pub(super) async fn draw_fills_counters_ahead_within_its_share(stores: &Stores) {
    insert_fixtures(stores).await;
    limit_key(stores, 1, Some((1_000, None))).await;
    let (payer, first) = (payer(1), Holder::register(stores, 1).await);
    let second = Holder::register(stores, 2).await;
    let counter = key_of(&payer);
    let reply = first.draw(stores, &[], &[(counter, 10_000)]).await;
    assert_eq!(reply.grants, [(counter, usd(250))], "a quarter of the room, for two processes are live");
    let reply = second.draw(stores, &[ask(&payer, 150, &[counter])], &[(counter, 100)]).await;
    assert_eq!(reply.grants, [(counter, usd(250))], "the request and what was wished");
    stores.budget.end(second.id, RemainingAllowances::Return).await.unwrap();
    let reply = first.draw(stores, &[], &[(counter, 10_000)]).await;
    assert_eq!(reply.grants, [(counter, usd(375))], "half of the room for the only one");
}

pub(super) async fn draw_returns_first_reply_when_repeated(stores: &Stores) {
    insert_fixtures(stores).await;
    limit_key(stores, 1, Some((100, Some(ResetInterval::Weekly)))).await;
    let (payer, process) = (payer(1), Holder::register(stores, 1).await);
    let counter = period(Account::Key(payer.api_key), ResetInterval::Weekly, noon());
    let request = process.request(&[ask(&payer, 70, &[counter]), ask(&payer, 70, &[counter])], &[]);
    let first = stores.budget.draw(&request).await.unwrap();
    assert_eq!((first.answers[0], first.answers[1].is_err()), (Ok(()), true));
    limit_key(stores, 1, None).await;
    for _ in 0..3 {
        assert_eq!(stores.budget.draw(&request).await.unwrap(), first);
    }
    let status = stores.budget.process(process.id).await.unwrap().unwrap();
    assert_eq!((status.number, status.state), (1, ProcessState::Live));
    limit_key(stores, 1, Some((100, Some(ResetInterval::Weekly)))).await;
    let next = process.draw(stores, &[], &[]).await;
    assert_eq!(next, first, "the number was used");
    process.draw_one(stores, &payer, 31, &[counter]).await.unwrap_err();
    process.draw_one(stores, &payer, 30, &[counter]).await.unwrap();
}

pub(super) async fn draw_rejects_unexpected_numbers(stores: &Stores) {
    insert_fixtures(stores).await;
    limit_key(stores, 1, Some((100, None))).await;
    let (payer, process) = (payer(1), Holder::register(stores, 1).await);
    let counter = key_of(&payer);
    for _ in 0..3 {
        process.draw_one(stores, &payer, 101, &[counter]).await.expect_err("it uses no number");
    }
    process.draw_one(stores, &payer, 10, &[counter]).await.unwrap();
    process.return_allowances(stores, &[(counter, 5)]).await;
    for number in [0, 1, 4] {
        let request = crate::budget::DrawRequest { number, ..process.request(&[], &[(counter, 1)]) };
        let expected = BudgetStoreError::Number { expected: 3, found: number };
        assert_eq!(stores.budget.draw(&request).await.unwrap_err().to_string(), expected.to_string());
        let request = crate::budget::ReturnRequest { number, ..process.return_request(&[(counter, 1)]) };
        assert_eq!(stores.budget.return_allowances(&request).await.unwrap_err().to_string(), expected.to_string());
    }
    let drawn_as_returned = crate::budget::DrawRequest { number: 2, ..process.request(&[], &[(counter, 1)]) };
    assert!(matches!(stores.budget.draw(&drawn_as_returned).await, Err(BudgetStoreError::Number { .. })));
}

pub(super) async fn draw_rejects_processes_that_are_not_live(stores: &Stores) {
    insert_fixtures(stores).await;
    let process = Holder::register(stores, 1).await;
    let unknown = ProcessId::from_uuid(uuid::Uuid::from_u128(99));
    let counter = key_of(&payer(1));
    let request = crate::budget::DrawRequest { process: unknown, ..process.request(&[], &[(counter, 1)]) };
    assert!(matches!(stores.budget.draw(&request).await, Err(BudgetStoreError::NotLive(None))));
    assert_eq!(stores.budget.process(unknown).await.unwrap(), None);
    stores.budget.end(unknown, RemainingAllowances::Return).await.expect("ending an unknown process changes nothing");
    stores.budget.end(process.id, RemainingAllowances::Return).await.unwrap();
    stores.budget.register(process.id).await.expect("a known process stays as it is");
    let drawn = stores.budget.draw(&process.request(&[], &[(counter, 1)])).await;
    assert!(matches!(drawn, Err(BudgetStoreError::NotLive(Some(ProcessState::Ended)))), "{drawn:?}");
    let returned = stores.budget.return_allowances(&process.return_request(&[(counter, 1)])).await;
    assert!(matches!(returned, Err(BudgetStoreError::NotLive(Some(ProcessState::Ended)))), "{returned:?}");
}

pub(super) async fn draw_is_corrupt_for_unknown_payer(stores: &Stores) {
    insert_fixtures(stores).await;
    let process = Holder::register(stores, 1).await;
    let elsewhere = crate::budget::Payer { workspace_id: workspace_id(2), ..payer(1) };
    for unknown in [payer(7), elsewhere] {
        let asks = [ask(&payer(1), 1, &[]), ask(&unknown, 1, &[key_of(&unknown)])];
        let drawn = stores.budget.draw(&process.request(&asks, &[])).await;
        assert!(is_corrupt(&drawn), "{drawn:?}");
        assert!(stores.budget.limits(&unknown).await.is_err());
    }
    assert_eq!(stores.budget.process(process.id).await.unwrap().unwrap().number, 0);
}

pub(super) async fn draw_is_corrupt_when_a_sum_leaves_the_range(stores: &Stores) {
    insert_fixtures(stores).await;
    let (payer, process) = (payer(1), Holder::register(stores, 1).await);
    let counter = lifetime(Account::Key(payer.api_key));
    process.draw_one(stores, &payer, i64::MAX, &[counter]).await.expect("nothing limits the counter");
    let drawn = stores.budget.draw(&process.request(&[ask(&payer, 1, &[counter])], &[])).await;
    assert!(is_corrupt(&drawn), "{drawn:?}");
    let negative = stores.budget.draw(&process.request(&[ask(&payer, -1, &[counter])], &[])).await;
    assert!(is_corrupt(&negative), "{negative:?}");
    process.return_allowances(stores, &[(counter, i64::MAX)]).await;
    let free = [(counter, usd(-1))].into();
    let request = crate::budget::DrawRequest { free, ..process.request(&[ask(&payer, 1, &[counter])], &[]) };
    let negative = stores.budget.draw(&request).await;
    assert!(is_corrupt(&negative), "{negative:?}");
    process.draw_one(stores, &payer, 1, &[counter]).await.unwrap();
}

pub(super) async fn return_makes_room_once(stores: &Stores) {
    insert_fixtures(stores).await;
    limit_key(stores, 1, Some((100, None))).await;
    let (payer, first) = (payer(1), Holder::register(stores, 1).await);
    let second = Holder::register(stores, 2).await;
    let counter = key_of(&payer);
    first.draw_one(stores, &payer, 60, &[counter]).await.unwrap();
    second.draw_one(stores, &payer, 40, &[counter]).await.unwrap();
    let request = first.return_request(&[(counter, 25)]);
    for _ in 0..3 {
        stores.budget.return_allowances(&request).await.unwrap();
    }
    second.draw_one(stores, &payer, 26, &[counter]).await.unwrap_err();
    second.draw_one(stores, &payer, 25, &[counter]).await.unwrap();
    let third = Holder::register(stores, 3).await;
    third.return_allowances(stores, &[(counter, 50)]).await;
    third.draw_one(stores, &payer, 1, &[counter]).await.expect_err("it had nothing to return");
    let negative = stores.budget.return_allowances(&third.return_request(&[(counter, -1)])).await;
    assert!(is_corrupt(&negative), "{negative:?}");
}

pub(super) async fn draw_grants_nothing_while_processes_fold_again(stores: &Stores) {
    insert_fixtures(stores).await;
    limit_key(stores, 1, Some((100, None))).await;
    let (payer, process) = (payer(1), Holder::register(stores, 1).await);
    let counter = key_of(&payer);
    let request = process.request(&[ask(&payer, 10, &[counter])], &[]);
    let granted = stores.budget.draw(&request).await.unwrap();
    assert_eq!(stores.budget.signals().await.unwrap().declared_older_at, None);
    let declared_at = stores.clock.now();
    stores.budget.declare_older().await.unwrap();
    assert_eq!(stores.budget.draw(&request).await.unwrap(), granted, "a repeated call");
    let other = Holder::register(stores, 2).await;
    let request = other.request(&[ask(&payer, 10, &[counter])], &[(counter, 5)]);
    assert!(matches!(stores.budget.draw(&request).await, Err(BudgetStoreError::FoldsAgain)));
    let rest = Duration::from_millis(1);
    stores.clock.advance(FOLD_AGAIN_FOR.saturating_sub(rest));
    stores.budget.declare_older().await.expect("a second declaration changes nothing");
    assert!(matches!(stores.budget.draw(&request).await, Err(BudgetStoreError::FoldsAgain)));
    assert_eq!(stores.budget.signals().await.unwrap().declared_older_at, Some(declared_at));
    stores.clock.advance(rest);
    assert_eq!(stores.budget.draw(&request).await.unwrap().answers, [Ok(())]);
    stores.budget.declare_older().await.unwrap();
    let third = Holder::register(stores, 3).await;
    let drawn = stores.budget.draw(&third.request(&[], &[(counter, 5)])).await;
    assert!(matches!(drawn, Err(BudgetStoreError::FoldsAgain)), "a later failover: {drawn:?}");
}
