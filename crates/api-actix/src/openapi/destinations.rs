//! The operations on trace destinations.

use utoipa::openapi::SchemaFormat;
use utoipa::openapi::path::OperationBuilder;
use utoipa::openapi::schema::{ObjectBuilder, Type};

use super::operations::{COMMON_STATUSES, body, created_responses, path, responses};
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

fn describe_operation(id: &str, summary: &str, description: &str) -> OperationBuilder {
    let description = format!("{description} Needs a management key.");
    OperationBuilder::new().operation_id(Some(id)).summary(Some(summary)).description(Some(description))
}

fn list() -> OperationBuilder {
    let id = ObjectBuilder::new().schema_type(Type::String).format(Some(SchemaFormat::Custom("uuid".to_owned())));
    describe_operation("listDestinations", "List trace destinations", "Oldest first.")
        .parameter(query("workspace_id", "The workspace id. Default: all workspaces.", id))
        .responses(responses("The destinations", "DestinationListResponse", &[400], &COMMON_STATUSES))
}

fn create() -> OperationBuilder {
    let description = "The destination first receives a test request (header `x-test-connection: true`) and must \
                       answer with 2xx or 400. A workspace has at most five destinations of each type.";
    describe_operation("createDestination", "Create a trace destination", description)
        .request_body(Some(body("DestinationRequest")))
        .responses(created_responses("The destination", "DestinationResponse", &[400, 409, 415], &COMMON_STATUSES))
}

fn get() -> OperationBuilder {
    let description = "Header values, the secret and the URL query are masked.";
    describe_operation("getDestination", "Get a trace destination", description).responses(responses(
        "The destination",
        "DestinationResponse",
        &[404],
        &COMMON_STATUSES,
    ))
}

fn update() -> OperationBuilder {
    let description = "Changes the given members; masked values stay unchanged. A change of URL, headers or secret \
                       is tested with a request first. A URL with another scheme, host or port requires all secrets \
                       again: header values, secret, query.";
    describe_operation("updateDestination", "Update a trace destination", description)
        .request_body(Some(body("DestinationChange")))
        .responses(responses("The updated destination", "DestinationResponse", &[400, 404, 409, 415], &COMMON_STATUSES))
}

fn delete() -> OperationBuilder {
    describe_operation("deleteDestination", "Delete a trace destination", "Pending deliveries are dropped.")
        .responses(responses("Deleted", "DestinationDeletedResponse", &[404], &COMMON_STATUSES))
}
