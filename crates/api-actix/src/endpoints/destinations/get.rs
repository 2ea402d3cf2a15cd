//! `GET …/observability/destinations/{id}`: reads a destination.

use super::record;
use super::record::DestinationView;
use crate::endpoints::prelude::*;

pub(crate) const ROUTE: Route = Route::management(
    Method::Get,
    "/observability/destinations/{id}",
    |call, _, _| Box::pin(handle(call)),
    tags::DESTINATIONS,
    describe,
)
.with_schemas(record::schemas);

fn describe() -> OperationBuilder {
    let description = "Header values, the secret and the URL query are masked.";
    management_operation("getDestination", "Get a trace destination", description)
        .responses(responses("The destination", "DestinationResponse", &[404]))
        .parameter(path("id", "The destination's id"))
}

async fn handle(call: &Call<'_>) -> Outcome {
    let found = call.gateway.services.destinations.get.execute(&call.id()?).await?;
    let hashes = call.gateway.services.destinations.keys.execute(std::slice::from_ref(&found)).await?;
    Ok(Data::respond(StatusCode::OK, DestinationView::new(&found, &hashes)))
}
