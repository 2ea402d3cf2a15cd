//! The OpenAPI 3.1 document, generated from the route table and the types of the bodies that each route lists.

pub(crate) mod decisions;
mod headers;
mod schemas;

use serde_json::{Value, json};
use utoipa::openapi::path::Paths;
use utoipa::openapi::schema::ComponentsBuilder;
use utoipa::openapi::security::{
    ApiKey, ApiKeyValue, HttpAuthScheme, HttpBuilder, SecurityRequirement, SecurityScheme,
};
use utoipa::openapi::{InfoBuilder, OpenApiBuilder, ServerBuilder};

use crate::http::client::{FileShape, WireNames};
use crate::http::envelope::ErrorEnvelope;
use crate::http::operation::{BodySchema, COMMON_STATUSES, OPEN_STATUSES, Operation, Schemas, tags};
use crate::http::route_parameters::{FORMAT, Header, path_parameters};
use crate::http::routes::{Method, Route};

/// The security scheme of every operation that needs a key.
const BEARER: &str = "bearer";
/// Headers that the vendor routes accept in place of the bearer token.
const KEY_HEADERS: [&str; 3] = ["x-goog-api-key", "api-key", "x-api-key"];
/// The description of those headers.
const VENDOR_KEY: &str = "An API key, on the paths of vendors' clients only; `bearer` works on every path.";

const NEEDS_MANAGEMENT: &str = "Needs a management key.";
const REQUEST_ID: Header =
    Header::new("x-request-id", "Names the request in the answer and in logs; made up where it is absent.", 128, &[]);
const METADATA: Header =
    Header::new("x-tollgate-metadata", "`enabled` adds service metadata about the handling of the request.", 16, &[]);

/// The version of the API, not of the program.
const VERSION: &str = "1.0.0";

/// Returns the OpenAPI document of the routes, with the API below `base_path`.
pub(crate) fn document(routes: &[Route], base_path: &str) -> Value {
    let base_path = base_path.trim_end_matches('/');
    let info = InfoBuilder::new()
        .title("Tollgate")
        .version(VERSION)
        .description(Some("A self-hosted gateway to AI decision models, with the management functions around it."))
        .build();
    // Relative to the document: the address under which the client reaches this server.
    let server = ServerBuilder::new().url("/").description(Some("This server")).build();
    let document = OpenApiBuilder::new()
        .info(info)
        .servers(Some([server]))
        .tags(Some(tags::all()))
        .paths(paths(routes, base_path))
        .components(Some(components(routes)))
        .build();
    // Serialisation cannot fail here. The snapshot test would detect the null fallback.
    let mut document = serde_json::to_value(document).unwrap_or_default();
    name_literals(&mut document);
    widen_unsigned(&mut document);
    document
}

fn paths(routes: &[Route], base_path: &str) -> Paths {
    use utoipa::openapi::HttpMethod;
    let mut paths = Paths::new();
    for route in routes {
        let base = if route.under_base { base_path } else { "" };
        let method = match route.method {
            Method::Get => HttpMethod::Get,
            Method::Post => HttpMethod::Post,
            Method::Put => HttpMethod::Put,
            Method::Patch => HttpMethod::Patch,
            Method::Delete => HttpMethod::Delete,
        };
        paths.add_path_operation(format!("{base}{}", route.pattern), vec![method], describe(route).description);
    }
    paths
}

fn components(routes: &[Route]) -> utoipa::openapi::Components {
    let bearer = HttpBuilder::new().scheme(HttpAuthScheme::Bearer).description(Some("An API key.")).build();
    let components = ComponentsBuilder::new()
        .schemas_from_iter(schemas_of(routes))
        .security_scheme(BEARER, SecurityScheme::Http(bearer));
    let vendors = KEY_HEADERS.iter().fold(components, |components, name| {
        components.security_scheme(
            *name,
            SecurityScheme::ApiKey(ApiKey::Header(ApiKeyValue::with_description(*name, VENDOR_KEY))),
        )
    });
    vendors.build()
}

/// Describes a route: what its endpoint says, with what is common to all.
pub(crate) fn describe(route: &Route) -> Operation {
    let common: &[u16] = if route.is_open() { &OPEN_STATUSES } else { &COMMON_STATUSES };
    let mut operation = describe_own(route).add_errors(common);
    operation.description.tags = Some(vec![route.tag.to_owned()]);
    // An empty list declares that no key is needed.
    let bearer = (!route.is_open()).then_some(BEARER);
    let vendors = KEY_HEADERS.into_iter().filter(|_| route.is_for_vendor_clients());
    let schemes = bearer.into_iter().chain(vendors);
    let security = schemes.map(|scheme| SecurityRequirement::new::<_, [&str; 0], &str>(scheme, []));
    operation.description.security = Some(security.collect());
    headers::describe(route, &mut operation.description);
    if route.is_open() {
        return operation;
    }
    operation.parameter(REQUEST_ID.describe()).parameter(METADATA.describe())
}

