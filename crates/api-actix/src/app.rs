//! The list of all endpoints. A new one is a line here and a route in `endpoints/`.

use serde_json::Value;

use crate::endpoints::{
    assign_keys_to_guardrail, audit, container_files, count_models, destinations, docs, evidence, files,
    get_generation, get_model, get_own_key, guardrails, health, import_catalogue, keys, list_model_endpoints,
    list_models, list_permitted_models, list_providers, list_zero_retention_endpoints, presets, promote_container_file,
    retrieve_model, status, submit_decision, test_provider, usage, workspaces,
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
    count_models::ROUTE,
    get_model::ROUTE,
    list_models::DECISION_MODELS,
    list_models::MODELS,
    list_permitted_models::ROUTE,
    retrieve_model::VENDOR_ROUTE,
    retrieve_model::VENDOR_ROUTE_BY_SLUG,
    retrieve_model::ROUTE,
    list_model_endpoints::ROUTE,
    list_zero_retention_endpoints::ROUTE,
    list_providers::LIST,
    list_providers::UPDATE,
    test_provider::ROUTE,
    get_generation::ROUTE,
    evidence::feedback::ROUTE,
    evidence::list::ROUTE,
    evidence::labels::ADD,
    evidence::labels::LIST,
    usage::generations::ROUTE,
    usage::sums::ROUTE,
    usage::rejections::ROUTE,
    usage::activity::ROUTE,
    get_own_key::ROUTE,
    keys::read::LIST,
    keys::change::CREATE,
    keys::read::GET,
    keys::change::UPDATE,
    keys::change::DELETE,
    keys::rotate::ROUTE,
    workspaces::read::LIST,
    workspaces::change::CREATE,
    workspaces::read::GET,
    workspaces::change::UPDATE,
    workspaces::delete::ROUTE,
    workspaces::budgets::LIST,
    workspaces::budgets::CHANGE,
    workspaces::budgets::GET,
    workspaces::budgets::SET,
    workspaces::budgets::DELETE,
    workspaces::credits::GET,
    workspaces::credits::ADD,
    workspaces::credits::CLEAR,
    container_files::read::LIST,
    container_files::put::ROUTE,
    container_files::read::GET,
    container_files::delete::ROUTE,
    container_files::content::ROUTE,
    promote_container_file::ROUTE,
    files::read::LIST,
    files::read::GET,
    files::delete::ROUTE,
    files::content::ROUTE,
    guardrails::read::LIST,
    guardrails::change::CREATE,
    guardrails::read::GET,
    guardrails::change::UPDATE,
    guardrails::change::DELETE,
    guardrails::assigned_keys::LIST_ALL,
    guardrails::assigned_keys::LIST,
    assign_keys_to_guardrail::ROUTE,
    guardrails::assigned_keys::REMOVE,
    guardrails::explain::ROUTE,
    guardrails::read::LIST_VERSIONS,
    guardrails::read::GET_VERSION,
    guardrails::change::RESTORE_VERSION,
    presets::read::LIST,
    presets::read::GET,
    presets::change::UPDATE,
    presets::change::ADD_VERSION,
    presets::read::LIST_VERSIONS,
    presets::read::GET_VERSION,
    destinations::read::LIST,
    destinations::change::CREATE,
    destinations::read::GET,
    destinations::change::UPDATE,
    destinations::change::DELETE,
    destinations::act::TEST,
    destinations::act::RETRY,
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
