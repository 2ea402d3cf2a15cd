//! `GET /health/live`: liveness.

use crate::endpoints::prelude::*;

pub(crate) const ROUTE: Route =
    Route::open("/health/live", OpenHandler::Memory(|_| Ok(alive())), tags::SERVICE, describe)
        .with_schemas(SchemaList::add::<LiveView>);

/// The process is alive.
#[derive(Serialize, ToSchema)]
#[schema(as = LiveResponse)]
struct LiveView {
    #[schema(pattern = "^ok$")]
    status: &'static str,
}

fn describe() -> OperationBuilder {
    operation("live", "Liveness: the process responds").responses(open_responses(
        "The process is alive",
        "LiveResponse",
        &[],
    ))
}

/// Reports that the process is alive.
pub(crate) fn alive() -> HttpResponse {
    HttpResponse::Ok().json(LiveView { status: "ok" })
}
