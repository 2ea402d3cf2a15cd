//! Limit statuses, audits and retention.

use std::time::Duration;

use super::super::Stores;
use super::super::ledger::fixtures::{
    id, insert_fixtures, limit_key, limit_workspace, payer, payer_under, record, usd, utc,
};
use super::super::samples::{audit, workspace_id};
use super::setup::{Holder, adds_up, entry, key_of, noon, period};
use crate::budget::{Account, KeySpend, LedgerAudit, Payer, RemainingAllowances, ResetInterval, WorkspaceBudgets};
use crate::ids::ApiKeyId;
use crate::money::Usd;
use crate::testing::add_credit;
use crate::testing::join_all;
use crate::usage::{UsageFilter, UsageOutcome, UsageRecord, UsageShare};

const DAY: Duration = Duration::from_hours(24);

async fn audited(stores: &Stores) -> LedgerAudit {
    stores.maintenance.audit().await.expect("the ledger is audited")
}

async fn prune(stores: &Stores, older_than: Duration, limit: u64) -> u64 {
    stores.maintenance.prune(older_than, limit).await.expect("records are pruned").removed
}

/// Returns the spent and reserved amounts of the payer's limits.
async fn statuses(stores: &Stores, payer: &Payer) -> Vec<(i64, i64)> {
    let statuses = stores.limits.limit_statuses(payer).await.expect("the store answers");
    statuses.iter().map(|status| (status.spent.pico(), status.reserved.pico())).collect()
}

pub(super) async fn statuses_show_spent_and_allotted_amounts(stores: &Stores) {
    insert_fixtures(stores).await;
    limit_key(stores, 1, Some((100, Some(ResetInterval::Daily)))).await;
    let (payer, process) = (payer(1), Holder::register(stores, 1).await);
    process.fold(stores, vec![entry(record(1, payer.clone(), 7, noon()), &[])]).await;
    add_credit(&*stores.workspaces, workspace_id(1), usd(50), &audit()).await.unwrap();
    let counter = period(Account::Key(payer.api_key), ResetInterval::Daily, noon());
    process.draw_one(stores, &payer, 30, &[counter]).await.unwrap();
    process.fold(stores, vec![entry(record(2, payer.clone(), 5, noon()), &[(counter, 5)])]).await;
    let found = stores.limits.limit_statuses(&payer).await.unwrap();
    let kinds: Vec<_> = found.iter().map(|status| (status.is_credit, status.limit, status.reset)).collect();
    assert_eq!(kinds, [(true, usd(50), None), (false, usd(100), Some(ResetInterval::Daily))]);
    assert_eq!(statuses(stores, &payer).await, [(5, 0), (12, 25)], "of credit, what was spent of it");
    assert_eq!(found[1].resets_at, Some(utc("2026-07-16T00:00:00Z")));
    stores.clock.set(utc("2026-07-16T00:00:00Z"));
    assert_eq!(statuses(stores, &payer).await, [(5, 0), (0, 0)]);
    let unknown = Payer { workspace_id: workspace_id(2), ..payer };
    assert!(stores.limits.limit_statuses(&unknown).await.is_err());
}

pub(super) async fn key_spend_is_that_of_current_periods(stores: &Stores) {
    insert_fixtures(stores).await;
    let (payer, process) = (payer(1), Holder::register(stores, 1).await);
    process.fold(stores, vec![entry(record(1, payer.clone(), 7, noon()), &[])]).await;
    let unknown = ApiKeyId::from_uuid(uuid::Uuid::from_u128(99));
    let spent = async |at: &str| {
        stores.clock.set(utc(at));
        let found = stores
            .limits
            .key_spend(&[unknown, payer.api_key].map(|key| (payer.workspace_id, key)))
            .await
            .expect("the store answers");
        assert_eq!(found[0], KeySpend::default(), "a key that never existed");
        [found[1].daily, found[1].weekly, found[1].monthly, found[1].total].map(Usd::pico)
    };
    // Noon is that of Wednesday, 15 July 2026.
    assert_eq!(spent("2026-07-15T23:59:59Z").await, [7, 7, 7, 7]);
    assert_eq!(spent("2026-07-16T00:00:00Z").await, [0, 7, 7, 7]);
    assert_eq!(spent("2026-07-20T00:00:00Z").await, [0, 0, 7, 7]);
    assert_eq!(spent("2026-08-01T00:00:00Z").await, [0, 0, 0, 7]);
    assert_eq!(stores.limits.key_spend(&[]).await.expect("the store answers"), []);
}

