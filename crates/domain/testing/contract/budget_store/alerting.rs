//! Budget alerts of folds and ends, and their publication.

use super::super::Stores;
use super::super::ledger::fixtures::{
    insert_fixtures, limit_key, limit_workspace, payer, payer_under, record, usd, utc,
};
use super::super::samples::{add_guardrail, audit, guardrail, guardrail_id, key_id, workspace_id};
use super::setup::{Holder, entry, key_of, noon};
use crate::budget::allowances::CounterPeriod;
use crate::budget::{
    Account, AlertThreshold, BudgetAlert, Payer, RemainingAllowances, ResetInterval, SpendLimit, WorkspaceBudgets,
};
use crate::guardrail::Guardrail;
use crate::ids::{DestinationId, OutboxId};
use crate::json::Json;
use crate::testing::{SequentialIds, join_all};
use crate::testing::{add_credit, clear_credit};
use crate::usage::{OutboxMessage, UsageOutcome, UsageRecord};

async fn unpublished(stores: &Stores) -> Vec<BudgetAlert> {
    stores.alerts.unpublished(1_000).await.unwrap()
}

/// Returns limit, threshold and spent amount of the unpublished alerts in order, and publishes them.
async fn take(stores: &Stores) -> Vec<(i64, u8, i64)> {
    let mut taken = Vec::new();
    for alert in unpublished(stores).await {
        assert!(stores.alerts.publish(&alert, &[]).await.unwrap());
        taken.push((alert.limit.pico(), alert.threshold.percent(), alert.spent.pico()));
    }
    taken.sort_unstable();
    assert_eq!(unpublished(stores).await, []);
    taken
}

/// Charges amounts, each in its own fold.
async fn charge(stores: &Stores, process: &Holder, payer: &Payer, first: u64, amounts: &[i64]) {
    for (number, pico) in (first..).zip(amounts) {
        process.fold(stores, vec![entry(record(number, payer.clone(), *pico, noon()), &[])]).await;
    }
}

pub(super) async fn fold_alerts_once_per_threshold_and_period(stores: &Stores) {
    insert_fixtures(stores).await;
    limit_key(stores, 1, Some((100, Some(ResetInterval::Daily)))).await;
    let (payer, process) = (payer(1), Holder::register(stores, 1).await);
    charge(stores, &process, &payer, 1, &[49]).await;
    assert_eq!(unpublished(stores).await, []);
    charge(stores, &process, &payer, 2, &[1]).await;
    let alerts = unpublished(stores).await;
    let expected = BudgetAlert {
        workspace_id: workspace_id(1),
        account: Account::Key(key_id(1)),
        is_credit: false,
        base: usd(0),
        limit: usd(100),
        period: CounterPeriod::containing(Some(ResetInterval::Daily), noon()),
        threshold: AlertThreshold::Half,
        spent: usd(50),
        at: noon(),
    };
    assert_eq!(alerts, [expected]);
    assert_eq!(alerts[0].resets_at(), Some(utc("2026-07-16T00:00:00Z")));
    charge(stores, &process, &payer, 3, &[29, 1, 1]).await;
    assert_eq!(take(stores).await, [(100, 50, 50), (100, 80, 80)]);
    charge(stores, &process, &payer, 6, &[19, 100]).await;
    assert_eq!(take(stores).await, [(100, 100, 100)]);
    // The next period counts anew; one charge may cross several thresholds.
    let tomorrow = utc("2026-07-16T00:00:00Z");
    process.fold(stores, vec![entry(record(9, payer.clone(), 85, tomorrow), &[])]).await;
    assert_eq!(take(stores).await, [(100, 50, 85), (100, 80, 85)]);
}

