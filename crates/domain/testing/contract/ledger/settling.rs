//! Charges and releases.

use super::super::super::delete_key;
use super::super::Stores;
use super::super::samples::{audit, key_id, suspend, workspace_id};
use super::fixtures::{
    adds_up, attempt, audited, id, insert_fixtures, limit_key, payer, payer_under, record, reserve, settle, spend, usd,
    used, utc,
};
use crate::api_key::LastKeyRule;
use crate::budget::UsageCharge;
use crate::ids::{DestinationId, OutboxId};
use crate::json::Json;
use crate::money::Usd;
use crate::testing::add_credit;
use crate::testing::{SequentialIds, join_all};
use crate::usage::{OutboxMessage, UsageFilter, UsageOutcome, UsageRecord};

pub(super) async fn charge_replaces_its_hold(stores: &Stores) {
    insert_fixtures(stores).await;
    limit_key(stores, 1, Some((100, None))).await;
    let reservation = reserve(stores, 1, &payer(1), 70).await.unwrap();
    let charged = record(1, payer(1), 25, reservation.at);
    settle(stores, charged.clone()).await;
    assert_eq!(used(stores, &payer(1)).await, (25, 0));
    assert_eq!(stores.usage.find(&id(1)).await.unwrap(), Some(charged));
    spend(stores, 2, &payer(1), 5).await;
    assert_eq!(used(stores, &payer(1)).await, (30, 0), "a charge needs no reservation");
    let audit = audited(stores).await;
    assert_eq!(audit.records, 2);
    assert!(audit.counters >= 8, "a workspace and a key, each in total and by three periods: {audit:?}");
}

pub(super) async fn second_charge_changes_nothing(stores: &Stores) {
    insert_fixtures(stores).await;
    limit_key(stores, 1, Some((100, None))).await;
    let first = reserve(stores, 1, &payer(1), 70).await.unwrap();
    let charged = record(1, payer(1), 25, first.at);
    settle(stores, charged.clone()).await;
    for again in [charged.clone(), record(1, payer(1), 99, first.at), record(1, payer(2), 25, first.at)] {
        settle(stores, again).await;
    }
    join_all((0..5).map(|_| settle(stores, charged.clone()))).await;
    assert_eq!(used(stores, &payer(1)).await, (25, 0));
    assert_eq!(stores.usage.list(&UsageFilter::for_workspace(workspace_id(1)), 9).await.unwrap(), [charged]);
    assert_eq!(stores.usage.list(&UsageFilter::for_workspace(workspace_id(2)), 9).await.unwrap(), []);

    reserve(stores, 2, &payer(1), 70).await.unwrap();
    let twice = record(2, payer(1), 30, first.at);
    join_all((0..10).map(|_| settle(stores, twice.clone()))).await;
    assert_eq!(used(stores, &payer(1)).await, (55, 0), "at once neither");
}

pub(super) async fn charge_may_exceed_its_hold(stores: &Stores) {
    insert_fixtures(stores).await;
    limit_key(stores, 1, Some((100, None))).await;
    reserve(stores, 1, &payer(1), 10).await.unwrap();
    spend(stores, 1, &payer(1), 130).await;
    let refused = reserve(stores, 2, &payer(1), 1).await.unwrap_err();
    assert_eq!((refused.spent, refused.reserved), (usd(130), usd(0)));
    assert!(!refused.waits_for_others());
}

pub(super) async fn release_frees_the_hold(stores: &Stores) {
    insert_fixtures(stores).await;
    limit_key(stores, 1, Some((100, None))).await;
    reserve(stores, 1, &payer(1), 100).await.unwrap();
    for _ in 0..2 {
        stores.ledger.release(&id(1)).await.unwrap();
        assert_eq!(used(stores, &payer(1)).await, (0, 0));
    }
    stores.ledger.release(&id(9)).await.expect("what was never reserved is none");
    reserve(stores, 1, &payer(1), 100).await.expect("the id is free again");
    assert_eq!(stores.usage.find(&id(1)).await.unwrap(), None, "nothing was charged");
}

pub(super) async fn deleted_payer_is_still_charged(stores: &Stores) {
    insert_fixtures(stores).await;
    add_credit(&*stores.workspaces, workspace_id(1), usd(100), &audit()).await.unwrap();
    let reservation = reserve(stores, 1, &payer(1), 70).await.unwrap();
    assert!(delete_key(&*stores.api_keys, key_id(1), LastKeyRule::Waived, &audit()).await.unwrap());
    suspend(stores, 1, true).await;
    stores.ledger.increase(&id(1), usd(5), &[attempt(5)]).await.unwrap().unwrap();
    settle(stores, record(1, payer(1), 25, reservation.at)).await;
    assert_eq!(stores.workspaces.find(workspace_id(1)).await.unwrap().unwrap().credit, Some(usd(75)));
    assert!(stores.usage.find(&id(1)).await.unwrap().is_some());
}

fn message(number: u64) -> OutboxMessage {
    OutboxMessage {
        id: OutboxId::from_uuid(SequentialIds::uuid(number)),
        destination_id: DestinationId::from_uuid(SequentialIds::uuid(7)),
        payload: Json::object([("a", "[ 1.0 ]")]),
    }
}

