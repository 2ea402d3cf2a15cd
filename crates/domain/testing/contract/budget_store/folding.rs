//! Folds of charges.

use super::super::Stores;
use super::super::ledger::fixtures::{
    id, insert_fixtures, limit_key, limit_workspace, payer, payer_under, record, usd, utc,
};
use super::super::samples::{audit, workspace_id};
use super::setup::{Holder, ask, entry, is_corrupt, key_of, noon, period, workspace_of};
use crate::budget::{Account, BudgetStoreError, FoldEntry, FoldRequest, ResetInterval, UsageCharge, WorkspaceBudgets};
use crate::ids::{DestinationId, OutboxId};
use crate::json::Json;
use crate::testing::SequentialIds;
use crate::testing::{add_credit, clear_credit};
use crate::usage::{OutboxMessage, UsageFilter, UsageOutcome, UsageRecord};

pub(super) async fn fold_charges_and_takes_allowances(stores: &Stores) {
    insert_fixtures(stores).await;
    limit_key(stores, 1, Some((100, None))).await;
    let (payer, process) = (payer(1), Holder::register(stores, 1).await);
    let counter = key_of(&payer);
    process.draw_one(stores, &payer, 70, &[counter]).await.unwrap();
    let charged = record(1, payer.clone(), 25, noon());
    process.fold(stores, vec![entry(charged.clone(), &[(counter, 25)])]).await;
    assert_eq!(stores.usage.find(&id(1)).await.unwrap(), Some(charged));
    let denied = process.draw_one(stores, &payer, 31, &[counter]).await.unwrap_err();
    assert_eq!((denied.spent, denied.reserved), (usd(25), usd(45)));
    process.draw_one(stores, &payer, 30, &[counter]).await.unwrap();
    // A cost above the allowances is spent in full, and takes at most the allowances.
    process.fold(stores, vec![entry(record(2, payer.clone(), 200, noon()), &[(counter, 75)])]).await;
    let denied = process.draw_one(stores, &payer, 1, &[counter]).await.unwrap_err();
    assert_eq!((denied.spent, denied.reserved), (usd(225), usd(0)));
    process.fold(stores, vec![entry(record(3, payer.clone(), 1, noon()), &[(counter, 75)])]).await;
    let denied = process.draw_one(stores, &payer, 1, &[counter]).await.unwrap_err();
    assert_eq!((denied.spent, denied.reserved), (usd(226), usd(0)));
}

pub(super) async fn fold_counts_periods_of_the_charge(stores: &Stores) {
    insert_fixtures(stores).await;
    let each = WorkspaceBudgets { daily: Some(usd(100)), monthly: Some(usd(100)), ..WorkspaceBudgets::default() };
    limit_workspace(stores, 1, each).await;
    let (payer, process) = (payer_under(1, &[1]), Holder::register(stores, 1).await);
    let yesterday = utc("2026-07-14T23:59:59.999Z");
    process.fold(stores, vec![entry(record(1, payer.clone(), 30, yesterday), &[])]).await;
    let account = Account::Workspace(payer.workspace_id);
    let today = period(account, ResetInterval::Daily, noon());
    process.draw_one(stores, &payer, 100, &[today]).await.expect("it counts in the day of the charge");
    let month = period(account, ResetInterval::Monthly, noon());
    let denied = process.draw_one(stores, &payer, 71, &[month]).await.unwrap_err();
    assert_eq!((denied.spent, denied.reset), (usd(30), Some(ResetInterval::Monthly)));
}

pub(super) async fn fold_is_idempotent(stores: &Stores) {
    insert_fixtures(stores).await;
    limit_key(stores, 1, Some((100, None))).await;
    let (payer, process) = (payer(1), Holder::register(stores, 1).await);
    let counter = key_of(&payer);
    process.draw_one(stores, &payer, 50, &[counter]).await.unwrap();
    let entries = vec![entry(record(1, payer.clone(), 10, noon()), &[(counter, 10)])];
    let request = FoldRequest { up_to: 5, ..process.fold_request(entries) };
    for _ in 0..3 {
        stores.budget.fold(&request).await.unwrap();
    }
    let status = stores.budget.process(process.id).await.unwrap().unwrap();
    assert_eq!((status.number, status.folded_sequence), (1, 5));
    for (after, up_to) in [(0, 4), (4, 6), (6, 7)] {
        let other = FoldRequest { after, up_to, ..request.clone() };
        let folded = stores.budget.fold(&other).await;
        let expected = BudgetStoreError::Number { expected: 5, found: after };
        assert_eq!(folded.unwrap_err().to_string(), expected.to_string(), "{after} to {up_to}");
    }
    let denied = process.draw_one(stores, &payer, 51, &[counter]).await.unwrap_err();
    assert_eq!((denied.spent, denied.reserved), (usd(10), usd(40)), "it counts once");
}

