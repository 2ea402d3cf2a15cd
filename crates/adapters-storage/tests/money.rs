//! Money in the database: what a contract over any store cannot try.
#![expect(clippy::unwrap_used, reason = "a test fails by panicking")]

mod common;

use std::future::poll_fn;
use std::pin::pin;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::task::Poll;
use std::time::Duration;

use adapters_storage::{Database, SeaOrmApiKeyRepository, SeaOrmLedger, SeaOrmWorkspaceRepository};
use common::*;
use domain::api_key::{ApiKey, ApiKeyRepository, ApiKeyScope};
use domain::budget::{ExpiryReport, Ledger, LedgerAudit, PruneReport, Settlement, SpendLimit};
use domain::decision::UnknownUsage;
use domain::error::StoreError;
use domain::money::Usd;
use domain::testing::FixedClock;
use domain::testing::contract::{LedgerStep, ledger_script};
use domain::usage::UsageRecord;
use domain::workspace::WorkspaceRepository;
use migrations::{Migrator, MigratorTrait};
use sea_orm::SqlxSqliteConnector;
use tokio::task::JoinSet;
use tokio_util::task::TaskTracker;

/// Workspace 1 and its key 1 with a limit of so many picodollars.
async fn furnish(database: &Database, limit: i64) {
    SeaOrmWorkspaceRepository::new(database.clone()).insert(&workspace(1), &audit()).await.unwrap();
    let limit = Some(SpendLimit { amount: Usd::from_pico(limit), reset: None });
    let key = ApiKey { limit, ..key(1, ApiKeyScope::Inference(workspace_id(1))) };
    assert!(SeaOrmApiKeyRepository::new(database.clone()).insert(&key, &audit()).await.unwrap());
}

fn start(database: &Database) -> SeaOrmLedger {
    SeaOrmLedger::start(database.clone(), &TaskTracker::new())
}

async fn settle(ledger: &SeaOrmLedger, record: UsageRecord) {
    ledger.settle(Settlement { record, messages: Vec::new() }).await.unwrap();
}

/// What is spent and reserved of the key's limit.
async fn used(ledger: &SeaOrmLedger) -> (i64, i64) {
    let standing = ledger.standing(&payer()).await.unwrap();
    assert_eq!(standing.len(), 1);
    (standing[0].spent.pico(), standing[0].reserved.pico())
}

async fn discrepancies(ledger: &SeaOrmLedger) -> Vec<String> {
    let LedgerAudit { discrepancies, .. } = ledger.audit().await.unwrap();
    discrepancies.iter().map(|found| format!("{}: {} for {}", found.what, found.found, found.expected)).collect()
}

#[tokio::test]
async fn whatever_happens_the_ledger_is_what_a_list_of_it_comes_to() {
    for (seed, count) in [(1000, 1), (1001, 1), (1002, 1), (1003, 2), (1004, 3), (1005, 3)] {
        ledger_script(&processes(count).await, &LedgerStep::script(seed, 120)).await;
    }
}