pub(super) async fn audit_counts_what_it_compares(stores: &Stores) {
    insert_fixtures(stores).await;
    limit_key(stores, 1, Some((100, None))).await;
    let (payer, process) = (payer(1), Holder::register(stores, 1).await);
    process.fold(stores, vec![entry(record(1, payer.clone(), 7, noon()), &[])]).await;
    process.draw_one(stores, &payer, 30, &[key_of(&payer)]).await.unwrap();
    let found = audited(stores).await;
    assert_eq!((found.records, found.counters, found.allowances), (1, 8, 1), "{found:?}");
    assert_eq!(found.discrepancies, []);
}

/// Leaves a discrepancy.
pub(super) async fn audit_names_records_whose_cost_is_not_that_of_their_tokens(stores: &Stores) {
    insert_fixtures(stores).await;
    let process = Holder::register(stores, 1).await;
    let shared = |number, index, cost| UsageRecord {
        share: UsageShare { index, of: 3 },
        cost: usd(cost),
        ..record(number, payer(1), 100, noon())
    };
    // 100 picodollars shared by three; the last one is charged one too many.
    let costs = [(1, 0, 34), (2, 1, 33), (3, 2, 34)];
    let mut entries: Vec<_> =
        costs.into_iter().map(|(number, index, cost)| entry(shared(number, index, cost), &[])).collect();
    let of_before = UsageRecord {
        outcome: UsageOutcome::Failed,
        attempts: std::sync::Arc::default(),
        ..record(4, payer(1), 50, noon())
    };
    entries.push(entry(of_before, &[]));
    process.fold(stores, entries).await;
    let audit = audited(stores).await;
    assert_eq!((audit.records, audit.discrepancies.len()), (4, 1), "{audit:?}");
    let found = &audit.discrepancies[0];
    assert_eq!((found.expected, found.found), (usd(33), usd(34)));
    assert!(found.what.contains(id(3).as_str()), "{found:?}");
}

pub(super) async fn prune_keeps_totals(stores: &Stores) {
    insert_fixtures(stores).await;
    add_credit(&*stores.workspaces, workspace_id(1), usd(1_000), &audit()).await.unwrap();
    limit_key(stores, 1, Some((500, None))).await;
    let process = Holder::register(stores, 1).await;
    // After the beginning of the credit: earlier charges do not count against it.
    stores.clock.set(utc("2026-11-15T12:00:00Z"));
    let days = ["2026-08-01T00:00:00Z", "2026-08-31T23:59:59Z", "2026-09-01T00:00:00Z", "2026-11-01T00:00:00Z"];
    let records = (1..).zip(days).map(|(number, day)| record(number, payer_under(1, &[5]), 100, utc(day)));
    process.fold(stores, records.map(|record| entry(record, &[])).collect()).await;
    let counters = audited(stores).await.counters;
    assert_eq!(prune(stores, DAY * 60, 1).await, 1, "no more than are wanted");
    adds_up(stores, "one was pruned").await;
    assert_eq!(prune(stores, DAY * 60, 100).await, 2);
    assert_eq!(prune(stores, DAY * 60, 100).await, 0);
    let left = stores.usage.list(&UsageFilter::for_workspace(workspace_id(1)), 9).await.unwrap();
    assert_eq!(left.iter().map(|record| record.id.clone()).collect::<Vec<_>>(), [id(4)]);
    let after = audited(stores).await;
    assert!(after.counters < counters, "counters of periods that are over go too: {after:?}");
    assert_eq!(stores.workspaces.find(workspace_id(1)).await.unwrap().unwrap().credit, Some(usd(600)));
    let denied = process.draw_one(stores, &payer(1), 101, &[key_of(&payer(1))]).await.unwrap_err();
    assert_eq!(denied.spent, usd(400), "limits for ever still know all of it");
    process.draw_one(stores, &payer(1), 100, &[key_of(&payer(1))]).await.unwrap();
}

