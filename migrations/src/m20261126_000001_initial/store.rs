//! The store itself, the change feed, the catalogue, broadcasting, the audit log, and its account of the managed rows.

use sea_orm_migration::prelude::*;
use sea_orm_migration::sea_orm::DbBackend;

use super::columns::{
    boolean, bytes, index, integer, key, keyed_table, number, optional_bytes, optional_number, optional_text, table,
    text,
};

/// The table of migrations that older binaries do not support: the `name` of the migration, and the `reason` for
/// operators. A binary tolerates any other migration that it does not know.
pub const INCOMPATIBLE_MIGRATIONS: &str = "incompatible_migrations";

pub(super) fn tables(backend: DbBackend) -> Vec<TableCreateStatement> {
    vec![
        table(INCOMPATIBLE_MIGRATIONS, [key(text("name")), text("reason")]),
        store_identity(),
        store_copies(),
        change_feed(),
        changes(backend),
        table("models", [key(text("id")), number("position"), text("content")]),
        table("provider_pauses", [key(text("provider")), number("paused_at")]),
        presets(),
        preset_versions(),
        destinations(),
        outbox(),
        table("destination_pauses", [key(text("destination_id")), number("until")]),
        audit_log(),
        audit_state(),
        idempotent_requests(),
    ]
}

pub(super) fn indexes() -> Vec<IndexCreateStatement> {
    vec![
        index("models_position", "models", &["position"]),
        index("presets_workspace_id", "presets", &["workspace_id", "slug"]).unique().take(),
        index("presets_updated_at", "presets", &["updated_at"]),
        index("destinations_workspace_id", "destinations", &["workspace_id", "created_at"]),
        index("outbox_due", "outbox", &["state", "next_at"]),
        index("outbox_destination_id", "outbox", &["destination_id", "state", "next_at"]),
        index("audit_log_at", "audit_log", &["at"]),
        index("idempotent_requests_created_at", "idempotent_requests", &["created_at"]),
    ]
}

/// One row: the identity of the store, which journals name, and the number of endpoints in the configuration of the
/// last server, so that a start without any is recognised as a loss. That is null before the first one.
fn store_identity() -> TableCreateStatement {
    table("store_identity", [key(integer("id")), text("store_id"), optional_number("configured_endpoints")])
}

/// The progress of a copy of another store into this one. The row exists until the copy is verified.
fn store_copies() -> TableCreateStatement {
    let columns = [
        key(integer("id")),
        // The identity of the source, and a digest of its state at the start of the copy.
        text("source_id"),
        text("fingerprint"),
        // JSON: the current table and the key of its last copied row.
        text("position"),
        number("started_at"),
    ];
    table("store_copies", columns)
}

/// One row: the numbers of the newest changes, and the time at which a process found that the store is older than
/// itself.
fn change_feed() -> TableCreateStatement {
    let columns = [
        key(integer("id")),
        number("catalogue"),
        number("number").default(0).take(),
        number("limits").default(0).take(),
        optional_number("declared_older_at"),
    ];
    table("change_feed", columns)
}

/// One row per change. `number` has no gaps. `mark` is random. `area` is the kind of the subject, which is a key's digest
/// in hex or the id of a workspace, of a guardrail or of a preset, if any.
fn changes(backend: DbBackend) -> TableCreateStatement {
    let random = match backend {
        DbBackend::Sqlite => "(random())",
        _ => "(floor(random() * 9007199254740992)::bigint)",
    };
    let columns = [
        key(number("number")),
        number("mark").default(Expr::cust(random)).take(),
        text("area"),
        optional_text("subject"),
        number("created_at"),
    ];
    table("changes", columns)
}

/// Presets of questions, which requests name by their slug.
fn presets() -> TableCreateStatement {
    let columns = [
        key(text("id")),
        text("workspace_id"),
        text("slug"),
        text("name"),
        text("status"),
        optional_number("status_updated_at"),
        number("designated_version"),
        number("newest_version"),
        text("created_by"),
        number("created_at"),
        number("updated_at"),
    ];
    table("presets", columns)
}

/// Every version of every preset. `config` is JSON: the models and the questions.
fn preset_versions() -> TableCreateStatement {
    let columns = [text("preset_id"), number("version"), text("config"), text("created_by"), number("created_at")];
    keyed_table("preset_versions", columns, &["preset_id", "version"])
}

/// Destinations of broadcast traces. `config` is JSON with secrets, encrypted if there is a key.
fn destinations() -> TableCreateStatement {
    let columns = [
        key(text("id")),
        text("workspace_id"),
        text("kind"),
        text("name"),
        text("config"),
        boolean("enabled"),
        number("created_at"),
        optional_number("updated_at"),
    ];
    table("destinations", columns)
}

/// Pending and failed deliveries.
fn outbox() -> TableCreateStatement {
    let columns = [
        key(text("id")),
        text("destination_id"),
        text("payload"),
        text("state"),
        number("attempts"),
        number("next_at"),
        optional_text("last_error"),
        number("created_at"),
    ];
    table("outbox", columns)
}

pub(super) async fn insert_first_rows(manager: &SchemaManager<'_>) -> Result<(), DbErr> {
    let random = match manager.get_database_backend() {
        DbBackend::Sqlite => "lower(hex(randomblob(16)))",
        _ => "replace(gen_random_uuid()::text, '-', '')",
    };
    for insert in [
        format!("INSERT INTO store_identity (id, store_id) VALUES (1, {random})").as_str(),
        "INSERT INTO change_feed (id, catalogue) VALUES (1, 0)",
        "INSERT INTO changes (number, area, created_at) VALUES (0, 'everything', 0)",
    ] {
        manager.get_connection().execute_unprepared(insert).await?;
    }
    Ok(())
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

pub(super) async fn insert_audit_state(manager: &SchemaManager<'_>) -> Result<(), DbErr> {
    let columns = ["id"].into_iter().chain(NUMBERS).chain(HASHES);
    let numbers = [1, 0, 0, 0].map(Expr::from);
    let values = numbers.into_iter().chain(HASHES.map(|_| vec![0_u8; 32].into()));
    manager.execute(Query::insert().into_table("audit_state").columns(columns).values_panic(values).to_owned()).await
}

/// Requests with an idempotency key, each with the response to it, or with the id of the record whose secret it contained.
fn idempotent_requests() -> TableCreateStatement {
    let columns = [
        text("caller"),
        text("route"),
        text("request_key"),
        bytes("fingerprint"),
        optional_number("status"),
        optional_text("body"),
        optional_text("version"),
        optional_text("secret_of"),
        number("created_at"),
    ];
    keyed_table("idempotent_requests", columns, &["caller", "route", "request_key"])
}