pub(super) async fn fold_alerts_anew_after_change_of_limit(stores: &Stores) {
    insert_fixtures(stores).await;
    limit_key(stores, 1, Some((100, None))).await;
    let (payer, process) = (payer(1), Holder::register(stores, 1).await);
    charge(stores, &process, &payer, 1, &[60]).await;
    assert_eq!(take(stores).await, [(100, 50, 60)]);
    limit_key(stores, 1, Some((200, None))).await;
    charge(stores, &process, &payer, 2, &[39]).await;
    assert_eq!(take(stores).await, []);
    charge(stores, &process, &payer, 3, &[1]).await;
    assert_eq!(take(stores).await, [(200, 50, 100)], "of the raised limit");
    limit_key(stores, 1, Some((110, None))).await;
    charge(stores, &process, &payer, 4, &[5]).await;
    assert_eq!(take(stores).await, [], "90 % were spent before");
    charge(stores, &process, &payer, 5, &[5]).await;
    assert_eq!(take(stores).await, [(110, 100, 110)]);
    // A charge that replaces one of a dead process lowers the spend; the threshold is crossed again without an alert.
    limit_key(stores, 1, Some((400, None))).await;
    let lost = UsageRecord { outcome: UsageOutcome::Abandoned, ..record(6, payer.clone(), 90, noon()) };
    process.fold(stores, vec![entry(lost, &[])]).await;
    assert_eq!(take(stores).await, [(400, 50, 200)]);
    charge(stores, &process, &payer, 6, &[1, 99]).await;
    assert_eq!(take(stores).await, []);
}

pub(super) async fn alerts_are_of_every_account_and_period(stores: &Stores) {
    insert_fixtures(stores).await;
    let budget = Some(SpendLimit { amount: usd(30), reset: Some(ResetInterval::Weekly) });
    add_guardrail(stores, &Guardrail { budget, ..guardrail(1, 1) }).await;
    limit_key(stores, 1, Some((20, None))).await;
    let budgets = WorkspaceBudgets { daily: Some(usd(10)), monthly: Some(usd(1_000)), ..WorkspaceBudgets::default() };
    limit_workspace(stores, 1, budgets).await;
    let process = Holder::register(stores, 1).await;
    charge(stores, &process, &payer_under(1, &[1]), 1, &[15]).await;
    let alerts = unpublished(stores).await;
    let named = |alert: &BudgetAlert| (alert.account, alert.reset(), alert.threshold.percent());
    let mut found: Vec<_> = alerts.iter().map(named).collect();
    found.sort_unstable_by_key(|(account, _, percent)| (*account, *percent));
    let (workspace, key) = (Account::Workspace(workspace_id(1)), Account::Key(key_id(1)));
    let daily = Some(ResetInterval::Daily);
    let expected = [
        (workspace, daily, 50),
        (workspace, daily, 80),
        (workspace, daily, 100),
        (key, None, 50),
        (Account::Guardrail(guardrail_id(1), key_id(1)), Some(ResetInterval::Weekly), 50),
    ];
    assert_eq!(found, expected);
    assert!(alerts.iter().all(|alert| alert.workspace_id == workspace_id(1) && alert.spent == usd(15)));
    charge(stores, &process, &payer(2), 2, &[1_000]).await;
    assert_eq!(unpublished(stores).await.len(), 5, "an account without limits has no alerts");
}

pub(super) async fn alerts_of_credit_follow_its_base(stores: &Stores) {
    insert_fixtures(stores).await;
    let (payer, process) = (payer(1), Holder::register(stores, 1).await);
    charge(stores, &process, &payer, 1, &[500]).await;
    let later = utc("2026-07-15T12:00:01Z");
    stores.clock.set(later);
    add_credit(&*stores.workspaces, workspace_id(1), usd(100), &audit()).await.unwrap();
    charge(stores, &process, &payer, 2, &[70]).await;
    assert_eq!(take(stores).await, [], "a charge of before the credit");
    process.fold(stores, vec![entry(record(3, payer.clone(), 49, later), &[])]).await;
    assert_eq!(take(stores).await, []);
    let both = vec![entry(record(4, payer.clone(), 30, noon()), &[]), entry(record(5, payer.clone(), 1, later), &[])];
    process.fold(stores, both).await;
    let alerts = unpublished(stores).await;
    assert!(alerts.iter().all(|alert| alert.is_credit && alert.reset().is_none()));
    assert_eq!(take(stores).await, [(100, 50, 50)]);
    // More credit is another limit; a new credit of the same amount as well.
    add_credit(&*stores.workspaces, workspace_id(1), usd(20), &audit()).await.unwrap();
    process.fold(stores, vec![entry(record(6, payer.clone(), 10, later), &[])]).await;
    assert_eq!(take(stores).await, [(120, 50, 60)]);
    clear_credit(&*stores.workspaces, workspace_id(1), &audit()).await.unwrap();
    add_credit(&*stores.workspaces, workspace_id(1), usd(120), &audit()).await.unwrap();
    process.fold(stores, vec![entry(record(7, payer, 60, later), &[])]).await;
    assert_eq!(take(stores).await, [(120, 50, 60)]);
}

