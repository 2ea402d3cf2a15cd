//! An audit log and its managed rows that are changed outside the service.
#![expect(clippy::unwrap_used, reason = "a test fails by panicking")]

mod common;

use std::sync::Arc;
use std::time::Duration;

use adapters_storage::{
    Database, SeaOrmApiKeyRepository, SeaOrmAuditLog, SeaOrmGuardrailRepository, SeaOrmWorkspaceRepository,
};
use common::*;
use domain::api_key::{ApiKeyRepository, ApiKeyScope, LastKeyRule};
use domain::audit::{Actor, AuditLog, AuditVerification, AuditViolation, VerifyAuditLog};
use domain::guardrail::{GuardrailRepository, PlacedGuardrail};
use domain::money::Usd;
use domain::system::Clock;
use domain::testing::{FixedClock, add_credit, delete_key, set_disabled};
use domain::workspace::WorkspaceRepository;
use rstest::rstest;
use sea_orm::sqlx::{AssertSqlSafe, query_scalar};

async fn verify(database: &Database) -> AuditVerification {
    VerifyAuditLog::new(Arc::new(SeaOrmAuditLog::new(database.clone()))).execute(None).await.unwrap()
}

/// Inserts a workspace with two guardrails and three keys, of which one is disabled and two have a guardrail.
async fn insert_fixtures(database: &Database) {
    let workspaces = SeaOrmWorkspaceRepository::new(database.clone());
    let keys = SeaOrmApiKeyRepository::new(database.clone());
    let guardrails = SeaOrmGuardrailRepository::new(database.clone());
    workspaces.insert(&workspace(1), false, &audit()).await.unwrap();
    for number in 1..=3 {
        assert!(
            keys.insert(&key(number, ApiKeyScope::Inference(workspace_id(1))), &audit()).await.unwrap().is_inserted()
        );
    }
    for number in [1, 2] {
        assert!(guardrails.insert(&guardrail(number, 1), false, &audit()).await.unwrap());
    }
    domain::testing::assign_keys(&guardrails, guardrail_id(1), &[key_id(1).into(), key_id(2).into()], &Actor::system())
        .await
        .unwrap();
    assert!(set_disabled(&keys, key_id(3), true, LastKeyRule::Waived, &audit()).await.unwrap());
}

#[tokio::test]
async fn rows_stay_accounted_for_after_service_changes() {
    let folder = Folder::new();
    let database = folder.open().await;
    let workspaces = SeaOrmWorkspaceRepository::new(database.clone());
    let keys = SeaOrmApiKeyRepository::new(database.clone());
    let guardrails = SeaOrmGuardrailRepository::new(database.clone());
    let assert_whole = async |change: &str| {
        let found = verify(&database).await;
        assert!(found.is_verified(), "{change}: {:?} {:?}", found.violation, found.row_violations);
    };
    assert_whole("nothing").await;
    insert_fixtures(&database).await;
    assert_whole("insert_fixtures").await;
    add_credit(&workspaces, workspace_id(1), Usd::from_pico(5), &audit()).await.unwrap();
    assert_whole("credit").await;
    domain::testing::set_default_guardrail(&workspaces, workspace_id(1), Some(guardrail_id(1)), &audit())
        .await
        .unwrap();
    assert_whole("default").await;
    domain::testing::assign_keys(&guardrails, guardrail_id(2), &[key_id(2).into(), key_id(3).into()], &Actor::system())
        .await
        .unwrap();
    assert_whole("assign anew").await;
    domain::testing::remove_keys(&guardrails, guardrail_id(2), &[key_id(3).into(), key_id(1).into()], &Actor::system())
        .await
        .unwrap();
    assert_whole("unassign").await;
    delete_key(&keys, key_id(2), LastKeyRule::Waived, &audit()).await.unwrap();
    assert_whole("delete a key that holds a guardrail").await;
    let guardrail = guardrails.find(guardrail_id(1)).await.unwrap().unwrap();
    assert!(guardrails.delete(&PlacedGuardrail { guardrail, workspace_default: true }, &audit()).await.unwrap());
    assert_whole("delete a default guardrail that a key holds").await;
}

#[rstest]
#[case::key_changed("UPDATE api_keys SET disabled = 0", "api_keys", Some(3))]
#[case::limit_lifted("UPDATE api_keys SET limit_pico = 1", "api_keys", Some(1))]
#[case::hash_removed("UPDATE api_keys SET audit_hash = NULL", "api_keys", Some(1))]
#[case::key_deleted("DELETE FROM api_keys WHERE disabled = 1", "api_keys", None)]
#[case::guardrail_taken("UPDATE api_keys SET guardrail_id = NULL", "api_keys", None)]
#[case::guardrail_exchanged("UPDATE api_keys SET guardrail_id = (SELECT MAX(id) FROM guardrails)", "api_keys", None)]
#[case::rules("UPDATE guardrails SET rules = '{}  '", "guardrails", None)]
#[case::guardrails_deleted(
    "DELETE FROM guardrails WHERE id NOT IN (SELECT guardrail_id FROM api_keys WHERE \
                            guardrail_id IS NOT NULL)",
    "guardrails",
    None
)]
#[case::credit("UPDATE workspaces SET credit_pico = 1", "workspaces", None)]
#[case::sums("UPDATE audit_state SET keys_sum = zeroblob(32)", "audit_state", None)]
#[case::sums_of_a_wrong_length("UPDATE audit_state SET keys_sum = x'00'", "", None)]
#[tokio::test]
async fn verification_finds_rows_changed_outside_service(
    #[case] change: &str,
    #[case] table: &str,
    #[case] key_number: Option<u64>,
) {
    let folder = Folder::new();
    let database = folder.open().await;
    insert_fixtures(&database).await;
    assert!(verify(&database).await.is_verified());
    folder.execute(change).await;
    let found = verify(&database).await;
    assert!(!found.is_verified());
    if !table.is_empty() {
        assert!(found.violation.is_none(), "{found:?}");
        assert_eq!(found.row_violations[0].table, table, "{found:?}");
    }
    if let Some(number) = key_number {
        let named = key_id(number).to_string();
        assert!(found.row_violations.iter().any(|fault| fault.row == named), "{named} in {found:?}");
    }
    // A manipulation does not block changes, and a change does not hide the manipulation.
    SeaOrmWorkspaceRepository::new(database.clone()).insert(&workspace(2), false, &audit()).await.unwrap();
    assert!(!verify(&database).await.is_verified());
}

