//! Where traces are broadcast to.

use utoipa::openapi::SchemaFormat;
use utoipa::openapi::path::OperationBuilder;
use utoipa::openapi::schema::{ObjectBuilder, Type};

use super::operations::{COMMON, body, created, path, responses};
use super::records::query;
use crate::endpoints::destinations::DestinationOperation;

pub(super) fn describe(operation: DestinationOperation) -> OperationBuilder {
    match operation {
        DestinationOperation::List => list(),
        DestinationOperation::Create => create(),
        DestinationOperation::Get => get().parameter(path("id", "The destination's id")),
        DestinationOperation::Update => update().parameter(path("id", "The destination's id")),
        DestinationOperation::Delete => delete().parameter(path("id", "The destination's id")),
    }
}

fn named(id: &str, summary: &str, description: &str) -> OperationBuilder {
    let description = format!("{description} Needs a management key.");
    OperationBuilder::new().operation_id(Some(id)).summary(Some(summary)).description(Some(description))
}

fn list() -> OperationBuilder {
    let id = ObjectBuilder::new().schema_type(Type::String).format(Some(SchemaFormat::Custom("uuid".to_owned())));
    named("listDestinations", "List the destinations of traces", "The oldest first.")
        .parameter(query("workspace_id", "The workspace; all of them where none is named.", id))
        .responses(responses("The destinations", "DestinationListResponse", &[400], &COMMON))
}

fn create() -> OperationBuilder {
    let description = "The receiver is called for a test first (header `x-test-connection: true`) and must answer with \
                       2xx or 400. A workspace has at most five of a type.";
    named("createDestination", "Make a destination of traces", description)
        .request_body(Some(body("DestinationRequest")))
        .responses(created("The destination", "DestinationResponse", &[400, 409, 415], &COMMON))
}

fn get() -> OperationBuilder {
    let description = "Values of headers, the secret and the query of the URL are masked.";
    named("getDestination", "Read a destination of traces", description).responses(responses(
        "The destination",
        "DestinationResponse",
        &[404],
        &COMMON,
    ))
}

fn update() -> OperationBuilder {
    let description = "Changes the members that are there; what comes back masked stays as it is. Where URL, headers or \
                       secret become others, the receiver is called for a test first. A URL of another scheme, host or \
                       port needs every secret anew: the values of the headers, the secret, the query.";
    named("updateDestination", "Change a destination of traces", description)
        .request_body(Some(body("DestinationChange")))
        .responses(responses("The destination as it is then", "DestinationResponse", &[400, 404, 409, 415], &COMMON))
}

fn delete() -> OperationBuilder {
    named("deleteDestination", "Delete a destination of traces", "What waits for it is dropped.").responses(responses(
        "It is deleted",
        "DestinationDeletedResponse",
        &[404],
        &COMMON,
    ))
}