/// Describes a route without the parts that are common to all, with the statuses of its parameters and its body.
fn describe_own(route: &Route) -> Operation {
    let mut operation = Operation::new(route.id, route.summary);
    let mut statuses = route.statuses.to_vec();
    match route.description {
        "" => {}
        text if route.is_audited() && !text.contains(NEEDS_MANAGEMENT) => {
            operation = operation.description(format!("{text} {NEEDS_MANAGEMENT}"));
        }
        text => operation = operation.description(text),
    }
    for (parameter, errors) in path_parameters(route.pattern) {
        operation = operation.parameter(parameter);
        statuses.extend(errors);
    }
    let checks_query = !route.is_open() && !route.takes_any_query;
    if checks_query || !route.query.is_empty() {
        statuses.push(400);
    }
    if route.is_change() {
        statuses.extend([400, 412]);
    }
    for query in route.query {
        operation = query.describe().into_iter().fold(operation, Operation::parameter);
        statuses.extend(query.statuses());
    }
    for header in route.headers {
        operation = operation.parameter(header.describe());
        statuses.extend(header.statuses);
    }
    if route.reads_body {
        statuses.extend([400, 415]);
    }
    operation = route.body.into_iter().fold(operation, |operation, schema| operation.body(schema(), None));
    if let Some((status, schema, description)) = route.answer {
        operation = operation.answer(status, schema(), description);
    }
    if route.query.iter().any(|query| query.name == FORMAT.name) {
        operation = operation.exported();
    }
    (route.complete)(operation).add_errors(&statuses)
}

/// Returns the schemas of the bodies that the endpoints read and write, and that of errors.
fn schemas_of(routes: &[Route]) -> Schemas {
    let of_routes = routes.iter().flat_map(|route| describe_own(route).schemas);
    BodySchema::of::<ErrorEnvelope>().schemas.into_iter().chain(of_routes).collect()
}

/// Inserts the literals, which depend on the client: the values of `_shape` and the names of the service metadata member.
fn name_literals(document: &mut Value) {
    let shapes = [("Native", FileShape::Native), ("VendorA", FileShape::VendorA), ("VendorB", FileShape::VendorB)];
    let schemas = &mut document["components"]["schemas"];
    for union in ["File", "FileList", "FileDeleted"] {
        let mut mapping = serde_json::Map::new();
        for (prefix, shape) in shapes {
            let schema = format!("{prefix}{union}");
            let names = WireNames::ALL.map(|names| names.shape(shape));
            schemas[&schema]["properties"]["_shape"] = json!({
                "type": "string",
                "enum": names,
                "description": "The second name is for published client packages and by configuration.",
            });
            mapping.extend(names.map(|name| (name.to_owned(), json!(format!("#/components/schemas/{schema}")))));
        }
        schemas[union]["discriminator"] = json!({"propertyName": "_shape", "mapping": mapping});
    }
    for schema in schemas.as_object_mut().into_iter().flat_map(serde_json::Map::values_mut) {
        let Some(properties) = schema.get_mut("properties").and_then(Value::as_object_mut) else { continue };
        if let Some(metadata) = properties.get(WireNames::Interface.service_metadata()) {
            let mut copy = metadata.clone();
            copy["description"] = json!("`service_metadata` for published client packages and by configuration.");
            properties.insert(WireNames::OpenRouter.service_metadata().to_owned(), copy);
        }
    }
}

/// Describes unsigned numbers of 32 bits as numbers of 64: clients generated for `int32` cannot read the larger half.
fn widen_unsigned(value: &mut Value) {
    if value["format"] == "int32" && value["minimum"].is_number() {
        value["format"] = json!("int64");
    }
    match value {
        Value::Object(members) => members.values_mut().for_each(widen_unsigned),
        Value::Array(elements) => elements.iter_mut().for_each(widen_unsigned),
        _ => {}
    }
}

#[cfg(test)]
mod tests {
    use std::collections::{BTreeMap, BTreeSet};

    use super::*;
    use crate::app::{ROUTES, openapi_document};

    #[test]
    fn openapi_document_matches_snapshot() {
        insta::assert_json_snapshot!("openapi_interface", openapi_document("/api/v1"));
    }

