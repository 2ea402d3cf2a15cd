//! Allowances, audits and retention in the database, beyond the contract of all stores.
#![expect(clippy::unwrap_used, reason = "a test fails by panicking")]

mod common;

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

use adapters_storage::{
    Database, SeaOrmApiKeyRepository, SeaOrmBudgetStore, SeaOrmLedgerReports, SeaOrmWorkspaceRepository,
};
use common::*;
use domain::api_key::{ApiKey, ApiKeyRepository, ApiKeyScope};
use domain::budget::allowances::{CounterId, CounterPeriod};
use domain::budget::{
    Account, BudgetStore, DrawAsk, DrawRequest, LedgerMaintenance, LedgerReader, LimitStatus, PruneReport, SpendLimit,
};
use domain::error::StoreError;
use domain::ids::ProcessId;
use domain::money::Usd;
use domain::testing::FixedClock;
use domain::usage::UsageRecord;
use domain::workspace::WorkspaceRepository;
use tokio::task::JoinSet;

/// Inserts workspace 1 and its key 1 with a limit in picodollars.
async fn insert_fixtures(database: &Database, limit: i64) {
    SeaOrmWorkspaceRepository::new(database.clone()).insert(&workspace(1), false, &audit()).await.unwrap();
    let limit = Some(SpendLimit { amount: Usd::from_pico(limit), reset: None });
    let key = ApiKey { limit, ..key(1, ApiKeyScope::Inference(workspace_id(1))) };
    assert!(SeaOrmApiKeyRepository::new(database.clone()).insert(&key, &audit()).await.unwrap().is_inserted());
}

fn counter() -> CounterId {
    CounterId { account: Account::Key(key_id(1)), period: CounterPeriod::Lifetime }
}

fn draw(process: ProcessId, number: u64, pico: i64) -> DrawRequest {
    let amount = Usd::from_pico(pico);
    let ask = DrawAsk { payer: payer(), at: at(0), amount, counters: vec![counter()] };
    DrawRequest { process, number, asks: vec![ask], free: BTreeMap::new(), ahead: Vec::new() }
}

/// Returns the spent and allotted amounts of the key's limit.
async fn used(records: &Records) -> (i64, i64) {
    let statuses = records.reports.limit_statuses(&payer()).await.unwrap();
    assert_eq!(statuses.len(), 1);
    let LimitStatus { spent, reserved, .. } = statuses[0];
    (spent.pico(), reserved.pico())
}

#[tokio::test]
async fn allowances_survive_kill_of_process() {
    let folder = Folder::new();
    let database = folder.open().await;
    insert_fixtures(&database, 100).await;
    let process = new_process();
    let store = SeaOrmBudgetStore::new(database);
    store.register(process).await.unwrap();
    let reply = store.draw(&draw(process, 1, 70)).await.unwrap();
    // A copy of the files is the state after a kill at this moment.
    let after = Folder::new();
    std::fs::create_dir_all(after.path().parent().unwrap()).unwrap();
    for suffix in ["", "-wal"] {
        let name = |folder: &Folder| format!("{}{suffix}", folder.path().display());
        std::fs::copy(name(&folder), name(&after)).unwrap();
    }
    let records = Records::over(after.open().await);
    assert_eq!(used(&records).await, (0, 70));
    assert_eq!(records.budget.draw(&draw(process, 1, 70)).await.unwrap(), reply, "the reply is kept");
    assert_eq!(records.discrepancies().await, [""; 0]);
}

/// Each process draws through its own handle and thread, while another one reads.
#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn concurrent_draws_of_three_processes_respect_limit() {
    let folder = Folder::new();
    insert_fixtures(&folder.open().await, 205).await;
    let observer = Records::over(folder.open().await);
    let mut drawing = JoinSet::new();
    for _ in 0..3 {
        let store = SeaOrmBudgetStore::new(folder.open().await);
        drawing.spawn(async move {
            let process = new_process();
            store.register(process).await.unwrap();
            let mut granted = 0;
            for _ in 0..32 {
                granted += u64::from(store.draw(&draw(process, granted + 1, 10)).await.unwrap().answers[0].is_ok());
            }
            granted
        });
    }
    while !drawing.is_empty() {
        let (spent, allotted) = used(&observer).await;
        assert!(spent == 0 && allotted <= 205, "{allotted}");
        if allotted == 200 {
            break;
        }
    }
    assert_eq!(drawing.join_all().await.into_iter().sum::<u64>(), 20);
    assert_eq!(used(&observer).await, (0, 200));
    assert_eq!(observer.discrepancies().await, [""; 0]);
}

