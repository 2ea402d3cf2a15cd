//! Usage records as comma-separated values.

use domain::usage::UsageRecord;

use super::csv::{Cell, csv_line};
use super::time;

const COLUMNS: [&str; 20] = [
    "id",
    "created_at",
    "charged_at",
    "workspace_id",
    "api_key",
    "request_id",
    "requested_model",
    "model",
    "provider",
    "outcome",
    "input_tokens",
    "output_tokens",
    "usage_source",
    "cost_usd",
    "prompt_price_usd",
    "completion_price_usd",
    "attempts",
    "latency_ms",
    "session_id",
    "user",
];

/// The line that names the columns.
pub fn usage_csv_head() -> String {
    csv_line(&COLUMNS.map(|name| Cell::Plain(name.to_owned())))
}

/// One record. Money and prices are decimals with every digit.
pub fn usage_csv_line(record: &UsageRecord) -> String {
    let plain = |value: &dyn ToString| Cell::Plain(value.to_string());
    let cells: [Cell; COLUMNS.len()] = [
        plain(&record.id),
        Cell::Plain(time(record.created_at)),
        Cell::Plain(time(record.charged_at)),
        plain(&record.workspace_id),
        plain(&record.api_key),
        Cell::of(Some(record.request_id.as_str())),
        Cell::of(Some(&record.requested_model)),
        Cell::of(Some(record.model.as_str())),
        Cell::of(Some(&record.provider)),
        plain(&record.outcome.as_str()),
        plain(&record.input_tokens),
        plain(&record.output_tokens),
        plain(&record.usage_source.as_str()),
        plain(&record.cost),
        plain(&record.prices.prompt),
        plain(&record.prices.completion),
        plain(&record.attempts.len()),
        plain(&record.latency.as_millis()),
        Cell::of(record.session_id.as_deref()),
        Cell::of(record.user.as_deref()),
    ];
    csv_line(&cells)
}
