//! `GET /`: the name of the service and the paths of its documentation.

use crate::endpoints::prelude::*;

pub(crate) const ROUTE: Route = Route::open("/", OpenHandler::Memory(handle), tags::SERVICE, describe)
    .with_schemas(SchemaList::add::<RootView<'_>>);

/// The name of the service and the paths of its documentation.
#[derive(Serialize, ToSchema)]
#[schema(as = RootResponse)]
struct RootView<'a> {
    /// The base path of the operations.
    base_path: &'a str,
    description: &'static str,
    documentation: &'static str,
    name: &'static str,
    openapi: &'static str,
}

fn describe() -> OperationBuilder {
    operation("root", "The name of the service and the paths of its documentation").responses(open_responses(
        "The name and the paths",
        "RootResponse",
        &[],
    ))
}

#[expect(clippy::unnecessary_wraps, reason = "the type of a handler")]
fn handle(call: &Call<'_>) -> Outcome {
    Ok(HttpResponse::Ok().json(RootView {
        base_path: &call.gateway.base_path,
        description: "Gateway to AI decision models; it serves no chat models",
        documentation: "/docs",
        name: "Tollgate",
        openapi: "/openapi.json",
    }))
}
