//! The OpenAPI 3.1 document, generated from the route table and the schema types.

mod decisions;
mod destination_schemas;
mod destinations;
mod guardrail_schemas;
mod guardrails;
mod key_schemas;
mod operations;
mod record_schemas;
mod records;
mod schemas;
mod wire_schemas;

use serde_json::{Value, json};
use utoipa::openapi::path::Paths;
use utoipa::openapi::schema::{ComponentsBuilder, OneOfBuilder, Schema};
use utoipa::openapi::security::{ApiKey, ApiKeyValue, HttpAuthScheme, HttpBuilder, SecurityScheme};
use utoipa::openapi::{InfoBuilder, OpenApiBuilder, Ref, RefOr};
use utoipa::{PartialSchema, ToSchema};

use crate::http::routes::{Method, ROUTES};
use crate::http::wire_names::{FileShape, WireNames};

/// The security scheme of every operation that needs a key.
const BEARER: &str = "bearer";
/// Headers that the vendor routes accept in place of the bearer token.
const KEY_HEADERS: [&str; 3] = ["x-goog-api-key", "api-key", "x-api-key"];

/// The version of the API, not of the program.
const VERSION: &str = "1.0.0";

/// Returns the OpenAPI document of the API below `base_path` with the configured literal names.
pub fn openapi_document(base_path: &str, wire_names: WireNames) -> Value {
    let base_path = base_path.trim_end_matches('/');
    let info = InfoBuilder::new()
        .title("Tollgate")
        .version(VERSION)
        .description(Some("A self-hosted gateway to AI decision models, with the management functions around it."))
        .build();
    let document = OpenApiBuilder::new().info(info).paths(paths(base_path)).components(Some(components())).build();
    // Serialisation cannot fail here. The snapshot test would detect the null fallback.
    let mut document = serde_json::to_value(document).unwrap_or_default();
    name_literals(&mut document, wire_names);
    document
}

fn paths(base_path: &str) -> Paths {
    use utoipa::openapi::HttpMethod;
    let mut paths = Paths::new();
    for route in ROUTES {
        let base = if route.under_base { base_path } else { "" };
        let method = match route.method {
            Method::Get => HttpMethod::Get,
            Method::Post => HttpMethod::Post,
            Method::Patch => HttpMethod::Patch,
            Method::Delete => HttpMethod::Delete,
        };
        paths.add_path_operation(format!("{base}{}", route.pattern), vec![method], operations::describe(route));
    }
    paths
}

fn components() -> utoipa::openapi::Components {
    let mut all: Vec<(String, RefOr<Schema>)> = Vec::new();
    add::<schemas::ErrorEnvelope>(&mut all);
    add::<schemas::NativeFile>(&mut all);
    add::<schemas::VendorAFile>(&mut all);
    add::<schemas::VendorBFile>(&mut all);
    add::<schemas::DecisionsRequest>(&mut all);
    add::<schemas::DecisionsResponse>(&mut all);
    add::<schemas::AssignKeysRequest>(&mut all);
    add::<schemas::AssignKeysResponse>(&mut all);
    add::<key_schemas::RotateKeyResponse>(&mut all);
    add::<schemas::ModelResponse>(&mut all);
    add::<schemas::CountResponse>(&mut all);
    add::<record_schemas::ModelListResponse>(&mut all);
    add::<record_schemas::ModelEndpointsResponse>(&mut all);
    add::<record_schemas::ProvidersResponse>(&mut all);
    add::<record_schemas::GenerationResponse>(&mut all);
    add::<destination_schemas::DestinationRequest>(&mut all);
    add::<destination_schemas::DestinationChange>(&mut all);
    add::<destination_schemas::DestinationResponse>(&mut all);
    add::<destination_schemas::DestinationListResponse>(&mut all);
    add::<destination_schemas::DestinationDeletedResponse>(&mut all);
    add::<guardrail_schemas::GuardrailRequest>(&mut all);
    add::<guardrail_schemas::GuardrailChange>(&mut all);
    add::<guardrail_schemas::GuardrailResponse>(&mut all);
    add::<guardrail_schemas::GuardrailListResponse>(&mut all);
    add::<guardrail_schemas::GuardrailDeletedResponse>(&mut all);
    add::<guardrail_schemas::GuardrailVersionResponse>(&mut all);
    add::<guardrail_schemas::GuardrailVersionListResponse>(&mut all);
    add::<guardrail_schemas::KeyAssignmentListResponse>(&mut all);
    add::<guardrail_schemas::RemoveKeysResponse>(&mut all);
    add::<guardrail_schemas::ExplainRequest>(&mut all);
    add::<guardrail_schemas::ExplainResponse>(&mut all);
    add::<schemas::HealthResponse>(&mut all);
    add::<schemas::RootResponse>(&mut all);
    add::<wire_schemas::DecisionsForm>(&mut all);
    add::<wire_schemas::SystemOneError>(&mut all);
    add::<wire_schemas::OpenAiDecisionsRequest>(&mut all);
    add::<wire_schemas::OpenAiDecisionsResponse>(&mut all);
    add::<wire_schemas::OpenAiError>(&mut all);
    add::<wire_schemas::GeminiDecisionsRequest>(&mut all);
    add::<wire_schemas::GeminiDecisionsResponse>(&mut all);
    add::<wire_schemas::GeminiError>(&mut all);
    add::<wire_schemas::SglangDecisionsRequest>(&mut all);
    add::<wire_schemas::SglangDecisionsResponse>(&mut all);
    add::<wire_schemas::SglangError>(&mut all);
    let shapes = [schemas::NativeFile::name(), schemas::VendorAFile::name(), schemas::VendorBFile::name()];
    let file = shapes.into_iter().fold(OneOfBuilder::new(), |one_of, name| one_of.item(Ref::from_schema_name(name)));
    all.push(("File".to_owned(), file.description(Some("A stored file, in one of three shapes.")).into()));
    let bearer = HttpBuilder::new().scheme(HttpAuthScheme::Bearer).description(Some("An API key.")).build();
    let components =
        ComponentsBuilder::new().schemas_from_iter(all).security_scheme(BEARER, SecurityScheme::Http(bearer));
    let vendors = KEY_HEADERS.iter().fold(components, |components, name| {
        components.security_scheme(*name, SecurityScheme::ApiKey(ApiKey::Header(ApiKeyValue::new(*name))))
    });
    vendors.build()
}

