//! Cases of [`crate::observability::Outbox`].

use std::collections::HashSet;
use std::time::Duration;

use chrono::{DateTime, TimeDelta, Utc};

use super::super::{SequentialIds, join_all};
use super::Stores;
use super::samples::{add_workspace, audit, destination, destination_id, fold_charge};
use super::usage::record;
use crate::audit::{Actor, AuditEntry};
use crate::budget::UsageCharge;
use crate::ids::OutboxId;
use crate::json::Json;
use crate::observability::{DeadLetterRetry, Destination, DueMessage};
use crate::usage::OutboxMessage;

suite! {
    /// Every case of the port's contract. What is taken is asked for at moments of the suite's own, all of them long
    /// after the store's.
    outbox_cases as outbox_contract over Stores {
        message_is_due_after_charge,
        taken_message_is_leased_to_one_taker,
        concurrent_takers_share_messages,
        take_respects_count_and_bytes,
        delivered_message_is_removed,
        failed_message_is_due_later_with_a_failure,
        postponed_message_has_no_failure,
        dead_letter_waits_for_retry,
        paused_destination_is_not_due_until_resumed,
        pause_of_changed_destination_has_no_effect,
        retry_ends_pause,
        retry_of_changed_destination_changes_nothing,
        prune_removes_old_dead_letters,
        discard_removes_messages_of_deleted_destinations_only,
        discard_keeps_dead_letters,
    }
}

const LEASE: Duration = Duration::from_mins(1);
const ALL: usize = usize::MAX;

/// Returns a time in the year 2100 plus seconds.
fn later(seconds: i64) -> DateTime<Utc> {
    DateTime::from_timestamp(4_102_444_800, 0).unwrap() + TimeDelta::seconds(seconds)
}

pub(super) fn id(number: u64) -> OutboxId {
    OutboxId::from_uuid(SequentialIds::uuid(number))
}

fn message(number: u64, destination: u64) -> OutboxMessage {
    let payload = Json::parse(&format!("{{\"resourceSpans\": [{number}, \"✓\"]}}")).unwrap();
    OutboxMessage { id: id(number), destination_id: destination_id(destination), payload }
}

/// Charges a request with messages, each a number and its destination.
pub(super) async fn put(stores: &Stores, messages: &[(u64, u64)]) {
    let first = messages.first().map_or(0, |(number, _)| *number);
    let messages = messages.iter().map(|(number, destination)| message(*number, *destination)).collect();
    fold_charge(stores, UsageCharge { messages, ..UsageCharge::new(record(first, 1)) }).await.unwrap();
}

async fn take(stores: &Stores, destination: u64, now: DateTime<Utc>) -> Vec<DueMessage> {
    stores.outbox.take(destination_id(destination), now, LEASE, 100, ALL).await.unwrap()
}

fn numbers(taken: &[DueMessage]) -> Vec<OutboxId> {
    let mut ids: Vec<OutboxId> = taken.iter().map(|due| due.message.id).collect();
    ids.sort_unstable();
    ids
}

async fn message_is_due_after_charge(stores: &Stores) {
    let due = async |except: &[u64]| {
        let except: Vec<_> = except.iter().map(|number| destination_id(*number)).collect();
        let mut due = stores.outbox.due(later(0), &except).await.unwrap();
        due.sort_unstable();
        due
    };
    assert_eq!(due(&[]).await, []);
    assert_eq!(stores.outbox.status().await.unwrap().oldest, None);
    put(stores, &[(1, 1), (2, 2), (3, 2)]).await;
    assert_eq!(due(&[]).await, [destination_id(1), destination_id(2)]);
    assert_eq!(due(&[2]).await, [destination_id(1)]);
    assert_eq!(due(&[1, 2]).await, []);
    assert_eq!(stores.outbox.due(DateTime::UNIX_EPOCH, &[]).await.unwrap(), [], "nothing was due then");
    let taken = take(stores, 2, later(0)).await;
    assert_eq!(numbers(&taken), [id(2), id(3)]);
    let first = taken.iter().find(|due| due.message.id == id(2)).unwrap();
    assert_eq!(first.message, message(2, 2), "byte for byte");
    assert_eq!(first.failures, 0);
    let status = stores.outbox.status().await.unwrap();
    assert_eq!((status.pending, status.dead), (3, 0));
    assert_eq!(status.oldest, Some(first.created_at));
}

