//! Ids of API keys that survive a rotation of the secret, and that records, counters and filters refer to.

use sea_orm_migration::prelude::*;

use crate::older_data::holds_older_data;

/// The migration of this module.
#[derive(DeriveMigrationName)]
pub struct Migration;

const KEYS: &str = "api_keys";
const OLD: &str = "api_keys_old";

#[async_trait::async_trait]
impl MigrationTrait for Migration {
    async fn up(&self, manager: &SchemaManager) -> Result<(), DbErr> {
        let id = ColumnDef::new("id").blob().not_null().primary_key().check(Expr::cust("length(id) = 16")).take();
        let hash = ColumnDef::new("hash").blob().not_null().unique_key().take();
        rebuild(manager, vec![id, hash], "id, hash", &format!("{FRESH_ID}, hash")).await?;
        let names = Names { from: "hash", to: "id", text_from: unhex, text_to: uuid, missing: "substr({}, 1, 16)" };
        names.replace(manager).await?;
        rewrite(manager, &filters("api_key_hashes", "api_key_ids", &uuid(&names.of("unhex(filter.value)")))).await
    }

    async fn down(&self, manager: &SchemaManager) -> Result<(), DbErr> {
        let missing = "unhex(hex({}) || hex(zeroblob(16)))";
        let names = Names { from: "id", to: "hash", text_from: bytes, text_to: hex, missing };
        names.replace(manager).await?;
        let hash = hex(&names.of(&bytes("filter.value")));
        rewrite(manager, &filters("api_key_ids", "api_key_hashes", &hash)).await?;
        let hash = ColumnDef::new("hash").blob().not_null().primary_key().take();
        rebuild(manager, vec![hash], "hash", "hash").await
    }
}

/// A UUIDv7 with the key's creation time: 48 bits of Unix milliseconds, the version, 12 random bits, the variant, 62
/// random bits.
const FRESH_ID: &str = "unhex(printf('%012x', max(created_at, 0) & 281474976710655) || \
    '7' || substr(hex(randomblob(2)), 1, 3) || \
    substr('89AB', 1 + (random() & 3), 1) || substr(hex(randomblob(8)), 1, 15))";

/// The unchanged columns.
const COLUMNS: &str = "label, name, scope, workspace_id, disabled, deleted, expires_at, limit_pico, limit_reset, \
                       guardrail_id, created_at, requests_per_minute, tokens_per_minute, guardrail_assigned_at, \
                       guardrail_assigned_by, audit_hash";

/// Copies the table of keys into one with other id columns, in row order. No foreign key refers to it; its indexes are
/// dropped with the old table.
async fn rebuild(manager: &SchemaManager<'_>, names: Vec<ColumnDef>, columns: &str, values: &str) -> Result<(), DbErr> {
    manager.rename_table(Table::rename().table(KEYS, OLD).to_owned()).await?;
    manager.create_table(table(names)).await?;
    let copy =
        format!("INSERT INTO {KEYS} ({columns}, {COLUMNS}) SELECT {values}, {COLUMNS} FROM {OLD} ORDER BY rowid");
    rewrite(manager, &copy).await?;
    manager.drop_table(Table::drop().table(OLD).to_owned()).await?;
    for (name, columns) in
        [("api_keys_workspace_id", &["workspace_id", "created_at"][..]), ("api_keys_guardrail_id", &["guardrail_id"])]
    {
        let mut index = Index::create().name(name).table(KEYS).take();
        for column in columns {
            index.col(*column);
        }
        manager.create_index(index).await?;
    }
    Ok(())
}

fn table(names: Vec<ColumnDef>) -> TableCreateStatement {
    let scope_fits =
        Expr::col("scope")
            .eq("management")
            .and(Expr::col("workspace_id").is_null())
            .or(Expr::col("scope").eq("inference").and(Expr::col("workspace_id").is_not_null()));
    let mut table = Table::create().table(KEYS).take();
    for column in names.into_iter().chain(COLUMNS.split(", ").map(column)) {
        table.col(column);
    }
    for (column, to) in [("workspace_id", "workspaces"), ("guardrail_id", "guardrails")] {
        let mut reference = ForeignKey::create();
        table.foreign_key(reference.name(format!("{KEYS}_{column}")).from(KEYS, column).to(to, "id"));
    }
    table.check(scope_fits).take()
}