pub(super) async fn charge_enqueues_messages_once(stores: &Stores) {
    insert_fixtures(stores).await;
    let now = utc("2026-07-15T12:00:00Z");
    let settle = async |number, messages| {
        let record = record(number, payer(1), 1, now);
        stores.ledger.settle(&UsageCharge { messages, ..UsageCharge::new(record) }).await.unwrap();
    };
    settle(1, vec![message(1), message(2)]).await;
    settle(1, vec![message(3)]).await;
    join_all((0..3).map(|_| settle(2, vec![message(4)]))).await;
    settle(3, Vec::new()).await;
    assert_eq!(stores.outbox.status().await.unwrap().pending, 3, "a record that is there says nothing more");
    let destination = message(1).destination_id;
    assert_eq!(stores.outbox.due(now, &[]).await.unwrap(), [destination]);
    let lease = std::time::Duration::from_secs(9);
    let due = stores.outbox.take(destination, now, lease, 9, usize::MAX).await.unwrap();
    let mut found: Vec<OutboxMessage> = due.into_iter().map(|due| due.message).collect();
    found.sort_by_key(|message| message.id);
    assert_eq!(found, [message(1), message(2), message(4)]);

    let abandoned = UsageRecord { outcome: UsageOutcome::Abandoned, ..record(5, payer(1), 1, now) };
    stores.ledger.settle(&UsageCharge::new(abandoned)).await.unwrap();
    settle(5, vec![message(5)]).await;
    assert_eq!(stores.outbox.status().await.unwrap().pending, 4, "the message of the real record is put out");
}

pub(super) async fn real_charge_replaces_an_abandoned_one(stores: &Stores) {
    insert_fixtures(stores).await;
    limit_key(stores, 1, Some((100, None))).await;
    let hold = reserve(stores, 1, &payer_under(1, &[5]), 70).await.unwrap();
    let abandoned = UsageRecord { outcome: UsageOutcome::Abandoned, ..record(1, payer_under(1, &[5]), 70, hold.at) };
    settle(stores, abandoned.clone()).await;
    assert_eq!(used(stores, &payer(1)).await, (70, 0));
    let real = record(1, payer(1), 25, hold.at);
    for settled in [real.clone(), record(1, payer(1), 99, hold.at), abandoned] {
        settle(stores, settled).await;
        assert_eq!(stores.usage.find(&id(1)).await.unwrap().as_ref(), Some(&real));
        assert_eq!(used(stores, &payer(1)).await, (25, 0));
        adds_up(stores, "a record took the place of another").await;
    }
}

/// Leaves a discrepancy.
pub(super) async fn audit_reports_cost_that_differs_from_tokens(stores: &Stores) {
    insert_fixtures(stores).await;
    let now = utc("2026-07-15T12:00:00Z");
    let shared = |number, index, cost| UsageRecord {
        share: crate::usage::UsageShare { index, of: 3 },
        cost: Usd::from_pico(cost),
        ..record(number, payer(1), 100, now)
    };
    // 100 picodollars shared by three; the last one is charged one too many.
    for (number, cost) in [(1, 34), (2, 33), (3, 34)] {
        let index = u32::try_from(number - 1).unwrap();
        settle(stores, shared(number, index, cost)).await;
    }
    let of_before = UsageRecord {
        outcome: UsageOutcome::Failed,
        attempts: std::sync::Arc::default(),
        ..record(4, payer(1), 50, now)
    };
    settle(stores, of_before).await;
    let audit = audited(stores).await;
    assert_eq!((audit.records, audit.discrepancies.len()), (4, 1), "{audit:?}");
    let found = &audit.discrepancies[0];
    assert_eq!((found.expected, found.found), (usd(33), usd(34)));
    assert!(found.what.contains(id(3).as_str()), "{found:?}");
}

pub(super) async fn record_bytes_are_counted_by_workspace_and_day(stores: &Stores) {
    insert_fixtures(stores).await;
    let counted = async |number| stores.usage.recorded_bytes(workspace_id(number)).await.unwrap();
    assert_eq!((counted(1).await, counted(2).await), (0, 0));
    let trace = Json::object([("note", Json::string(&"x".repeat(10_000)).text())]);
    let at = utc("2026-07-15T12:00:00Z");
    let large = UsageRecord { trace: Some(trace), ..record(1, payer(1), 1, at) };
    let small = record(2, payer(2), 1, at);
    assert!(large.stored_bytes() > small.stored_bytes() + 10_000);
    settle(stores, large.clone()).await;
    settle(stores, large.clone()).await;
    settle(stores, small.clone()).await;
    assert_eq!(counted(1).await, large.stored_bytes(), "a record counts once");
    assert_eq!(counted(2).await, small.stored_bytes());
    let more: Vec<UsageRecord> = (3..9).map(|number| record(number, payer(1), 1, at)).collect();
    join_all(more.iter().cloned().map(|record| settle(stores, record))).await;
    let sum = large.stored_bytes() + more.iter().map(UsageRecord::stored_bytes).sum::<u64>();
    assert_eq!(counted(1).await, sum, "none is lost among those at once");
    stores.clock.set(utc("2026-07-15T23:59:59.999Z"));
    assert_eq!(counted(1).await, sum);
    stores.clock.set(utc("2026-07-16T00:00:00Z"));
    assert_eq!(counted(1).await, 0, "another day begins at zero");
    let next = record(9, payer(1), 1, at);
    settle(stores, next.clone()).await;
    assert_eq!(counted(1).await, next.stored_bytes(), "the store's day counts, not that of the charge");
}