/// Three ledgers over three handles, as three processes have them, each asked by threads of its own.
#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn of_sixty_four_callers_of_three_processes_as_many_are_admitted_as_fit() {
    let folder = Folder::new();
    let mut ledgers = Vec::new();
    for _ in 0..3 {
        ledgers.push(start(&folder.open().await));
    }
    furnish(&folder.open().await, 100).await;
    let done = Arc::new(AtomicBool::new(false));
    let observing = {
        let (ledger, done) = (ledgers[0].clone(), Arc::clone(&done));
        TaskTracker::new().spawn(async move {
            let (mut looks, mut most) = (0, 0);
            while !done.load(Ordering::Relaxed) {
                let (spent, reserved) = used(&ledger).await;
                most = most.max(spent + reserved);
                looks += 1;
            }
            (looks, most)
        })
    };
    let mut reserving = JoinSet::new();
    for number in 1..=64_u128 {
        let ledger = ledgers[number as usize % 3].clone();
        reserving.spawn(async move { ledger.reserve(claim(number, 10)).await.unwrap().is_ok() });
    }
    let admitted = reserving.join_all().await.into_iter().filter(|admitted| *admitted).count();
    assert_eq!(admitted, 10);
    assert_eq!(used(&ledgers[1]).await, (0, 100));

    // Each is settled at another process than the one that reserved, while others go on asking.
    let mut going = JoinSet::new();
    for number in 1..=64_u128 {
        let ledger = ledgers[(number as usize + 1) % 3].clone();
        going.spawn(async move {
            if ledger.reserve(claim(number, 10)).await.unwrap().is_ok() {
                settle(&ledger, charged(number, 3)).await;
            }
        });
    }
    going.join_all().await;
    done.store(true, Ordering::Relaxed);
    let (looks, most) = observing.await.unwrap();
    assert!(looks > 0 && most <= 100, "{looks} looks, {most} at most");
    let audit = ledgers[2].audit().await.unwrap();
    assert_eq!((audit.discrepancies, audit.reservations), (vec![], 0));
    let (spent, reserved) = used(&ledgers[0]).await;
    assert_eq!((spent, reserved), (i64::try_from(audit.records).unwrap() * 3, 0));
    assert!(audit.records >= 10);
}

#[tokio::test]
async fn what_a_dead_process_reserved_is_there_for_the_next_until_its_lease_is_over() {
    let folder = Folder::new();
    let clock = FixedClock::at(at(0));
    let database = open_by(&folder.settings(), Arc::new(clock.clone())).await;
    furnish(&database, 100).await;
    let dead = start(&database);
    dead.reserve(claim(1, 70)).await.unwrap().unwrap();
    dead.extend(&decision_id(1), Usd::from_pico(5), &[attempt(5)]).await.unwrap().unwrap();
    // What the files hold now is what the next process finds when this one is killed now.
    let after = Folder::new();
    std::fs::create_dir_all(after.path().parent().unwrap()).unwrap();
    for suffix in ["", "-wal"] {
        let name = |folder: &Folder| format!("{}{suffix}", folder.path().display());
        std::fs::copy(name(&folder), name(&after)).unwrap();
    }
    let next = start(&open_by(&after.settings(), Arc::new(clock.clone())).await);
    assert_eq!(used(&next).await, (0, 75));
    assert!(next.reserve(claim(2, 26)).await.unwrap().is_err());
    assert_eq!(next.expire(UnknownUsage::Bound, 9).await.unwrap(), ExpiryReport::default());
    clock.advance(Duration::from_mins(1));
    let charged = ExpiryReport { charged: 1, released: 0 };
    assert_eq!(next.expire(UnknownUsage::Bound, 9).await.unwrap(), charged);
    assert_eq!(used(&next).await, (75, 0));
    assert_eq!(discrepancies(&next).await, [""; 0]);
}

#[tokio::test]
async fn a_reservation_that_cannot_be_read_does_not_keep_the_others() {
    let folder = Folder::new();
    let clock = FixedClock::at(at(0));
    let database = open_by(&folder.settings(), Arc::new(clock.clone())).await;
    furnish(&database, 100).await;
    let ledger = start(&database);
    for number in 1..=3 {
        ledger.reserve(claim(number, 10)).await.unwrap().unwrap();
    }
    folder.execute(&format!("UPDATE reservations SET attempts = '[' WHERE id = '{}'", decision_id(2))).await;
    clock.advance(Duration::from_mins(1));
    let others = ExpiryReport { charged: 2, released: 0 };
    assert_eq!(ledger.expire(UnknownUsage::Bound, 9).await.unwrap(), others);
    assert_eq!(used(&ledger).await, (20, 10), "nobody knows what the third is worth, so it is kept");
    let extended = ledger.extend(&decision_id(2), Usd::from_pico(1), &[]).await;
    assert!(matches!(extended, Err(StoreError::Corrupt(_))));
    settle(&ledger, charged(2, 4)).await;
    assert_eq!(used(&ledger).await, (24, 0), "its own record ends it");
    assert_eq!(discrepancies(&ledger).await, [""; 0]);
}