    #[test]
    fn openapi_document_has_the_literals_of_every_client() {
        let document = openapi_document("/api/v1");
        let schemas = &document["components"]["schemas"];
        for (schema, names) in [
            ("NativeFile", ["native", "openrouter"]),
            ("VendorAFile", ["vendor_a", "anthropic"]),
            ("VendorBFile", ["vendor_b", "openai"]),
        ] {
            assert_eq!(schemas[schema]["properties"]["_shape"]["enum"], json!(names));
            for name in names {
                let target = format!("#/components/schemas/{schema}");
                assert_eq!(schemas["File"]["discriminator"]["mapping"][name], target.as_str());
            }
        }
        for schema in ["ErrorEnvelope", "DecisionsResponse"] {
            for name in ["service_metadata", "openrouter_metadata"] {
                assert!(schemas[schema]["properties"][name].is_object(), "{schema} {name}");
            }
        }
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
        let document = openapi_document("");
        let mut found = Vec::new();
        references(&document, &mut found);
        assert!(found.len() > 20);
        for target in found {
            assert!(document.pointer(target.trim_start_matches('#')).is_some(), "{target}");
        }
    }

    #[test]
    fn schemas_of_one_name_are_equal() {
        let mut known = BTreeMap::new();
        for (name, schema) in schemas_of(ROUTES) {
            let schema = serde_json::to_value(schema).unwrap();
            assert_eq!(known.entry(name.clone()).or_insert_with(|| schema.clone()), &schema, "{name}");
        }
        assert!(known.len() > 30);
    }

    #[test]
    fn every_operation_has_one_known_tag_and_every_tag_is_used() {
        let document = openapi_document("/api/v1");
        assert_eq!(document["servers"], json!([{"url": "/", "description": "This server"}]));
        let names = document["tags"].as_array().unwrap().iter().map(|tag| tag["name"].as_str().unwrap());
        let known: BTreeSet<&str> = names.collect();
        let mut used = BTreeSet::new();
        for (path, item) in document["paths"].as_object().unwrap() {
            for operation in item.as_object().unwrap().values() {
                let tags = operation["tags"].as_array().unwrap();
                assert_eq!(tags.len(), 1, "{path}");
                used.insert(tags[0].as_str().unwrap());
            }
        }
        assert_eq!(used, known);
    }

    #[test]
    fn every_operation_has_an_example_answer_that_its_schema_accepts() {
        let schemas = openapi_check::Schemas::new(openapi_document("/api/v1")).unwrap();
        let mut bodies = 0;
        for (path, item) in schemas.document()["paths"].as_object().unwrap() {
            for (method, operation) in item.as_object().unwrap() {
                let responses = operation["responses"].as_object().unwrap();
                let (_, success) = responses.iter().find(|(status, _)| status.starts_with('2')).unwrap();
                for (_, content) in success["content"].as_object().unwrap() {
                    let example = &content["examples"]["sandbox"]["value"];
                    assert!(!example.is_null(), "{method} {path} has no example answer");
                    assert_eq!(schemas.violations(&content["schema"], example), [""; 0], "{method} {path}: {example}");
                }
                let request = &operation["requestBody"]["content"]["application/json"];
                if let Some(examples) = request.get("examples") {
                    bodies += 1;
                    let example = &examples["sandbox"]["value"];
                    assert_eq!(schemas.violations(&request["schema"], example), [""; 0], "{method} {path}: {example}");
                }
            }
        }
        assert!(bodies >= 8, "the Decisions operations and the assignment have an example request");
    }

    #[test]
    fn every_operation_declares_statuses_and_security() {
        let document = openapi_document("/api/v1");
        assert_eq!(document["openapi"], "3.1.0");
        assert_eq!(document["info"]["version"], "1.0.0");
        let mut ids = std::collections::HashSet::new();
        for (path, item) in document["paths"].as_object().unwrap() {
            for (method, operation) in item.as_object().unwrap() {
                assert!(ids.insert(operation["operationId"].as_str().unwrap()), "{path}");
                let open = ROUTES.iter().any(|route| route.is_open() && route.pattern == path);
                let security = operation["security"].as_array().unwrap();
                assert_eq!(security.first(), if open { None } else { Some(json!({"bearer": []})) }.as_ref(), "{path}");
                let responses = operation["responses"].as_object().unwrap();
                assert_eq!(
                    responses.keys().filter(|status| status.starts_with("20") && *status != "206").count(),
                    1,
                    "{method} {path}"
                );
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
