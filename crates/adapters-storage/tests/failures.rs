//! Locked, read-only and full databases, and callers that disconnect.
#![expect(clippy::unwrap_used, reason = "a test fails by panicking")]

mod common;

use std::collections::BTreeMap;
use std::future::poll_fn;
use std::pin::pin;
use std::task::Poll;
use std::time::Duration;

use adapters_storage::{
    Database, SeaOrmApiKeyRepository, SeaOrmBudgetStore, SeaOrmChangeFeed, SeaOrmDocumentRepository,
    SeaOrmGuardrailRepository, SeaOrmModelRepository, SeaOrmWorkspaceRepository, StorageSettings,
};
use common::*;
use domain::api_key::{ApiKeyRepository, ApiKeyScope, LastKeyRule, StoreKeyError};
use domain::audit::Actor;
use domain::authority::ManagementScope;
use domain::budget::allowances::{CounterId, CounterPeriod};
use domain::budget::{
    Account, BudgetStore, DrawAhead, DrawRequest, FoldRequest, LedgerMaintenance, LedgerReader, ProcessState,
    RemainingAllowances, ReturnRequest,
};
use domain::change_feed::{ChangeFeed, ChangePosition, Changes};
use domain::error::{ErrorKind, StoreError};
use domain::file::{DocumentRepository, Reservation};
use domain::guardrail::GuardrailRepository;
use domain::ids::ProcessId;
use domain::model::{CatalogueChange, ModelRepository};
use domain::money::Usd;
use domain::system::HealthProbe;
use domain::testing::{add_credit, delete_key, join_all};
use domain::workspace::WorkspaceRepository;
use tokio::time::Instant;

/// Inserts workspace 1 with keys 1 and 2, guardrail 1 and 10 bytes of documents.
async fn insert_fixtures(database: &Database) {
    SeaOrmWorkspaceRepository::new(database.clone()).insert(&workspace(1), false, &common::audit()).await.unwrap();
    let keys = SeaOrmApiKeyRepository::new(database.clone());
    for number in [1, 2] {
        assert!(
            keys.insert(&key(number, ApiKeyScope::Inference(workspace_id(1))), &common::audit())
                .await
                .unwrap()
                .is_inserted()
        );
    }
    assert!(
        SeaOrmGuardrailRepository::new(database.clone())
            .insert(&guardrail(1, 1), false, &common::audit())
            .await
            .unwrap()
    );
    let documents = SeaOrmDocumentRepository::new(database.clone());
    assert_eq!(documents.reserve(&pending(1, 1, 10), quota(1000), None).await.unwrap(), Reservation::Reserved);
    let budget = SeaOrmBudgetStore::new(database.clone());
    budget.register(process()).await.unwrap();
    budget.draw(&draw(1)).await.unwrap();
}

/// Returns a process with an allowance of 5 picodollars.
fn process() -> ProcessId {
    ProcessId::from_uuid(uuid::Uuid::from_u128(9))
}

fn counter() -> CounterId {
    CounterId { account: Account::Key(key_id(1)), period: CounterPeriod::Lifetime }
}

fn draw(number: u64) -> DrawRequest {
    let ahead = vec![DrawAhead { counter: counter(), amount: Usd::from_pico(5) }];
    DrawRequest { process: process(), number, asks: Vec::new(), free: BTreeMap::new(), ahead }
}

fn unavailable<T: std::fmt::Debug>(what: &str, result: &Result<T, StoreError>) {
    assert!(matches!(result, Err(StoreError::Unavailable(_))), "{what}: {result:?}");
}

/// Checks that every kind of write fails as unavailable.
async fn assert_writes_unavailable(database: &Database) {
    let workspaces = SeaOrmWorkspaceRepository::new(database.clone());
    let keys = SeaOrmApiKeyRepository::new(database.clone());
    let guardrails = SeaOrmGuardrailRepository::new(database.clone());
    let documents = SeaOrmDocumentRepository::new(database.clone());
    let models = SeaOrmModelRepository::new(database.clone());
    let records = Records::over(database.clone());
    unavailable("workspace", &workspaces.insert(&workspace(2), false, &common::audit()).await);
    let credit = add_credit(&workspaces, workspace_id(1), Usd::from_pico(1), &common::audit()).await;
    assert_eq!(credit.unwrap_err().kind(), ErrorKind::Unavailable, "credit");
    unavailable("update", &workspaces.update(&workspace(1), &workspace(1), &common::audit()).await);
    unavailable(
        "key",
        &keys.insert(&key(3, ApiKeyScope::Management(ManagementScope::UNRESTRICTED)), &common::audit()).await,
    );
    let deleted = delete_key(&keys, key_id(1), LastKeyRule::Waived, &common::audit()).await;
    assert!(matches!(deleted, Err(StoreKeyError::Store(StoreError::Unavailable(_)))), "{deleted:?}");
    unavailable(
        "assign",
        &domain::testing::assign_keys(
            &guardrails,
            guardrail_id(1),
            &[key_id(1).into(), key_id(2).into()],
            &Actor::system(),
        )
        .await,
    );
    unavailable("reserve", &documents.reserve(&pending(2, 1, 10), quota(1000), None).await);
    unavailable("ready", &documents.mark_ready(workspace_id(1), &document_id(1), "ab", "text/plain").await);
    unavailable("abandon", &documents.abandon(workspace_id(1), &document_id(1)).await);
    unavailable("models", &models.apply(&CatalogueChange::default(), 0, &common::audit()).await);
    unavailable("usage", &records.record(usage(1, 1)).await);
    let budget = &records.budget;
    unavailable("process", &budget.register(new_process()).await);
    unavailable("draw", &budget.draw(&draw(2)).await.map_err(store_failure));
    let amounts = vec![(counter(), Usd::from_pico(1))];
    let returned =
        budget.return_allowances(&ReturnRequest { process: process(), number: 2, amounts, answered: None }).await;
    unavailable("return", &returned.map_err(store_failure));
    let fold = FoldRequest { process: process(), after: 0, up_to: 1, entries: Vec::new() };
    unavailable("fold", &budget.fold(&fold).await.map_err(store_failure));
    unavailable("end", &budget.end(process(), RemainingAllowances::Return).await);
    unavailable("retention", &records.reports.prune(Duration::ZERO, 10).await);
}

