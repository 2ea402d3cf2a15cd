//! `POST …/observability/destinations`: creates a destination.

use super::record::DestinationRequest;
use super::{read_fields, record, stored_view};
use crate::endpoints::prelude::*;

pub(crate) const ROUTE: Route = Route::management(
    Method::Post,
    "/observability/destinations",
    |call, key, payload| Box::pin(handle(call, key, payload)),
    tags::DESTINATIONS,
    describe,
)
.with_body()
.with_schemas(|all| {
    all.add::<DestinationRequest>();
    record::schemas(all);
});

fn describe() -> OperationBuilder {
    let description = "The destination first receives a test request (header `x-test-connection: true`) and must \
                       answer with 2xx or 400. A workspace has at most five destinations of each type.";
    management_operation("createDestination", "Create a trace destination", description)
        .request_body(Some(body("DestinationRequest")))
        .responses(created_responses("The destination", "DestinationResponse", &[400, 409, 415]))
}

async fn handle(call: &Call<'_>, authority: &ManagementKey, payload: Payload) -> Outcome {
    let (fields, workspace) = read_fields(call, payload).await?;
    let workspace = workspace.as_deref().map(parameters::workspace_id).transpose()?;
    let made = call.gateway.services.destinations.create.execute(&call.actor(authority), workspace, &fields).await?;
    Ok(Data::respond(StatusCode::CREATED, stored_view(call, &made).await))
}