#[tokio::test]
async fn append_after_removed_end_keeps_gap() {
    let folder = Folder::new();
    let database = folder.open().await;
    let log = SeaOrmAuditLog::new(database.clone());
    for _ in 0..3 {
        log.append(&audit()).await.unwrap();
    }
    folder.execute("DELETE FROM audit_log WHERE seq = 3").await;
    assert!(matches!(verify(&database).await.violation, Some(AuditViolation::EndMissing { found: 2, .. })));
    assert_eq!(log.append(&audit()).await.unwrap().seq, 4, "no number is given twice");
    assert_eq!(verify(&database).await.violation, Some(AuditViolation::Gap { expected: 3, found: 4 }));
}

#[tokio::test]
async fn inserted_audit_rows_do_not_block_changes() {
    let folder = Folder::new();
    let database = folder.open().await;
    let log = SeaOrmAuditLog::new(database.clone());
    log.append(&audit()).await.unwrap();
    for number in ["-5", "2", "70"] {
        let copy = "at, actor, source, action, subject, outcome, details, previous_hash, hash, version, state";
        folder.execute(&format!("INSERT INTO audit_log SELECT {number}, {copy} FROM audit_log WHERE seq = 1")).await;
    }
    assert_eq!(log.append(&audit()).await.unwrap().seq, 71);
    assert_eq!(verify(&database).await.violation, Some(AuditViolation::ImpossibleNumber(-5)));
    folder.execute("DELETE FROM audit_log WHERE seq < 0").await;
    assert_eq!(verify(&database).await.violation, Some(AuditViolation::BrokenLink(2)));
    folder.execute("DELETE FROM audit_state").await;
    log.append(&audit()).await.unwrap();
    assert_eq!(verify(&database).await.violation, Some(AuditViolation::StateMissing));
}

/// A clock that advances with every reading.
#[derive(Debug, Default)]
struct AdvancingClock(FixedClock);

impl Clock for AdvancingClock {
    fn now(&self) -> chrono::DateTime<chrono::Utc> {
        self.0.advance(Duration::from_secs(1));
        self.0.now()
    }

    fn monotonic(&self) -> Duration {
        self.0.monotonic()
    }
}

#[tokio::test]
async fn change_has_one_time_in_its_rows_the_feed_and_the_log() {
    let folder = Folder::new();
    let database = open_by(&folder.settings(), Arc::new(AdvancingClock::default())).await;
    insert_fixtures(&database).await;
    let workspaces = SeaOrmWorkspaceRepository::new(database.clone());
    workspaces.insert(&workspace(2), false, &audit()).await.unwrap();
    let guardrails = SeaOrmGuardrailRepository::new(database);
    let assert_one_time = async |change: &str, times: &str| {
        let pool = folder.raw().await;
        let query = format!("SELECT at FROM (SELECT at FROM audit_log ORDER BY seq DESC LIMIT 1) UNION {times}");
        let found: Vec<i64> = query_scalar(AssertSqlSafe(query)).fetch_all(&pool).await.unwrap();
        assert_eq!(found.len(), 1, "{change}: {found:?}");
        pool.close().await;
    };
    let feed = "SELECT at FROM (SELECT created_at AS at FROM changes ORDER BY number DESC LIMIT 1)";
    domain::testing::assign_keys(&guardrails, guardrail_id(1), &[key_id(3).into()], &Actor::system()).await.unwrap();
    let assigned = "SELECT MAX(guardrail_assigned_at) FROM api_keys";
    assert_one_time("assignment", &format!("{feed} UNION {assigned}")).await;
    add_credit(&workspaces, workspace_id(1), Usd::from_pico(5), &audit()).await.unwrap();
    let began = "SELECT MAX(credit_began_at) FROM workspaces";
    assert_one_time("credit", &format!("{feed} UNION {began}")).await;
    let second = workspaces.find(workspace_id(2)).await.unwrap().unwrap();
    workspaces.delete(&second, false, 0, &audit()).await.unwrap();
    let deleted = "SELECT MAX(deleted_at) FROM workspaces";
    assert_one_time("deletion", &format!("{feed} UNION {deleted}")).await;
}
