//! The first schema.
//!
//! Column types: ids are text; key digests are their 32 bytes; money is whole picodollars in 64 bits; prices are
//! decimal text; timestamps are Unix milliseconds, durations microseconds; opaque JSON is text.

use sea_orm_migration::prelude::*;

/// The migration of this module.
#[derive(DeriveMigrationName)]
pub struct Migration;

#[async_trait::async_trait]
impl MigrationTrait for Migration {
    async fn up(&self, manager: &SchemaManager) -> Result<(), DbErr> {
        for table in [
            workspaces(),
            guardrails(),
            api_keys(),
            documents(),
            idempotency_claims(),
            models(),
            usage_records(),
            change_feed(),
        ] {
            manager.create_table(table).await?;
        }
        for index in indexes() {
            manager.create_index(index).await?;
        }
        let counters = Query::insert()
            .into_table("change_feed")
            .columns(["id", "keys", "catalogue"])
            .values_panic([1.into(), 0.into(), 0.into()])
            .to_owned();
        manager.execute(counters).await
    }

    async fn down(&self, manager: &SchemaManager) -> Result<(), DbErr> {
        for table in [
            "change_feed",
            "usage_records",
            "models",
            "idempotency_claims",
            "documents",
            "api_keys",
            "guardrails",
            "workspaces",
        ] {
            manager.drop_table(Table::drop().table(table).to_owned()).await?;
        }
        Ok(())
    }
}

fn workspaces() -> TableCreateStatement {
    Table::create()
        .table("workspaces")
        .col(ColumnDef::new("id").text().not_null().primary_key())
        .col(ColumnDef::new("name").text().not_null())
        .col(ColumnDef::new("owner_id").text())
        .col(ColumnDef::new("is_default").boolean().not_null())
        .col(ColumnDef::new("suspended").boolean().not_null())
        .col(ColumnDef::new("credit_pico").big_integer())
        .col(ColumnDef::new("storage_used_bytes").big_integer().not_null().check(at_least_zero("storage_used_bytes")))
        .col(ColumnDef::new("created_at").big_integer().not_null())
        .take()
}

fn guardrails() -> TableCreateStatement {
    Table::create()
        .table("guardrails")
        .col(ColumnDef::new("id").text().not_null().primary_key())
        .col(ColumnDef::new("workspace_id").text().not_null())
        .col(ColumnDef::new("name").text().not_null())
        .col(ColumnDef::new("created_at").big_integer().not_null())
        .foreign_key(&mut reference("guardrails", "workspace_id", "workspaces"))
        .take()
}

fn api_keys() -> TableCreateStatement {
    // Management needs an explicit scope: a lost workspace must never turn a key into a management key.
    let scope_fits =
        Expr::col("scope")
            .eq("management")
            .and(Expr::col("workspace_id").is_null())
            .or(Expr::col("scope").eq("inference").and(Expr::col("workspace_id").is_not_null()));
    Table::create()
        .table("api_keys")
        .col(ColumnDef::new("hash").blob().not_null().primary_key())
        .col(ColumnDef::new("label").text().not_null())
        .col(ColumnDef::new("name").text().not_null())
        .col(ColumnDef::new("scope").text().not_null())
        .col(ColumnDef::new("workspace_id").text())
        .col(ColumnDef::new("disabled").boolean().not_null())
        .col(ColumnDef::new("deleted").boolean().not_null())
        .col(ColumnDef::new("expires_at").big_integer())
        .col(ColumnDef::new("limit_pico").big_integer())
        .col(ColumnDef::new("limit_reset").text())
        .col(ColumnDef::new("guardrail_id").text())
        .col(ColumnDef::new("created_at").big_integer().not_null())
        .check(scope_fits)
        .foreign_key(&mut reference("api_keys", "workspace_id", "workspaces"))
        .foreign_key(&mut reference("api_keys", "guardrail_id", "guardrails"))
        .take()
}

fn documents() -> TableCreateStatement {
    let ready_is_whole = Expr::col("state").eq("pending").or(Expr::col("state")
        .eq("ready")
        .and(Expr::col("sha256").is_not_null())
        .and(Expr::col("media_type").is_not_null()));
    Table::create()
        .table("documents")
        .col(ColumnDef::new("id").text().not_null().primary_key())
        .col(ColumnDef::new("workspace_id").text().not_null())
        .col(ColumnDef::new("state").text().not_null())
        .col(ColumnDef::new("filename").text().not_null())
        .col(ColumnDef::new("size_bytes").big_integer().not_null().check(at_least_zero("size_bytes")))
        .col(ColumnDef::new("sha256").text())
        .col(ColumnDef::new("media_type").text())
        .col(ColumnDef::new("created_at").big_integer().not_null())
        .check(ready_is_whole)
        .foreign_key(&mut reference("documents", "workspace_id", "workspaces"))
        .take()
}