async fn taken_message_is_leased_to_one_taker(stores: &Stores) {
    put(stores, &[(1, 1)]).await;
    assert_eq!(take(stores, 1, later(0)).await.len(), 1);
    assert_eq!(take(stores, 1, later(59)).await, []);
    assert_eq!(stores.outbox.due(later(59), &[]).await.unwrap(), []);
    let again = take(stores, 1, later(60)).await;
    assert_eq!((numbers(&again), again[0].failures), (vec![id(1)], 0), "its taker died, which is no failure of it");
    assert_eq!(take(stores, 1, later(61)).await, []);
}

async fn concurrent_takers_share_messages(stores: &Stores) {
    let messages: Vec<(u64, u64)> = (1..=40).map(|number| (number, 1)).collect();
    put(stores, &messages).await;
    let takers =
        (0..8).map(|_| async { stores.outbox.take(destination_id(1), later(0), LEASE, 7, ALL).await.unwrap() });
    let taken: Vec<DueMessage> = join_all(takers).await.into_iter().flatten().collect();
    let distinct: HashSet<OutboxId> = taken.iter().map(|due| due.message.id).collect();
    assert_eq!(distinct.len(), taken.len(), "each message has one taker");
    let rest = take(stores, 1, later(0)).await;
    assert_eq!(distinct.len() + rest.len(), 40, "and nothing is lost");
}

async fn take_respects_count_and_bytes(stores: &Stores) {
    put(stores, &[(1, 1), (2, 1), (3, 1)]).await;
    let size = message(1, 1).payload.text().len();
    let take = async |most, bytes| {
        stores.outbox.take(destination_id(1), later(0), Duration::ZERO, most, bytes).await.unwrap().len()
    };
    assert_eq!(take(2, ALL).await, 2);
    assert_eq!(take(9, 2 * size).await, 2);
    assert_eq!(take(9, 2 * size - 1).await, 1);
    assert_eq!(take(9, 0).await, 1, "a message larger than any bound is still delivered");
    assert_eq!(take(9, ALL).await, 3);
}

async fn delivered_message_is_removed(stores: &Stores) {
    put(stores, &[(1, 1), (2, 1)]).await;
    take(stores, 1, later(0)).await;
    stores.outbox.delivered(&[id(1)]).await.unwrap();
    stores.outbox.delivered(&[id(1)]).await.unwrap();
    stores.outbox.delivered(&[]).await.unwrap();
    assert_eq!(numbers(&take(stores, 1, later(100)).await), [id(2)]);
    assert_eq!(stores.outbox.status().await.unwrap().pending, 1);
}

async fn failed_message_is_due_later_with_a_failure(stores: &Stores) {
    put(stores, &[(1, 1)]).await;
    for failures in 1..=3 {
        let now = later(i64::from(failures) * 100);
        take(stores, 1, now).await;
        stores.outbox.failed(&[id(1)], Some(now + TimeDelta::seconds(30)), "it was not there").await.unwrap();
        assert_eq!(take(stores, 1, now + TimeDelta::seconds(29)).await, []);
        let again = take(stores, 1, now + TimeDelta::seconds(30)).await;
        assert_eq!(again[0].failures, failures);
    }
    stores.outbox.failed(&[id(9)], None, "it never was there").await.unwrap();
}

async fn postponed_message_has_no_failure(stores: &Stores) {
    put(stores, &[(1, 1), (2, 1)]).await;
    take(stores, 1, later(0)).await;
    stores.outbox.postponed(&[id(1), id(2)], later(5)).await.unwrap();
    assert_eq!(take(stores, 1, later(4)).await, []);
    let again = take(stores, 1, later(5)).await;
    assert_eq!((numbers(&again), again[0].failures), (vec![id(1), id(2)], 0));
    stores.outbox.failed(&[id(1)], None, "given up").await.unwrap();
    stores.outbox.postponed(&[id(1)], later(6)).await.unwrap();
    assert_eq!(stores.outbox.status().await.unwrap().dead, 1, "a dead letter is not called back to life by it");
}

