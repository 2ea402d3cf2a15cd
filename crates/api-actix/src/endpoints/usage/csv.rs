//! Usage records as CSV.

use domain::usage::UsageRecord;

use crate::endpoints::prelude::*;
use crate::http::csv::{self, Column, CsvValue};

/// The columns. Money and prices are exact decimals.
const COLUMNS: &[Column<UsageRecord>] = &[
    ("id", |record| plain(&record.id)),
    ("created_at", |record| CsvValue::Plain(time(record.created_at))),
    ("charged_at", |record| CsvValue::Plain(time(record.charged_at))),
    ("workspace_id", |record| plain(&record.workspace_id)),
    ("api_key", |record| plain(&record.api_key)),
    ("request_id", |record| CsvValue::of(Some(record.request_id.as_str()))),
    ("requested_model", |record| CsvValue::of(Some(&record.requested_model))),
    ("model", |record| CsvValue::of(Some(record.model.as_str()))),
    ("provider", |record| CsvValue::of(Some(&record.provider))),
    ("outcome", |record| CsvValue::plain(record.outcome.as_str())),
    ("input_tokens", |record| plain(&record.input_tokens)),
    ("output_tokens", |record| plain(&record.output_tokens)),
    ("usage_source", |record| CsvValue::plain(record.usage_source.as_str())),
    ("cost_usd", |record| plain(&record.cost)),
    ("prompt_price_usd", |record| plain(&record.prices.prompt)),
    ("completion_price_usd", |record| plain(&record.prices.completion)),
    ("attempts", |record| plain(&record.attempts.len())),
    ("latency_ms", |record| plain(&record.latency.as_millis())),
    ("session_id", |record| CsvValue::of(record.session_id.as_deref())),
    ("user", |record| CsvValue::of(record.user.as_deref())),
    ("reason", |record| CsvValue::of(record.failure_reason().as_deref())),
    ("client_address", |record| CsvValue::optional(record.client_address)),
];

fn plain(value: &dyn ToString) -> CsvValue {
    CsvValue::Plain(value.to_string())
}

/// Returns the line of column names.
pub fn usage_csv_head() -> String {
    csv::csv_head(COLUMNS)
}

/// Returns a record.
pub fn usage_csv_line(record: &UsageRecord) -> String {
    csv::csv_record(COLUMNS, record)
}