fn idempotency_claims() -> TableCreateStatement {
    let mut document = reference("idempotency_claims", "document_id", "documents");
    // A claim exists exactly as long as its document.
    document.on_delete(ForeignKeyAction::Cascade);
    Table::create()
        .table("idempotency_claims")
        .col(ColumnDef::new("api_key").blob().not_null())
        .col(ColumnDef::new("operation").text().not_null())
        .col(ColumnDef::new("idempotency_key").text().not_null())
        .col(ColumnDef::new("subject").text().not_null())
        .col(ColumnDef::new("document_id").text().not_null())
        .col(ColumnDef::new("created_at").big_integer().not_null())
        .primary_key(Index::create().col("api_key").col("operation").col("idempotency_key"))
        .foreign_key(&mut document)
        .take()
}

fn models() -> TableCreateStatement {
    Table::create()
        .table("models")
        .col(ColumnDef::new("id").text().not_null().primary_key())
        .col(ColumnDef::new("position").big_integer().not_null())
        .col(ColumnDef::new("content").text().not_null())
        .take()
}

/// The ledger has no foreign keys: records outlive keys and workspaces, and no record can fail the batch that it is
/// written with.
fn usage_records() -> TableCreateStatement {
    Table::create()
        .table("usage_records")
        .col(ColumnDef::new("id").text().not_null().primary_key())
        .col(ColumnDef::new("workspace_id").text().not_null())
        .col(ColumnDef::new("api_key").blob().not_null())
        .col(ColumnDef::new("request_id").text().not_null())
        .col(ColumnDef::new("requested_model").text().not_null())
        .col(ColumnDef::new("model").text().not_null())
        .col(ColumnDef::new("provider").text().not_null())
        .col(ColumnDef::new("outcome").text().not_null())
        .col(ColumnDef::new("input_tokens").big_integer().not_null())
        .col(ColumnDef::new("output_tokens").big_integer().not_null())
        .col(ColumnDef::new("token_source").text().not_null())
        .col(ColumnDef::new("cost_pico").big_integer().not_null())
        .col(ColumnDef::new("prompt_price").text().not_null())
        .col(ColumnDef::new("completion_price").text().not_null())
        .col(ColumnDef::new("attempts").text().not_null())
        .col(ColumnDef::new("session_id").text())
        .col(ColumnDef::new("trace").text())
        .col(ColumnDef::new("user").text())
        .col(ColumnDef::new("created_at").big_integer().not_null())
        .col(ColumnDef::new("latency_us").big_integer().not_null())
        .take()
}

/// A single row, which [`Migration::up`] inserts.
fn change_feed() -> TableCreateStatement {
    Table::create()
        .table("change_feed")
        .col(ColumnDef::new("id").integer().not_null().primary_key())
        .col(ColumnDef::new("keys").big_integer().not_null())
        .col(ColumnDef::new("catalogue").big_integer().not_null())
        .take()
}

fn indexes() -> Vec<IndexCreateStatement> {
    vec![
        // At most one workspace is the default, enforced for every writer.
        Index::create()
            .name("workspaces_default")
            .table("workspaces")
            .col("is_default")
            .unique()
            .cond_where(Expr::col("is_default"))
            .take(),
        index("workspaces_created_at", "workspaces", &["created_at"]),
        index("guardrails_workspace_id", "guardrails", &["workspace_id", "created_at"]),
        index("api_keys_workspace_id", "api_keys", &["workspace_id", "created_at"]),
        index("api_keys_guardrail_id", "api_keys", &["guardrail_id"]),
        index("documents_workspace_id", "documents", &["workspace_id", "state"]),
        index("documents_state", "documents", &["state", "created_at"]),
        index("idempotency_claims_document_id", "idempotency_claims", &["document_id"]),
        index("idempotency_claims_created_at", "idempotency_claims", &["created_at"]),
        index("models_position", "models", &["position"]),
        index("usage_records_workspace_id", "usage_records", &["workspace_id", "created_at", "id"]),
    ]
}

fn at_least_zero(column: &'static str) -> Expr {
    Expr::col(column).gte(0)
}

fn reference(table: &'static str, column: &'static str, to: &'static str) -> ForeignKeyCreateStatement {
    ForeignKey::create().name(format!("{table}_{column}")).from(table, column).to(to, "id").take()
}

fn index(name: &'static str, table: &'static str, columns: &[&'static str]) -> IndexCreateStatement {
    let mut index = Index::create().name(name).table(table).take();
    for column in columns {
        index.col(*column);
    }
    index
}