/// Adds the schema of a type and all referenced schemas.
fn add<T: ToSchema + PartialSchema>(all: &mut Vec<(String, RefOr<Schema>)>) {
    all.push((T::name().into_owned(), T::schema()));
    T::schemas(all);
}

/// Inserts the configured literals: the values of `_shape` and the name of the service metadata member.
fn name_literals(document: &mut Value, names: WireNames) {
    let shapes =
        [("NativeFile", FileShape::Native), ("VendorAFile", FileShape::VendorA), ("VendorBFile", FileShape::VendorB)];
    let schemas = &mut document["components"]["schemas"];
    for (schema, shape) in shapes {
        schemas[schema]["properties"]["_shape"] = json!({"type": "string", "const": names.shape(shape)});
    }
    let mapping = shapes
        .map(|(schema, shape)| (names.shape(shape).to_owned(), Value::from(format!("#/components/schemas/{schema}"))));
    schemas["File"]["discriminator"] =
        json!({"propertyName": "_shape", "mapping": mapping.into_iter().collect::<serde_json::Map<_, _>>()});
    for schema in ["ErrorEnvelope", "DecisionsResponse"] {
        if let Some(properties) = schemas[schema]["properties"].as_object_mut()
            && let Some(service_metadata) = properties.remove("service_metadata")
        {
            properties.insert(names.service_metadata().to_owned(), service_metadata);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn openapi_document_matches_snapshot() {
        insta::assert_json_snapshot!("openapi_interface", openapi_document("/api/v1", WireNames::Interface));
    }

    #[test]
    fn openapi_profiles_differ_only_in_literals() {
        let text = |names| openapi_document("/api/v1", names).to_string();
        let renamed = text(WireNames::Interface)
            .replace("\"native\"", "\"openrouter\"")
            .replace("\"vendor_a\"", "\"anthropic\"")
            .replace("\"vendor_b\"", "\"openai\"")
            .replace("\"service_metadata\"", "\"openrouter_metadata\"");
        let same: Value = serde_json::from_str(&renamed).unwrap();
        assert_eq!(same, openapi_document("/api/v1", WireNames::OpenRouter));
    }

    #[test]
    fn openapi_references_resolve() {
        fn references<'v>(value: &'v Value, found: &mut Vec<&'v str>) {
            match value {
                Value::Object(members) => members.iter().for_each(|(name, value)| match value {
                    Value::String(target) if name == "$ref" => found.push(target),
                    other => references(other, found),
                }),
                Value::Array(elements) => elements.iter().for_each(|element| references(element, found)),
                _ => {}
            }
        }
        let document = openapi_document("", WireNames::Interface);
        let mut found = Vec::new();
        references(&document, &mut found);
        assert!(found.len() > 20);
        for target in found {
            assert!(document.pointer(target.trim_start_matches('#')).is_some(), "{target}");
        }
    }

    #[test]
    fn every_operation_declares_statuses_and_security() {
        let document = openapi_document("/api/v1", WireNames::Interface);
        assert_eq!(document["openapi"], "3.1.0");
        assert_eq!(document["info"]["version"], "1.0.0");
        let mut ids = std::collections::HashSet::new();
        for (path, item) in document["paths"].as_object().unwrap() {
            for (method, operation) in item.as_object().unwrap() {
                assert!(ids.insert(operation["operationId"].as_str().unwrap()), "{path}");
                let open = crate::http::routes::OPEN_PATHS.contains(&path.as_str());
                let security = operation["security"].as_array().unwrap();
                assert_eq!(security.first(), if open { None } else { Some(json!({"bearer": []})) }.as_ref(), "{path}");
                let responses = operation["responses"].as_object().unwrap();
                assert_eq!(responses.keys().filter(|status| status.starts_with('2')).count(), 1, "{method} {path}");
                let common: &[&str] =
                    if open { &["405", "500"] } else { &["401", "403", "405", "413", "429", "500", "503"] };
                for status in common {
                    assert!(operation["responses"].get(status).is_some(), "{method} {path} {status}");
                }
            }
        }
        assert_eq!(ids.len(), ROUTES.len());
    }
}
