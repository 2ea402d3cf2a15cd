//! What is done with guardrails beside the assignment of keys.

use serde_json::json;
use utoipa::openapi::SchemaFormat;
use utoipa::openapi::path::{OperationBuilder, Parameter};
use utoipa::openapi::schema::{ObjectBuilder, Type};

use super::operations::{COMMON, body, created, path, responses};
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

fn named(id: &str, summary: &str, description: &str) -> OperationBuilder {
    let description = format!("{description} Needs a management key.");
    OperationBuilder::new().operation_id(Some(id)).summary(Some(summary)).description(Some(description))
}

fn list() -> OperationBuilder {
    let id = ObjectBuilder::new().schema_type(Type::String).format(Some(SchemaFormat::Custom("uuid".to_owned())));
    named("listGuardrails", "List the guardrails of a workspace", "The newest first.")
        .parameter(query("workspace_id", "The workspace; the default one where none is named.", id))
        .parameter(offset())
        .parameter(limit())
        .responses(responses("The guardrails", "GuardrailListResponse", &[400, 404], &COMMON))
}

fn create() -> OperationBuilder {
    let description = "No key holds it yet. With `workspace_default` the whole workspace is under it at once. Names of \
                       models may be any that resolve; canonical slugs are kept.";
    named("createGuardrail", "Make a guardrail", description)
        .request_body(Some(body("GuardrailRequest")))
        .responses(created("The guardrail", "GuardrailResponse", &[400, 404, 415], &COMMON))
}

fn get() -> OperationBuilder {
    named("getGuardrail", "Read a guardrail", "Of any workspace.").responses(responses(
        "The guardrail",
        "GuardrailResponse",
        &[404],
        &COMMON,
    ))
}

fn update() -> OperationBuilder {
    let description = "Changes the members that are there: null takes a rule away, a list is replaced whole. Makes a \
                       new version where anything is different; it is in force on every replica within a second.";
    named("updateGuardrail", "Change a guardrail", description)
        .request_body(Some(body("GuardrailChange")))
        .responses(responses("The guardrail as it is then", "GuardrailResponse", &[400, 404, 409, 415], &COMMON))
}

fn delete() -> OperationBuilder {
    let description = "Keys that hold it hold none then; a workspace that is under it is under none.";
    named("deleteGuardrail", "Delete a guardrail", description).responses(responses(
        "It is deleted",
        "GuardrailDeletedResponse",
        &[404],
        &COMMON,
    ))
}

fn list_versions() -> OperationBuilder {
    named("listGuardrailVersions", "List the states that a guardrail was in", "The newest, the present one, first.")
        .parameter(offset())
        .parameter(limit())
        .responses(responses("The versions", "GuardrailVersionListResponse", &[400, 404], &COMMON))
}

fn get_version() -> OperationBuilder {
    named("getGuardrailVersion", "Read a state that a guardrail was in", "By its number, from 1.")
        .parameter(path("version", "The version's number"))
        .responses(responses("The version", "GuardrailVersionResponse", &[404], &COMMON))
}

fn restore_version() -> OperationBuilder {
    let description = "Makes a new version with the name, the budget and the rules of an older one.";
    named("restoreGuardrailVersion", "Go back to a state that a guardrail was in", description)
        .parameter(path("version", "The version's number"))
        .responses(responses("The guardrail as it is then", "GuardrailResponse", &[404, 409], &COMMON))
}

fn explain() -> OperationBuilder {
    let description = "Tells whether a key that holds the guardrail would reach the model with this body, which rule \
                       decides, and what would be redacted. Nothing is sent, reserved or charged; how well endpoints do \
                       at this moment plays no part.";
    named("explainGuardrail", "Tell what would become of a request", description)
        .request_body(Some(body("ExplainRequest")))
        .responses(responses("What would become of it", "ExplainResponse", &[400, 404, 415], &COMMON))
}

fn list_assigned_keys() -> OperationBuilder {
    named("listGuardrailKeyAssignments", "List the keys that hold a guardrail", "The newest assignment first.")
        .parameter(offset())
        .parameter(limit())
        .responses(responses("The assignments", "KeyAssignmentListResponse", &[400, 404], &COMMON))
}

fn remove_keys() -> OperationBuilder {
    let description = "Hashes of keys that do not hold it are skipped and not counted.";
    named("removeKeysFromGuardrail", "Bulk remove keys from a guardrail", description)
        .request_body(Some(body("AssignKeysRequest")))
        .responses(responses("How many keys held it", "RemoveKeysResponse", &[400, 404, 415], &COMMON))
}

fn offset() -> Parameter {
    query("offset", "How many elements to skip.", ObjectBuilder::new().schema_type(Type::Integer).minimum(Some(0)))
}

fn limit() -> Parameter {
    let schema = ObjectBuilder::new().schema_type(Type::Integer).minimum(Some(1)).maximum(Some(100));
    query("limit", "Most elements of a page.", schema.default(Some(json!(50))))
}
