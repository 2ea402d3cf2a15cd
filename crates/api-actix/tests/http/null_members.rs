//! Null in the bodies of changes: it clears a member, and the schema says which members can be cleared.

use api_actix::openapi_document;
use openapi_check::Schemas;
use serde_json::{Map, Value, json};

use super::gateway::{BASE, Caller, Setup};

/// A member that is accepted and changes nothing, so that a change needs another one.
const WITHOUT_FUNCTION: &str = "include_byok_in_limit";

/// Returns the names of the members that an object schema and its parts describe.
fn members(document: &Value, schema: &Value) -> Vec<String> {
    let target = schema["$ref"].as_str().and_then(|reference| document.pointer(reference.strip_prefix('#')?));
    let schema = target.unwrap_or(schema);
    let own = schema["properties"].as_object().into_iter().flat_map(Map::keys).cloned();
    let parts = schema["allOf"].as_array().into_iter().flatten().flat_map(|part| members(document, part));
    own.chain(parts).collect()
}

#[tokio::test]
async fn null_of_a_change_is_accepted_if_the_schema_permits_it() {
    let gateway = Setup::new().await.start();
    let schemas = Schemas::new(openapi_document(BASE)).unwrap();
    let document = schemas.document();
    let (mut cleared, mut rejected, mut faults) = (0, 0, Vec::new());
    for (path, item) in document["paths"].as_object().unwrap() {
        let schema = &item["patch"]["requestBody"]["content"]["application/json"]["schema"];
        if schema.is_null() {
            continue;
        }
        // Bodies are read before the record is looked for.
        let segments = path.trim_start_matches(BASE).split('/');
        let target: Vec<&str> = segments.map(|name| if name.starts_with('{') { "none" } else { name }).collect();
        for name in members(document, schema) {
            let body = json!({ name.as_str(): null });
            if name == WITHOUT_FUNCTION {
                continue;
            }
            let is_permitted = schemas.violations(schema, &body).is_empty();
            let reply = gateway.json(Caller::Management, "PATCH", &target.join("/"), &body.to_string()).await;
            if reply.status != if is_permitted { 404 } else { 400 } {
                faults.push(format!("{path} {body}: {} {}", reply.status, String::from_utf8_lossy(&reply.body)));
            }
            *(if is_permitted { &mut cleared } else { &mut rejected }) += 1;
        }
    }
    assert!(faults.is_empty(), "{faults:#?}");
    assert!(cleared > 30 && rejected > 8, "{cleared} {rejected}");
}