pub(super) async fn prune_keeps_what_still_counts(stores: &Stores) {
    insert_fixtures(stores).await;
    let budgets = WorkspaceBudgets { weekly: Some(usd(100)), monthly: Some(usd(1_000)), ..WorkspaceBudgets::default() };
    limit_workspace(stores, 1, budgets).await;
    limit_key(stores, 1, Some((30, Some(ResetInterval::Daily)))).await;
    let process = Holder::register(stores, 1).await;
    // The first day of the month is in a week that began in the month before.
    stores.clock.set(utc("2026-07-03T12:00:00Z"));
    let days = ["2026-06-28T23:59:59Z", "2026-06-29T00:00:00Z", "2026-07-01T00:00:00Z", "2026-07-03T00:00:00Z"];
    let records = (1..).zip(days).map(|(number, day)| record(number, payer(1), 20, utc(day)));
    process.fold(stores, records.map(|record| entry(record, &[])).collect()).await;
    assert_eq!(prune(stores, Duration::ZERO, 100).await, 1, "of the week before alone");
    let spent: Vec<i64> = statuses(stores, &payer(1)).await.into_iter().map(|(spent, _)| spent).collect();
    assert_eq!(spent, [60, 40, 20], "by week, month and day");
    assert_eq!(prune(stores, Duration::MAX, 100).await, 0, "for ever");
    stores.clock.set(utc("2026-08-01T00:59:59Z"));
    assert_eq!(prune(stores, Duration::ZERO, 100).await, 1, "a request of last month may still be in flight");
    stores.clock.set(utc("2026-08-03T01:00:00Z"));
    assert_eq!(prune(stores, Duration::ZERO, 100).await, 2);
}

pub(super) async fn prune_removes_adjustments_of_periods_that_are_over(stores: &Stores) {
    insert_fixtures(stores).await;
    limit_key(stores, 1, Some((100, Some(ResetInterval::Daily)))).await;
    limit_workspace(stores, 1, WorkspaceBudgets { lifetime: Some(usd(100)), ..WorkspaceBudgets::default() }).await;
    let (payer, process) = (payer(1), Holder::register(stores, 1).await);
    let total = super::setup::workspace_of(&payer);
    let today = period(Account::Key(payer.api_key), ResetInterval::Daily, noon());
    process.draw_one(stores, &payer, 30, &[total, today]).await.unwrap();
    stores.budget.end(process.id, RemainingAllowances::Adjust).await.unwrap();
    assert_eq!(prune(stores, Duration::ZERO, 100).await, 0);
    assert_eq!(statuses(stores, &payer).await, [(30, 0), (30, 0)]);
    stores.clock.set(utc("2026-09-15T12:00:00Z"));
    prune(stores, Duration::ZERO, 100).await;
    assert_eq!(audited(stores).await.counters, 1, "the day is over");
    assert_eq!(statuses(stores, &payer).await, [(30, 0), (0, 0)]);
}

pub(super) async fn concurrent_prunes_remove_each_record_once(stores: &Stores) {
    insert_fixtures(stores).await;
    limit_key(stores, 1, Some((1_000, None))).await;
    let process = Holder::register(stores, 1).await;
    let old = |number| entry(record(number, payer(1), 3, utc("2026-01-05T00:00:00Z")), &[]);
    process.fold(stores, (1..=100).map(old).collect()).await;
    let pruned = join_all((0..8).map(|_| prune(stores, DAY * 32, 17))).await;
    assert_eq!(pruned.into_iter().sum::<u64>(), 100);
    assert_eq!(statuses(stores, &payer(1)).await, [(300, 0)]);
    assert_eq!(audited(stores).await.records, 0);
    // A late charge of a pruned time is charged and pruned later.
    process.fold(stores, vec![old(200)]).await;
    adds_up(stores, "a late charge").await;
    assert_eq!(prune(stores, DAY * 32, 17).await, 1);
    assert_eq!(statuses(stores, &payer(1)).await, [(303, 0)]);
}
