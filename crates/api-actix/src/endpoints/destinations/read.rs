//! Reads destinations.

use utoipa::openapi::SchemaFormat;
use utoipa::openapi::schema::{ObjectBuilder, Type};

use super::record;
use super::record::DestinationView;
use crate::endpoints::prelude::*;
use crate::openapi::operations;

/// `GET …/observability/destinations`: lists destinations.
pub(crate) const LIST: Route = Route::management(
    Method::Get,
    "/observability/destinations",
    |call, _, _| Box::pin(handle_list(call)),
    tags::DESTINATIONS,
    describe_list,
)
.with_schemas(|all| all.add_page::<DestinationView>("DestinationListResponse", "A list of trace destinations."));

fn describe_list() -> OperationBuilder {
    let id = ObjectBuilder::new().schema_type(Type::String).format(Some(SchemaFormat::Custom("uuid".to_owned())));
    management_operation("listDestinations", "List trace destinations", "Oldest first.")
        .parameter(operations::query("workspace_id", "The workspace id. Default: all workspaces.", id))
        .responses(responses("The destinations", "DestinationListResponse", &[400]))
}

async fn handle_list(call: &Call<'_>) -> Outcome {
    let workspace_id = parameters::workspace(call.request.query_string())?;
    let found = call.gateway.services.destinations.list.execute(workspace_id).await?;
    let hashes = call.gateway.services.destinations.keys.execute(&found).await?;
    let data: Vec<DestinationView> = found.iter().map(|one| DestinationView::new(one, &hashes)).collect();
    let total_count = data.len() as u64;
    Ok(Page::respond(data, total_count))
}

/// `GET …/observability/destinations/{id}`: reads a destination.
pub(crate) const GET: Route = Route::management(
    Method::Get,
    "/observability/destinations/{id}",
    |call, _, _| Box::pin(handle_get(call)),
    tags::DESTINATIONS,
    describe_get,
)
.with_schemas(record::schemas);

fn describe_get() -> OperationBuilder {
    let description = "Header values, the secret and the URL query are masked.";
    management_operation("getDestination", "Get a trace destination", description)
        .responses(responses("The destination", "DestinationResponse", &[404]))
        .parameter(path("id", "The destination's id"))
}

async fn handle_get(call: &Call<'_>) -> Outcome {
    let found = call.gateway.services.destinations.get.execute(&call.id()?).await?;
    let hashes = call.gateway.services.destinations.keys.execute(std::slice::from_ref(&found)).await?;
    Ok(Data::respond(StatusCode::OK, DestinationView::new(&found, &hashes)))
}
