//! Requests as traces: OTLP over HTTP, in its JSON form.
//!
//! Ids are lower-case hex, moments and integers are decimal strings, as the protocol's JSON form has them. A trace is a
//! function of the record alone, so that what is delivered twice is the same spans twice.

mod attributes;
mod content;
mod ids;
mod metadata;
mod span;
mod trace;

pub use trace::trace;

use super::SampledGroup;
use crate::json::Json;
use crate::usage::UsageRecord;

/// The name of the member that holds everything.
const RESOURCE_SPANS: &str = "resourceSpans";

/// The group that a request is sampled with: its session, else its trace, else itself.
pub fn sampled_group(record: &UsageRecord) -> SampledGroup {
    match &record.session_id {
        Some(session) => SampledGroup::of(session),
        None => SampledGroup::of(&metadata::TraceMetadata::of(record.trace.as_ref()).trace_id(&record.id)),
    }
}

/// A body without a span, by which a receiver shows that it can be reached.
pub fn nothing() -> Json {
    Json::object([(RESOURCE_SPANS, "[]")])
}

/// Several bodies as one. One that is no body of ours is left out.
pub fn merged<'a>(bodies: impl IntoIterator<Item = &'a Json>) -> Json {
    let resource_spans = |body: &Json| {
        let members = body.members()?;
        members.into_iter().find(|(name, _)| name == RESOURCE_SPANS)?.1.elements()
    };
    let elements: Vec<Json> = bodies.into_iter().filter_map(resource_spans).flatten().collect();
    let elements = Json::array(elements.iter().map(Json::text));
    Json::object([(RESOURCE_SPANS, elements.text())])
}

#[cfg(test)]
pub(super) mod tests;
