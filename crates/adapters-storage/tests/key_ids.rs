//! The migration that adds ids to keys.
#![expect(clippy::unwrap_used, reason = "a test fails by panicking")]

mod common;

use std::sync::Arc;

use adapters_storage::{
    Database, SeaOrmApiKeyRepository, SeaOrmAuditLog, SeaOrmBudgetStore, SeaOrmDestinationRepository,
    SeaOrmDocumentRepository, SeaOrmGuardrailRepository, SeaOrmUsageRepository, SeaOrmWorkspaceRepository,
};
use common::*;
use domain::api_key::{ApiKey, ApiKeyRepository, ApiKeyScope, KeyReference};
use domain::audit::{Actor, AuditHash, AuditLog, AuditVerification, RowHasher, RowSum, VerifyAuditLog};
use domain::budget::allowances::{CounterId, CounterPeriod};
use domain::budget::{Account, BudgetStore, DrawAsk, DrawRequest, LimitStatusReader, Payer, SpendLimit};
use domain::file::{ClaimState, DocumentRepository, IdempotencyClaim};
use domain::guardrail::{GuardrailAssignments, GuardrailRepository};
use domain::ids::ProcessId;
use domain::money::Usd;
use domain::observability::{Destination, DestinationKind, DestinationRepository};
use domain::secret::SecretString;
use domain::usage::{UsageFilter, UsageRecord, UsageRepository};
use domain::workspace::WorkspaceRepository;
use migrations::{Migrator, MigratorTrait};
use sea_orm::SqlxSqliteConnector;
use uuid::Uuid;

/// The limit of each key, in picodollars.
const LIMIT: i64 = 1_000_000_000_000;
const STEP: &str = "m20261123_000011_key_ids";

fn destination() -> Destination {
    Destination {
        id: domain::ids::DestinationId::from_uuid(Uuid::from_u128(1)),
        workspace_id: workspace_id(1),
        name: "hook".to_owned(),
        kind: DestinationKind::Webhook,
        url: "https://example.org/?a=\u{1f600}".to_owned(),
        headers: vec![("x-key".to_owned(), SecretString::new("\"quoted\" \\ ü"))],
        signing_secret: Some(SecretString::new("0123456789abcdef")),
        enabled: true,
        privacy_mode: false,
        sampling: 10_000,
        api_key_ids: Some(vec![key_id(1), key_id(2)]),
        created_at: at(0),
        updated_at: None,
    }
}

fn claim() -> IdempotencyClaim {
    IdempotencyClaim {
        api_key: key_id(1),
        operation: "promote",
        key: "again".parse().unwrap(),
        subject: "subject".to_owned(),
        not_before: at(-1),
    }
}

/// Inserts two limited keys (the first with a guardrail, the second deleted) with records, an allowance, a claim and a
/// filter, and a record of a key that never existed.
async fn insert_fixtures(database: &Database) {
    SeaOrmWorkspaceRepository::new(database.clone()).insert(&workspace(1), &audit()).await.unwrap();
    let keys = SeaOrmApiKeyRepository::new(database.clone());
    let limit = Some(SpendLimit { amount: Usd::from_pico(LIMIT), reset: None });
    for number in [1, 2] {
        let key = ApiKey { limit, ..key(number, ApiKeyScope::Inference(workspace_id(1))) };
        assert!(keys.insert(&key, &audit()).await.unwrap());
    }
    let guardrails = SeaOrmGuardrailRepository::new(database.clone());
    assert!(guardrails.insert(&guardrail(1, 1), &audit()).await.unwrap());
    guardrails.assign_keys(guardrail_id(1), &[key_id(1).into()], &Actor::system()).await.unwrap();
    let destinations = SeaOrmDestinationRepository::new(database.clone());
    destinations.insert(&destination(), 5, &audit()).await.unwrap();
    let documents = SeaOrmDocumentRepository::new(database.clone());
    documents.reserve(&pending(1, 1, 10), quota(100), Some(&claim())).await.unwrap();
    documents.mark_ready(workspace_id(1), &document_id(1), &"ab".repeat(32), "text/plain").await.unwrap();
    let of = |number, api_key| UsageRecord { api_key, guardrails: vec![guardrail_id(1)], ..usage(number, 1) };
    let records = Records::over(database.clone());
    let all = [of(1, key_id(1)), of(2, key_id(2)), of(3, key_id(9))];
    records.record_all(all.to_vec()).await.unwrap();
    let process = ProcessId::from_uuid(Uuid::from_u128(77));
    let store = SeaOrmBudgetStore::new(database.clone());
    store.register(process).await.unwrap();
    let counter = CounterId { account: Account::Key(key_id(1)), period: CounterPeriod::Lifetime };
    let payer = Payer { workspace_id: workspace_id(1), api_key: key_id(1), guardrails: Vec::new() };
    let ask = DrawAsk { payer, at: at(0), amount: Usd::from_pico(70), lacking: vec![(counter, Usd::from_pico(70))] };
    store.draw(&DrawRequest { process, number: 1, asks: vec![ask], ahead: Vec::new() }).await.unwrap();
    assert!(keys.delete(key_id(2), &audit()).await.unwrap());
}

