//! The list of all endpoints. A new one is a line here and a route in `endpoints/`.

use serde_json::Value;

use crate::endpoints::{
    assign_keys_to_guardrail, audit, container_files, destinations, docs, evidence, files, get_generation, get_own_key,
    guardrails, health, import_catalogue, keys, list_model_endpoints, list_models, list_providers, presets,
    promote_container_file, status, submit_decision, test_provider, usage, workspaces,
};
use crate::http::routes::Route;
use crate::openapi;

/// All routes. A vendor path precedes an equal path below the base path.
pub(crate) const ROUTES: &[Route] = &[
    submit_decision::CONTRACT,
    submit_decision::CONTRACT_OUTSIDE_BASE,
    submit_decision::SYSTEM_ONE,
    submit_decision::SYSTEM_ONE_UNDER_BASE,
    submit_decision::ANY_SHAPE,
    submit_decision::ANY_SHAPE_UNDER_BASE,
    submit_decision::GEMINI,
    list_models::COUNT,
    list_models::MODEL,
    list_models::DECISION_MODELS,
    list_models::MODELS,
    list_models::PERMITTED,
    list_models::VENDOR_ENTRY,
    list_models::VENDOR_ENTRY_BY_SLUG,
    list_models::ENTRY,
    list_model_endpoints::ROUTE,
    list_model_endpoints::ZERO_RETENTION,
    list_providers::LIST,
    list_providers::UPDATE,
    test_provider::ROUTE,
    get_generation::ROUTE,
    evidence::feedback::ROUTE,
    evidence::LIST,
    evidence::labels::ADD,
    evidence::labels::LIST,
    usage::generations::ROUTE,
    usage::sums::ROUTE,
    usage::rejections::ROUTE,
    usage::activity::ROUTE,
    get_own_key::ROUTE,
    keys::LIST,
    keys::CREATE,
    keys::GET,
    keys::UPDATE,
    keys::DELETE,
    keys::ROTATE,
    workspaces::LIST,
    workspaces::CREATE,
    workspaces::GET,
    workspaces::UPDATE,
    workspaces::DELETE,
    workspaces::budgets::LIST,
    workspaces::budgets::CHANGE,
    workspaces::budgets::GET,
    workspaces::budgets::SET,
    workspaces::budgets::DELETE,
    workspaces::credits::GET,
    workspaces::credits::ADD,
    workspaces::credits::CLEAR,
    container_files::LIST,
    container_files::PUT,
    container_files::GET,
    container_files::DELETE,
    container_files::CONTENT,
    promote_container_file::ROUTE,
    files::LIST,
    files::GET,
    files::DELETE,
    files::CONTENT,
    guardrails::LIST,
    guardrails::CREATE,
    guardrails::GET,
    guardrails::UPDATE,
    guardrails::DELETE,
    guardrails::assigned_keys::LIST_ALL,
    guardrails::assigned_keys::LIST,
    assign_keys_to_guardrail::ROUTE,
    guardrails::assigned_keys::REMOVE,
    guardrails::explain::ROUTE,
    guardrails::LIST_VERSIONS,
    guardrails::GET_VERSION,
    guardrails::RESTORE_VERSION,
    presets::LIST,
    presets::GET,
    presets::UPDATE,
    presets::ADD_VERSION,
    presets::LIST_VERSIONS,
    presets::GET_VERSION,
    destinations::LIST,
    destinations::CREATE,
    destinations::GET,
    destinations::UPDATE,
    destinations::DELETE,
    destinations::TEST,
    destinations::RETRY,
    import_catalogue::ROUTE,
    audit::ROUTE,
    status::ROUTE,
    docs::ROOT,
    health::LIVE,
    health::READY,
    docs::DOCUMENT,
    docs::PAGE,
    docs::SCRIPT,
];

/// Returns the OpenAPI document of the API below `base_path`.
pub fn openapi_document(base_path: &str) -> Value {
    openapi::document(ROUTES, base_path)
}

/// Checks a body against a schema of the document.
#[cfg(test)]
#[track_caller]
pub(crate) fn assert_valid(schema: &str, body: &Value) {
    let schemas = openapi_check::Schemas::new(openapi_document("/api/v1")).unwrap();
    let reference = serde_json::json!({"$ref": format!("#/components/schemas/{schema}")});
    assert_eq!(schemas.violations(&reference, body), [""; 0], "{schema}: {body}");
}