#[tokio::test]
async fn audit_reports_discrepancies() {
    let folder = Folder::new();
    let database = folder.open().await;
    insert_fixtures(&database, 1_000).await;
    let records = Records::over(database);
    for number in 1..=3 {
        records.record(charged(number, 100)).await.unwrap();
    }
    let process = new_process();
    records.budget.register(process).await.unwrap();
    records.budget.draw(&draw(process, 1, 50)).await.unwrap();
    let sound = records.reports.audit().await.unwrap();
    assert_eq!((sound.records, sound.counters, sound.allowances, sound.sums), (3, 8, 1, 1));
    assert_eq!(sound.discrepancies, []);
    let (workspace, key) = (workspace_id(1), key_id(1));
    let counters = "UPDATE spend_counters SET";
    let record = charged(1, 100);
    let [workspace_hex, key_hex] = [workspace.to_string(), key.to_string()].map(|id| id.replace('-', ""));
    let sum_of = |key: &str| {
        let (model, provider) = (&record.model, &record.provider);
        format!("usage sum 2026-09-21 workspace {workspace_hex} key {key} {model} {provider}")
    };
    let (sum, all_keys) = (sum_of(&key_hex), sum_of("(all)"));
    let insert = "INSERT INTO spend_counters (scope, subject, interval, period_start, spent_pico, allotted_pico) \
                  VALUES";
    for (damage, repair, expected) in [
        (
            format!("{counters} spent_pico = spent_pico + 1 WHERE scope = 'key' AND interval = 'daily'"),
            format!("{counters} spent_pico = spent_pico - 1 WHERE scope = 'key' AND interval = 'daily'"),
            vec![format!("key {key} daily 2026-09-21: spent: 0.000000000301 for 0.0000000003")],
        ),
        (
            format!("{counters} allotted_pico = 0 WHERE scope = 'key' AND interval = 'total'"),
            format!("{counters} allotted_pico = 50 WHERE scope = 'key' AND interval = 'total'"),
            vec![format!("key {key} total: allotted: 0 for 0.00000000005")],
        ),
        (
            "UPDATE allowances SET amount_pico = 51".to_owned(),
            "UPDATE allowances SET amount_pico = 50".to_owned(),
            vec![format!("key {key} total: allotted: 0.00000000005 for 0.000000000051")],
        ),
        (
            format!("{insert} ('guardrail', 'gone:gone', 'weekly', 0, 7, 0)"),
            "DELETE FROM spend_counters WHERE subject = 'gone:gone'".to_owned(),
            vec!["guardrail gone:gone weekly 1970-01-01: spent: 0.000000000007 for 0".to_owned()],
        ),
        (
            format!("{insert} ('key', '{key}', 'archived', 0, 9, 0)"),
            "DELETE FROM spend_counters WHERE interval = 'archived'".to_owned(),
            vec![format!("key {key} total: spent: 0.0000000003 for 0.000000000309")],
        ),
        (
            format!("INSERT INTO adjustments VALUES ('p', 'workspace', '{workspace}', 'total', 0, 4)"),
            "DELETE FROM adjustments".to_owned(),
            vec![format!("workspace {workspace} total: spent: 0.0000000003 for 0.000000000304")],
        ),
        (
            "UPDATE usage_sums SET cost_pico = cost_pico - 1 WHERE api_key <> x''".to_owned(),
            "UPDATE usage_sums SET cost_pico = cost_pico + 1 WHERE api_key <> x''".to_owned(),
            vec![format!("{sum}: 3 requests in records, 3 in the sum: 0.000000000299 for 0.0000000003")],
        ),
        (
            "UPDATE usage_sums SET requests = 2 WHERE api_key = x''".to_owned(),
            "UPDATE usage_sums SET requests = 3 WHERE api_key = x''".to_owned(),
            vec![format!("{all_keys}: 3 requests in records, 2 in the sum: 0.0000000003 for 0.0000000003")],
        ),
        (
            format!("UPDATE usage_records SET attempts = '[' WHERE id = {}", id_column(1)),
            format!(
                "UPDATE usage_records SET attempts = (SELECT attempts FROM usage_records WHERE id = {})",
                id_column(2)
            ),
            vec![format!("record {}, which cannot be read: 0.0000000001 for 0", decision_id(1))],
        ),
        (
            "DELETE FROM spend_counters WHERE scope = 'key' AND interval = 'monthly'".to_owned(),
            String::new(),
            vec![format!("key {key} monthly 2026-09-01: spent: 0 for 0.0000000003")],
        ),
    ] {
        folder.execute(&damage).await;
        assert_eq!(records.discrepancies().await, expected, "{damage}");
        folder.execute(&repair).await;
    }
}

#[tokio::test]
async fn audit_reports_unreadable_records() {
    let folder = Folder::new();
    let database = folder.open().await;
    insert_fixtures(&database, 1_000).await;
    let records = Records::over(database);
    records.record(charged(1, 0)).await.unwrap();
    records.record(charged(2, 7)).await.unwrap();
    folder.execute(&format!("UPDATE usage_records SET attempts = '[' WHERE id = {}", id_column(1))).await;
    let unreadable = format!("record {}, which cannot be read: 0 for 0", decision_id(1));
    assert_eq!(records.discrepancies().await, std::slice::from_ref(&unreadable));
    folder.execute("UPDATE usage_records SET guardrails = x'00'").await;
    let found = records.discrepancies().await;
    for expected in [
        unreadable,
        format!("record {}, which cannot be read: 0.000000000007 for 0", decision_id(2)),
        format!("key {} total: spent: 0.000000000007 for 0", key_id(1)),
        format!("workspace {} total: spent: 0.000000000007 for 0", workspace_id(1)),
    ] {
        assert!(found.contains(&expected), "{expected} in {found:?}");
    }
}

