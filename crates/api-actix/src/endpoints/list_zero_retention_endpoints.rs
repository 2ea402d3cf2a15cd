//! `GET /endpoints/zdr`: the endpoints with zero data retention.

use super::list_model_endpoints::EndpointView;
use crate::endpoints::prelude::*;
use crate::http::response::TaggedBody;

pub(crate) const ROUTE: Route = Route::memory(Method::Get, "/endpoints/zdr", handle, tags::MODELS, describe);

fn describe() -> Operation {
    let description = "Endpoints with zero data retention.";
    Operation::new("listZeroRetentionEndpoints", "List the endpoints with zero data retention")
        .description(
            "The configured endpoints whose providers retain no data, of all models, in configuration order, and their \
             current health.",
        )
        .parameter(if_none_match())
        .answer(
            BodySchema::data::<Vec<EndpointView<'_>>>("EndpointsResponse", description),
            "The endpoints",
            &[304, 400],
        )
}

fn handle(call: &Call<'_>) -> Outcome {
    parameters::check_names(call.request.query_string(), &[])?;
    let listed = call.routed().list_endpoints.with_zero_retention();
    let data: Vec<_> = listed.iter().map(|(model, status)| EndpointView::new(model, status)).collect();
    Ok(TaggedBody::json(&Data { data })?.respond(call.request))
}
