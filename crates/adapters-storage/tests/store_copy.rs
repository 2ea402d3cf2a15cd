//! Copies of a whole store, between SQLite and PostgreSQL, with interruptions and damage.
#![expect(clippy::unwrap_used, reason = "a test fails by panicking")]

mod common;

use std::cell::Cell;
use std::future::{Future, poll_fn};
use std::pin::pin;
use std::task::Poll;

use adapters_storage::{
    CopyError, Database, SeaOrmApiKeyRepository, SeaOrmAuditLog, SeaOrmDocumentRepository, SeaOrmGuardrailRepository,
    SeaOrmModelRepository, SeaOrmWorkspaceRepository, StorageSettings, StoreCopy, TableContent,
};
use common::*;
use domain::api_key::{ApiKeyRepository, ApiKeyScope};
use domain::audit::VerifyAuditLog;
use domain::authority::ManagementScope;
use domain::budget::{BudgetStore, FoldEntry, FoldRequest, RemainingAllowances, UsageCharge};
use domain::file::DocumentRepository;
use domain::guardrail::GuardrailRepository;
use domain::model::{CatalogueChange, Model, ModelRepository, Pricing};
use domain::money::Price;
use domain::workspace::WorkspaceRepository;
use test_servers::Postgres;
use tokio::sync::OnceCell;

/// The server of this test program.
static SERVER: OnceCell<Postgres> = OnceCell::const_new();
/// Enough for several batches.
const RECORDS: u128 = 40;
const BATCH_ROWS: usize = 7;

async fn postgres() -> Database {
    let server = SERVER.get_or_init(|| async { Postgres::start().unwrap() }).await;
    let url = server.create_database().unwrap();
    let settings = StorageSettings { use_server_clock: false, ..StorageSettings::new(url) };
    Database::open(&settings, clock()).await.unwrap()
}

async fn sqlite(folder: &Folder) -> Database {
    Database::open(&folder.settings(), clock()).await.unwrap()
}

/// Fills every table.
async fn fill(folder: &Folder, database: &Database) {
    let workspaces = SeaOrmWorkspaceRepository::new(database.clone());
    let documents = SeaOrmDocumentRepository::new(database.clone());
    workspaces.insert(&workspace(1), false, &audit()).await.unwrap();
    workspaces.insert(&workspace(2), false, &audit()).await.unwrap();
    assert!(SeaOrmGuardrailRepository::new(database.clone()).insert(&guardrail(1, 1), false, &audit()).await.unwrap());
    let keys = SeaOrmApiKeyRepository::new(database.clone());
    for number in 1..20 {
        let scope = if number % 2 == 0 {
            ApiKeyScope::Management(ManagementScope::UNRESTRICTED)
        } else {
            ApiKeyScope::Inference(workspace_id(1))
        };
        assert!(keys.insert(&key(number, scope), &audit()).await.unwrap().is_inserted());
    }
    documents.reserve(&pending(1, 1, 10), quota(100), None).await.unwrap();
    documents.mark_ready(workspace_id(1), &document_id(1), &"ab".repeat(32), "text/plain").await.unwrap();
    let row = Model::minimal("a/b".parse().unwrap(), Pricing::per_token(Price::ZERO, Price::ZERO));
    let change = CatalogueChange { upsert: vec![row], remove: vec![] };
    assert!(SeaOrmModelRepository::new(database.clone()).apply(&change, 0, &audit()).await.unwrap());
    fold(database, (1..=RECORDS).map(|number| charged(number, 100 + u32::try_from(number).unwrap()))).await;
    for row in [
        "INSERT INTO idempotency_claims SELECT x'01', 'promote', 'k ''ü', 's', id, 5 FROM documents",
        "INSERT INTO provider_pauses VALUES ('p', 5)",
        "INSERT INTO destination_pauses VALUES ('d', 5)",
        "INSERT INTO presets VALUES ('p', 'w', 's', 'n', 'active', NULL, 1, 1, 'system', 5, 5)",
        "INSERT INTO preset_versions VALUES ('p', 1, '{}', 'system', 5)",
        "INSERT INTO evidence_groups VALUES (x'04', x'02', x'03', 1, 'q', 'a/b', 'p', 'sandbox', 'native')",
        "INSERT INTO evidence VALUES (x'01', 0, x'03', x'04', 'true', NULL, 5, 1)",
        "INSERT INTO evidence_labels VALUES (x'01', 0, 1, 'true', 'human', 'key:k', 5)",
        "INSERT INTO destinations VALUES ('d', 'w', 'webhook', 'n', 'enc1:x', 1, 5, NULL)",
        "INSERT INTO outbox VALUES ('o', 'd', '{\"a\": 1}', 'waiting', 0, 5, NULL, 5)",
        "INSERT INTO idempotent_requests VALUES ('k', 'POST /keys', 'a', x'01', 201, '{}', '00', NULL, 1)",
        "INSERT INTO idempotent_requests VALUES ('k', 'POST /keys', 'b', x'', NULL, NULL, NULL, 'id', 9223372036854775807)",
        "INSERT INTO rejections VALUES (x'01', 3600000, 429, 'rate', NULL, 3)",
        "INSERT INTO rejections VALUES (x'0102', 3600000, 429, 'rate', x'00', 9223372036854775807)",
        "INSERT INTO guardrail_versions VALUES ('g', 1, 'n', '{}', NULL, NULL, 5, 'system')",
        "INSERT INTO allowances VALUES ('ended', 'key', 's', 'total', 0, 0)",
        "INSERT INTO adjustments VALUES ('ended', 'key', 's', 'total', 0, 0)",
        "INSERT INTO budget_alerts VALUES ('key', 's', 'total', 0, 0, 0, 10, 80, 'w', 9, 5, NULL)",
    ] {
        folder.execute(row).await;
    }
}

