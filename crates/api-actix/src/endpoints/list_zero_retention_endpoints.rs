//! `GET /endpoints/zdr`: the endpoints with zero data retention.

use super::list_model_endpoints::EndpointView;
use crate::endpoints::prelude::*;

pub(crate) const ROUTE: Route = Route::memory(Get, "/endpoints/zdr", tags::MODELS, handle)
    .operation("listZeroRetentionEndpoints", "List the endpoints with zero data retention")
    .description(
        "The configured endpoints whose providers retain no data, of all models, in configuration order, and \
         their current health.",
    )
    .headers(&[IF_NONE_MATCH])
    .answer(
        || BodySchema::data::<Vec<EndpointView<'_>>>("EndpointsResponse", "Endpoints with zero data retention."),
        "The endpoints",
    )
    .also(&[400]);

fn handle(call: &Call<'_>) -> Outcome {
    let listed = call.routed().list_endpoints.with_zero_retention();
    let data: Vec<_> = listed.iter().map(|(model, status)| EndpointView::new(model, status)).collect();
    Ok(TaggedBody::json(&Data { data })?.respond(call.request))
}
