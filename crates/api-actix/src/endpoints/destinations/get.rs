//! `GET …/observability/destinations/{id}`: reads a destination.

use actix_web::http::StatusCode;
use utoipa::openapi::path::OperationBuilder;

use super::id;
use super::record::{self, DestinationView};
use crate::http::call::Call;
use crate::http::response_body::Data;
use crate::http::routes::{Handler, KeyedHandler, Method, Outcome, Route};
use crate::openapi::operations::{COMMON_STATUSES, management_operation, path, responses};
use crate::openapi::tags;

pub(crate) const ROUTE: Route = Route::new(
    Method::Get,
    "/observability/destinations/{id}",
    Handler::Keyed(KeyedHandler::Management(|call, _, _| Box::pin(handle(call)))),
    tags::DESTINATIONS,
    describe,
)
.audited()
.with_schemas(record::schemas);

fn describe() -> OperationBuilder {
    let description = "Header values, the secret and the URL query are masked.";
    management_operation("getDestination", "Get a trace destination", description)
        .responses(responses("The destination", "DestinationResponse", &[404], &COMMON_STATUSES))
        .parameter(path("id", "The destination's id"))
}

async fn handle(call: &Call<'_>) -> Outcome {
    let found = call.gateway.services.destinations.get.execute(&id(call)?).await?;
    let hashes = call.gateway.services.destinations.keys.execute(std::slice::from_ref(&found)).await?;
    Ok(Data::respond(StatusCode::OK, DestinationView::new(&found, &hashes)))
}