/// Polls once and drops the future, before any other task has a turn. True where it had ended.
async fn leave_at_once(future: impl Future) -> bool {
    let mut future = pin!(tokio::task::unconstrained(future));
    poll_fn(|context| Poll::Ready(future.as_mut().poll(context).is_ready())).await
}

#[tokio::test]
async fn whoever_leaves_before_the_money_is_reserved_reserves_none_and_whoever_charges_is_charged() {
    let folder = Folder::new();
    let database = folder.open().await;
    furnish(&database, 100).await;
    let ledger = start(&database);
    for number in 1..=9 {
        // The writer has not had its turn yet.
        assert!(!leave_at_once(ledger.reserve(claim(number, 10))).await);
    }
    ledger.reserve(claim(10, 10)).await.unwrap().unwrap();
    assert_eq!(used(&ledger).await, (0, 10));
    let settlement = Settlement { record: charged(10, 4), messages: Vec::new() };
    assert!(!leave_at_once(ledger.settle(settlement)).await);
    assert!(!leave_at_once(ledger.release(&decision_id(9))).await);
    ledger.release(&decision_id(8)).await.unwrap();
    assert_eq!(used(&ledger).await, (4, 0));
}

#[tokio::test]
async fn whatever_does_not_add_up_is_named() {
    let folder = Folder::new();
    let database = folder.open().await;
    furnish(&database, 1_000).await;
    let ledger = start(&database);
    for number in 1..=3 {
        settle(&ledger, charged(number, 100)).await;
    }
    ledger.reserve(claim(9, 50)).await.unwrap().unwrap();
    let sound = ledger.audit().await.unwrap();
    assert_eq!((sound.records, sound.counters, sound.reservations), (3, 8, 1));
    assert_eq!(sound.discrepancies, []);
    let (workspace, key) = (workspace_id(1), hash(1));
    for (damage, repair, expected) in [
        (
            "UPDATE spend_counters SET spent_pico = spent_pico + 1 WHERE scope = 'key' AND interval = 'daily'"
                .to_owned(),
            "UPDATE spend_counters SET spent_pico = spent_pico - 1 WHERE scope = 'key' AND interval = 'daily'"
                .to_owned(),
            vec![format!("key {key} daily 2026-09-21: spent: 0.000000000301 for 0.0000000003")],
        ),
        (
            "UPDATE spend_counters SET reserved_pico = 0 WHERE scope = 'workspace' AND interval = 'total'".to_owned(),
            "UPDATE spend_counters SET reserved_pico = 50 WHERE scope = 'workspace' AND interval = 'total'".to_owned(),
            vec![format!("workspace {workspace} total: reserved: 0 for 0.00000000005")],
        ),
        (
            "INSERT INTO spend_counters VALUES ('guardrail', 'gone:gone', 'weekly', 0, 7, 0)".to_owned(),
            "DELETE FROM spend_counters WHERE subject = 'gone:gone'".to_owned(),
            vec!["guardrail gone:gone weekly 1970-01-01: spent: 0.000000000007 for 0".to_owned()],
        ),
        (
            format!("INSERT INTO spend_counters VALUES ('key', '{key}', 'archived', 0, 9, 0)"),
            "DELETE FROM spend_counters WHERE interval = 'archived'".to_owned(),
            vec![format!("key {key} total: spent: 0.0000000003 for 0.000000000309")],
        ),
        (
            format!("UPDATE usage_records SET attempts = '[' WHERE id = '{}'", decision_id(1)),
            format!(
                "UPDATE usage_records SET attempts = (SELECT attempts FROM usage_records WHERE id = '{}')",
                decision_id(2)
            ),
            vec![format!("record {}, which cannot be read: 0.0000000001 for 0", decision_id(1))],
        ),
        (
            "DELETE FROM spend_counters WHERE scope = 'key' AND interval = 'monthly'".to_owned(),
            String::new(),
            vec![
                format!("key {key} monthly 2026-09-01: spent: 0 for 0.0000000003"),
                format!("key {key} monthly 2026-09-01: reserved: 0 for 0.00000000005"),
            ],
        ),
    ] {
        folder.execute(&damage).await;
        assert_eq!(discrepancies(&ledger).await, expected, "{damage}");
        folder.execute(&repair).await;
    }
}

