//! Batches of the ledger: what is unusual in them, and what one of them does to the others.
#![expect(clippy::unwrap_used, reason = "a test fails by panicking")]

mod common;

use std::sync::{Arc, Mutex};
use std::time::Duration;

use adapters_storage::{Database, SeaOrmApiKeyRepository, SeaOrmLedger, SeaOrmWorkspaceRepository};
use chrono::{DateTime, Utc};
use common::*;
use domain::api_key::{ApiKey, ApiKeyRepository, ApiKeyScope};
use domain::budget::{Ledger, LedgerAudit, ResetInterval, Settlement, SpendLimit};
use domain::error::StoreError;
use domain::money::Usd;
use domain::system::Clock;
use domain::testing::join_all;
use domain::usage::UsageRecord;
use domain::workspace::WorkspaceRepository;
use tokio_util::task::TaskTracker;

/// Workspace 1 and its key 1 with a limit.
async fn furnish(database: &Database, amount: i64, reset: Option<ResetInterval>) {
    SeaOrmWorkspaceRepository::new(database.clone()).insert(&workspace(1), &audit()).await.unwrap();
    let limit = Some(SpendLimit { amount: Usd::from_pico(amount), reset });
    let key = ApiKey { limit, ..key(1, ApiKeyScope::Inference(workspace_id(1))) };
    assert!(SeaOrmApiKeyRepository::new(database.clone()).insert(&key, &audit()).await.unwrap());
}

fn start(database: &Database) -> SeaOrmLedger {
    SeaOrmLedger::start(database.clone(), &TaskTracker::new())
}

async fn settle(ledger: &SeaOrmLedger, record: UsageRecord) -> Result<(), StoreError> {
    ledger.settle(Settlement { record, messages: Vec::new() }).await
}

/// What is spent and reserved of the key's limit.
async fn used(ledger: &SeaOrmLedger) -> (i64, i64) {
    let standing = ledger.standing(&payer()).await.unwrap();
    (standing[0].spent.pico(), standing[0].reserved.pico())
}

async fn sound(ledger: &SeaOrmLedger) -> LedgerAudit {
    let audit = ledger.audit().await.unwrap();
    assert_eq!(audit.discrepancies, []);
    audit
}

#[tokio::test]
async fn a_sum_that_leaves_the_range_is_not_committed_and_the_others_of_the_batch_are() {
    let folder = Folder::new();
    let database = folder.open().await;
    furnish(&database, i64::MAX, None).await;
    let ledger = start(&database);
    // Of another workspace, whose key nobody needs to know.
    let other = |number| UsageRecord { workspace_id: workspace_id(2), api_key: hash(2), ..charged(number, 7) };
    settle(&ledger, charged(1, 5)).await.unwrap();
    let nearly = i64::MAX - 3;
    for column in ["spent_pico", "reserved_pico"] {
        let key = hash(1);
        let of_key = format!("WHERE scope = 'key' AND subject = '{key}' AND interval = 'weekly'");
        folder.execute(&format!("UPDATE spend_counters SET {column} = {nearly} {of_key}")).await;
        let kept = folder.count("usage_records").await;
        let claimed = i64::from(column == "reserved_pico");
        let (first, second, third) = tokio::join!(
            settle(&ledger, other(10 + u128::from(column == "reserved_pico"))),
            async {
                if claimed == 1 {
                    ledger.reserve(claim(3, 4)).await.map(drop)
                } else {
                    settle(&ledger, charged(2, 4)).await
                }
            },
            settle(&ledger, other(20 + u128::from(column == "reserved_pico"))),
        );
        first.unwrap();
        third.unwrap();
        assert!(matches!(second, Err(StoreError::Corrupt(_))), "{column}: {second:?}");
        assert_eq!(folder.count("usage_records").await, kept + 2);
        assert_eq!(folder.count("reservations").await, 0);
        folder.execute(&format!("UPDATE spend_counters SET spent_pico = 5, reserved_pico = 0 {of_key}")).await;
        sound(&ledger).await;
    }
    // To the very end of the range it is a sum like any other.
    folder.execute(&format!("UPDATE spend_counters SET spent_pico = {nearly} WHERE interval = 'weekly'")).await;
    settle(&ledger, charged(4, 3)).await.unwrap();
}

