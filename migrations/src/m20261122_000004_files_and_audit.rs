//! Limits on documents, and an audit log that accounts for its beginning, its end and its managed rows.

use sea_orm_migration::prelude::*;
use sea_orm_migration::sea_orm::{ConnectionTrait, QueryResult};

/// The migration of this module.
#[derive(DeriveMigrationName)]
pub struct Migration;

#[async_trait::async_trait]
impl MigrationTrait for Migration {
    async fn up(&self, manager: &SchemaManager) -> Result<(), DbErr> {
        for (table, column) in COUNTERS {
            let at_least_zero = Expr::col(*column).gte(0);
            let column = ColumnDef::new(*column).big_integer().not_null().default(0).check(at_least_zero).take();
            add(manager, table, column).await?;
        }
        add(manager, "audit_log", ColumnDef::new("version").big_integer().not_null().default(1).take()).await?;
        add(manager, "audit_log", ColumnDef::new("state").blob().take()).await?;
        for table in MANAGED {
            add(manager, table, ColumnDef::new("audit_hash").blob().take()).await?;
        }
        manager.create_table(audit_state()).await?;
        let connection = manager.get_connection();
        // Documents store their charged bytes, so that removing one releases the same amount.
        connection.execute_unprepared("UPDATE documents SET charged_bytes = size_bytes").await?;
        let count = "UPDATE workspaces SET document_count = \
                     (SELECT COUNT(*) FROM documents WHERE documents.workspace_id = workspaces.id)";
        connection.execute_unprepared(count).await?;
        begin_state(manager).await
    }

    async fn down(&self, manager: &SchemaManager) -> Result<(), DbErr> {
        manager.drop_table(Table::drop().table("audit_state").to_owned()).await?;
        let hashes = MANAGED.iter().map(|table| (*table, "audit_hash"));
        let of_log = [("audit_log", "version"), ("audit_log", "state")];
        for (table, column) in COUNTERS.iter().copied().chain(hashes).chain(of_log) {
            manager.alter_table(Table::alter().table(table).drop_column(column).to_owned()).await?;
        }
        Ok(())
    }
}

const COUNTERS: &[(&str, &str)] = &[("documents", "charged_bytes"), ("workspaces", "document_count")];

/// The tables that the audit log accounts for.
const MANAGED: &[&str] = &["api_keys", "guardrails", "workspaces"];

async fn add(manager: &SchemaManager<'_>, table: &'static str, mut column: ColumnDef) -> Result<(), DbErr> {
    // SQLite adds one column per statement.
    manager.alter_table(Table::alter().table(table).add_column(&mut column).to_owned()).await
}

/// The beginning and the end of the audit log, the entries that retention removed, and the sums of the managed rows.
fn audit_state() -> TableCreateStatement {
    let mut table = Table::create();
    table.table("audit_state").col(ColumnDef::new("id").integer().not_null().primary_key());
    for column in ["newest_seq", "removed_seq", "removed_count"] {
        table.col(ColumnDef::new(column).big_integer().not_null());
    }
    for column in HASHES {
        table.col(ColumnDef::new(*column).blob().not_null());
    }
    table.take()
}

const HASHES: &[&str] =
    &["newest_hash", "removed_hash", "keys_sum", "assignments_sum", "guardrails_sum", "workspaces_sum"];

/// Starts from the existing log: missing entries before the first one count as removed by retention.
async fn begin_state(manager: &SchemaManager<'_>) -> Result<(), DbErr> {
    let newest = end_of_log(manager, "hash", Order::Desc).await?;
    let oldest = end_of_log(manager, "previous_hash", Order::Asc).await?;
    let none = || vec![0_u8; 32];
    let (newest_seq, newest_hash) = newest.unwrap_or((0, none()));
    let (removed_seq, removed_hash) = oldest.map_or((0, none()), |(seq, hash)| (seq - 1, hash));
    let columns = ["id", "newest_seq", "removed_seq", "removed_count"].into_iter().chain(HASHES.iter().copied());
    let hashes = [newest_hash, removed_hash, none(), none(), none(), none()];
    let numbers: [Expr; 4] = [1.into(), newest_seq.into(), removed_seq.into(), removed_seq.into()];
    let values = numbers.into_iter().chain(hashes.into_iter().map(Expr::from));
    let mut insert = Query::insert();
    insert.into_table("audit_state").columns(columns).values_panic(values);
    manager.execute(insert).await
}

/// Returns the number of the first or last entry, and one of its hashes.
async fn end_of_log(
    manager: &SchemaManager<'_>,
    hash: &'static str,
    order: Order,
) -> Result<Option<(i64, Vec<u8>)>, DbErr> {
    let mut query = Query::select();
    query.columns(["seq", hash]).from("audit_log").order_by("seq", order).limit(1);
    let row: Option<QueryResult> = manager.get_connection().query_one(&query).await?;
    row.map(|row| Ok((row.try_get_by_index(0)?, row.try_get_by_index(1)?))).transpose()
}
