//! `GET /health/live`: liveness.

use actix_web::HttpResponse;
use serde_json::json;
use utoipa::openapi::path::OperationBuilder;

use crate::http::routes::{Handler, Method, OpenHandler, Route};
use crate::openapi::operations::{operation, responses};
use crate::openapi::tags;

pub(crate) const ROUTE: Route = Route::new(
    Method::Get,
    "/health/live",
    Handler::Open(OpenHandler::Memory(|_| Ok(alive()))),
    tags::SERVICE,
    describe,
)
.outside_base();

fn describe() -> OperationBuilder {
    operation("live", "Liveness: the process responds").responses(responses(
        "The process is alive",
        "LiveResponse",
        &[],
        &[405, 500],
    ))
}

/// Reports that the process is alive.
pub(crate) fn alive() -> HttpResponse {
    HttpResponse::Ok().json(json!({"status": "ok"}))
}