/// Folds records of a process that ends.
async fn fold(database: &Database, records: impl Iterator<Item = domain::usage::UsageRecord>) {
    let budget = adapters_storage::SeaOrmBudgetStore::new(database.clone());
    let process = new_process();
    budget.register(process).await.unwrap();
    let charge = |record| UsageCharge::new(record);
    let entries = records.map(|record| FoldEntry { charge: charge(record), allowances: Vec::new() }).collect();
    budget.fold(&FoldRequest { process, after: 0, up_to: 1, entries }).await.unwrap();
    budget.end(process, RemainingAllowances::Return).await.unwrap();
}

/// Returns a filled SQLite store.
async fn filled() -> (Folder, Database) {
    let folder = Folder::new();
    let database = folder.open().await;
    fill(&folder, &database).await;
    (folder, database)
}

fn copy_of(source: &Database, target: &Database) -> StoreCopy {
    StoreCopy::new(source.clone(), target.clone()).with_batch_rows(BATCH_ROWS)
}

/// Copies a store completely; returns the content of the target.
async fn copy(source: &Database, target: &Database) -> Vec<TableContent> {
    let copy = copy_of(source, target);
    copy.run(|_| ()).await.unwrap();
    let contents = copy.verify(|_| ()).await.unwrap();
    copy.finish(&audit()).await.unwrap();
    contents
}

async fn assert_is_sound(database: &Database) {
    assert_eq!(database.unfinished_copy().await.unwrap(), None);
    assert_eq!(Records::over(database.clone()).discrepancies().await, Vec::<String>::new());
    let log = std::sync::Arc::new(SeaOrmAuditLog::new(database.clone()));
    let report = VerifyAuditLog::new(log).execute(None).await.unwrap();
    assert!(report.violation.is_none() && report.row_violations.is_empty(), "{report:?}");
}

/// Polls a future a number of times, then drops it if it is not ready.
async fn interrupted<F: Future>(future: F, polls: usize) -> Option<F::Output> {
    let (mut future, mut count) = (pin!(future), 0);
    poll_fn(|context| {
        if count == polls {
            return Poll::Ready(None);
        }
        count += 1;
        future.as_mut().poll(context).map(Some)
    })
    .await
}

