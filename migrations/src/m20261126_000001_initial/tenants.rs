//! Workspaces, guardrails, keys, documents and the claims of their requests.

use sea_orm_migration::prelude::*;

use super::columns::{
    at_least_zero, boolean, bytes, index, key, keyed_table, number, optional_bytes, optional_number, optional_text,
    reference, table, text,
};

pub(super) fn tables() -> Vec<TableCreateStatement> {
    vec![workspaces(), guardrails(), guardrail_versions(), api_keys(), documents(), idempotency_claims()]
}

pub(super) fn indexes() -> Vec<IndexCreateStatement> {
    vec![
        // At most one workspace is the default, enforced for every writer.
        index("workspaces_default", "workspaces", &["is_default"]).unique().cond_where(Expr::col("is_default")).take(),
        // The slug of a deleted workspace is free.
        index("workspaces_slug", "workspaces", &["slug"]).unique().cond_where(Expr::col("deleted_at").is_null()).take(),
        index("workspaces_created_at", "workspaces", &["created_at"]),
        index("guardrails_workspace_id", "guardrails", &["workspace_id", "created_at"]),
        // A page of 100,000 keys or assignments and their number are read from indexes alone.
        index("api_keys_list", "api_keys", &["created_at", "id", "workspace_id", "deleted", "disabled", "expires_at"]),
        index(
            "api_keys_workspace_id",
            "api_keys",
            &["workspace_id", "created_at", "id", "deleted", "disabled", "expires_at"],
        ),
        index("api_keys_name", "api_keys", &["name"]),
        index(
            "api_keys_guardrail_id",
            "api_keys",
            &["guardrail_id", "guardrail_assigned_at", "id", "workspace_id", "deleted"],
        ),
        index("api_keys_previous_hash", "api_keys", &["previous_hash"])
            .cond_where(Expr::col("previous_hash").is_not_null())
            .take(),
        index("documents_workspace_id", "documents", &["workspace_id", "state", "id"]),
        index("documents_state", "documents", &["state", "created_at"]),
        index("idempotency_claims_document_id", "idempotency_claims", &["document_id"]),
        index("idempotency_claims_created_at", "idempotency_claims", &["created_at"]),
    ]
}

/// The row of a deleted workspace stays: usage records, counters and deleted keys refer to it.
fn workspaces() -> TableCreateStatement {
    let columns = vec![
        key(text("id")),
        text("name"),
        text("slug"),
        optional_text("description"),
        optional_text("owner_id"),
        boolean("is_default"),
        boolean("suspended"),
        optional_number("credit_pico"),
        number("storage_used_bytes").check(at_least_zero("storage_used_bytes")).take(),
        number("created_at"),
        // The total spend at the start of the credit.
        optional_number("credit_base_pico"),
        optional_number("budget_daily_pico"),
        optional_number("budget_weekly_pico"),
        optional_number("budget_monthly_pico"),
        optional_number("budget_lifetime_pico"),
        optional_number("requests_per_minute"),
        optional_number("tokens_per_minute"),
        optional_text("default_guardrail_id"),
        number("document_count").default(0).check(at_least_zero("document_count")).take(),
        optional_number("updated_at"),
        optional_bytes("audit_hash"),
        optional_number("credit_began_at"),
        // Added to the base: charges from before the credit that were folded after its start.
        number("credit_late_pico").default(0).take(),
        optional_number("deleted_at"),
    ];
    table("workspaces", columns)
}

fn guardrails() -> TableCreateStatement {
    let columns = [
        key(text("id")),
        text("workspace_id"),
        text("name"),
        number("created_at"),
        optional_number("updated_at"),
        optional_number("limit_pico"),
        optional_text("limit_reset"),
        number("version").default(1).take(),
        text("rules").default("{}").take(),
        optional_bytes("audit_hash"),
    ];
    table("guardrails", columns).foreign_key(&mut reference("guardrails", "workspace_id", "workspaces")).take()
}

