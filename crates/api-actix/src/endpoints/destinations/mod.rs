//! `…/observability/destinations`: the trace destinations of a workspace. Management keys only.

mod fields;
mod record;

use domain::observability::{Destination, DestinationError, InvalidDestination, find_key_hashes};
use wires::client::ErrorLocation;

use crate::endpoints::prelude::*;
use crate::endpoints::workspaces;
use record::{DestinationChange, DestinationRequest, DestinationView};

/// Renders a stored destination, with key ids if the hashes cannot be read: a write has succeeded.
async fn stored_response(call: &Call<'_>, destination: &Destination) -> RecordResponse {
    let hashes = find_key_hashes(&*call.gateway.services.destinations.keys, std::slice::from_ref(destination)).await;
    record::respond(StatusCode::OK, destination, &hashes.unwrap_or_default())
}

impl From<InvalidDestination> for ApiError {
    fn from(invalid: InvalidDestination) -> Self {
        Self::invalid(invalid.to_string()).location(ErrorLocation::Member(invalid.path))
    }
}

api_error!(DestinationError {
    pass: Restricted, Invalid, PreconditionFailed, Name, Store;
    kind: Changed;
    said: WorkspaceRequired;
    with |plain|
        DestinationError::NothingToChange => plain.message("No update fields provided"),
        DestinationError::UnknownWorkspace => plain.message("workspace_id: workspace not found"),
        DestinationError::TestFailed(reason) => {
            plain.message(format!("The test call to the destination failed: {reason}"))
        },
        error @ DestinationError::TooMany(_) => {
            let sentence = error.to_string();
            let (first, rest) = sentence.split_at(1);
            plain.message(format!("{}{rest}", first.to_uppercase()))
        };
});

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

/// `POST …/observability/destinations`: creates a destination.
pub(crate) const CREATE: Route =
    Route::management(Post, "/observability/destinations", tags::DESTINATIONS, handler!(handle_create, payload))
        .operation("createDestination", "Create a trace destination")
        .description(
            "The destination first receives a test request (header `x-test-connection: true`) and must answer with \
             2xx or 400. A workspace has at most five destinations of each type.",
        )
        .body(BodySchema::of::<DestinationRequest>)
        .headers(&[IDEMPOTENCY_KEY])
        .created(record::response, "The destination")
        .also(&[404]);

async fn handle_create(call: &Call<'_>, by: &Authority, payload: Payload) -> Outcome {
    by.check(Right::Write)?;
    let body = call.read_json(payload).await?;
    let (fields, workspace) = fields::read(body.text()?)?;
    let workspace = workspace.as_deref().map(parameters::workspace_id).transpose()?;
    let destinations = &call.gateway.services.destinations;
    let hashes = destinations.named_key_hashes(&fields).await?;
    let create = async |change: &Change<'_, _>| destinations.create(change, workspace, &fields).await;
    call.post(by, body.text()?, create, |made| record::respond(StatusCode::CREATED, made, &hashes)).await
}

/// `PATCH …/observability/destinations/{id}`: changes a destination.
pub(crate) const UPDATE: Route =
    Route::management(Patch, "/observability/destinations/{id}", tags::DESTINATIONS, handler!(handle_update, payload))
        .operation("updateDestination", "Update a trace destination")
        .description(
            "Changes the given members; `config` as a whole, except that an absent `secret` and masked values stay. A \
             change of URL, headers or secret is tested with a request first. A URL with another scheme, host or port \
             requires all secrets again: header values, secret, query.",
        )
        .body(BodySchema::of::<DestinationChange>)
        .headers(&[IF_MATCH])
        .answer(record::response, "The updated destination");

async fn handle_update(call: &Call<'_>, by: &Authority, payload: Payload) -> Outcome {
    by.check(Right::Write)?;
    let (mut fields, workspace) = fields::read(call.read_json(payload).await?.text()?)?;
    fields.workspace_id = workspace.as_deref().map(parameters::workspace_id).transpose()?;
    let changed = call.gateway.services.destinations.update(&call.change(by)?, &call.id()?, &fields).await?;
    Ok(stored_response(call, &changed).await.respond())
}

/// `DELETE …/observability/destinations/{id}`: deletes a destination.
pub(crate) const DELETE: Route =
    Route::management(Delete, "/observability/destinations/{id}", tags::DESTINATIONS, handler!(handle_delete))
        .operation("deleteDestination", "Delete a trace destination")
        .description("Pending deliveries are dropped.")
        .headers(&[IF_MATCH])
        .answer(|| BodySchema::named::<Deleted>("DestinationDeletedResponse", "Confirms the deletion."), "Deleted");

async fn handle_delete(call: &Call<'_>, by: &Authority) -> Outcome {
    call.gateway.services.destinations.delete(&call.change(by)?, &call.id()?).await?;
    Ok(Deleted::respond())
}

/// `POST …/observability/destinations/{id}/test`: sends a test delivery.
pub(crate) const TEST: Route =
    Route::management(Post, "/observability/destinations/{id}/test", tags::DESTINATIONS, handler!(handle_test))
        .operation("testDestination", "Test a trace destination")
        .description(
            "Sends a delivery without traces, also to a disabled destination. It must answer with 2xx or 400; \
             otherwise this is 400 with the reason. Messages that wait after a failure are due at once.",
        )
        .headers(&[IF_MATCH])
        .answer(
            || BodySchema::data::<TestedView>("DestinationTestResponse", "A destination that accepted a test."),
            "The destination accepts traces",
        );

/// A destination that accepted a test delivery.
#[derive(Serialize, ToSchema)]
#[schema(as = TestedDestination)]
struct TestedView {
    /// The destination's id.
    id: String,
    /// Always true.
    reached: bool,
}

async fn handle_test(call: &Call<'_>, by: &Authority) -> Outcome {
    let tested = call.gateway.services.destinations.test(&call.change(by)?, &call.id()?).await?;
    Ok(HttpResponse::Ok().json(Data { data: TestedView { id: tested.id.to_string(), reached: true } }))
}

/// `POST …/observability/destinations/{id}/retry`: makes dead letters due again.
pub(crate) const RETRY: Route =
    Route::management(Post, "/observability/destinations/{id}/retry", tags::DESTINATIONS, handler!(handle_retry))
        .operation("retryDeadLetters", "Retry dead letters")
        .description("Makes the destination's dead letters, and messages that wait after a failure, due now.")
        .headers(&[IF_MATCH])
        .answer(
            || BodySchema::data::<RetriedView>("DestinationRetryResponse", "Messages that are due again."),
            "The messages are queued for delivery",
        );

/// The number of messages that are due again.
#[derive(Serialize, ToSchema)]
#[schema(as = RetriedDeadLetters)]
struct RetriedView {
    retried_count: u64,
}

async fn handle_retry(call: &Call<'_>, by: &Authority) -> Outcome {
    let name = call.id()?;
    let id = match name.parse() {
        // A destination that is not stored may have dead letters, too.
        Ok(id) => id,
        Err(_) => call.gateway.services.destinations.get(by, &name).await?.id,
    };
    let retried_count = call.gateway.services.retry_dead_letters.execute(&call.change(by)?, id).await?;
    Ok(HttpResponse::Ok().json(Data { data: RetriedView { retried_count } }))
}
