//! The JSON body of traces.

use domain::json::Json;

/// The name of the member that holds everything.
pub(super) const RESOURCE_SPANS: &str = "resourceSpans";

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
