//! `PATCH …/observability/destinations/{id}`: changes a destination.

use super::record::DestinationChange;
use super::{read_fields, record, stored_view};
use crate::endpoints::prelude::*;

pub(crate) const ROUTE: Route = Route::management(
    Method::Patch,
    "/observability/destinations/{id}",
    |call, key, payload| Box::pin(handle(call, key, payload)),
    tags::DESTINATIONS,
    describe,
)
.with_body()
.with_schemas(|all| {
    all.add::<DestinationChange>();
    record::schemas(all);
});

fn describe() -> OperationBuilder {
    let description = "Changes the given members; masked values stay unchanged. A change of URL, headers or secret \
                       is tested with a request first. A URL with another scheme, host or port requires all secrets \
                       again: header values, secret, query.";
    management_operation("updateDestination", "Update a trace destination", description)
        .request_body(Some(body("DestinationChange")))
        .responses(responses("The updated destination", "DestinationResponse", &[400, 404, 409, 415]))
        .parameter(path("id", "The destination's id"))
}

async fn handle(call: &Call<'_>, authority: &ManagementKey, payload: Payload) -> Outcome {
    let (fields, _) = read_fields(call, payload).await?;
    let actor = call.actor(authority);
    let changed = call.gateway.services.destinations.update.execute(&actor, &call.id()?, &fields).await?;
    Ok(Data::respond(StatusCode::OK, stored_view(call, &changed).await))
}