#[tokio::test]
async fn what_cannot_be_read_is_named_whatever_it_cost_and_ends_no_audit() {
    let folder = Folder::new();
    let database = folder.open().await;
    furnish(&database, 1_000).await;
    let ledger = start(&database);
    settle(&ledger, charged(1, 0)).await;
    settle(&ledger, charged(2, 7)).await;
    ledger.reserve(claim(9, 50)).await.unwrap().unwrap();
    folder.execute(&format!("UPDATE usage_records SET attempts = '[' WHERE id = '{}'", decision_id(1))).await;
    assert_eq!(discrepancies(&ledger).await, [format!("record {}, which cannot be read: 0 for 0", decision_id(1))]);
    folder.execute("UPDATE usage_records SET guardrails = '['").await;
    folder.execute("UPDATE reservations SET guardrails = '['").await;
    let found = discrepancies(&ledger).await;
    for expected in [
        format!("reservation {}, which cannot be read: 0.00000000005 for 0", decision_id(9)),
        format!("record {}, which cannot be read: 0 for 0", decision_id(1)),
        format!("record {}, which cannot be read: 0.000000000007 for 0", decision_id(2)),
        format!("key {} total: spent: 0.000000000007 for 0", hash(1)),
        format!("workspace {} total: reserved: 0.00000000005 for 0", workspace_id(1)),
    ] {
        assert!(found.contains(&expected), "{expected} in {found:?}");
    }
}

#[tokio::test]
async fn an_audit_goes_through_every_page() {
    let folder = Folder::new();
    let database = folder.open().await;
    furnish(&database, i64::MAX).await;
    let ledger = start(&database);
    // Of one moment, so that pages end between records that only their ids tell apart.
    let records = (1..=1_203).map(|number| settle(&ledger, charged(number, 1)));
    domain::testing::join_all(records).await;
    for number in 2_000..2_020 {
        settle(&ledger, UsageRecord { api_key: hash(number), ..charged(u128::from(number), 1) }).await;
    }
    let audit = ledger.audit().await.unwrap();
    assert_eq!((audit.records, audit.discrepancies), (1_223, vec![]));
    assert_eq!(audit.counters, 4 * 22);
}

#[tokio::test]
async fn what_the_ledger_held_before_there_were_counters_is_counted() {
    let folder = Folder::new();
    let database = folder.open().await;
    furnish(&database, 1_000).await;
    SeaOrmWorkspaceRepository::new(database.clone())
        .add_credit(workspace_id(1), Usd::from_pico(500), &audit())
        .await
        .unwrap();
    let ledger = start(&database);
    // A Sunday, a Monday, the turns of months and years, and a leap day.
    for (number, day) in (1..).zip([
        "2026-11-22T23:59:59.999Z",
        "2026-11-23T00:00:00Z",
        "2026-12-31T23:59:59Z",
        "2027-01-01T00:00:00Z",
        "2028-02-29T12:00:00Z",
        "2028-03-01T00:00:00Z",
    ]) {
        let at = day.parse().unwrap();
        settle(&ledger, UsageRecord { created_at: at, charged_at: at, ..charged(number, 10) }).await;
    }
    let counters = ledger.audit().await.unwrap().counters;
    let raw = SqlxSqliteConnector::from_sqlx_sqlite_pool(folder.raw().await);
    Migrator::down(&raw, Some(steps_from("m20261121_000003_limits"))).await.unwrap();
    database.migrate().await.unwrap();
    let audit = ledger.audit().await.unwrap();
    assert_eq!((audit.discrepancies, audit.records, audit.counters), (vec![], 6, counters));
    let standing = ledger.standing(&payer()).await.unwrap();
    let found: Vec<_> = standing.iter().map(|limit| (limit.is_credit, limit.spent.pico())).collect();
    assert_eq!(found, [(true, 0), (false, 60)], "credit was not kept before, and a key's limit counts all");
}

