//! The operations on guardrails, except the assignment of keys.

use serde_json::json;
use utoipa::openapi::SchemaFormat;
use utoipa::openapi::path::{OperationBuilder, Parameter};
use utoipa::openapi::schema::{ObjectBuilder, Type};

use super::operations::{COMMON_STATUSES, body, created_responses, path, responses};
use super::records::query;
use crate::endpoints::guardrails::GuardrailOperation;

pub(super) fn describe(operation: GuardrailOperation) -> OperationBuilder {
    let builder = match operation {
        GuardrailOperation::List => list(),
        GuardrailOperation::Create => create(),
        GuardrailOperation::Get => get(),
        GuardrailOperation::Update => update(),
        GuardrailOperation::Delete => delete(),
        GuardrailOperation::ListVersions => list_versions(),
        GuardrailOperation::GetVersion => get_version(),
        GuardrailOperation::RestoreVersion => restore_version(),
        GuardrailOperation::Explain => explain(),
        GuardrailOperation::ListAssignedKeys => list_assigned_keys(),
        GuardrailOperation::RemoveKeys => remove_keys(),
    };
    match operation {
        GuardrailOperation::List | GuardrailOperation::Create => builder,
        _ => builder.parameter(path("id", "The guardrail's id")),
    }
}

fn describe_operation(id: &str, summary: &str, description: &str) -> OperationBuilder {
    let description = format!("{description} Needs a management key.");
    OperationBuilder::new().operation_id(Some(id)).summary(Some(summary)).description(Some(description))
}

fn list() -> OperationBuilder {
    let id = ObjectBuilder::new().schema_type(Type::String).format(Some(SchemaFormat::Custom("uuid".to_owned())));
    describe_operation("listGuardrails", "List the guardrails of a workspace", "Newest first.")
        .parameter(query("workspace_id", "The workspace id. Default: the default workspace.", id))
        .parameter(offset())
        .parameter(limit())
        .responses(responses("The guardrails", "GuardrailListResponse", &[400, 404], &COMMON_STATUSES))
}

fn create() -> OperationBuilder {
    let description = "The new guardrail has no keys. `workspace_default` applies it to the whole workspace at once. \
                       Any resolvable model name is accepted and stored as a canonical slug.";
    describe_operation("createGuardrail", "Create a guardrail", description)
        .request_body(Some(body("GuardrailRequest")))
        .responses(created_responses("The guardrail", "GuardrailResponse", &[400, 404, 415], &COMMON_STATUSES))
}

fn get() -> OperationBuilder {
    describe_operation("getGuardrail", "Get a guardrail", "Returns a guardrail of any workspace.").responses(responses(
        "The guardrail",
        "GuardrailResponse",
        &[404],
        &COMMON_STATUSES,
    ))
}

fn update() -> OperationBuilder {
    let description = "Changes the given members: null removes a rule, a list is replaced as a whole. A change \
                       creates a new version, which is effective on every replica within a second.";
    describe_operation("updateGuardrail", "Update a guardrail", description)
        .request_body(Some(body("GuardrailChange")))
        .responses(responses("The updated guardrail", "GuardrailResponse", &[400, 404, 409, 415], &COMMON_STATUSES))
}

fn delete() -> OperationBuilder {
    let description = "Removes the guardrail from its keys and from the workspace.";
    describe_operation("deleteGuardrail", "Delete a guardrail", description).responses(responses(
        "Deleted",
        "GuardrailDeletedResponse",
        &[404],
        &COMMON_STATUSES,
    ))
}

fn list_versions() -> OperationBuilder {
    describe_operation("listGuardrailVersions", "List the versions of a guardrail", "Newest first.")
        .parameter(offset())
        .parameter(limit())
        .responses(responses("The versions", "GuardrailVersionListResponse", &[400, 404], &COMMON_STATUSES))
}

fn get_version() -> OperationBuilder {
    describe_operation("getGuardrailVersion", "Get a version of a guardrail", "Versions are numbered from 1.")
        .parameter(path("version", "The version's number"))
        .responses(responses("The version", "GuardrailVersionResponse", &[404], &COMMON_STATUSES))
}

fn restore_version() -> OperationBuilder {
    let description = "Creates a new version with the name, the budget and the rules of an earlier version.";
    describe_operation("restoreGuardrailVersion", "Restore a version of a guardrail", description)
        .parameter(path("version", "The version's number"))
        .responses(responses("The updated guardrail", "GuardrailResponse", &[404, 409], &COMMON_STATUSES))
}

fn explain() -> OperationBuilder {
    let description = "Returns whether a key with this guardrail could send this body to the model, the deciding \
                       rule, and the redacted content. Nothing is sent, held or charged; the current health of \
                       endpoints is ignored.";
    describe_operation("explainGuardrail", "Explain the handling of a request", description)
        .request_body(Some(body("ExplainRequest")))
        .responses(responses("The explanation", "ExplainResponse", &[400, 404, 415], &COMMON_STATUSES))
}

fn list_assigned_keys() -> OperationBuilder {
    describe_operation("listGuardrailKeyAssignments", "List the keys of a guardrail", "Newest assignment first.")
        .parameter(offset())
        .parameter(limit())
        .responses(responses("The assignments", "KeyAssignmentListResponse", &[400, 404], &COMMON_STATUSES))
}

fn remove_keys() -> OperationBuilder {
    let description = "Keys without this guardrail are skipped and not counted.";
    describe_operation("removeKeysFromGuardrail", "Bulk remove keys from a guardrail", description)
        .request_body(Some(body("AssignKeysRequest")))
        .responses(responses(
            "The number of removed assignments",
            "RemoveKeysResponse",
            &[400, 404, 415],
            &COMMON_STATUSES,
        ))
}

fn offset() -> Parameter {
    query("offset", "The number of elements to skip.", ObjectBuilder::new().schema_type(Type::Integer).minimum(Some(0)))
}

fn limit() -> Parameter {
    let schema = ObjectBuilder::new().schema_type(Type::Integer).minimum(Some(1)).maximum(Some(100));
    query("limit", "The maximum number of elements on a page.", schema.default(Some(json!(50))))
}