/// A clock that says one moment after the other, and then stays.
struct Turning(Mutex<Vec<DateTime<Utc>>>);

impl Clock for Turning {
    fn now(&self) -> DateTime<Utc> {
        let mut moments = self.0.lock().unwrap();
        if moments.len() > 1 { moments.remove(0) } else { moments[0] }
    }

    fn monotonic(&self) -> Duration {
        Duration::ZERO
    }
}

#[tokio::test]
async fn where_a_day_ends_between_reading_and_deciding_the_new_day_is_decided_on() {
    let (before, after): (DateTime<Utc>, DateTime<Utc>) =
        ("2026-11-30T23:59:59.999Z".parse().unwrap(), "2026-12-01T00:00:00Z".parse().unwrap());
    let folder = Folder::new();
    let clock = Arc::new(Turning(Mutex::new(vec![before])));
    let database = open_by(&folder.settings(), Arc::clone(&clock) as Arc<dyn Clock>).await;
    furnish(&database, 100, Some(ResetInterval::Daily)).await;
    let ledger = start(&database);
    settle(&ledger, UsageRecord { charged_at: before, ..charged(1, 90) }).await.unwrap();
    assert!(ledger.reserve(claim(2, 20)).await.unwrap().is_err(), "of the old day 10 are left");
    *clock.0.lock().unwrap() = vec![before, after];
    let reserved = ledger.reserve(claim(3, 95)).await.unwrap().unwrap();
    assert_eq!(reserved.at, after);
    assert_eq!(used(&ledger).await, (0, 95));
    assert!(ledger.reserve(claim(4, 6)).await.unwrap().is_err(), "of the new day 5 are left");
    // What is added counts in the reservation's day, whatever day it is.
    *clock.0.lock().unwrap() = vec!["2026-12-02T12:00:00Z".parse().unwrap()];
    assert!(ledger.extend(&decision_id(3), Usd::from_pico(6), &[]).await.unwrap().is_err());
    ledger.extend(&decision_id(3), Usd::from_pico(5), &[attempt(5)]).await.unwrap().unwrap();
    // And one that ends and one that begins in a batch count in a day each.
    let (settled, reserved) = tokio::join!(
        settle(&ledger, UsageRecord { charged_at: before, ..charged(3, 60) }),
        ledger.reserve(claim(5, 9))
    );
    settled.unwrap();
    reserved.unwrap().unwrap();
    assert_eq!(used(&ledger).await, (0, 9));
    assert_eq!(sound(&ledger).await.reservations, 1);
}

#[tokio::test]
async fn what_another_process_made_of_a_reservation_is_what_ends() {
    let folder = Folder::new();
    let database = folder.open().await;
    furnish(&database, 1_000, None).await;
    let (mine, theirs) = (start(&database), start(&folder.open().await));
    let more = Usd::from_pico(5);
    for number in 1..=5 {
        mine.reserve(claim(number, 10)).await.unwrap().unwrap();
    }
    theirs.extend(&decision_id(1), more, &[attempt(5)]).await.unwrap().unwrap();
    theirs.release(&decision_id(2)).await.unwrap();
    theirs.release(&decision_id(3)).await.unwrap();
    theirs.reserve(claim(3, 30)).await.unwrap().unwrap();
    settle(&theirs, charged(4, 8)).await.unwrap();
    for number in 1..=3 {
        settle(&mine, charged(number, 8)).await.unwrap();
    }
    settle(&mine, charged(4, 8)).await.unwrap();
    mine.release(&decision_id(5)).await.unwrap();
    mine.release(&decision_id(5)).await.unwrap();
    assert_eq!(used(&mine).await, (4 * 8, 0));
    assert_eq!(sound(&mine).await.reservations, 0);
    // One of another process, and one that comes back under an id that was known.
    theirs.reserve(claim(6, 10)).await.unwrap().unwrap();
    settle(&mine, charged(6, 1)).await.unwrap();
    mine.reserve(claim(7, 10)).await.unwrap().unwrap();
    mine.release(&decision_id(7)).await.unwrap();
    mine.reserve(claim(7, 20)).await.unwrap().unwrap();
    mine.extend(&decision_id(7), more, &[attempt(5)]).await.unwrap().unwrap();
    assert_eq!(used(&mine).await, (33, 25));
    settle(&mine, charged(7, 1)).await.unwrap();
    assert_eq!(used(&mine).await, (34, 0));
    assert_eq!(sound(&theirs).await.reservations, 0);
}