fn column(name: &'static str) -> ColumnDef {
    let mut column = ColumnDef::new(name);
    match name {
        "label" | "name" | "scope" => column.text().not_null(),
        "disabled" | "deleted" => column.boolean().not_null(),
        "created_at" => column.big_integer().not_null(),
        "workspace_id" | "limit_reset" | "guardrail_id" | "guardrail_assigned_by" => column.text(),
        "audit_hash" => column.blob(),
        _ => column.big_integer(),
    };
    column
}

/// The replacement of key references by another kind of references.
struct Names {
    from: &'static str,
    to: &'static str,
    /// Converts the text of a reference to its bytes.
    text_from: fn(&str) -> String,
    /// Converts the bytes of a reference to its text.
    text_to: fn(&str) -> String,
    /// The reference of a key that never existed: the same everywhere, so that the ledger still balances.
    missing: &'static str,
}

impl Names {
    /// Returns the new reference for an old one, both as bytes.
    fn of(&self, old: &str) -> String {
        let Self { from, to, missing, .. } = self;
        let missing = missing.replace("{}", old);
        format!("COALESCE((SELECT {KEYS}.{to} FROM {KEYS} WHERE {KEYS}.{from} = {old}), {missing})")
    }

    async fn replace(&self, manager: &SchemaManager<'_>) -> Result<(), DbErr> {
        manager.drop_index(Index::drop().name("usage_records_key").table("usage_records").to_owned()).await?;
        for table in ["usage_records", "idempotency_claims"] {
            let new = self.of(&format!("{table}.api_key"));
            rewrite(manager, &format!("UPDATE {table} SET api_key = {new}")).await?;
        }
        let mut index = Index::create().name("usage_records_key").table("usage_records").take();
        manager.create_index(index.col("api_key").col("created_at").take()).await?;
        for table in ["spend_counters", "allowances", "adjustments"] {
            // The subject is `<key>`, or `<guardrail>:<key>` with a guardrail id of 36 characters.
            for (scope, prefix) in [("key", 0), ("guardrail", 37)] {
                let old = (self.text_from)(&format!("substr({table}.subject, {})", prefix + 1));
                let new = (self.text_to)(&self.of(&old));
                let update = format!(
                    "UPDATE {table} SET subject = substr(subject, 1, {prefix}) || {new} \
                     WHERE scope = '{scope}' AND {old} IS NOT NULL"
                );
                rewrite(manager, &update).await?;
            }
        }
        // Replies contain account names, too. No process repeats a call across a migration.
        rewrite(manager, "UPDATE budget_processes SET last_reply = NULL").await
    }
}

/// Replaces the keys in the filters of destinations.
fn filters(from: &str, to: &str, key: &str) -> String {
    let keys = format!("(SELECT json_group_array({key}) FROM json_each(destinations.config, '$.{from}') AS filter)");
    format!(
        "UPDATE destinations SET config = json_set(json_remove(config, '$.{from}'), '$.{to}', json({keys})) \
         WHERE json_valid(config) AND json_type(config, '$.{from}') = 'array'"
    )
}

fn unhex(text: &str) -> String {
    format!("unhex({text})")
}

fn hex(bytes: &str) -> String {
    format!("lower(hex({bytes}))")
}

/// Returns the bytes of a hyphenated UUID.
fn bytes(text: &str) -> String {
    format!("unhex(replace({text}, '-', ''))")
}

/// Returns the hyphenated text of a UUID.
fn uuid(bytes: &str) -> String {
    format!(
        "(SELECT lower(substr(digits, 1, 8) || '-' || substr(digits, 9, 4) || '-' || substr(digits, 13, 4) || '-' || \
         substr(digits, 17, 4) || '-' || substr(digits, 21)) FROM (SELECT hex({bytes}) AS digits))"
    )
}

/// Changes existing rows.
async fn rewrite(manager: &SchemaManager<'_>, statement: &str) -> Result<(), DbErr> {
    if !holds_older_data(manager) {
        return Ok(());
    }
    manager.get_connection().execute_unprepared(statement).await.map(drop)
}
