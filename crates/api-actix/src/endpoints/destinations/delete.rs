//! `DELETE …/observability/destinations/{id}`: deletes a destination.

use crate::endpoints::prelude::*;

pub(crate) const ROUTE: Route = Route::management(
    Method::Delete,
    "/observability/destinations/{id}",
    |call, key, _| Box::pin(handle(call, key)),
    tags::DESTINATIONS,
    describe,
)
.with_schemas(|all| all.add_as::<Deleted>("DestinationDeletedResponse", "Confirms the deletion."));

fn describe() -> OperationBuilder {
    management_operation("deleteDestination", "Delete a trace destination", "Pending deliveries are dropped.")
        .responses(responses("Deleted", "DestinationDeletedResponse", &[404]))
        .parameter(path("id", "The destination's id"))
}

async fn handle(call: &Call<'_>, authority: &ManagementKey) -> Outcome {
    call.gateway.services.destinations.delete.execute(&call.actor(authority), &call.id()?).await?;
    Ok(Deleted::respond())
}
