//! `GET …/observability/destinations`: lists destinations.

use utoipa::openapi::SchemaFormat;
use utoipa::openapi::schema::{ObjectBuilder, Type};

use super::record::DestinationView;
use crate::endpoints::prelude::*;
use crate::openapi::operations;

pub(crate) const ROUTE: Route = Route::management(
    Method::Get,
    "/observability/destinations",
    |call, _, _| Box::pin(handle(call)),
    tags::DESTINATIONS,
    describe,
)
.with_schemas(|all| all.add_page::<DestinationView>("DestinationListResponse", "A list of trace destinations."));

fn describe() -> OperationBuilder {
    let id = ObjectBuilder::new().schema_type(Type::String).format(Some(SchemaFormat::Custom("uuid".to_owned())));
    management_operation("listDestinations", "List trace destinations", "Oldest first.")
        .parameter(operations::query("workspace_id", "The workspace id. Default: all workspaces.", id))
        .responses(responses("The destinations", "DestinationListResponse", &[400]))
}

async fn handle(call: &Call<'_>) -> Outcome {
    let workspace_id = parameters::workspace(call.request.query_string())?;
    let found = call.gateway.services.destinations.list.execute(workspace_id).await?;
    let hashes = call.gateway.services.destinations.keys.execute(&found).await?;
    let data: Vec<DestinationView> = found.iter().map(|one| DestinationView::new(one, &hashes)).collect();
    let total_count = data.len() as u64;
    Ok(Page::respond(data, total_count))
}