/// Of every size, of all kinds of work, with messages in between, with and without what is there already.
#[tokio::test]
async fn batches_of_every_size_and_mixture_add_up() {
    let folder = Folder::new();
    let database = folder.open().await;
    furnish(&database, i64::MAX, Some(ResetInterval::Monthly)).await;
    let ledger = start(&database);
    let mut spent = 0;
    for size in 1..=64_u128 {
        let id = |number: u128| size * 1_000 + number;
        for result in join_all((0..size).map(|number| ledger.reserve(claim(id(number), 10)))).await {
            result.unwrap().unwrap();
        }
        let works = (0..size).map(|number| {
            let ledger = &ledger;
            async move {
                match number % 5 {
                    0 => settle(ledger, charged(id(number), 3)).await.unwrap(),
                    1 => ledger.release(&decision_id(id(number))).await.unwrap(),
                    2 => {
                        let more = Usd::from_pico(2);
                        ledger.extend(&decision_id(id(number)), more, &[attempt(2)]).await.unwrap().unwrap();
                    }
                    3 => drop(ledger.reserve(claim(id(500 + number), 7)).await.unwrap().unwrap()),
                    _ => settle(ledger, charged(id(number - 4), 3)).await.unwrap(),
                }
            }
        });
        join_all(works).await;
        let settled = size.div_ceil(5);
        let extended = (size + 2) / 5;
        let (open, more) = (size - settled - (size + 3) / 5, (size + 1) / 5);
        spent += 3 * settled;
        let reserved = 10 * open + 2 * extended + 7 * more;
        assert_eq!(used(&ledger).await, (i64::try_from(spent).unwrap(), i64::try_from(reserved).unwrap()), "{size}");
        let ended = (0..size).chain((0..size).map(|number| 500 + number));
        join_all(ended.map(|number| {
            let id = decision_id(id(number));
            let ledger = &ledger;
            async move { ledger.release(&id).await.unwrap() }
        }))
        .await;
        assert_eq!(used(&ledger).await, (i64::try_from(spent).unwrap(), 0), "{size}");
    }
    let audit = sound(&ledger).await;
    assert_eq!((audit.reservations, u128::from(audit.records)), (0, (1..=64_u128).map(|size| size.div_ceil(5)).sum()));
}

#[tokio::test]
async fn others_write_between_the_batches_of_a_busy_ledger_and_while_it_rests() {
    let folder = Folder::new();
    let database = open(&hasty(folder.settings())).await;
    furnish(&database, i64::MAX, None).await;
    let ledgers = [start(&database), start(&database)];
    let workspaces = SeaOrmWorkspaceRepository::new(database.clone());
    for round in 0..20_u128 {
        let draft = audit();
        let records = (0..40).map(|number| settle(&ledgers[number as usize % 2], charged(round * 100 + number, 1)));
        let (written, changed) =
            tokio::join!(join_all(records), workspaces.add_credit(workspace_id(1), Usd::from_pico(1), &draft));
        assert!(changed.unwrap().is_some());
        assert!(written.iter().all(Result::is_ok));
        // Both ledgers rest now, and one of them keeps the connection.
        assert!(workspaces.add_credit(workspace_id(1), Usd::from_pico(1), &audit()).await.unwrap().is_some());
    }
    assert_eq!(sound(&ledgers[0]).await.records, 800);
}
