//! Reads destinations.

use domain::observability::find_key_hashes;

use super::record::DestinationView;
use super::{record, stored_response};
use crate::endpoints::prelude::*;
use crate::endpoints::workspaces;

/// `GET …/observability/destinations`: lists destinations.
pub(crate) const LIST: Route =
    Route::management(Get, "/observability/destinations", tags::DESTINATIONS, handler!(handle_list))
        .operation("listDestinations", "List trace destinations")
        .description("Oldest first.")
        .query(&[WORKSPACE, OFFSET, LIMIT])
        .answer(
            || BodySchema::page::<DestinationView>("DestinationListResponse", "A page of trace destinations."),
            "The destinations",
        );

async fn handle_list(call: &Call<'_>, by: &Authority) -> Outcome {
    let query = call.request.query_string();
    let PageRange { offset, limit } = PageRange::parse(query, DEFAULT_LIMIT)?;
    let (workspace_id, destinations) = (workspaces::filter(call, by).await?, &call.gateway.services.destinations);
    let (found, total) = destinations.list(by, workspace_id, offset, limit).await?;
    let hashes = find_key_hashes(&*destinations.keys, &found).await?;
    Ok(Page::respond(found.iter().map(|one| DestinationView::new(one, &hashes)).collect(), total))
}

/// `GET …/observability/destinations/{id}`: reads a destination.
pub(crate) const GET: Route =
    Route::management(Get, "/observability/destinations/{id}", tags::DESTINATIONS, handler!(handle_get))
        .operation("getDestination", "Get a trace destination")
        .description("Header values, the secret and the URL query are masked.")
        .answer(record::response, "The destination");

async fn handle_get(call: &Call<'_>, by: &Authority) -> Outcome {
    let found = call.gateway.services.destinations.get(by, &call.id()?).await?;
    Ok(stored_response(call, &found).await.respond())
}
