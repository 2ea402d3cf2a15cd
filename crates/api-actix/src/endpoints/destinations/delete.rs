//! `DELETE …/observability/destinations/{id}`: deletes a destination.

use domain::api_key::ManagementKey;
use utoipa::openapi::path::OperationBuilder;

use super::id;
use crate::http::call::Call;
use crate::http::response_body::Deleted;
use crate::http::routes::{Handler, KeyedHandler, Method, Outcome, Route};
use crate::openapi::operations::{COMMON_STATUSES, management_operation, path, responses};
use crate::openapi::tags;

pub(crate) const ROUTE: Route = Route::new(
    Method::Delete,
    "/observability/destinations/{id}",
    Handler::Keyed(KeyedHandler::Management(|call, key, _| Box::pin(handle(call, key)))),
    tags::DESTINATIONS,
    describe,
)
.audited()
.with_schemas(|all| all.add_as::<Deleted>("DestinationDeletedResponse", "Confirms the deletion."));

fn describe() -> OperationBuilder {
    management_operation("deleteDestination", "Delete a trace destination", "Pending deliveries are dropped.")
        .responses(responses("Deleted", "DestinationDeletedResponse", &[404], &COMMON_STATUSES))
        .parameter(path("id", "The destination's id"))
}

async fn handle(call: &Call<'_>, authority: &ManagementKey) -> Outcome {
    call.gateway.services.destinations.delete.execute(&call.actor(authority), &id(call)?).await?;
    Ok(Deleted::respond())
}
