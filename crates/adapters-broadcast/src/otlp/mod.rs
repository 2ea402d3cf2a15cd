//! Requests as traces: OTLP over HTTP, in its JSON form.
//!
//! Ids are lower-case hex, moments and integers are decimal strings, as the protocol's JSON form has them. A trace is a
//! function of the record alone, so that what is delivered twice is the same spans twice.

mod attributes;
mod content;
mod metadata;
mod span;
mod trace;

use domain::json::Json;
use domain::observability::{Exchange, TraceEncoder};
use domain::usage::UsageRecord;

/// The name of the member that holds everything.
const RESOURCE_SPANS: &str = "resourceSpans";

/// Encodes traces as OTLP in JSON.
#[derive(Debug, Clone, Copy, Default)]
pub struct OtlpTraceEncoder;

impl TraceEncoder for OtlpTraceEncoder {
    fn encode(&self, record: &UsageRecord, exchange: &Exchange<'_>) -> Json {
        trace::trace(record, Some(exchange))
    }

    fn encode_private(&self, record: &UsageRecord) -> Json {
        trace::trace(record, None)
    }
}

/// Joins encoded traces to one body; none make a body without a span. A trace that is no OTLP is left out.
pub(crate) fn merged<'a>(bodies: impl IntoIterator<Item = &'a Json>) -> Json {
    let resource_spans = |body: &Json| {
        let members = body.members()?;
        members.into_iter().find(|(name, _)| name == RESOURCE_SPANS)?.1.elements()
    };
    let elements: Vec<Json> = bodies.into_iter().filter_map(resource_spans).flatten().collect();
    let elements = Json::array(elements.iter().map(Json::text));
    Json::object([(RESOURCE_SPANS, elements.text())])
}

#[cfg(test)]
mod tests;