/// Runs a copy that is interrupted after ever more steps; returns the number of interruptions after a batch.
async fn run_with_interruptions(source: &Database, target: &Database) -> usize {
    target.migrate().await.unwrap();
    let mut interruptions = 0;
    for polls in 1.. {
        let batches = Cell::new(0);
        let copied = interrupted(copy_of(source, target).run(|_| batches.set(batches.get() + 1)), polls).await;
        if let Some(copied) = copied {
            copied.unwrap();
            break;
        }
        interruptions += usize::from(batches.get() > 0);
    }
    interruptions
}

#[tokio::test]
async fn copy_to_postgres_and_back_keeps_every_row() {
    let (folder, source) = filled().await;
    let middle = postgres().await;
    let contents = copy(&source, &middle).await;
    let empty: Vec<&str> = contents.iter().filter(|table| table.rows == 0).map(|table| table.table).collect();
    assert_eq!(empty, Vec::<&str>::new(), "every kind of row is copied");
    assert_is_sound(&middle).await;
    assert_eq!(middle.id().await.unwrap(), source.id().await.unwrap());

    let back_folder = Folder::new();
    let back = sqlite(&back_folder).await;
    let back_contents = copy(&middle, &back).await;
    assert_is_sound(&back).await;
    // The entries about the copies are new.
    let data = |contents: Vec<TableContent>| -> Vec<TableContent> {
        contents.into_iter().filter(|content| !content.table.starts_with("audit_")).collect()
    };
    assert_eq!(data(back_contents), data(contents));
    for table in ["usage_records", "rejections", "api_keys", "spend_counters"] {
        assert_eq!(folder.count(table).await, back_folder.count(table).await, "{table}");
    }
    // The copy is used like any other store.
    fold(&back, std::iter::once(charged(1000, 5))).await;
    assert_is_sound(&back).await;
}

#[tokio::test]
async fn interrupted_copy_to_postgres_continues_without_loss_or_duplicates() {
    let (_folder, source) = filled().await;
    let target = postgres().await;
    let interruptions = run_with_interruptions(&source, &target).await;
    assert!(interruptions > 2, "{interruptions}");
    let copy = copy_of(&source, &target);
    copy.verify(|_| ()).await.unwrap();
    assert!(target.unfinished_copy().await.unwrap().is_some(), "it is not finished before it is verified");
    copy.finish(&audit()).await.unwrap();
    assert_is_sound(&target).await;
}

#[tokio::test]
async fn interrupted_copy_to_sqlite_continues_without_loss_or_duplicates() {
    let (_folder, source) = filled().await;
    let folder = Folder::new();
    let target = sqlite(&folder).await;
    let interruptions = run_with_interruptions(&source, &target).await;
    assert!(interruptions > 2, "{interruptions}");
    let copy = copy_of(&source, &target);
    copy.verify(|_| ()).await.unwrap();
    copy.finish(&audit()).await.unwrap();
    assert_is_sound(&target).await;
    assert!(matches!(copy_of(&source, &target).run(|_| ()).await, Err(CopyError::SameStore)));
}

/// Copies a part of a store.
async fn begin(source: &Database, target: &Database) {
    for polls in (50..).step_by(50) {
        let copied = Cell::new(0);
        interrupted(copy_of(source, target).run(|_| copied.set(copied.get() + 1)), polls).await;
        if copied.get() > 0 {
            return;
        }
    }
}

#[tokio::test]
async fn changed_source_is_noticed() {
    let (folder, source) = filled().await;
    let target_folder = Folder::new();
    let target = sqlite(&target_folder).await;
    begin(&source, &target).await;
    assert!(target.unfinished_copy().await.unwrap().is_some());
    let other = SeaOrmWorkspaceRepository::new(source.clone());
    other.insert(&workspace(3), false, &audit()).await.unwrap();
    assert!(matches!(copy_of(&source, &target).run(|_| ()).await, Err(CopyError::SourceChanged)));

    let target_folder = Folder::new();
    let target = sqlite(&target_folder).await;
    let copy = copy_of(&source, &target);
    copy.run(|_| ()).await.unwrap();
    fold(&source, std::iter::once(charged(1000, 5))).await;
    assert!(matches!(copy.verify(|_| ()).await, Err(CopyError::SourceChanged)));

    // A change that no counter shows is found by the comparison.
    let target_folder = Folder::new();
    let target = sqlite(&target_folder).await;
    let copy = copy_of(&source, &target);
    copy.run(|_| ()).await.unwrap();
    folder.execute(&format!("UPDATE usage_records SET input_tokens = 0 WHERE id = {}", id_column(7))).await;
    target_folder.execute(&format!("DELETE FROM usage_records WHERE id = {}", id_column(9))).await;
    let said = copy.verify(|_| ()).await.unwrap_err().to_string();
    for part in
        ["usage_records differs", "40 of 41 rows", &format!("{:032x} differs", 7), &format!("{:032x} is missing", 9)]
    {
        assert!(said.contains(part), "{part} in {said}");
    }
    assert!(target.unfinished_copy().await.unwrap().is_some());
}