/// Checks that the fixtures of [`insert_fixtures`] are unchanged. Reads only.
async fn assert_fixtures_unchanged(database: &Database) {
    let workspaces = SeaOrmWorkspaceRepository::new(database.clone());
    let keys = SeaOrmApiKeyRepository::new(database.clone());
    let documents = SeaOrmDocumentRepository::new(database.clone());
    let all = workspaces.list().await.unwrap();
    assert_eq!(all.len(), 1);
    assert_eq!((all[0].storage_used_bytes, all[0].credit, all[0].suspended), (10, None, false));
    assert_eq!(keys.list(Some(workspace_id(1))).await.unwrap().len(), 2);
    assert_eq!(keys.list(None).await.unwrap().len(), 0);
    assert_eq!(SeaOrmGuardrailRepository::new(database.clone()).count_keys(guardrail_id(1)).await.unwrap(), 0);
    assert_eq!(documents.find_unknown(&[document_id(1), document_id(2)]).await.unwrap(), [document_id(2)]);
    let changes = SeaOrmChangeFeed::new(database.clone()).changes_since(None).await.unwrap();
    assert!(matches!(changes, Changes::StartOver(ChangePosition { number: 0, .. })), "{changes:?}");
    let records = Records::over(database.clone());
    assert_eq!(records.list(workspace_id(1), 10).await.unwrap(), []);
    assert_eq!(records.reports.limit_statuses(&payer()).await.unwrap(), []);
    let audit = records.reports.audit().await.unwrap();
    assert_eq!((audit.records, audit.allowances, audit.discrepancies), (0, 1, vec![]));
    let status = records.budget.process(process()).await.unwrap().unwrap();
    assert_eq!((status.state, status.number, status.folded_sequence), (ProcessState::Live, 1, 0));
}

#[tokio::test]
async fn foreign_lock_is_unavailable_after_timeout() {
    let folder = Folder::new();
    insert_fixtures(&folder.open().await).await;
    let database = Database::open(&hasty(folder.settings()), common::clock()).await.unwrap();
    let raw = folder.raw().await;
    let mut lock = raw.begin_with("BEGIN IMMEDIATE").await.unwrap();
    sea_orm::sqlx::query("UPDATE workspaces SET name = 'other'").execute(&mut *lock).await.unwrap();

    let begun = Instant::now();
    let refused = SeaOrmWorkspaceRepository::new(database.clone()).insert(&workspace(2), false, &common::audit()).await;
    let took = begun.elapsed();
    unavailable("insert", &refused);
    assert!(took >= Duration::from_millis(150), "the lock was not waited for: {took:?}");
    assert!(took < Duration::from_secs(20), "{took:?}");
    assert_writes_unavailable(&database).await;
    assert_fixtures_unchanged(&database).await;
    database.probe().await.unwrap();
    unavailable("probe_write", &database.probe_write().await);

    lock.rollback().await.unwrap();
    database.probe_write().await.unwrap();
    SeaOrmWorkspaceRepository::new(database.clone()).insert(&workspace(2), false, &common::audit()).await.unwrap();
}

#[tokio::test]
async fn read_only_database_rejects_writes() {
    let folder = Folder::new();
    let writable = folder.open().await;
    insert_fixtures(&writable).await;
    let url = format!("{}?mode=ro", folder.settings().url);
    let database = open(&StorageSettings::new(url)).await;
    assert_writes_unavailable(&database).await;
    assert_fixtures_unchanged(&database).await;
    database.probe().await.unwrap();
    unavailable("probe_write", &database.probe_write().await);
    assert!(database.migration_status().await.unwrap().iter().all(|step| step.applied));
}

#[tokio::test]
async fn missing_database_is_not_created_in_rw_mode() {
    let folder = Folder::new();
    for mode in ["ro", "rw"] {
        let url = format!("{}?mode={mode}", folder.settings().url);
        unavailable(mode, &Database::open(&StorageSettings::new(url), common::clock()).await.map(|_| ()));
        assert!(!folder.path().exists());
    }
}