async fn dead_letter_waits_for_retry(stores: &Stores) {
    put(stores, &[(1, 1), (2, 2), (3, 2)]).await;
    for number in [1, 2] {
        stores.outbox.failed(&[id(number)], None, "given up").await.unwrap();
    }
    let status = stores.outbox.status().await.unwrap();
    assert_eq!((status.pending, status.dead), (1, 2));
    assert_eq!(stores.outbox.due(later(0), &[]).await.unwrap(), [destination_id(2)]);
    assert_eq!(take(stores, 1, later(0)).await, []);
    let retry = async |destination: u64| {
        let request = retry_of(destination, None);
        stores.outbox.retry_dead_letters(&request, later(1)).await.unwrap().unwrap()
    };
    let already_there = stores.audit.newest(100).await.unwrap().len();
    assert_eq!(retry(3).await, 0);
    assert_eq!(retry(1).await, 1);
    assert_eq!(retry(1).await, 0, "it is dead no more");
    assert_eq!(take(stores, 1, later(0)).await, []);
    let retried = take(stores, 1, later(1)).await;
    assert_eq!((numbers(&retried), retried[0].failures), (vec![id(1)], 0), "it begins anew");
    stores.outbox.failed(&[id(3)], None, "given up").await.unwrap();
    assert_eq!(retry(2).await, 2);
    assert_eq!(numbers(&take(stores, 2, later(1)).await), [id(2), id(3)]);
    let entries = stores.audit.newest(100).await.unwrap();
    let entries = &entries[..entries.len() - already_there];
    let said = |entry: &AuditEntry| (entry.subject.clone(), entry.details.text().to_owned());
    let first = (format!("destination {}", destination_id(1)), r#"{"retried_count":1}"#.to_owned());
    let second = (format!("destination {}", destination_id(2)), r#"{"retried_count":2}"#.to_owned());
    assert_eq!(
        entries.iter().map(said).collect::<Vec<_>>(),
        [second, first],
        "one entry for each that changed something"
    );
    assert!(entries.iter().all(|entry| entry.action == "destination.retry" && entry.actor.name == "user:root"));
}

/// Adds a destination that can be paused.
async fn add_destination(stores: &Stores, number: u64) -> Destination {
    add_workspace(stores, 1).await;
    let added = destination(number, 1);
    stores.destinations.insert(&added, 5, &audit()).await.unwrap();
    added
}

async fn paused_destination_is_not_due_until_resumed(stores: &Stores) {
    let first = add_destination(stores, 1).await;
    let due = async |seconds| stores.outbox.due(later(seconds), &[]).await.unwrap();
    put(stores, &[(1, 1), (2, 1), (3, 1), (4, 2)]).await;
    take(stores, 1, later(0)).await;
    stores.outbox.failed(&[id(1)], Some(later(3_000)), "busy").await.unwrap();
    put(stores, &[(5, 1)]).await;
    stores.outbox.pause(&first, later(1_000)).await.unwrap();
    assert_eq!(due(999).await, [destination_id(2)], "the pause is that of one destination");
    assert_eq!(due(1_000).await, [destination_id(1), destination_id(2)]);
    for until in [2_000, 1_500] {
        stores.outbox.pause(&first, later(until)).await.unwrap();
        assert_eq!(due(1_999).await, [destination_id(2)], "the longer pause holds");
    }
    stores.destinations.resume(destination_id(2)).await.unwrap();
    assert_eq!(due(1_999).await, [destination_id(2)], "another one was resumed");
    stores.destinations.resume(destination_id(1)).await.unwrap();
    assert_eq!(due(0).await, [destination_id(1), destination_id(2)]);
    let taken = take(stores, 1, later(0)).await;
    assert_eq!(numbers(&taken), [id(1), id(5)], "what is being sent is not handed out again");
    assert!(taken.iter().all(|due| due.failures == 0), "they begin anew");
}

/// A delivery that began before the change or the deletion ends after it.
async fn pause_of_changed_destination_has_no_effect(stores: &Stores) {
    let before = add_destination(stores, 1).await;
    let after = Destination { updated_at: Some(later(7)), ..before.clone() };
    assert!(stores.destinations.update(&after, None, &audit()).await.unwrap());
    put(stores, &[(1, 1), (2, 2)]).await;
    for stale in [&before, &destination(2, 1)] {
        stores.outbox.pause(stale, later(3_000)).await.unwrap();
    }
    assert_eq!(stores.outbox.due(later(1), &[]).await.unwrap(), [destination_id(1), destination_id(2)]);
    stores.outbox.pause(&after, later(3_000)).await.unwrap();
    assert_eq!(stores.outbox.due(later(1), &[]).await.unwrap(), [destination_id(2)]);
}

async fn retry_ends_pause(stores: &Stores) {
    let paused = add_destination(stores, 1).await;
    put(stores, &[(1, 1), (2, 1), (3, 1)]).await;
    let retry = async || stores.outbox.retry_dead_letters(&retry_of(1, None), later(2)).await.unwrap();
    stores.outbox.pause(&paused, later(3_000)).await.unwrap();
    assert_eq!(retry().await, Some(0), "none failed");
    assert_eq!(stores.outbox.due(later(1), &[]).await.unwrap(), [destination_id(1)], "the pause ends all the same");
    stores.outbox.failed(&[id(1)], None, "given up").await.unwrap();
    stores.outbox.failed(&[id(2)], Some(later(3_000)), "busy").await.unwrap();
    stores.outbox.failed(&[id(3)], Some(later(1)), "busy").await.unwrap();
    stores.outbox.pause(&paused, later(3_000)).await.unwrap();
    assert_eq!(stores.outbox.due(later(2), &[]).await.unwrap(), []);
    assert_eq!(retry().await, Some(3));
    assert_eq!(stores.outbox.due(later(1), &[]).await.unwrap(), []);
    let taken = take(stores, 1, later(2)).await;
    assert_eq!(numbers(&taken), [id(1), id(2), id(3)]);
    assert!(taken.iter().all(|due| due.failures == 0), "they begin anew");
}

fn retry_of(destination: u64, seen: Option<Destination>) -> DeadLetterRetry {
    let actor = Actor { name: "user:root".to_owned(), source: Some("node-1".to_owned()) };
    DeadLetterRetry { actor, destination: destination_id(destination), seen }
}

async fn retry_of_changed_destination_changes_nothing(stores: &Stores) {
    add_workspace(stores, 1).await;
    let first = destination(1, 1);
    stores.destinations.insert(&first, 5, &audit()).await.unwrap();
    put(stores, &[(1, 1)]).await;
    stores.outbox.failed(&[id(1)], None, "given up").await.unwrap();
    let second = Destination { updated_at: Some(later(7)), ..first.clone() };
    assert!(stores.destinations.update(&second, first.updated_at, &audit()).await.unwrap());
    let entries = stores.audit.newest(100).await.unwrap().len();
    let retry =
        async |number, seen| stores.outbox.retry_dead_letters(&retry_of(number, Some(seen)), later(1)).await.unwrap();
    for (number, seen) in
        [(1, first), (1, Destination { updated_at: Some(later(8)), ..second.clone() }), (2, destination(2, 1))]
    {
        assert_eq!(retry(number, seen).await, None);
    }
    assert_eq!(stores.outbox.status().await.unwrap().dead, 1);
    assert_eq!(stores.audit.newest(100).await.unwrap().len(), entries);
    assert_eq!(retry(1, second).await, Some(1));
}

async fn prune_removes_old_dead_letters(stores: &Stores) {
    put(stores, &[(1, 1), (2, 1), (3, 1), (4, 1)]).await;
    for number in [1, 2, 3] {
        stores.outbox.failed(&[id(number)], None, "given up").await.unwrap();
    }
    assert_eq!(stores.outbox.prune(DateTime::UNIX_EPOCH, 9).await.unwrap(), 0, "none is that old");
    assert_eq!(stores.outbox.prune(later(0), 2).await.unwrap(), 2);
    assert_eq!(stores.outbox.prune(later(0), 9).await.unwrap(), 1);
    let status = stores.outbox.status().await.unwrap();
    assert_eq!((status.pending, status.dead), (1, 0), "what waits stays");
}

async fn discard_removes_messages_of_deleted_destinations_only(stores: &Stores) {
    add_workspace(stores, 1).await;
    stores.destinations.insert(&destination(1, 1), 5, &audit()).await.unwrap();
    put(stores, &[(1, 1), (2, 2), (3, 2)]).await;
    let discard = async |number, before| stores.outbox.discard(destination_id(number), before).await.unwrap();
    assert_eq!(discard(1, later(0)).await, 0, "its destination is there");
    assert_eq!(discard(2, DateTime::UNIX_EPOCH).await, 0, "it is younger");
    assert_eq!(discard(2, later(0)).await, 2);
    assert_eq!(stores.outbox.status().await.unwrap().pending, 1);
}

/// An operator may still read or retry dead letters; retention removes them.
async fn discard_keeps_dead_letters(stores: &Stores) {
    put(stores, &[(1, 2), (2, 2)]).await;
    stores.outbox.failed(&[id(1)], None, "given up").await.unwrap();
    assert_eq!(stores.outbox.discard(destination_id(2), later(0)).await.unwrap(), 1);
    let status = stores.outbox.status().await.unwrap();
    assert_eq!((status.pending, status.dead), (0, 1));
    assert_eq!(stores.outbox.discard(destination_id(2), later(0)).await.unwrap(), 0);
}
