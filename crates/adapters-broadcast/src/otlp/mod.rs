//! Requests and budget alerts as traces: OTLP over HTTP, in its JSON form.
//!
//! Ids are lower-case hex, timestamps and integers are decimal strings, as the protocol's JSON form requires. A trace
//! depends only on the record, so that repeated deliveries contain the same spans.

mod alert;
mod attributes;
mod span;
mod trace;

use domain::budget::BudgetAlert;
use domain::decision::TraceContent;
use domain::json::Json;
use domain::observability::MessageEncoder;
use domain::usage::UsageRecord;
pub(crate) use trace::merged;

/// Encodes traces as OTLP in JSON.
#[derive(Debug, Clone, Copy, Default)]
pub struct OtlpMessageEncoder;

impl MessageEncoder for OtlpMessageEncoder {
    fn encode(&self, record: &UsageRecord, exchange: &TraceContent<'_>) -> Json {
        trace::trace(record, Some(exchange))
    }

    fn encode_private(&self, record: &UsageRecord) -> Json {
        trace::trace(record, None)
    }

    fn encode_alert(&self, alert: &BudgetAlert) -> Json {
        alert::event(alert)
    }
}

#[cfg(test)]
mod tests;
