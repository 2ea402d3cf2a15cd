//! Requests as traces: OTLP over HTTP, in its JSON form.
//!
//! Ids are lower-case hex, moments and integers are decimal strings, as the protocol's JSON form has them. A trace is a
//! function of the record alone, so that what is delivered twice is the same spans twice.

mod attributes;
mod body;
mod content;
mod metadata;
mod span;
mod trace;

pub(crate) use body::merged;
use domain::json::Json;
use domain::observability::{TraceContent, TraceEncoder};
use domain::usage::UsageRecord;

/// Encodes traces as OTLP in JSON.
#[derive(Debug, Clone, Copy, Default)]
pub struct OtlpTraceEncoder;

impl TraceEncoder for OtlpTraceEncoder {
    fn encode(&self, record: &UsageRecord, exchange: &TraceContent<'_>) -> Json {
        trace::trace(record, Some(exchange))
    }

    fn encode_private(&self, record: &UsageRecord) -> Json {
        trace::trace(record, None)
    }
}

#[cfg(test)]
mod tests;