#[tokio::test]
async fn damaged_row_is_named() {
    let (folder, source) = filled().await;
    folder.execute(&format!("UPDATE usage_records SET provider = 'a' || char(0) WHERE id = {}", id_column(12))).await;
    let said = copy_of(&source, &postgres().await).run(|_| ()).await.unwrap_err().to_string();
    assert!(said.contains("usage_records") && said.contains(&format!("{:032x}", 12)), "{said}");

    folder.execute(&format!("UPDATE usage_records SET input_tokens = 'secret' WHERE id = {}", id_column(11))).await;
    let target = Folder::new();
    let said = copy_of(&source, &sqlite(&target).await).run(|_| ()).await.unwrap_err().to_string();
    assert!(said.contains(&format!("{:032x}", 11)) && said.contains("input_tokens"), "{said}");
    assert!(!said.contains("secret"), "{said}");
}

#[tokio::test]
async fn target_with_an_instance_and_source_in_use_are_rejected() {
    let (_folder, source) = filled().await;
    let (_occupied_folder, occupied) = filled().await;
    let said = copy_of(&source, &occupied).run(|_| ()).await.unwrap_err();
    assert!(matches!(said, CopyError::Occupied("workspaces")), "{said}");
    assert!(matches!(copy_of(&source, &source).run(|_| ()).await, Err(CopyError::SameStore)));

    // A catalogue alone is no instance.
    let folder = Folder::new();
    let target = folder.open().await;
    let row = Model::minimal("x/y".parse().unwrap(), Pricing::per_token(Price::ZERO, Price::ZERO));
    let change = CatalogueChange { upsert: vec![row], remove: vec![] };
    let models = SeaOrmModelRepository::new(target.clone());
    assert!(models.apply(&change, models.version().await.unwrap(), &audit()).await.unwrap());
    begin(&source, &target).await;
    let said = copy_of(&occupied, &target).run(|_| ()).await.unwrap_err();
    assert!(matches!(said, CopyError::OtherSource(_)), "{said}");
    let next = Folder::new();
    let said = copy_of(&target, &sqlite(&next).await).run(|_| ()).await.unwrap_err();
    assert!(matches!(said, CopyError::UnfinishedSource), "{said}");

    adapters_storage::SeaOrmBudgetStore::new(source.clone()).register(new_process()).await.unwrap();
    let said = copy_of(&source, &sqlite(&next).await).run(|_| ()).await.unwrap_err();
    assert!(matches!(said, CopyError::LiveProcesses(1)), "{said}");
}

#[tokio::test]
async fn different_schemas_are_rejected() {
    let (folder, source) = filled().await;
    let newer = Folder::new();
    let target = newer.open().await;
    newer.execute("INSERT INTO seaql_migrations VALUES ('m20990101_000001_future', 0)").await;
    let said = copy_of(&source, &target).run(|_| ()).await.unwrap_err().to_string();
    assert!(said.contains("m20990101_000001_future of a newer release"), "{said}");
    let empty = Folder::new();
    let target = sqlite(&empty).await;
    folder.execute("DELETE FROM seaql_migrations WHERE version LIKE '%initial'").await;
    let said = copy_of(&source, &target).run(|_| ()).await.unwrap_err().to_string();
    assert!(said.contains("the source lacks the migration") && said.contains("migrate up"), "{said}");
}
