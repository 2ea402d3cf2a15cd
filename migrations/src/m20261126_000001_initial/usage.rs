//! Usage records, and the numbers of rejected requests.

use sea_orm_migration::prelude::*;
use sea_orm_migration::sea_orm::DbBackend;

use super::columns::{
    bytes, index, integer, key, keyed_table, number, optional_bytes, optional_number, optional_text, table, text,
};

/// The table of the usage records.
pub(super) const RECORDS: &str = "usage_records";

/// Creates the table of the usage records. On PostgreSQL it has a partition a month, so that a month is dropped as a
/// whole: ids begin with their time, so ranges of ids are ranges of time, and ids stay unique. Servers create the
/// partitions of the months; the default one takes everything else. SQLite has no partitions.
pub(super) async fn create_records(manager: &SchemaManager<'_>) -> Result<(), DbErr> {
    let records = records();
    if manager.get_database_backend() == DbBackend::Sqlite {
        return manager.create_table(records).await;
    }
    // The builder of statements has no partitions.
    let create = format!(
        "{} PARTITION BY RANGE (id); CREATE TABLE {RECORDS}_other PARTITION OF {RECORDS} DEFAULT",
        records.to_string(PostgresQueryBuilder)
    );
    manager.get_connection().execute_unprepared(&create).await.map(drop)
}

pub(super) fn tables() -> Vec<TableCreateStatement> {
    vec![record_bytes(), rejections()]
}

pub(super) fn indexes() -> Vec<IndexCreateStatement> {
    vec![
        index("usage_records_workspace_id", RECORDS, &["workspace_id", "created_at"]),
        index("usage_records_key", RECORDS, &["api_key", "created_at"]),
        index("usage_records_charged_at", RECORDS, &["charged_at"]),
        index("rejections_by_hour", "rejections", &["hour"]),
    ]
}

/// The records have no foreign keys: they outlive keys and workspaces, and no record can fail the batch that it is
/// written with. Null stands for the usual value: the model's own name, reported usage, a whole cost, no guardrail.
fn records() -> TableCreateStatement {
    let columns = vec![
        bytes("id"),
        bytes("workspace_id"),
        bytes("api_key"),
        bytes("request_id"),
        optional_text("requested_model"),
        text("model"),
        text("provider"),
        text("outcome"),
        number("input_tokens"),
        number("output_tokens"),
        optional_text("usage_source"),
        number("cost_pico"),
        text("prompt_price"),
        text("completion_price"),
        text("attempts"),
        optional_text("session_id"),
        optional_text("trace"),
        optional_text("user"),
        number("created_at"),
        number("latency_us"),
        optional_number("share_index"),
        optional_number("share_of"),
        optional_bytes("guardrails"),
        number("charged_at"),
        optional_text("findings"),
        optional_bytes("client_address"),
    ];
    keyed_table(RECORDS, columns, &["id"])
}

/// The bytes of usage records that each workspace wrote on the UTC day of its last record. A row restarts at zero on
/// another day, so the table needs no cleanup.
fn record_bytes() -> TableCreateStatement {
    table("record_bytes", [key(text("workspace_id")), number("day"), number("bytes")])
}

/// The number of rejected requests per key, status, reason and hour. Rows of a deleted key stay, as its usage records
/// do. Management keys have no workspace.
fn rejections() -> TableCreateStatement {
    let columns = [
        bytes("api_key"),
        number("hour"),
        integer("status"),
        text("reason"),
        optional_bytes("workspace_id"),
        number("requests"),
    ];
    keyed_table("rejections", columns, &["api_key", "hour", "status", "reason"])
}
