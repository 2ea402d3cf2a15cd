//! The tables for limits, guardrails, the audit log and broadcasting.
//!
//! Spend is counted per account and period beside the ledger, so that a limit check reads one row. Existing ledger
//! records are counted here.

use sea_orm_migration::prelude::*;

use crate::older_data::holds_older_data;

/// The migration of this module.
#[derive(DeriveMigrationName)]
pub struct Migration;

const COLUMNS: &[(&str, &[&str])] = &[
    (
        "workspaces",
        &[
            "credit_base_pico",
            "budget_daily_pico",
            "budget_weekly_pico",
            "budget_monthly_pico",
            "budget_lifetime_pico",
            "requests_per_minute",
            "tokens_per_minute",
        ],
    ),
    ("api_keys", &["requests_per_minute", "tokens_per_minute", "guardrail_assigned_at"]),
    ("guardrails", &["updated_at", "limit_pico"]),
];

#[async_trait::async_trait]
impl MigrationTrait for Migration {
    async fn up(&self, manager: &SchemaManager) -> Result<(), DbErr> {
        for (table, columns) in COLUMNS {
            for column in *columns {
                add(manager, table, ColumnDef::new(*column).big_integer().take()).await?;
            }
        }
        add(manager, "workspaces", ColumnDef::new("default_guardrail_id").text().take()).await?;
        add(manager, "api_keys", ColumnDef::new("guardrail_assigned_by").text().take()).await?;
        add(manager, "guardrails", ColumnDef::new("limit_reset").text().take()).await?;
        add(manager, "guardrails", ColumnDef::new("version").big_integer().not_null().default(1).take()).await?;
        add(manager, "guardrails", ColumnDef::new("rules").text().not_null().default("{}").take()).await?;
        add(manager, "usage_records", ColumnDef::new("guardrails").text().not_null().default("[]").take()).await?;
        add(manager, "usage_records", ColumnDef::new("charged_at").big_integer().not_null().default(0).take()).await?;
        add(manager, "usage_records", ColumnDef::new("findings").text().take()).await?;
        add(manager, "change_feed", ColumnDef::new("observability").big_integer().not_null().default(0).take()).await?;
        for table in [guardrail_versions(), spend_counters(), reservations(), audit_log(), destinations(), outbox()] {
            manager.create_table(table).await?;
        }
        for index in indexes() {
            manager.create_index(index).await?;
        }
        if holds_older_data(manager) { count_records(manager).await } else { Ok(()) }
    }

    async fn down(&self, manager: &SchemaManager) -> Result<(), DbErr> {
        for table in ["outbox", "destinations", "audit_log", "reservations", "spend_counters", "guardrail_versions"] {
            manager.drop_table(Table::drop().table(table).to_owned()).await?;
        }
        for name in ["usage_records_key", "usage_records_charged_at"] {
            manager.drop_index(Index::drop().name(name).table("usage_records").to_owned()).await?;
        }
        let single = [
            ("workspaces", "default_guardrail_id"),
            ("api_keys", "guardrail_assigned_by"),
            ("guardrails", "limit_reset"),
            ("guardrails", "version"),
            ("guardrails", "rules"),
            ("usage_records", "guardrails"),
            ("usage_records", "charged_at"),
            ("usage_records", "findings"),
            ("change_feed", "observability"),
        ];
        for (table, columns) in COLUMNS {
            for column in *columns {
                drop_column(manager, table, column).await?;
            }
        }
        for (table, column) in single {
            drop_column(manager, table, column).await?;
        }
        Ok(())
    }
}

/// Counts the existing records of the ledger.
async fn count_records(manager: &SchemaManager<'_>) -> Result<(), DbErr> {
    let connection = manager.get_connection();
    connection.execute_unprepared("UPDATE usage_records SET charged_at = created_at").await?;
    for (scope, subject) in [("workspace", "workspace_id"), ("key", "lower(hex(api_key))")] {
        for (interval, start) in PERIODS {
            let count = format!(
                "INSERT INTO spend_counters (scope, subject, interval, period_start, spent_pico, reserved_pico) \
                 SELECT '{scope}', {subject}, '{interval}', {start}, SUM(cost_pico), 0 FROM usage_records \
                 GROUP BY 2, 4"
            );
            connection.execute_unprepared(&count).await?;
        }
    }
    // Until now a balance was only recorded, so earlier spend does not count against it.
    let base = "UPDATE workspaces SET credit_base_pico = COALESCE((SELECT spent_pico FROM spend_counters \
                WHERE scope = 'workspace' AND subject = workspaces.id AND interval = 'total'), 0)";
    connection.execute_unprepared(base).await?;
    connection
        .execute_unprepared(
            "INSERT INTO guardrail_versions (guardrail_id, version, name, rules, changed_at, changed_by) \
             SELECT id, version, name, rules, created_at, 'migration' FROM guardrails",
        )
        .await?;
    Ok(())
}

/// Period names with the start of a row's own period in Unix milliseconds. The epoch was a Thursday.
const PERIODS: [(&str, &str); 4] = [
    ("total", "0"),
    ("daily", "charged_at - charged_at % 86400000"),
    ("weekly", "charged_at - (charged_at + 259200000) % 604800000"),
    ("monthly", "CAST(strftime('%s', charged_at / 1000, 'unixepoch', 'start of month') AS INTEGER) * 1000"),
];

async fn add(manager: &SchemaManager<'_>, table: &'static str, mut column: ColumnDef) -> Result<(), DbErr> {
    // SQLite adds one column per statement.
    manager.alter_table(Table::alter().table(table).add_column(&mut column).to_owned()).await
}

