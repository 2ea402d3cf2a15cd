//! Usage records as CSV.

use domain::usage::UsageRecord;

use crate::http::csv::{CsvValue, csv_line};
use crate::http::response::time;

const COLUMNS: [&str; 22] = [
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
    "reason",
    "client_address",
];

/// Returns the line of column names.
pub fn usage_csv_head() -> String {
    csv_line(&COLUMNS.map(|name| CsvValue::Plain(name.to_owned())))
}

/// Returns a record. Money and prices are exact decimals.
pub fn usage_csv_line(record: &UsageRecord) -> String {
    let plain = |value: &dyn ToString| CsvValue::Plain(value.to_string());
    let cells: [CsvValue; COLUMNS.len()] = [
        plain(&record.id),
        CsvValue::Plain(time(record.created_at)),
        CsvValue::Plain(time(record.charged_at)),
        plain(&record.workspace_id),
        plain(&record.api_key),
        CsvValue::of(Some(record.request_id.as_str())),
        CsvValue::of(Some(&record.requested_model)),
        CsvValue::of(Some(record.model.as_str())),
        CsvValue::of(Some(&record.provider)),
        plain(&record.outcome.as_str()),
        plain(&record.input_tokens),
        plain(&record.output_tokens),
        plain(&record.usage_source.as_str()),
        plain(&record.cost),
        plain(&record.prices.prompt),
        plain(&record.prices.completion),
        plain(&record.attempts.len()),
        plain(&record.latency.as_millis()),
        CsvValue::of(record.session_id.as_deref()),
        CsvValue::of(record.user.as_deref()),
        CsvValue::of(record.failure_reason().as_deref()),
        CsvValue::Plain(record.client_address.map(|address| address.to_string()).unwrap_or_default()),
    ];
    csv_line(&cells)
}
