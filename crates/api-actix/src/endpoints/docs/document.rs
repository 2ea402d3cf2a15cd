//! `GET /openapi.json`: the API description for programs.

use utoipa::openapi::path::OperationBuilder;
use utoipa::openapi::schema::Type;

use super::respond;
use crate::http::routes::{Handler, Method, OpenHandler, Route};
use crate::openapi::operations::{JSON, operation, text_responses};
use crate::openapi::tags;

pub(crate) const ROUTE: Route = Route::new(
    Method::Get,
    "/openapi.json",
    Handler::Open(OpenHandler::Memory(|call| Ok(respond(call.gateway.openapi.clone(), JSON)))),
    tags::SERVICE,
    describe,
)
.outside_base();

fn describe() -> OperationBuilder {
    operation("openapi", "The OpenAPI document").responses(text_responses("The document", JSON, Type::Object))
}
