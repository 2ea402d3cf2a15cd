//! Counters of spend, the processes that draw allowances from limits, alerts, usage records, and the numbers of rejected
//! requests.

use sea_orm_migration::prelude::*;
use sea_orm_migration::sea_orm::DbBackend;

use super::columns::{
    boolean, bytes, index, integer, key, keyed_table, number, optional_bytes, optional_number, optional_text, table,
    text,
};

/// The columns that name a counter. `subject` is the id of a workspace or of a key, or the ids of a guardrail and of a
/// key with a colon between them. `interval` is `total`, `daily`, `weekly`, `monthly`, or `archived` for the cost of
/// records that retention removed.
const COUNTER: [&str; 4] = ["scope", "subject", "interval", "period_start"];

pub(super) fn tables(backend: DbBackend) -> Vec<TableCreateStatement> {
    vec![
        spend_counters(),
        budget_processes(),
        amounts("allowances"),
        amounts("adjustments"),
        journal_entries(),
        budget_alerts(),
        record_bytes(),
        usage_sums(),
        evidence_groups(),
        evidence(backend),
        evidence_labels(),
        rejections(),
    ]
}

pub(super) fn indexes() -> Vec<IndexCreateStatement> {
    vec![
        index("spend_counters_period", "spend_counters", &["period_start"]),
        index("spend_counters_recalled_at", "spend_counters", &["recalled_at"])
            .cond_where(Expr::col("recalled_at").is_not_null())
            .take(),
        index("allowances_counter", "allowances", &COUNTER),
        index("adjustments_counter", "adjustments", &COUNTER),
        index("budget_processes_live", "budget_processes", &["state"]).cond_where(Expr::col("state").eq("live")).take(),
        index("budget_processes_adopted", "budget_processes", &["id"])
            .cond_where(Expr::col("state").eq("adopted"))
            .take(),
        index("budget_alerts_by_publication", "budget_alerts", &["published_at", "created_at"]),
        index("usage_records_workspace_id", RECORDS, &["workspace_id", "charged_at"]),
        index("usage_records_key", RECORDS, &["api_key", "charged_at"]),
        index("usage_records_charged_at", RECORDS, &["charged_at"]),
        index("usage_sums_key", "usage_sums", &["api_key", "day"]),
        index("usage_sums_workspace_id", "usage_sums", &["workspace_id", "day"]),
        index("evidence_preset_id", "evidence", &["preset_id", "created_at"]),
        index("evidence_labelled", "evidence", &["preset_id", "created_at"])
            .cond_where(Expr::col("label_version").is_not_null())
            .take(),
        index("rejections_by_hour", "rejections", &["hour"]),
    ]
}

fn counter() -> [ColumnDef; 4] {
    let [scope, subject, interval, period_start] = COUNTER;
    [text(scope), text(subject), text(interval), number(period_start)]
}

fn spend_counters() -> TableCreateStatement {
    let amounts = [
        number("spent_pico"),
        number("allotted_pico").default(0).take(),
        optional_number("recalled_at"),
        optional_number("recall_began_at"),
    ];
    keyed_table("spend_counters", counter().into_iter().chain(amounts), &COUNTER)
}

/// The processes that draw allowances. `number` counts draws and returns, `last_reply` is the reply to the last draw.
/// `has_store_journal` is true if the entries of the process are in the store, so that any process can recover them.
fn budget_processes() -> TableCreateStatement {
    let columns = [
        key(text("id")),
        number("number"),
        number("folded_sequence"),
        text("state"),
        optional_text("last_reply"),
        number("registered_at"),
        number("seen_at").default(0).take(),
        boolean("has_store_journal").default(false).take(),
    ];
    table("budget_processes", columns)
}

/// Amounts of processes per counter.
fn amounts(name: &'static str) -> TableCreateStatement {
    let [scope, subject, interval, period_start] = COUNTER;
    let columns = [text("process_id")].into_iter().chain(counter()).chain([number("amount_pico")]);
    keyed_table(name, columns, &["process_id", scope, subject, interval, period_start])
}

fn journal_entries() -> TableCreateStatement {
    let columns = [text("process_id"), number("sequence"), integer("kind"), bytes("payload")];
    keyed_table("journal_entries", columns, &["process_id", "sequence"])
}

/// The thresholds of limits that spend has crossed. The key makes an alert unique per limit, period and threshold. A
/// changed limit is another limit; `base_pico` tells credits of one amount apart.
fn budget_alerts() -> TableCreateStatement {
    let [scope, subject, interval, period_start] = COUNTER;
    let limit = ["is_credit", "base_pico", "limit_pico", "threshold"];
    let rest = [text("workspace_id"), number("spent_pico"), number("created_at"), optional_number("published_at")];
    let columns = counter().into_iter().chain(limit.map(number)).chain(rest);
    let [is_credit, base_pico, limit_pico, threshold] = limit;
    let key = [scope, subject, interval, period_start, is_credit, base_pico, limit_pico, threshold];
    keyed_table("budget_alerts", columns, &key)
}