/// Every version of every guardrail, including the current one.
fn guardrail_versions() -> TableCreateStatement {
    let columns = [
        text("guardrail_id"),
        number("version"),
        text("name"),
        text("rules"),
        optional_number("limit_pico"),
        optional_text("limit_reset"),
        number("changed_at"),
        text("changed_by"),
    ];
    keyed_table("guardrail_versions", columns, &["guardrail_id", "version"])
}

/// A key's id survives a rotation of its secret. The row of a deleted key stays.
fn api_keys() -> TableCreateStatement {
    // Management needs an explicit scope: a lost workspace must never turn a key into a management key.
    let management = Expr::col("scope")
        .eq("management")
        .and(Expr::col("workspace_id").is_null())
        .and(Expr::col("management_access").is_in(["read", "keys", "write"]))
        .and(Expr::col("management_access").is_not_null());
    let inference = Expr::col("scope")
        .eq("inference")
        .and(Expr::col("workspace_id").is_not_null())
        .and(Expr::col("management_access").is_null())
        .and(Expr::col("management_workspaces").is_null());
    let scope_fits = management.or(inference);
    let columns = vec![
        key(bytes("id")).check(Expr::cust("length(id) = 16")).take(),
        bytes("hash").unique_key().take(),
        text("label"),
        text("name"),
        text("scope"),
        optional_text("workspace_id"),
        optional_text("management_access"),
        // A JSON array of workspace ids; null is all workspaces.
        optional_text("management_workspaces"),
        boolean("disabled"),
        boolean("deleted"),
        optional_number("expires_at"),
        optional_number("limit_pico"),
        optional_text("limit_reset"),
        optional_text("guardrail_id"),
        number("created_at"),
        optional_number("requests_per_minute"),
        optional_number("tokens_per_minute"),
        optional_number("guardrail_assigned_at"),
        optional_text("guardrail_assigned_by"),
        optional_text("creator_user_id"),
        optional_text("external_user"),
        optional_number("updated_at"),
        // The hash of the secret before the last rotation, while it is valid.
        optional_bytes("previous_hash"),
        optional_number("previous_expires_at"),
        optional_bytes("audit_hash"),
    ];
    table("api_keys", columns)
        .check(scope_fits)
        .foreign_key(&mut reference("api_keys", "workspace_id", "workspaces"))
        .foreign_key(&mut reference("api_keys", "guardrail_id", "guardrails"))
        .take()
}

/// A document stores its charged bytes, so that its removal releases the same amount. `process` is the process that
/// promotes a pending document, so that others release it once that process is gone.
fn documents() -> TableCreateStatement {
    let ready_is_whole = Expr::col("state").eq("pending").or(Expr::col("state")
        .eq("ready")
        .and(Expr::col("sha256").is_not_null())
        .and(Expr::col("media_type").is_not_null()));
    let columns = [
        key(text("id")),
        text("workspace_id"),
        text("state"),
        text("filename"),
        number("size_bytes").check(at_least_zero("size_bytes")).take(),
        optional_text("sha256"),
        optional_text("media_type"),
        number("created_at"),
        number("charged_bytes").default(0).check(at_least_zero("charged_bytes")).take(),
        optional_text("process"),
    ];
    table("documents", columns)
        .check(ready_is_whole)
        .foreign_key(&mut reference("documents", "workspace_id", "workspaces"))
        .take()
}

/// A claim exists exactly as long as its document.
fn idempotency_claims() -> TableCreateStatement {
    let columns = [
        bytes("api_key"),
        text("operation"),
        text("idempotency_key"),
        text("subject"),
        text("document_id"),
        number("created_at"),
    ];
    let mut document = reference("idempotency_claims", "document_id", "documents");
    document.on_delete(ForeignKeyAction::Cascade);
    keyed_table("idempotency_claims", columns, &["api_key", "operation", "idempotency_key"])
        .foreign_key(&mut document)
        .take()
}