#[tokio::test]
async fn full_database_rolls_back_and_recovers() {
    let folder = Folder::new();
    folder.open().await.close().await;
    let settings = StorageSettings { max_bytes: Some(80 * 4_096), ..folder.settings() };
    let database = open(&settings).await;
    insert_fixtures(&database).await;
    let guardrails = SeaOrmGuardrailRepository::new(database.clone());
    let keys = SeaOrmApiKeyRepository::new(database.clone());
    let documents = SeaOrmDocumentRepository::new(database.clone());
    let records = Records::over(database.clone());

    let mut kept = 2;
    let refused = loop {
        match keys.insert(&key(kept + 1, ApiKeyScope::Inference(workspace_id(1))), &common::audit()).await {
            Ok(added) => assert!(added.is_inserted()),
            Err(error) => break error,
        }
        kept += 1;
        assert!(kept < 10_000, "the database never fills");
    };
    unavailable("insert", &Err::<(), _>(refused));
    let mut size = 0;
    for number in 2..200 {
        let long = domain::file::PendingDocument { filename: "x".repeat(3000), ..pending(number, 1, 1) };
        match documents.reserve(&long, quota(1000), None).await {
            Ok(reservation) => assert_eq!(reservation, Reservation::Reserved),
            refused => {
                unavailable("reserve", &refused);
                break;
            }
        }
        size += 1;
    }
    assert!(size < 150);
    assert_eq!(documents.used_bytes(workspace_id(1)).await.unwrap(), 10 + size, "a refused reservation holds nothing");
    let large = (1..100).map(|number| records.record(usage(number, 1)));
    let results = join_all(large).await;
    let written = records.list(workspace_id(1), 1000).await.unwrap().len();
    assert_eq!(
        results.iter().filter(|result| result.is_ok()).count(),
        written,
        "exactly what was acknowledged is there"
    );
    assert!(results.iter().any(Result::is_err), "the ledger did not fill");
    assert_eq!(records.reports.audit().await.unwrap().discrepancies, [], "and it is counted");

    let all: Vec<_> = keys.list(Some(workspace_id(1))).await.unwrap().iter().map(|key| key.id.into()).collect();
    assert_eq!(all.len() as u64, kept);
    let assigned = domain::testing::assign_keys(&guardrails, guardrail_id(1), &all, &Actor::system()).await;
    let holders = guardrails.count_keys(guardrail_id(1)).await.unwrap();
    assert_eq!(holders, assigned.map_or(0, |assigned| assigned.unwrap()), "all or nothing");

    let room = "DELETE FROM usage_records; DELETE FROM spend_counters; DELETE FROM budget_processes; DELETE FROM documents; DELETE FROM api_keys WHERE rowid > 3";
    folder.execute(room).await;
    records.record(usage(1000, 1)).await.unwrap();
    assert_eq!(
        domain::testing::assign_keys(&guardrails, guardrail_id(1), &all, &Actor::system()).await.unwrap(),
        Some(3)
    );
    // The lock is free: no connection is in an abandoned transaction.
    let other = Database::open(&hasty(folder.settings()), common::clock()).await.unwrap();
    SeaOrmWorkspaceRepository::new(other).insert(&workspace(2), false, &common::audit()).await.unwrap();
}

/// Polls at most `polls` times, then drops the future.
async fn leave_after(polls: usize, future: impl Future) -> bool {
    let mut future = pin!(future);
    let mut polled = 0;
    poll_fn(|context| {
        if polled == polls {
            return Poll::Ready(false);
        }
        polled += 1;
        future.as_mut().poll(context).map(|_| true)
    })
    .await
}

#[tokio::test]
async fn cancelled_call_leaves_no_partial_write() {
    let folder = Folder::new();
    let database = folder.open().await;
    insert_fixtures(&database).await;
    let other = Database::open(&hasty(folder.settings()), common::clock()).await.unwrap();
    let documents = SeaOrmDocumentRepository::new(database.clone());
    let mut finished = false;
    for polls in 1..60 {
        let left = pending(1000 + polls as u128, 1, 7);
        finished = leave_after(polls, documents.reserve(&left, quota(1_000_000), None)).await;
        // Another process can write at once, and so can this one.
        assert_eq!(
            SeaOrmDocumentRepository::new(other.clone())
                .reserve(&pending(2000 + polls as u128, 1, 1), quota(1_000_000), None)
                .await
                .unwrap(),
            Reservation::Reserved,
            "after {polls} polls"
        );
        assert!(documents.abandon(workspace_id(1), &document_id(2000 + polls as u128)).await.unwrap());
        let done = documents.find_unknown(std::slice::from_ref(&left.id)).await.unwrap().is_empty();
        let used = documents.used_bytes(workspace_id(1)).await.unwrap();
        assert_eq!(used, if done { 17 } else { 10 }, "after {polls} polls");
        documents.abandon(workspace_id(1), &left.id).await.unwrap();
        if finished {
            break;
        }
    }
    assert!(finished, "the call was never polled to its end, so not every moment was tried");
}