pub(super) async fn fold_adds_nothing_for_known_ids(stores: &Stores) {
    insert_fixtures(stores).await;
    limit_key(stores, 1, Some((100, None))).await;
    let (payer_1, process) = (payer(1), Holder::register(stores, 1).await);
    let counter = key_of(&payer_1);
    process.draw_one(stores, &payer_1, 50, &[counter]).await.unwrap();
    let first = record(1, payer_1.clone(), 10, noon());
    let other = record(1, payer(2), 99, noon());
    process.fold(stores, vec![entry(first.clone(), &[(counter, 10)]), entry(other.clone(), &[])]).await;
    process.fold(stores, vec![entry(other, &[(counter, 7)])]).await;
    assert_eq!(stores.usage.list(&UsageFilter::for_workspace(workspace_id(1)), 9).await.unwrap(), [first]);
    assert_eq!(stores.usage.list(&UsageFilter::for_workspace(workspace_id(2)), 9).await.unwrap(), []);
    let denied = process.draw_one(stores, &payer_1, 58, &[counter]).await.unwrap_err();
    assert_eq!((denied.spent, denied.reserved), (usd(10), usd(33)), "the allowances of every entry are taken");
}

pub(super) async fn fold_replaces_abandoned_records(stores: &Stores) {
    insert_fixtures(stores).await;
    limit_key(stores, 1, Some((100, None))).await;
    let (payer_1, process) = (payer(1), Holder::register(stores, 1).await);
    let abandoned =
        |number, pico| UsageRecord { outcome: UsageOutcome::Abandoned, ..record(number, payer(1), pico, noon()) };
    process.fold(stores, vec![entry(abandoned(1, 40), &[]), entry(abandoned(2, 30), &[])]).await;
    process.fold(stores, vec![entry(abandoned(1, 41), &[])]).await;
    let real = record(1, payer_1.clone(), 3, noon());
    process.fold(stores, vec![entry(real.clone(), &[])]).await;
    process.fold(stores, vec![entry(abandoned(1, 40), &[])]).await;
    assert_eq!(stores.usage.find(&id(1)).await.unwrap(), Some(real));
    // In one batch the real record counts, in any order.
    let both = vec![
        entry(record(3, payer_1.clone(), 4, noon()), &[]),
        entry(abandoned(3, 20), &[]),
        entry(abandoned(4, 20), &[]),
        entry(record(4, payer_1.clone(), 5, noon()), &[]),
    ];
    process.fold(stores, both).await;
    let denied = process.draw_one(stores, &payer_1, 100, &[key_of(&payer_1)]).await.unwrap_err();
    assert_eq!(denied.spent, usd(3 + 30 + 4 + 5));
}

pub(super) async fn fold_raises_credit_base_for_late_charges(stores: &Stores) {
    insert_fixtures(stores).await;
    let (payer, process) = (payer(1), Holder::register(stores, 1).await);
    let credit = async || stores.workspaces.find(workspace_id(1)).await.unwrap().unwrap().credit;
    let abandoned = UsageRecord { outcome: UsageOutcome::Abandoned, ..record(1, payer.clone(), 50, noon()) };
    process.fold(stores, vec![entry(abandoned, &[])]).await;
    stores.clock.set(utc("2026-07-15T12:00:01Z"));
    add_credit(&*stores.workspaces, workspace_id(1), usd(100), &audit()).await.unwrap();
    let late = record(2, payer.clone(), 30, noon());
    let own = record(3, payer.clone(), 10, utc("2026-07-15T12:00:01Z"));
    process.fold(stores, vec![entry(late, &[]), entry(own, &[])]).await;
    assert_eq!(credit().await, Some(usd(90)), "the charge of before is not taken from the credit");
    process.fold(stores, vec![entry(record(1, payer.clone(), 5, noon()), &[])]).await;
    assert_eq!(credit().await, Some(usd(90)), "nor is one that replaces another of before");
    process.draw_one(stores, &payer, 91, &[workspace_of(&payer)]).await.unwrap_err();
    process.draw_one(stores, &payer, 90, &[workspace_of(&payer)]).await.unwrap();
    // Adding to a credit keeps its beginning; a new credit has a new beginning.
    stores.clock.set(utc("2026-07-15T12:00:02Z"));
    add_credit(&*stores.workspaces, workspace_id(1), usd(10), &audit()).await.unwrap();
    let between = record(4, payer.clone(), 1, utc("2026-07-15T12:00:01Z"));
    process.fold(stores, vec![entry(between, &[])]).await;
    assert_eq!(credit().await, Some(usd(99)));
    clear_credit(&*stores.workspaces, workspace_id(1), &audit()).await.unwrap();
    add_credit(&*stores.workspaces, workspace_id(1), usd(7), &audit()).await.unwrap();
    process.fold(stores, vec![entry(record(5, payer, 2, utc("2026-07-15T12:00:01Z")), &[])]).await;
    assert_eq!(credit().await, Some(usd(7)));
}

