//! Reads destinations.

use domain::observability::find_key_hashes;

use super::record::DestinationView;
use super::{record, stored_response};
use crate::endpoints::prelude::*;
use crate::endpoints::workspaces::{self, ALL_WORKSPACES, LIST_PARAMETERS, describe_filter};
use crate::http::page::{DEFAULT_LIMIT, PageRange};

/// `GET …/observability/destinations`: lists destinations.
pub(crate) const LIST: Route = Route::management(
    Method::Get,
    "/observability/destinations",
    |call, by, _| Box::pin(handle_list(call, by)),
    tags::DESTINATIONS,
    describe_list,
)
.with_query(&LIST_PARAMETERS);

fn describe_list() -> Operation {
    let body = BodySchema::page::<DestinationView>("DestinationListResponse", "A page of trace destinations.");
    let operation = Operation::management("listDestinations", "List trace destinations", "Oldest first.")
        .parameter(describe_filter(ALL_WORKSPACES));
    PageRange::describe(operation, DEFAULT_LIMIT).answer(body, "The destinations", &[400, 404, 409])
}

async fn handle_list(call: &Call<'_>, by: &Authority) -> Outcome {
    let query = call.request.query_string();
    let PageRange { offset, limit } = PageRange::parse(query, DEFAULT_LIMIT)?;
    let (workspace_id, destinations) = (workspaces::filter(call, by).await?, &call.gateway.services.destinations);
    let (found, total) = destinations.list(by, workspace_id, offset, limit).await?;
    let hashes = find_key_hashes(&*destinations.keys, &found).await?;
    Ok(Page::respond(found.iter().map(|one| DestinationView::new(one, &hashes)).collect(), total))
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
        .answer(record::response(), "The destination", &[404, 409])
        .parameter(path("id", "The destination's id, or its unique name."))
}

async fn handle_get(call: &Call<'_>, by: &Authority) -> Outcome {
    let found = call.gateway.services.destinations.get(by, &call.id()?).await?;
    Ok(stored_response(call, &found).await.respond())
}