#[tokio::test]
async fn fold_counts_each_id_once_below_at_and_above_the_highest() {
    let folder = Folder::new();
    let records = Records::over(folder.open().await);
    let fold = async |numbers: &[u128]| {
        records.record_all(numbers.iter().map(|number| charged(*number, 10)).collect()).await.unwrap();
        folder.count("usage_records").await
    };
    assert_eq!(fold(&[2, 4, 6]).await, 3);
    assert_eq!(fold(&[1, 4, 6, 7]).await, 5, "below, known, the highest, above");
    assert_eq!(fold(&[1, 2, 4, 6, 7]).await, 5);
    assert_eq!(fold(&[5, 3]).await, 7);
    assert_eq!(records.discrepancies().await, Vec::<String>::new());
}

#[tokio::test]
async fn audit_reads_every_page() {
    let folder = Folder::new();
    let database = folder.open().await;
    insert_fixtures(&database, i64::MAX).await;
    let records = Records::over(database);
    records.record_all((1..=4_203).map(|number| charged(number, 1)).collect()).await.unwrap();
    let of_others =
        (5_000..5_020).map(|number| UsageRecord { api_key: key_id(number), ..charged(u128::from(number), 1) });
    records.record_all(of_others.collect()).await.unwrap();
    let audit = records.reports.audit().await.unwrap();
    assert_eq!((audit.records, audit.discrepancies), (4_223, vec![]));
    assert_eq!(audit.counters, 4 * 22);
}

#[tokio::test]
async fn retention_continues_after_unreadable_records() {
    let folder = Folder::new();
    let clock = FixedClock::at(at(1_790_000_000));
    let database = open_by(&folder.settings(), Arc::new(clock.clone())).await;
    insert_fixtures(&database, 1_000).await;
    let records = Records::over(database);
    records.record_all((1..=300).map(|number| charged(number, 1)).collect()).await.unwrap();
    let damages = [
        (1, "charged_at = -9223372036854775808"),
        (2, "workspace_id = 'x'"),
        (3, "guardrails = '['"),
        (4, "cost_pico = 'much'"),
        (5, "api_key = x'00'"),
        (6, "cost_pico = -9223372036854775808"),
    ];
    for (number, damage) in damages {
        folder.execute(&format!("UPDATE usage_records SET {damage} WHERE id = {}", id_column(number))).await;
    }
    clock.advance(Duration::from_hours(24 * 100));
    let prune = async |limit| {
        let report = records.reports.prune(Duration::from_hours(24), limit).await.unwrap();
        let named: Vec<String> = (1..=6).map(|number| decision_id(number).to_string()).collect();
        assert_eq!((report.unreadable, report.named), (6, named));
        report.removed
    };
    assert_eq!((prune(1).await, folder.count("usage_records").await), (1, 299));
    assert_eq!((prune(1_000).await, folder.count("usage_records").await), (293, 6));
    assert_eq!((prune(1_000).await, folder.count("usage_records").await), (0, 6));
    assert_eq!(used(&records).await, (300, 0), "the costs are in the totals");
    let found = records.discrepancies().await;
    for number in 1..=6 {
        let named = format!("record {}", decision_id(number));
        assert!(found.iter().any(|line| line.starts_with(&named)), "{named} in {found:?}");
    }
}

#[tokio::test]
async fn retention_reports_some_of_many_unreadable_records() {
    let folder = Folder::new();
    let clock = FixedClock::at(at(1_790_000_000));
    let database = open_by(&folder.settings(), Arc::new(clock.clone())).await;
    insert_fixtures(&database, 1_000).await;
    let records = Records::over(database);
    records.record_all((1..=30).map(|number| charged(number, 10)).collect()).await.unwrap();
    folder.execute(&format!("UPDATE usage_records SET workspace_id = 'x' WHERE id <> {}", id_column(30))).await;
    clock.advance(Duration::from_hours(24 * 100));
    let report = records.reports.prune(Duration::from_hours(24), 2).await.unwrap();
    assert_eq!((report.removed, report.unreadable, report.named.len()), (1, 29, PruneReport::NAMED));
}

#[tokio::test]
async fn unreadable_credit_is_named_by_column_and_workspace() {
    let folder = Folder::new();
    let database = folder.open().await;
    insert_fixtures(&database, 100).await;
    let records = Records::over(database.clone());
    records.record(usage(1, 1)).await.unwrap();
    folder.execute("UPDATE workspaces SET credit_pico = 1, credit_base_pico = -9223372036854775807").await;
    let name = format!("workspaces.credit_base_pico of {}", workspace_id(1));
    let statuses = SeaOrmLedgerReports::new(database).workspace_limit_statuses(workspace_id(1)).await;
    assert!(matches!(&statuses, Err(StoreError::Corrupt(named)) if *named == name), "{statuses:?}");
}
