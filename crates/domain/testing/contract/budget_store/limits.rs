//! Reads of limits.

use super::super::Stores;
use super::super::ledger::fixtures::{insert_fixtures, limit_key, limit_workspace, payer, payer_under, usd};
use super::super::samples::{add_guardrail, audit, guardrail, guardrail_id, workspace_id};
use crate::budget::{Account, CounterLimit, CounterLimits, ResetInterval, SpendLimit, WorkspaceBudgets};
use crate::guardrail::Guardrail;
use crate::money::Usd;
use crate::testing::add_credit;

pub(super) async fn limits_list_every_account(stores: &Stores) {
    insert_fixtures(stores).await;
    let plain = |pico, reset| CounterLimit {
        limit: SpendLimit { amount: usd(pico), reset },
        base: Usd::ZERO,
        is_credit: false,
    };
    assert_eq!(stores.budget.limits(&payer_under(1, &[1])).await.unwrap().0, []);
    let budget = Some(SpendLimit { amount: usd(40), reset: Some(ResetInterval::Monthly) });
    add_guardrail(stores, &Guardrail { budget, ..guardrail(1, 1) }).await;
    add_guardrail(stores, &guardrail(2, 1)).await;
    limit_key(stores, 1, Some((30, Some(ResetInterval::Weekly)))).await;
    let budgets = WorkspaceBudgets { daily: Some(usd(20)), lifetime: Some(usd(90)), ..WorkspaceBudgets::default() };
    limit_workspace(stores, 1, budgets).await;
    add_credit(&*stores.workspaces, workspace_id(1), usd(50), &audit()).await.unwrap();
    let payer_1 = payer_under(1, &[1, 2, 9]);
    let (limits, _) = stores.budget.limits(&payer_1).await.unwrap();
    let credit = CounterLimit { is_credit: true, ..plain(50, None) };
    let expected = [
        CounterLimits {
            account: Account::Workspace(workspace_id(1)),
            limits: vec![credit, plain(20, Some(ResetInterval::Daily)), plain(90, None)],
        },
        CounterLimits { account: Account::Key(payer_1.api_key), limits: vec![plain(30, Some(ResetInterval::Weekly))] },
        CounterLimits {
            account: Account::Guardrail(guardrail_id(1), payer_1.api_key),
            limits: vec![plain(40, Some(ResetInterval::Monthly))],
        },
    ];
    assert_eq!(limits, expected);
    assert_eq!(stores.budget.limits(&payer(2)).await.unwrap().0, [], "a limit binds only its owner");
}

pub(super) async fn limits_follow_changes(stores: &Stores) {
    insert_fixtures(stores).await;
    let feed = async || stores.budget.signals().await.unwrap().feed;
    let before = feed().await;
    assert_eq!(stores.budget.limits(&payer(1)).await.unwrap().1, before);
    limit_key(stores, 1, Some((100, None))).await;
    let after = feed().await;
    assert!(after > before, "a change of a limit is a signal");
    let (limits, at) = stores.budget.limits(&payer(1)).await.unwrap();
    assert_eq!((limits.len(), at), (1, after));
    add_credit(&*stores.workspaces, workspace_id(1), usd(5), &audit()).await.unwrap();
    assert!(feed().await > after);
    let process = super::setup::Holder::register(stores, 1).await;
    let counter = super::setup::key_of(&payer(1));
    let reply = process.draw(stores, &[], &[(counter, 1)]).await;
    assert_eq!(reply.feed, feed().await, "a grant says which limits it was decided by");
}
