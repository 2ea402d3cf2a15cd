//! Reads destinations.

use domain::observability::find_key_hashes;
use utoipa::openapi::SchemaFormat;
use utoipa::openapi::schema::{ObjectBuilder, Type};

use super::record::DestinationView;
use super::{record, stored_response};
use crate::endpoints::prelude::*;
use crate::http::operation;

/// `GET …/observability/destinations`: lists destinations.
pub(crate) const LIST: Route = Route::management(
    Method::Get,
    "/observability/destinations",
    |call, by, _| Box::pin(handle_list(call, by)),
    tags::DESTINATIONS,
    describe_list,
);

fn describe_list() -> Operation {
    let body = BodySchema::page::<DestinationView>("DestinationListResponse", "A list of trace destinations.");
    let id = ObjectBuilder::new().schema_type(Type::String).format(Some(SchemaFormat::Custom("uuid".to_owned())));
    Operation::management("listDestinations", "List trace destinations", "Oldest first.")
        .parameter(operation::query("workspace_id", "The workspace id. Default: all workspaces of the key.", id))
        .answer(body, "The destinations", &[400])
}

async fn handle_list(call: &Call<'_>, by: &Authority) -> Outcome {
    let workspace_id = parameters::workspace(call.request.query_string())?;
    let found = call.gateway.services.destinations.list(by, workspace_id).await?;
    let hashes = find_key_hashes(&*call.gateway.services.destinations.keys, &found).await?;
    let data: Vec<DestinationView> = found.iter().map(|one| DestinationView::new(one, &hashes)).collect();
    let total_count = data.len() as u64;
    Ok(Page::respond(data, total_count))
}

/// `GET …/observability/destinations/{id}`: reads a destination.
pub(crate) const GET: Route = Route::management(
    Method::Get,
    "/observability/destinations/{id}",
    |call, by, _| Box::pin(handle_get(call, by)),
    tags::DESTINATIONS,
    describe_get,
);

fn describe_get() -> Operation {
    let description = "Header values, the secret and the URL query are masked.";
    Operation::management("getDestination", "Get a trace destination", description)
        .answer(record::response(), "The destination", &[404])
        .parameter(path("id", "The destination's id"))
}

async fn handle_get(call: &Call<'_>, by: &Authority) -> Outcome {
    let found = call.gateway.services.destinations.get(by, &call.id()?).await?;
    Ok(stored_response(call, &found).await.respond())
}
