//! `GET …/observability/destinations`: lists destinations.

use utoipa::openapi::SchemaFormat;
use utoipa::openapi::path::OperationBuilder;
use utoipa::openapi::schema::{ObjectBuilder, Type};

use super::record::DestinationView;
use crate::http::call::Call;
use crate::http::query;
use crate::http::response_body::Page;
use crate::http::routes::{Handler, KeyedHandler, Method, Outcome, Route};
use crate::openapi::operations::{self, COMMON_STATUSES, management_operation, responses};
use crate::openapi::tags;

pub(crate) const ROUTE: Route = Route::new(
    Method::Get,
    "/observability/destinations",
    Handler::Keyed(KeyedHandler::Management(|call, _, _| Box::pin(handle(call)))),
    tags::DESTINATIONS,
    describe,
)
.audited()
.with_schemas(|all| all.add_page::<DestinationView>("DestinationListResponse", "A list of trace destinations."));

fn describe() -> OperationBuilder {
    let id = ObjectBuilder::new().schema_type(Type::String).format(Some(SchemaFormat::Custom("uuid".to_owned())));
    management_operation("listDestinations", "List trace destinations", "Oldest first.")
        .parameter(operations::query("workspace_id", "The workspace id. Default: all workspaces.", id))
        .responses(responses("The destinations", "DestinationListResponse", &[400], &COMMON_STATUSES))
}

async fn handle(call: &Call<'_>) -> Outcome {
    let workspace_id = query::value(call.request.query_string(), "workspace_id")?;
    let workspace_id = workspace_id.as_deref().map(super::workspace_id).transpose()?;
    let found = call.gateway.services.destinations.list.execute(workspace_id).await?;
    let hashes = call.gateway.services.destinations.keys.execute(&found).await?;
    let data: Vec<DestinationView> = found.iter().map(|one| DestinationView::new(one, &hashes)).collect();
    let total_count = data.len() as u64;
    Ok(Page::respond(data, total_count))
}
