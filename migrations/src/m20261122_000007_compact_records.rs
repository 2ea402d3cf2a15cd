//! Usage records in less space: ids as bytes, no redundant values, shorter indexes.

use sea_orm_migration::prelude::*;

use crate::older_data::holds_older_data;

/// The migration of this module.
#[derive(DeriveMigrationName)]
pub struct Migration;

const TABLE: &str = "usage_records";
const OLD: &str = "usage_records_old";

#[async_trait::async_trait]
impl MigrationTrait for Migration {
    async fn up(&self, manager: &SchemaManager) -> Result<(), DbErr> {
        rebuild(manager, compact(), COMPACTED, &[&["workspace_id", "created_at"], &["api_key", "created_at"]]).await
    }

    async fn down(&self, manager: &SchemaManager) -> Result<(), DbErr> {
        let indexes: [&[&str]; 2] = [&["workspace_id", "created_at", "id"], &["api_key", "created_at", "id"]];
        rebuild(manager, whole(), SPREAD, &indexes).await
    }
}

/// Copies the table into one with another schema, in row order. Indexes are dropped with the old table.
async fn rebuild(
    manager: &SchemaManager<'_>,
    table: TableCreateStatement,
    values: &str,
    indexes: &[&[&'static str]],
) -> Result<(), DbErr> {
    manager.rename_table(Table::rename().table(TABLE, OLD).to_owned()).await?;
    manager.create_table(table).await?;
    if holds_older_data(manager) {
        let copy = format!("INSERT INTO {TABLE} ({COLUMNS}) SELECT {values} FROM {OLD} ORDER BY rowid");
        manager.get_connection().execute_unprepared(&copy).await?;
    }
    manager.drop_table(Table::drop().table(OLD).to_owned()).await?;
    let names = ["usage_records_workspace_id", "usage_records_key", "usage_records_charged_at"];
    for (name, columns) in names.into_iter().zip(indexes.iter().copied().chain([&["charged_at"][..]])) {
        let mut index = Index::create().name(name).table(TABLE).take();
        for column in columns {
            index.col(*column);
        }
        manager.create_index(index).await?;
    }
    Ok(())
}

const COLUMNS: &str = "id, workspace_id, api_key, request_id, requested_model, model, provider, outcome, input_tokens, \
                       output_tokens, token_source, cost_pico, prompt_price, completion_price, attempts, session_id, \
                       trace, \"user\", created_at, latency_us, share_index, share_of, guardrails, charged_at, findings";

/// The 16 bytes of UUIDs in their usual form; the text of other ids, after a byte 255 if it is as long as a UUID. Null
/// represents the model's name, `reported`, a whole cost, or no guardrail.
const COMPACTED: &str = "\
    CASE WHEN length(id) = 40 AND 'gen-dec-' || lower(hex(unhex(substr(id, 9)))) = id THEN unhex(substr(id, 9)) \
         WHEN length(id) = 16 THEN unhex('ff' || hex(id)) ELSE CAST(id AS BLOB) END, \
    COALESCE(unhex(replace(workspace_id, '-', '')), CAST(workspace_id AS BLOB)), api_key, \
    CASE WHEN length(request_id) = 36 AND request_id = lower(substr(replace(request_id, '-', ''), 1, 8) || '-' || \
              substr(replace(request_id, '-', ''), 9, 4) || '-' || substr(replace(request_id, '-', ''), 13, 4) || '-' || \
              substr(replace(request_id, '-', ''), 17, 4) || '-' || substr(replace(request_id, '-', ''), 21)) \
              AND length(unhex(replace(request_id, '-', ''))) = 16 THEN unhex(replace(request_id, '-', '')) \
         WHEN length(request_id) = 16 THEN unhex('ff' || hex(request_id)) ELSE CAST(request_id AS BLOB) END, \
    NULLIF(requested_model, model), model, provider, outcome, input_tokens, output_tokens, \
    NULLIF(token_source, 'reported'), cost_pico, prompt_price, completion_price, attempts, session_id, trace, \"user\", \
    created_at, latency_us, NULLIF(share_index, 0), NULLIF(share_of, 1), \
    CASE WHEN guardrails = '[]' THEN NULL WHEN json_valid(guardrails) THEN \
         (SELECT unhex(group_concat(replace(value, '-', ''), '')) FROM json_each(guardrails)) \
         ELSE CAST(guardrails AS BLOB) END, \
    charged_at, findings";

/// The inverse of [`COMPACTED`].
const SPREAD: &str = "\
    CASE WHEN length(id) = 16 THEN 'gen-dec-' || lower(hex(id)) \
         WHEN substr(id, 1, 1) = x'ff' THEN CAST(substr(id, 2) AS TEXT) ELSE CAST(id AS TEXT) END, \
    lower(substr(hex(workspace_id), 1, 8) || '-' || substr(hex(workspace_id), 9, 4) || '-' || \
          substr(hex(workspace_id), 13, 4) || '-' || substr(hex(workspace_id), 17, 4) || '-' || \
          substr(hex(workspace_id), 21)), api_key, \
    CASE WHEN length(request_id) = 16 THEN lower(substr(hex(request_id), 1, 8) || '-' || \
              substr(hex(request_id), 9, 4) || '-' || substr(hex(request_id), 13, 4) || '-' || \
              substr(hex(request_id), 17, 4) || '-' || substr(hex(request_id), 21)) \
         WHEN substr(request_id, 1, 1) = x'ff' THEN CAST(substr(request_id, 2) AS TEXT) \
         ELSE CAST(request_id AS TEXT) END, \
    COALESCE(requested_model, model), model, provider, outcome, input_tokens, output_tokens, \
    COALESCE(token_source, 'reported'), cost_pico, prompt_price, completion_price, attempts, session_id, trace, \
    \"user\", created_at, latency_us, COALESCE(share_index, 0), COALESCE(share_of, 1), \
    (WITH RECURSIVE places (place) AS (SELECT 1 WHERE guardrails IS NOT NULL \
              UNION ALL SELECT place + 16 FROM places WHERE place + 16 < length(guardrails)), \
          digits (text) AS (SELECT hex(substr(guardrails, place, 16)) FROM places) \
     SELECT json_group_array(lower(substr(text, 1, 8) || '-' || substr(text, 9, 4) || '-' || substr(text, 13, 4) || \
              '-' || substr(text, 17, 4) || '-' || substr(text, 21))) FROM digits), \
    charged_at, findings";

fn compact() -> TableCreateStatement {
    table(|name| match name {
        "id" | "workspace_id" | "api_key" | "request_id" => ColumnDef::new(name).blob().not_null().take(),
        "guardrails" => ColumnDef::new(name).blob().take(),
        "requested_model" | "token_source" => ColumnDef::new(name).text().take(),
        "share_index" | "share_of" => ColumnDef::new(name).big_integer().take(),
        name => plain(name),
    })
}

/// The table as the previous migrations left it.
fn whole() -> TableCreateStatement {
    table(|name| match name {
        "api_key" => ColumnDef::new(name).blob().not_null().take(),
        "share_index" | "charged_at" => ColumnDef::new(name).big_integer().not_null().default(0).take(),
        "share_of" => ColumnDef::new(name).big_integer().not_null().default(1).take(),
        "guardrails" => ColumnDef::new(name).text().not_null().default("[]").take(),
        "id" | "workspace_id" | "request_id" | "requested_model" | "token_source" => {
            ColumnDef::new(name).text().not_null().take()
        }
        name => plain(name),
    })
}

/// The columns that both tables share.
fn plain(name: &'static str) -> ColumnDef {
    match name {
        "session_id" | "trace" | "user" | "findings" => ColumnDef::new(name).text().take(),
        "input_tokens" | "output_tokens" | "cost_pico" | "created_at" | "latency_us" | "charged_at" => {
            ColumnDef::new(name).big_integer().not_null().take()
        }
        name => ColumnDef::new(name).text().not_null().take(),
    }
}

fn table(column: impl Fn(&'static str) -> ColumnDef) -> TableCreateStatement {
    let mut table = Table::create().table(TABLE).take();
    for name in COLUMNS.split(", ").map(|name| name.trim_matches('"')) {
        table.col(column(name));
    }
    table.primary_key(Index::create().col("id"));
    table
}
