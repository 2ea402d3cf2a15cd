//! Allowances: parts of limits that processes draw, and the processes that hold them.

use sea_orm_migration::prelude::*;

/// The migration of this module.
#[derive(DeriveMigrationName)]
pub struct Migration;

#[async_trait::async_trait]
impl MigrationTrait for Migration {
    async fn up(&self, manager: &SchemaManager) -> Result<(), DbErr> {
        manager.create_table(budget_processes()).await?;
        manager.create_table(amounts("allowances")).await?;
        manager.create_table(amounts("adjustments")).await?;
        for (table, column) in columns() {
            // SQLite adds one column per statement.
            manager.alter_table(Table::alter().table(table).add_column(column).to_owned()).await?;
        }
        for index in indexes() {
            manager.create_index(index).await?;
        }
        // Reservations belong to ended processes: they are released.
        manager.drop_table(Table::drop().table("reservations").to_owned()).await?;
        let reserved = Table::alter().table("spend_counters").drop_column("reserved_pico").to_owned();
        manager.alter_table(reserved).await
    }

    async fn down(&self, manager: &SchemaManager) -> Result<(), DbErr> {
        manager.drop_index(Index::drop().name("spend_counters_recalled_at").table("spend_counters").to_owned()).await?;
        for (table, column) in columns() {
            let name = column.get_column_name();
            manager.alter_table(Table::alter().table(table).drop_column(name).to_owned()).await?;
        }
        for table in ["adjustments", "allowances", "budget_processes"] {
            manager.drop_table(Table::drop().table(table).to_owned()).await?;
        }
        let reserved = ColumnDef::new("reserved_pico").big_integer().not_null().default(0).take();
        manager.alter_table(Table::alter().table("spend_counters").add_column(reserved).to_owned()).await?;
        manager.create_table(reservations()).await?;
        let index = Index::create().name("reservations_expires_at").table("reservations").col("expires_at").take();
        manager.create_index(index).await
    }
}

fn columns() -> Vec<(&'static str, ColumnDef)> {
    let amount = |name: &'static str| ColumnDef::new(name).big_integer().not_null().default(0).take();
    let time = |name: &'static str| ColumnDef::new(name).big_integer().take();
    vec![
        ("spend_counters", amount("allotted_pico")),
        ("spend_counters", time("recalled_at")),
        ("workspaces", time("credit_began_at")),
        // Added to `credit_base_pico`: charges from before the credit that were folded after its start.
        ("workspaces", amount("credit_late_pico")),
    ]
}

/// The processes that draw allowances. `number` counts draws and returns, `last_reply` is the reply to the last draw.
fn budget_processes() -> TableCreateStatement {
    Table::create()
        .table("budget_processes")
        .col(ColumnDef::new("id").text().not_null().primary_key())
        .col(ColumnDef::new("number").big_integer().not_null())
        .col(ColumnDef::new("folded_sequence").big_integer().not_null())
        .col(ColumnDef::new("state").text().not_null())
        .col(ColumnDef::new("last_reply").text())
        .col(ColumnDef::new("registered_at").big_integer().not_null())
        .take()
}

/// Amounts of processes per counter, with the counter's name as in `spend_counters`.
fn amounts(table: &'static str) -> TableCreateStatement {
    let key = ["process_id", "scope", "subject", "interval"];
    let mut create = Table::create().table(table).take();
    for column in key {
        create.col(ColumnDef::new(column).text().not_null());
    }
    create.col(ColumnDef::new("period_start").big_integer().not_null());
    create.col(ColumnDef::new("amount_pico").big_integer().not_null());
    let mut primary = Index::create();
    for column in key {
        primary.col(column);
    }
    create.primary_key(primary.col("period_start"));
    create
}

/// The table as the previous migrations left it.
fn reservations() -> TableCreateStatement {
    let mut table =
        Table::create().table("reservations").col(ColumnDef::new("id").text().not_null().primary_key()).take();
    for column in ["workspace_id", "guardrails", "request_id", "requested_model", "attempts"] {
        table.col(ColumnDef::new(column).text().not_null());
    }
    table.col(ColumnDef::new("api_key").blob().not_null());
    for column in ["amount_pico", "reserved_at", "expires_at"] {
        table.col(ColumnDef::new(column).big_integer().not_null());
    }
    table
}

fn indexes() -> Vec<IndexCreateStatement> {
    let by_counter = |name: &'static str, table: &'static str| {
        let mut index = Index::create().name(name).table(table).take();
        for column in ["scope", "subject", "interval", "period_start"] {
            index.col(column);
        }
        index
    };
    vec![
        by_counter("allowances_counter", "allowances"),
        by_counter("adjustments_counter", "adjustments"),
        Index::create()
            .name("spend_counters_recalled_at")
            .table("spend_counters")
            .col("recalled_at")
            .cond_where(Expr::col("recalled_at").is_not_null())
            .take(),
        Index::create()
            .name("budget_processes_live")
            .table("budget_processes")
            .col("state")
            .cond_where(Expr::col("state").eq("live"))
            .take(),
    ]
}