/// The table of the usage records.
pub(super) const RECORDS: &str = "usage_records";

/// Creates the table of the usage records. On PostgreSQL it has a partition a month, so that a month is dropped as a
/// whole: ids begin with their time, so ranges of ids are ranges of time, and ids stay unique. Servers create the
/// partitions of the months; the default one takes everything else. SQLite has no partitions.
pub(super) async fn create_records(manager: &SchemaManager<'_>) -> Result<(), DbErr> {
    let records = records();
    if manager.get_database_backend() == DbBackend::Sqlite {
        return manager.create_table(records).await;
    }
    // The builder of statements has no partitions.
    let create = format!(
        "{} PARTITION BY RANGE (id); CREATE TABLE {RECORDS}_other PARTITION OF {RECORDS} DEFAULT",
        records.to_string(PostgresQueryBuilder)
    );
    manager.get_connection().execute_unprepared(&create).await.map(drop)
}

/// The records have no foreign keys: they outlive keys and workspaces, and no record can fail the batch that it is
/// written with. Null stands for the usual value: the model's own name, reported usage, a whole cost, no guardrail.
fn records() -> TableCreateStatement {
    let columns = vec![
        bytes("id"),
        bytes("workspace_id"),
        bytes("api_key"),
        bytes("request_id"),
        optional_text("requested_model"),
        text("model"),
        text("provider"),
        text("outcome"),
        number("input_tokens"),
        number("output_tokens"),
        optional_text("usage_source"),
        number("cost_pico"),
        text("prompt_price"),
        text("completion_price"),
        text("attempts"),
        optional_text("session_id"),
        optional_text("trace"),
        optional_text("user"),
        number("created_at"),
        number("latency_us"),
        optional_number("share_index"),
        optional_number("share_of"),
        optional_bytes("guardrails"),
        number("charged_at"),
        optional_text("findings"),
        optional_bytes("client_address"),
        optional_bytes("preset_id"),
        optional_number("preset_version"),
        optional_text("outcomes"),
    ];
    keyed_table(RECORDS, columns, &["id"])
}

/// The bytes of usage records that each workspace wrote on the UTC day of its last record. A row restarts at zero on
/// another day, so the table needs no cleanup.
fn record_bytes() -> TableCreateStatement {
    table("record_bytes", [key(text("workspace_id")), number("day"), number("bytes")])
}

/// The usage a day by workspace, key, model and provider. `day` is the begin of the UTC day of the charges. The rows
/// outlive the records that they sum.
fn usage_sums() -> TableCreateStatement {
    let key = ["day", "workspace_id", "api_key", "model", "provider"];
    let columns = [
        number("day"),
        bytes("workspace_id"),
        bytes("api_key"),
        text("model"),
        text("provider"),
        number("requests"),
        number("input_tokens"),
        number("output_tokens"),
        number("cost_pico"),
    ];
    keyed_table("usage_sums", columns, &key)
}

/// The groups of evidence, which statistics never pool. `id` is a digest of the other columns. A group is kept while its
/// preset has evidence.
fn evidence_groups() -> TableCreateStatement {
    let columns = [
        key(bytes("id")),
        bytes("workspace_id"),
        bytes("preset_id"),
        number("preset_version"),
        text("question"),
        text("model"),
        text("provider"),
        text("wire"),
        text("method"),
    ];
    table("evidence_groups", columns)
}

/// The evidence of the answers of presets: a row for each question, added with the record of its request. `position` is
/// the index of the question in the version of the preset. `decision` and `probabilities` are JSON.
/// `label_version` is the current version of the label, if any.
fn evidence(backend: DbBackend) -> TableCreateStatement {
    let columns = [
        bytes("record_id"),
        number("position"),
        bytes("preset_id"),
        bytes("group_id"),
        text("decision"),
        optional_text("probabilities"),
        number("created_at"),
        optional_number("label_version"),
    ];
    let mut evidence = keyed_table("evidence", columns, &["record_id", "position"]);
    if backend == DbBackend::Sqlite {
        // Ids increase with time: rows are appended to the key, and a table beside it would be a second copy.
        evidence.extra("WITHOUT ROWID");
    }
    evidence
}

/// Every version of the label of every answer.
fn evidence_labels() -> TableCreateStatement {
    let columns = [
        bytes("record_id"),
        number("position"),
        number("version"),
        text("value"),
        text("source"),
        text("created_by"),
        number("created_at"),
    ];
    keyed_table("evidence_labels", columns, &["record_id", "position", "version"])
}

/// The number of rejected requests per key, status, reason and hour. Rows of a deleted key stay, as its usage records
/// do. Management keys have no workspace.
fn rejections() -> TableCreateStatement {
    let columns = [
        bytes("api_key"),
        number("hour"),
        integer("status"),
        text("reason"),
        optional_bytes("workspace_id"),
        number("requests"),
    ];
    keyed_table("rejections", columns, &["api_key", "hour", "status", "reason"])
}
