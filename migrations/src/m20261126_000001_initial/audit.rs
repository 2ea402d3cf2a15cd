//! The audit log, and its account of the managed rows.

use sea_orm_migration::prelude::*;

use super::columns::{bytes, index, integer, key, number, optional_bytes, optional_text, table, text};

pub(super) fn tables() -> Vec<TableCreateStatement> {
    vec![audit_log(), audit_state()]
}

pub(super) fn indexes() -> Vec<IndexCreateStatement> {
    vec![index("audit_log_at", "audit_log", &["at"])]
}

/// The hash of each entry covers the previous one.
fn audit_log() -> TableCreateStatement {
    let columns = [
        key(number("seq")),
        number("at"),
        text("actor"),
        optional_text("source"),
        text("action"),
        text("subject"),
        text("outcome"),
        text("details"),
        bytes("previous_hash"),
        bytes("hash"),
        number("version").default(1).take(),
        optional_bytes("state"),
    ];
    table("audit_log", columns)
}

const NUMBERS: [&str; 3] = ["newest_seq", "removed_seq", "removed_count"];
const HASHES: [&str; 6] =
    ["newest_hash", "removed_hash", "keys_sum", "assignments_sum", "guardrails_sum", "workspaces_sum"];

/// One row: the beginning and the end of the audit log, the entries that retention removed, and the sums of the managed
/// rows.
fn audit_state() -> TableCreateStatement {
    let columns = [key(integer("id"))].into_iter().chain(NUMBERS.map(number)).chain(HASHES.map(bytes));
    table("audit_state", columns)
}

pub(super) async fn insert_first_row(manager: &SchemaManager<'_>) -> Result<(), DbErr> {
    let columns = ["id"].into_iter().chain(NUMBERS).chain(HASHES);
    let numbers = [1, 0, 0, 0].map(Expr::from);
    let values = numbers.into_iter().chain(HASHES.map(|_| vec![0_u8; 32].into()));
    manager.execute(Query::insert().into_table("audit_state").columns(columns).values_panic(values).to_owned()).await
}
