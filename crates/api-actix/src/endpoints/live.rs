//! `GET /health/live`: liveness.

use actix_web::HttpResponse;
use serde::Serialize;
use utoipa::ToSchema;
use utoipa::openapi::path::OperationBuilder;

use crate::http::routes::{Handler, Method, OpenHandler, Route};
use crate::http::schemas::SchemaList;
use crate::openapi::operations::{operation, responses};
use crate::openapi::tags;

pub(crate) const ROUTE: Route = Route::new(
    Method::Get,
    "/health/live",
    Handler::Open(OpenHandler::Memory(|_| Ok(alive()))),
    tags::SERVICE,
    describe,
)
.outside_base()
.with_schemas(SchemaList::add::<LiveView>);

/// The process is alive.
#[derive(Serialize, ToSchema)]
#[schema(as = LiveResponse)]
struct LiveView {
    #[schema(pattern = "^ok$")]
    status: &'static str,
}

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
    HttpResponse::Ok().json(LiveView { status: "ok" })
}