#[tokio::test]
async fn retention_goes_on_behind_what_cannot_be_read() {
    let folder = Folder::new();
    let clock = FixedClock::at(at(1_790_000_000));
    let database = open_by(&folder.settings(), Arc::new(clock.clone())).await;
    furnish(&database, 1_000).await;
    let ledger = start(&database);
    for number in 1..=20 {
        settle(&ledger, charged(number, 10)).await;
    }
    ledger.reserve(claim(99, 5)).await.unwrap().unwrap();
    let damages = [
        (1, "charged_at = -9223372036854775808"),
        (2, "workspace_id = 'x'"),
        (3, "guardrails = '['"),
        (4, "cost_pico = 'much'"),
        (5, "api_key = x'00'"),
        (6, "cost_pico = -9223372036854775808"),
    ];
    for (number, damage) in damages {
        folder.execute(&format!("UPDATE usage_records SET {damage} WHERE id = '{}'", decision_id(number))).await;
    }
    // Nothing can be asked for beside a reservation of no time either.
    folder.execute("UPDATE reservations SET reserved_at = -9223372036854775808").await;
    clock.advance(Duration::from_hours(24 * 100));
    let prune = async |limit| {
        let report = ledger.prune(Duration::from_hours(24), limit).await.unwrap();
        let named: Vec<String> = (1..=6).map(|number| decision_id(number).to_string()).collect();
        assert_eq!((report.unreadable, report.named), (6, named));
        report.removed
    };
    assert_eq!((prune(1).await, folder.count("usage_records").await), (1, 19));
    assert_eq!((prune(100).await, folder.count("usage_records").await), (13, 6));
    assert_eq!((prune(100).await, folder.count("usage_records").await), (0, 6));
    // What went is in the totals still.
    assert_eq!(used(&ledger).await, (200, 5));
    let found = discrepancies(&ledger).await;
    for number in [1, 2, 3, 4, 5] {
        let named = format!("record {}, which cannot be read", decision_id(number));
        assert!(found.iter().any(|line| line.starts_with(&named)), "{named} in {found:?}");
    }
    assert!(found.iter().any(|line| line.starts_with(&format!("record {}", decision_id(6)))), "{found:?}");
}

#[tokio::test]
async fn of_many_that_cannot_be_read_some_are_named() {
    let folder = Folder::new();
    let clock = FixedClock::at(at(1_790_000_000));
    let database = open_by(&folder.settings(), Arc::new(clock.clone())).await;
    furnish(&database, 1_000).await;
    let ledger = start(&database);
    for number in 1..=30 {
        settle(&ledger, charged(number, 10)).await;
    }
    folder.execute("UPDATE usage_records SET workspace_id = 'x'").await;
    folder
        .execute(&format!(
            "UPDATE usage_records SET workspace_id = '{}' WHERE id = '{}'",
            workspace_id(1),
            decision_id(30)
        ))
        .await;
    clock.advance(Duration::from_hours(24 * 100));
    let report = ledger.prune(Duration::from_hours(24), 2).await.unwrap();
    assert_eq!((report.removed, report.unreadable, report.named.len()), (1, 29, PruneReport::NAMED));
}
