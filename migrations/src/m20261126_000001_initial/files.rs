//! Documents and the claims of their requests.

use sea_orm_migration::prelude::*;

use super::columns::{at_least_zero, bytes, index, key, keyed_table, number, optional_text, reference, table, text};

pub(super) fn tables() -> Vec<TableCreateStatement> {
    vec![documents(), idempotency_claims()]
}

pub(super) fn indexes() -> Vec<IndexCreateStatement> {
    vec![
        index("documents_workspace_id", "documents", &["workspace_id", "state"]),
        index("documents_state", "documents", &["state", "created_at"]),
        index("idempotency_claims_document_id", "idempotency_claims", &["document_id"]),
        index("idempotency_claims_created_at", "idempotency_claims", &["created_at"]),
    ]
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
