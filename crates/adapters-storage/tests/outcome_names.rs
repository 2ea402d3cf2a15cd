//! The migration that renames outcomes of attempts and sources of token counts.
#![expect(clippy::unwrap_used, reason = "a test fails by panicking")]

mod common;

use common::*;
use domain::usage::{UsageRecord, UsageSource};
use migrations::{Migrator, MigratorTrait};
use sea_orm::SqlxSqliteConnector;

const STEP: &str = "m20261123_000012_outcome_names";

async fn step_down(folder: &Folder) {
    let raw = SqlxSqliteConnector::from_sqlx_sqlite_pool(folder.raw().await);
    Migrator::down(&raw, Some(steps_from(STEP))).await.unwrap();
}

/// Writes the row of `record` as the previous version did, migrates, and reads it.
async fn migrated(outcome: &str, source: Option<&str>, tokens: u32, attempts: &str) -> UsageRecord {
    let folder = Folder::new();
    let database = folder.open().await;
    let records = Records::over(database.clone());
    records.record(usage(1, 1)).await.unwrap();
    step_down(&folder).await;
    let source = source.map_or("NULL".to_owned(), |source| format!("'{source}'"));
    folder
        .execute(&format!(
            "UPDATE usage_records SET outcome = '{outcome}', token_source = {source}, input_tokens = {tokens}, \
             output_tokens = 0, attempts = '{attempts}'"
        ))
        .await;
    database.migrate().await.unwrap();
    records.find(&decision_id(1)).await.unwrap().unwrap()
}

fn outcomes(record: &UsageRecord) -> Vec<(&str, UsageSource)> {
    record.attempts.iter().map(|attempt| (attempt.outcome.as_str(), attempt.usage_source)).collect()
}

#[tokio::test]
async fn migration_renames_outcomes_by_the_stored_cause() {
    use UsageSource::{None as Unused, Reported, UpperBound};
    let attempts = r#"[{"r":"broken","s":500,"l":1},{"r":"broken","s":200,"l":1,"i":7,"t":"reported"},
        {"r":"broken","l":1,"i":9},{"r":"unauthorised","s":401,"l":1,"t":"reported"},
        {"r":"refused","s":400,"l":1,"t":"reported"},{"r":"not_answered","s":200,"l":1,"i":3,"t":"reported"},
        {"r":"caller_gone","l":1,"i":4},{"r":"connect_error","l":1,"t":"reported"},{"l":1,"t":"reported"}]"#;
    let record = migrated("completed", Some("bound"), 500, attempts).await;
    assert_eq!(record.usage_source, UpperBound);
    let expected = [
        ("http_error", UpperBound),
        ("invalid_response", Reported),
        ("connect_error", UpperBound),
        ("provider_auth_failed", Unused),
        ("rejected_by_provider", Unused),
        ("no_usable_answer", Reported),
        ("client_disconnected", UpperBound),
        ("connect_error", Unused),
        ("completed", Reported),
    ];
    assert_eq!(outcomes(&record), expected);
}

#[tokio::test]
async fn migration_marks_attempts_without_usage() {
    let attempts = r#"[{"r":"unauthorised","s":401,"l":1},{"r":"overloaded","s":429,"l":1}]"#;
    let failed = migrated("failed", None, 0, attempts).await;
    assert_eq!(failed.usage_source, UsageSource::None);
    let expected = [("provider_auth_failed", UsageSource::None), ("overloaded", UsageSource::None)];
    assert_eq!(outcomes(&failed), expected);
    let completed = migrated("completed", None, 5, r#"[{"r":"broken","s":404,"l":1},{"l":1}]"#).await;
    assert_eq!(completed.usage_source, UsageSource::Reported);
    assert_eq!(outcomes(&completed), [("http_error", UsageSource::None), ("completed", UsageSource::Reported)]);
}

#[tokio::test]
async fn migration_renames_values_under_the_long_names_of_old_rows() {
    let attempts = r#"[{"provider":"p","upstream_model":"m","outcome":"broken","upstream_status":404,"latency_us":1},
        {"provider":"p","upstream_model":"m","outcome":"completed","latency_us":1,"token_source":"bound"}]"#;
    let record = migrated("completed", Some("bound"), 5, attempts).await;
    let expected = [("http_error", UsageSource::UpperBound), ("completed", UsageSource::UpperBound)];
    assert_eq!(outcomes(&record), expected);
}

#[tokio::test]
async fn migration_leaves_damaged_attempts_alone() {
    let folder = Folder::new();
    let database = folder.open().await;
    let records = Records::over(database.clone());
    records.record(usage(1, 1)).await.unwrap();
    for damage in ["{", "7", "[1, \"x\"]"] {
        step_down(&folder).await;
        folder.execute(&format!("UPDATE usage_records SET token_source = 'bound', attempts = '{damage}'")).await;
        database.migrate().await.unwrap();
        assert_eq!(folder.count(&format!("usage_records WHERE attempts = '{damage}'")).await, 1, "{damage}");
        assert!(records.find(&decision_id(1)).await.is_err());
    }
}

#[tokio::test]
async fn migration_rewrites_traces_in_the_outbox_and_nothing_else_of_them() {
    let attribute = |key: &str, value: &str| format!(r#"{{"key":"{key}","value":{{"stringValue":"{value}"}}}}"#);
    let trace = |outcome: &str, key: &str, source: &str| {
        let operation = [attribute(&format!("tollgate.{key}"), source), attribute("user.id", "broken")].join(",");
        let attempt = [
            attribute("tollgate.attempt.outcome", outcome),
            attribute(&format!("tollgate.attempt.{key}"), "reported"),
            r#"{"key":"http.response.status_code","value":{"intValue":"500"}}"#.to_owned(),
            attribute("error.type", outcome),
        ];
        let message = format!(r#""status":{{"code":2,"message":"every attempt failed; the last one: {outcome}"}}"#);
        let status = format!(r#""status":{{"code":2,"message":"{outcome}"}}"#);
        format!(r#"[{{"attributes":[{operation}],{message}}},{{"attributes":[{}],{status}}}]"#, attempt.join(","))
    };
    let folder = Folder::new();
    let database = folder.open().await;
    step_down(&folder).await;
    for (id, old) in [("a", "broken"), ("b", "caller_gone")] {
        folder
            .execute(&format!(
                "INSERT INTO outbox (id, destination_id, payload, state, attempts, next_at, created_at) \
                 VALUES ('{id}', 'd', '{}', 'due', 0, 0, 0)",
                trace(old, "token_source", "bound")
            ))
            .await;
    }
    database.migrate().await.unwrap();
    for (id, new) in [("a", "http_error"), ("b", "client_disconnected")] {
        let expected = trace(new, "usage_source", "upper_bound");
        assert_eq!(folder.count(&format!("outbox WHERE id = '{id}' AND payload = '{expected}'")).await, 1, "{id}");
    }
    step_down(&folder).await;
    let former = trace("broken", "token_source", "bound");
    assert_eq!(folder.count(&format!("outbox WHERE id = 'a' AND payload = '{former}'")).await, 1);
}
