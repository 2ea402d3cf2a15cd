//! Retention.

use std::time::Duration;

use super::super::Stores;
use super::super::samples::{audit, workspace_id};
use super::fixtures::{
    adds_up, audited, id, insert_fixtures, limit_key, limit_statuses, limit_workspace, payer, payer_under, record,
    reserve, settle, spend, usd, used, utc,
};
use crate::budget::{ResetInterval, WorkspaceBudgets};
use crate::testing::add_credit;

const DAY: Duration = Duration::from_hours(24);

pub(super) async fn prune_removes_old_records_and_keeps_totals(stores: &Stores) {
    insert_fixtures(stores).await;
    stores.clock.set(utc("2026-02-01T00:00:00Z"));
    add_credit(&*stores.workspaces, workspace_id(1), usd(1_000), &audit()).await.unwrap();
    limit_key(stores, 1, Some((500, None))).await;
    let days = ["2026-03-01T00:00:00Z", "2026-03-31T23:59:59Z", "2026-05-01T00:00:00Z", "2026-07-01T00:00:00Z"];
    for (number, day) in (1..).zip(days) {
        settle(stores, record(number, payer_under(1, &[5]), 100, utc(day))).await;
    }
    let counters = audited(stores).await.counters;
    stores.clock.set(utc("2026-07-15T12:00:00Z"));
    assert_eq!(stores.maintenance.prune(DAY * 60, 1).await.unwrap().removed, 1, "no more than are wanted");
    adds_up(stores, "one was pruned").await;
    assert_eq!(stores.maintenance.prune(DAY * 60, 100).await.unwrap().removed, 2);
    assert_eq!(stores.maintenance.prune(DAY * 60, 100).await.unwrap().removed, 0);
    for number in 1..=3 {
        assert_eq!(stores.usage.find(&id(number)).await.unwrap(), None);
    }
    assert!(stores.usage.find(&id(4)).await.unwrap().is_some());
    let after = audited(stores).await;
    assert!(after.counters < counters, "counters of periods that are over go too: {after:?}");
    assert_eq!(after.records, 1);
    assert_eq!(stores.workspaces.find(workspace_id(1)).await.unwrap().unwrap().credit, Some(usd(600)));
    let refused = reserve(stores, 9, &payer(1), 101).await.unwrap_err();
    assert_eq!((refused.spent, refused.is_credit), (usd(400), false), "limits for ever still know all of it");
    reserve(stores, 9, &payer(1), 100).await.unwrap();
}

pub(super) async fn prune_keeps_records_of_current_periods(stores: &Stores) {
    insert_fixtures(stores).await;
    let budgets = WorkspaceBudgets { weekly: Some(usd(100)), monthly: Some(usd(1_000)), ..WorkspaceBudgets::default() };
    limit_workspace(stores, 1, budgets).await;
    limit_key(stores, 1, Some((30, Some(ResetInterval::Daily)))).await;
    // The first day of the month is in a week that began in the month before.
    stores.clock.set(utc("2026-07-03T12:00:00Z"));
    let days = ["2026-06-28T23:59:59Z", "2026-06-29T00:00:00Z", "2026-07-01T00:00:00Z", "2026-07-03T00:00:00Z"];
    for (number, day) in (1..).zip(days) {
        settle(stores, record(number, payer(1), 20, utc(day))).await;
    }
    reserve(stores, 5, &payer(1), 10).await.unwrap();
    assert_eq!(stores.maintenance.prune(Duration::ZERO, 100).await.unwrap().removed, 1, "of the week before alone");
    let spent: Vec<i64> = limit_statuses(stores, &payer(1)).await.iter().map(|limit| limit.spent.pico()).collect();
    assert_eq!(spent, [60, 40, 20], "by week, month and day");
    assert_eq!(stores.maintenance.prune(Duration::MAX, 100).await.unwrap().removed, 0, "for ever");
    spend(stores, 5, &payer(1), 10).await;
    assert!(reserve(stores, 6, &payer(1), 1).await.is_err());
}

pub(super) async fn concurrent_prunes_remove_each_record_once(stores: &Stores) {
    insert_fixtures(stores).await;
    limit_key(stores, 1, Some((1_000, None))).await;
    for number in 1..=100 {
        settle(stores, record(number, payer(1), 3, utc("2026-01-05T00:00:00Z"))).await;
    }
    let pruned = crate::testing::join_all((0..8).map(|_| stores.maintenance.prune(DAY * 32, 17))).await;
    assert_eq!(pruned.into_iter().map(|pruned| pruned.unwrap().removed).sum::<u64>(), 100);
    assert_eq!(used(stores, &payer(1)).await, (300, 0));
    assert_eq!(audited(stores).await.records, 0);
    // A late charge of a pruned time is charged and pruned later.
    settle(stores, record(200, payer(1), 5, utc("2026-01-05T00:00:00Z"))).await;
    adds_up(stores, "a late charge").await;
    assert_eq!(stores.maintenance.prune(DAY * 32, 17).await.unwrap().removed, 1);
    assert_eq!(used(stores, &payer(1)).await, (305, 0));
}