async fn step_down(folder: &Folder) {
    let raw = SqlxSqliteConnector::from_sqlx_sqlite_pool(folder.raw().await);
    Migrator::down(&raw, Some(steps_from(STEP))).await.unwrap();
}

async fn verify(database: &Database) -> AuditVerification {
    VerifyAuditLog::new(Arc::new(SeaOrmAuditLog::new(database.clone()))).execute(None).await.unwrap()
}

#[tokio::test]
async fn migration_converts_key_references_both_ways() {
    let folder = Folder::new();
    let database = folder.open().await;
    insert_fixtures(&database).await;
    let counters = folder.count("spend_counters").await;
    step_down(&folder).await;
    for (table, expected) in [
        ("usage_records WHERE length(api_key) = 32", 3),
        ("usage_records JOIN api_keys ON api_keys.hash = usage_records.api_key", 2),
        ("idempotency_claims JOIN api_keys ON api_keys.hash = idempotency_claims.api_key", 1),
        ("allowances JOIN api_keys ON lower(hex(api_keys.hash)) = allowances.subject", 1),
        ("spend_counters WHERE scope = 'key' AND length(subject) = 64", counters_of(&folder, "key").await),
        ("spend_counters WHERE scope = 'guardrail' AND length(subject) = 101", counters_of(&folder, "guardrail").await),
        ("destinations, json_each(config, '$.api_key_hashes') AS h JOIN api_keys ON lower(hex(hash)) = h.value", 2),
        ("destinations WHERE json_type(config, '$.api_key_ids') IS NOT NULL", 0),
    ] {
        assert_eq!(folder.count(table).await, expected, "{table}");
    }
    database.migrate().await.unwrap();
    assert_eq!(folder.count("spend_counters").await, counters);
    let keys = SeaOrmApiKeyRepository::new(database.clone());
    let ids = [key_id_now(&database, 1).await, key_id_now(&database, 2).await];
    assert_ne!(ids[0], key_id(1), "the old ids were lost on the way down");
    for id in ids {
        let uuid = id.uuid();
        assert_eq!((uuid.get_version_num(), uuid.get_variant()), (7, uuid::Variant::RFC4122));
        let (seconds, nanos) = uuid.get_timestamp().unwrap().to_unix();
        assert_eq!(seconds * 1_000 + u64::from(nanos) / 1_000_000, u64::try_from(at(0).timestamp_millis()).unwrap());
    }
    let found = keys.find(&KeyReference::Id(ids[0])).await.unwrap().unwrap();
    assert_eq!((found.hash, found.guardrail_id), (hash(1), Some(guardrail_id(1))));
    assert_eq!(keys.find(&KeyReference::Id(ids[1])).await.unwrap(), None, "it stays deleted");
    let records = Records::over(database.clone());
    let usage_records = SeaOrmUsageRepository::new(database.clone());
    for (number, id) in [(1, ids[0]), (2, ids[1]), (3, key_id(9))] {
        let listed = usage_records.list(&UsageFilter::for_key(id), 9).await.unwrap();
        assert_eq!(listed.iter().map(|record| record.id.clone()).collect::<Vec<_>>(), [decision_id(number)]);
    }
    assert_eq!(records.discrepancies().await, [""; 0]);
    let payer = Payer { workspace_id: workspace_id(1), api_key: ids[0], guardrails: Vec::new() };
    let statuses = records.reports.limit_statuses(&payer).await.unwrap();
    assert_eq!(statuses[0].reserved, Usd::from_pico(70), "the allowance is of the same key");
    let guardrails = SeaOrmGuardrailRepository::new(database.clone());
    let assigned = GuardrailAssignments::list(&guardrails, guardrail_id(1), 0, 9).await;
    assert_eq!(assigned.unwrap().unwrap().assignments[0].key_id, ids[0]);
    let found = SeaOrmDestinationRepository::new(database.clone()).find(destination().id).await.unwrap();
    assert_eq!(found, Some(Destination { api_key_ids: Some(ids.to_vec()), ..destination() }));
    let documents = SeaOrmDocumentRepository::new(database.clone());
    let again = IdempotencyClaim { api_key: ids[0], ..claim() };
    assert!(matches!(documents.claim_state(&again).await.unwrap(), ClaimState::Done(_)));
}

