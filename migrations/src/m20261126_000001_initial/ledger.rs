//! Counters of spend, the processes that draw allowances from limits, and alerts.

use sea_orm_migration::prelude::*;

use super::columns::{
    boolean, bytes, index, integer, key, keyed_table, number, optional_number, optional_text, table, text,
};

/// The columns that name a counter. `subject` is the id of a workspace or of a key, or the ids of a guardrail and of a
/// key with a colon between them. `interval` is `total`, `daily`, `weekly`, `monthly`, or `archived` for the cost of
/// records that retention removed.
const COUNTER: [&str; 4] = ["scope", "subject", "interval", "period_start"];

pub(super) fn tables() -> Vec<TableCreateStatement> {
    vec![
        spend_counters(),
        budget_processes(),
        amounts("allowances"),
        amounts("adjustments"),
        journal_entries(),
        budget_alerts(),
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