fn message(number: u64) -> OutboxMessage {
    OutboxMessage {
        id: OutboxId::from_uuid(SequentialIds::uuid(number)),
        destination_id: DestinationId::from_uuid(SequentialIds::uuid(7)),
        payload: Json::object([("a", "[ 1.0 ]")]),
    }
}

pub(super) async fn fold_adds_messages_and_bytes_once(stores: &Stores) {
    insert_fixtures(stores).await;
    let (payer, process) = (payer(1), Holder::register(stores, 1).await);
    let with = |number, messages| FoldEntry {
        charge: UsageCharge { messages, ..UsageCharge::new(record(number, payer.clone(), 1, noon())) },
        allowances: Vec::new(),
    };
    process.fold(stores, vec![with(1, vec![message(1), message(2)]), with(1, vec![message(3)])]).await;
    process.fold(stores, vec![with(1, vec![message(4)]), with(2, vec![message(5)])]).await;
    assert_eq!(stores.outbox.status().await.unwrap().pending, 3, "a known record says nothing more");
    let expected = 2 * record(1, payer.clone(), 1, noon()).stored_bytes();
    assert_eq!(stores.usage.recorded_bytes(workspace_id(1)).await.unwrap(), expected);
    stores.clock.set(utc("2026-07-16T00:00:00Z"));
    process.fold(stores, vec![with(3, Vec::new())]).await;
    assert_eq!(stores.usage.recorded_bytes(workspace_id(1)).await.unwrap(), expected / 2, "the store's day counts");
}

pub(super) async fn fold_takes_many_entries(stores: &Stores) {
    const ENTRIES: u64 = 700;
    insert_fixtures(stores).await;
    limit_key(stores, 1, Some((10_000, None))).await;
    let process = Holder::register(stores, 1).await;
    let counter = key_of(&payer(1));
    process.draw_one(stores, &payer(1), 2_000, &[counter]).await.unwrap();
    let many = (1..=ENTRIES).map(|number| {
        let own = number % 2;
        let payer = payer_under(1 + own, &[number % 5]);
        let borne: &[_] = if own == 0 { &[(counter, 3)] } else { &[] };
        entry(record(number, payer, 3, noon()), borne)
    });
    process.fold(stores, many.collect()).await;
    let listed = stores.usage.list(&UsageFilter::for_workspace(workspace_id(1)), ENTRIES).await.unwrap();
    assert_eq!(listed.len() as u64, ENTRIES / 2);
    let denied = process.draw_one(stores, &payer(1), 9_000, &[counter]).await.unwrap_err();
    assert_eq!((denied.spent, denied.reserved), (usd(1_050), usd(950)));
}

pub(super) async fn fold_is_corrupt_when_a_sum_leaves_the_range(stores: &Stores) {
    insert_fixtures(stores).await;
    limit_key(stores, 1, Some((i64::MAX, None))).await;
    let (payer, process) = (payer(1), Holder::register(stores, 1).await);
    let large = |number| record(number, payer.clone(), i64::MAX, noon());
    let together = stores.budget.fold(&process.fold_request(vec![entry(large(1), &[]), entry(large(2), &[])])).await;
    assert!(is_corrupt(&together), "{together:?}");
    process.fold(stores, vec![entry(large(1), &[])]).await;
    let request = process.fold_request(vec![entry(record(2, payer.clone(), 1, noon()), &[])]);
    let beyond = stores.budget.fold(&request).await;
    assert!(is_corrupt(&beyond), "{beyond:?}");
    let negative = UsageRecord { cost: usd(-1), ..record(3, payer.clone(), 1, noon()) };
    let negative = stores.budget.fold(&process.fold_request(vec![entry(negative, &[])])).await;
    assert!(is_corrupt(&negative), "{negative:?}");
    assert_eq!(stores.usage.list(&UsageFilter::for_workspace(workspace_id(1)), 9).await.unwrap().len(), 1);
    assert_eq!(stores.budget.process(process.id).await.unwrap().unwrap().folded_sequence, 1);
    let denied = process.draw(stores, &[ask(&payer, 1, &[key_of(&payer)])], &[]).await.answers[0].unwrap_err();
    assert_eq!(denied.spent, usd(i64::MAX));
}
