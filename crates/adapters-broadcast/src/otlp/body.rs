//! The JSON body of traces.

use domain::json::Json;

/// The name of the top-level member.
pub(super) const RESOURCE_SPANS: &str = "resourceSpans";

/// Joins encoded traces to one body; without traces the body has no span. Values that are no OTLP are omitted.
pub(crate) fn merged<'a>(bodies: impl IntoIterator<Item = &'a Json>) -> Json {
    let resource_spans = |body: &Json| {
        let members = body.members()?;
        members.into_iter().find(|(name, _)| name == RESOURCE_SPANS)?.1.elements()
    };
    let elements: Vec<Json> = bodies.into_iter().filter_map(resource_spans).flatten().collect();
    let elements = Json::array(elements.iter().map(Json::text));
    Json::object([(RESOURCE_SPANS, elements.text())])
}