async fn drop_column(manager: &SchemaManager<'_>, table: &'static str, column: &'static str) -> Result<(), DbErr> {
    manager.alter_table(Table::alter().table(table).drop_column(column).to_owned()).await
}

/// Every version of every guardrail, including the current one.
fn guardrail_versions() -> TableCreateStatement {
    Table::create()
        .table("guardrail_versions")
        .col(ColumnDef::new("guardrail_id").text().not_null())
        .col(ColumnDef::new("version").big_integer().not_null())
        .col(ColumnDef::new("name").text().not_null())
        .col(ColumnDef::new("rules").text().not_null())
        .col(ColumnDef::new("limit_pico").big_integer())
        .col(ColumnDef::new("limit_reset").text())
        .col(ColumnDef::new("changed_at").big_integer().not_null())
        .col(ColumnDef::new("changed_by").text().not_null())
        .primary_key(Index::create().col("guardrail_id").col("version"))
        .take()
}

/// Spent and reserved amounts by account and period. `subject` is a workspace's id, a key's hash in hex, or a
/// guardrail's id and a key's hash with a colon between them. `interval` is `total`, `daily`, `weekly`, `monthly`, or
/// `archived` for the cost of records that retention removed.
fn spend_counters() -> TableCreateStatement {
    Table::create()
        .table("spend_counters")
        .col(ColumnDef::new("scope").text().not_null())
        .col(ColumnDef::new("subject").text().not_null())
        .col(ColumnDef::new("interval").text().not_null())
        .col(ColumnDef::new("period_start").big_integer().not_null())
        .col(ColumnDef::new("spent_pico").big_integer().not_null())
        .col(ColumnDef::new("reserved_pico").big_integer().not_null())
        .primary_key(Index::create().col("scope").col("subject").col("interval").col("period_start"))
        .take()
}

/// Reserved amounts of requests in flight.
fn reservations() -> TableCreateStatement {
    Table::create()
        .table("reservations")
        .col(ColumnDef::new("id").text().not_null().primary_key())
        .col(ColumnDef::new("workspace_id").text().not_null())
        .col(ColumnDef::new("api_key").blob().not_null())
        .col(ColumnDef::new("guardrails").text().not_null())
        .col(ColumnDef::new("request_id").text().not_null())
        .col(ColumnDef::new("requested_model").text().not_null())
        .col(ColumnDef::new("attempts").text().not_null())
        .col(ColumnDef::new("amount_pico").big_integer().not_null())
        .col(ColumnDef::new("reserved_at").big_integer().not_null())
        .col(ColumnDef::new("expires_at").big_integer().not_null())
        .take()
}

/// The audit log; the hash of each entry covers the previous one.
fn audit_log() -> TableCreateStatement {
    Table::create()
        .table("audit_log")
        .col(ColumnDef::new("seq").big_integer().not_null().primary_key())
        .col(ColumnDef::new("at").big_integer().not_null())
        .col(ColumnDef::new("actor").text().not_null())
        .col(ColumnDef::new("source").text())
        .col(ColumnDef::new("action").text().not_null())
        .col(ColumnDef::new("subject").text().not_null())
        .col(ColumnDef::new("outcome").text().not_null())
        .col(ColumnDef::new("details").text().not_null())
        .col(ColumnDef::new("previous_hash").blob().not_null())
        .col(ColumnDef::new("hash").blob().not_null())
        .take()
}

/// Destinations of broadcast traces. `config` is JSON with secrets.
fn destinations() -> TableCreateStatement {
    Table::create()
        .table("destinations")
        .col(ColumnDef::new("id").text().not_null().primary_key())
        .col(ColumnDef::new("workspace_id").text().not_null())
        .col(ColumnDef::new("kind").text().not_null())
        .col(ColumnDef::new("name").text().not_null())
        .col(ColumnDef::new("config").text().not_null())
        .col(ColumnDef::new("enabled").boolean().not_null())
        .col(ColumnDef::new("created_at").big_integer().not_null())
        .col(ColumnDef::new("updated_at").big_integer())
        .take()
}

/// Pending and failed deliveries.
fn outbox() -> TableCreateStatement {
    Table::create()
        .table("outbox")
        .col(ColumnDef::new("id").text().not_null().primary_key())
        .col(ColumnDef::new("destination_id").text().not_null())
        .col(ColumnDef::new("payload").text().not_null())
        .col(ColumnDef::new("state").text().not_null())
        .col(ColumnDef::new("attempts").big_integer().not_null())
        .col(ColumnDef::new("next_at").big_integer().not_null())
        .col(ColumnDef::new("last_error").text())
        .col(ColumnDef::new("created_at").big_integer().not_null())
        .take()
}

fn indexes() -> Vec<IndexCreateStatement> {
    [
        ("usage_records_key", "usage_records", &["api_key", "created_at", "id"][..]),
        ("usage_records_charged_at", "usage_records", &["charged_at"]),
        ("spend_counters_period", "spend_counters", &["period_start"]),
        ("reservations_expires_at", "reservations", &["expires_at"]),
        ("audit_log_at", "audit_log", &["at"]),
        ("destinations_workspace_id", "destinations", &["workspace_id", "created_at"]),
        ("outbox_due", "outbox", &["state", "next_at"]),
        ("outbox_destination_id", "outbox", &["destination_id", "state", "next_at"]),
    ]
    .into_iter()
    .map(|(name, table, columns)| {
        let mut index = Index::create().name(name).table(table).take();
        for column in columns {
            index.col(*column);
        }
        index
    })
    .collect()
}