async fn counters_of(folder: &Folder, scope: &str) -> i64 {
    folder.count(&format!("spend_counters WHERE scope = '{scope}'")).await
}

/// Returns the hash of a row of [`insert_fixtures`] as sealed by the previous version.
fn sealed_without_id(number: u64, is_deleted: bool) -> AuditHash {
    RowHasher::new("api_keys")
        .bytes(&hash(number).bytes()[..])
        .text("sk-tg-v1-abc...def")
        .text("key")
        .text("inference")
        .text(workspace_id(1).to_string().as_str())
        .number(0)
        .number(i64::from(is_deleted))
        .number(None::<i64>)
        .number(LIMIT)
        .text(None::<&str>)
        .number(at(0).timestamp_millis())
        .number(None::<i64>)
        .number(None::<i64>)
        .finish()
}

fn hex(bytes: [u8; 32]) -> String {
    AuditHash(bytes).to_string()
}

/// Reverts the migration and restores the sums and seals of the previous version.
async fn step_down_with_sums(folder: &Folder) {
    step_down(folder).await;
    let (mut keys, mut assignments) = (RowSum::default(), RowSum::default());
    for (number, is_deleted) in [(1, false), (2, true)] {
        let row = sealed_without_id(number, is_deleted);
        keys.add(row);
        let key = hex(*hash(number).bytes());
        folder.execute(&format!("UPDATE api_keys SET audit_hash = x'{}' WHERE hash = x'{key}'", hex(row.0))).await;
    }
    let guardrail = guardrail_id(1).to_string();
    assignments.add(RowHasher::new("assignments").bytes(&hash(1).bytes()[..]).text(guardrail.as_str()).finish());
    let (keys, assignments) = (hex(keys.0), hex(assignments.0));
    folder.execute(&format!("UPDATE audit_state SET keys_sum = x'{keys}', assignments_sum = x'{assignments}'")).await;
}

#[tokio::test]
async fn migration_keeps_rows_accounted_for_and_appends_entry() {
    let folder = Folder::new();
    let database = folder.open().await;
    insert_fixtures(&database).await;
    let before = verify(&database).await;
    assert!(before.is_verified());
    step_down_with_sums(&folder).await;
    database.migrate().await.unwrap();
    let found = verify(&database).await;
    assert!(found.is_verified(), "{found:?}");
    let newest = SeaOrmAuditLog::new(database.clone()).newest(1).await.unwrap().remove(0);
    assert_eq!((newest.action.as_str(), newest.details.text()), ("key.assign_ids", r#"{"keys":2}"#));
    assert_eq!(found.entries, before.entries + 1, "older entries stay as they are");
}

#[tokio::test]
async fn migration_keeps_earlier_manipulation_detectable() {
    for (damage, row) in [
        ("UPDATE api_keys SET limit_pico = 9 WHERE deleted = 0", true),
        ("UPDATE api_keys SET guardrail_id = NULL", false),
        ("DELETE FROM api_keys WHERE deleted = 1", false),
    ] {
        let folder = Folder::new();
        let database = folder.open().await;
        insert_fixtures(&database).await;
        step_down_with_sums(&folder).await;
        folder.execute(damage).await;
        database.migrate().await.unwrap();
        let found = verify(&database).await;
        assert!(!found.is_verified(), "{damage}");
        let named = key_id_now(&database, 1).await.to_string();
        assert_eq!(found.row_violations.iter().any(|fault| fault.row == named), row, "{damage}: {found:?}");
    }
}

#[tokio::test]
async fn schema_rejects_keys_without_valid_id() {
    let folder = Folder::new();
    let database = folder.open().await;
    let keys = SeaOrmApiKeyRepository::new(database.clone());
    assert!(keys.insert(&key(1, ApiKeyScope::Management), &audit()).await.unwrap());
    let pool = folder.raw().await;
    for id in ["NULL", "x'00'", "id"] {
        let sql = format!(
            "INSERT INTO api_keys (id, hash, label, name, scope, disabled, deleted, created_at) \
             SELECT {id}, zeroblob(32), label, name, scope, 0, 0, 0 FROM api_keys"
        );
        let refused = sea_orm::sqlx::query(sea_orm::sqlx::AssertSqlSafe(sql)).execute(&pool).await;
        assert!(refused.is_err(), "{id}");
    }
}