pub(super) async fn end_alerts_when_allowances_count_as_spent(stores: &Stores) {
    insert_fixtures(stores).await;
    limit_key(stores, 1, Some((100, None))).await;
    let (payer, process) = (payer(1), Holder::register(stores, 1).await);
    process.draw_one(stores, &payer, 60, &[key_of(&payer)]).await.unwrap();
    assert_eq!(take(stores).await, [], "an allowance is not spent");
    stores.budget.end(process.id, RemainingAllowances::Adjust).await.unwrap();
    assert_eq!(take(stores).await, [(100, 50, 60)]);
    // Charges that replace the adjustment do not alert again.
    process.fold(stores, vec![entry(record(1, payer.clone(), 55, noon()), &[(key_of(&payer), 55)])]).await;
    assert_eq!(take(stores).await, []);
}

pub(super) async fn concurrent_folds_alert_once(stores: &Stores) {
    insert_fixtures(stores).await;
    limit_key(stores, 1, Some((100, None))).await;
    let payer = payer(1);
    join_all((1..=20).map(|number| {
        let payer = payer.clone();
        async move {
            let process = Holder::register(stores, number.into()).await;
            process.fold(stores, vec![entry(record(number, payer, 5, noon()), &[])]).await;
        }
    }))
    .await;
    assert_eq!(take(stores).await, [(100, 50, 50), (100, 80, 80), (100, 100, 100)]);
}

pub(super) async fn alert_is_published_once_with_its_messages(stores: &Stores) {
    insert_fixtures(stores).await;
    limit_key(stores, 1, Some((100, None))).await;
    charge(stores, &Holder::register(stores, 1).await, &payer(1), 1, &[50]).await;
    let alert = unpublished(stores).await.remove(0);
    let message = |number| OutboxMessage {
        id: OutboxId::from_uuid(SequentialIds::uuid(number)),
        destination_id: DestinationId::from_uuid(SequentialIds::uuid(7)),
        payload: Json::object([("a", "[ 1.0 ]")]),
    };
    let published = join_all((0..8).map(|number| {
        let (alert, message) = (alert.clone(), message(number + 1));
        async move { stores.alerts.publish(&alert, &[message]).await.unwrap() }
    }))
    .await;
    assert_eq!(published.into_iter().filter(|published| *published).count(), 1);
    assert_eq!(stores.outbox.status().await.unwrap().pending, 1);
    let unknown = BudgetAlert { limit: usd(101), ..alert };
    assert!(!stores.alerts.publish(&unknown, &[message(99)]).await.unwrap());
    assert_eq!(stores.outbox.status().await.unwrap().pending, 1);
}

pub(super) async fn prune_removes_published_alerts_of_past_periods(stores: &Stores) {
    insert_fixtures(stores).await;
    limit_workspace(
        stores,
        1,
        WorkspaceBudgets { daily: Some(usd(10)), lifetime: Some(usd(10)), ..WorkspaceBudgets::default() },
    )
    .await;
    let process = Holder::register(stores, 1).await;
    charge(stores, &process, &payer(1), 1, &[5]).await;
    assert_eq!(take(stores).await.len(), 2);
    stores.clock.set(utc("2026-09-15T12:00:00Z"));
    stores.maintenance.prune(std::time::Duration::from_hours(24 * 32), 100).await.unwrap();
    // The day counts anew, because its alert was removed with its records; the one of the lifetime budget stays.
    charge(stores, &process, &payer(1), 2, &[5]).await;
    assert_eq!(take(stores).await, [(10, 50, 5), (10, 80, 10), (10, 100, 10)]);
}
