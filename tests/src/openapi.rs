//! Validates the responses of servers against the OpenAPI document that they serve.

use std::collections::HashMap;
use std::net::SocketAddr;
use std::sync::{Arc, LazyLock, Mutex};

use anyhow::{Result, ensure};
use http::Method;
use openapi_check::Schemas;
use serde_json::Value;

use crate::Reply;

/// Statuses that the connection answers before it knows the operation, in the service's own envelope.
const CONNECTION_STATUSES: [u16; 4] = [400, 408, 414, 431];

/// The documents of the running servers. Equal documents are parsed once.
static SERVERS: LazyLock<Mutex<HashMap<SocketAddr, Arc<Document>>>> = LazyLock::new(Mutex::default);
static PARSED: LazyLock<Mutex<HashMap<Vec<u8>, Arc<Document>>>> = LazyLock::new(Mutex::default);

/// A served document.
#[derive(Debug)]
struct Document {
    schemas: Schemas,
}

/// Registers the document that a server serves. Responses of other addresses are not checked.
pub(crate) fn register(server: SocketAddr, document: &Reply) -> Result<()> {
    ensure!(document.status == 200, "the OpenAPI document is {}: {}", document.status, document.text());
    let mut parsed = PARSED.lock().unwrap_or_else(std::sync::PoisonError::into_inner);
    let known = parsed.get(document.body.as_ref()).cloned();
    let read = match known {
        Some(known) => known,
        None => Arc::new(Document { schemas: Schemas::new(document.json()?)? }),
    };
    parsed.insert(document.body.to_vec(), Arc::clone(&read));
    SERVERS.lock().unwrap_or_else(std::sync::PoisonError::into_inner).insert(server, read);
    Ok(())
}

/// Checks a response with a JSON body, if its server is registered.
///
/// # Errors
/// The response violates the document.
pub(crate) fn check(server: SocketAddr, method: &Method, path: &str, reply: &Reply) -> Result<()> {
    let servers = SERVERS.lock().unwrap_or_else(std::sync::PoisonError::into_inner);
    let Some(document) = servers.get(&server).cloned() else { return Ok(()) };
    drop(servers);
    if reply.body.is_empty() || !reply.header("content-type").starts_with("application/json") {
        return Ok(());
    }
    let body = match reply.json() {
        Ok(body) => body,
        // A number of the client that this parser cannot represent is forwarded all the same.
        Err(error) if format!("{error:#}").contains("number out of range") => return Ok(()),
        Err(error) => return Err(error),
    };
    let path = path.split('?').next().unwrap_or_default();
    let violations = document.violations(method, path, reply.status, &body);
    ensure!(
        violations.is_empty(),
        "the response {} violates the OpenAPI document: {violations:#?}\n{}",
        reply.status,
        reply.text()
    );
    Ok(())
}

impl Document {
    fn violations(&self, method: &Method, path: &str, status: u16, body: &Value) -> Vec<String> {
        let envelope = &self.schemas.document()["components"]["schemas"]["ErrorEnvelope"];
        let Some(operations) = self.operations(path) else { return self.schemas.violations(envelope, body) };
        let method = if method == Method::HEAD { "get".to_owned() } else { method.as_str().to_ascii_lowercase() };
        let status_text = status.to_string();
        // If the path does not know the method, the error has the format of any of its operations.
        let all = || operations.as_object().into_iter().flat_map(serde_json::Map::values).collect();
        let candidates: Vec<&Value> = operations.get(&method).map_or_else(all, |operation| vec![operation]);
        let schemas: Vec<&Value> =
            candidates.into_iter().filter_map(|operation| schema(operation, &status_text)).collect();
        let violations: Vec<Vec<String>> = schemas.iter().map(|schema| self.schemas.violations(schema, body)).collect();
        if violations.is_empty() && CONNECTION_STATUSES.contains(&status) {
            return self.schemas.violations(envelope, body);
        }
        match violations.iter().min_by_key(|found| found.len()) {
            Some(fewest) => fewest.clone(),
            None => vec![format!("{method} {path}: the status {status} is not described")],
        }
    }

    /// Returns the operations of a path. Literal segments precede parameters.
    fn operations(&self, path: &str) -> Option<&Value> {
        let paths = self.schemas.document()["paths"].as_object()?;
        let matching = paths.iter().filter(|(template, _)| fits(template, path));
        matching.min_by_key(|(template, _)| template.matches('{').count()).map(|(_, operations)| operations)
    }
}

fn schema<'d>(operation: &'d Value, status: &str) -> Option<&'d Value> {
    operation["responses"].get(status)?.get("content")?.get("application/json")?.get("schema")
}

fn fits(template: &str, path: &str) -> bool {
    let (mut wanted, mut given) = (template.split('/'), path.split('/'));
    loop {
        match (wanted.next(), given.next()) {
            (None, None) => return true,
            (Some(name), Some(segment)) if name == segment || (name.starts_with('{') && !segment.is_empty()) => {}
            _ => return false,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    fn document() -> Document {
        let of = |name: &str| json!({"content": {"application/json": {"schema": {"$ref": format!("#/components/schemas/{name}")}}}});
        let envelope = json!({"properties": {"error": {"type": "object"}}, "required": ["error"]});
        let item = json!({"properties": {"id": {"type": "string"}}, "required": ["id"]});
        let get = json!({"get": {"responses": {"200": of("Item"), "405": of("ErrorEnvelope")}}});
        let count = json!({"get": {"responses": {"200": of("Count")}}});
        let schemas = json!({"ErrorEnvelope": envelope, "Item": item, "Count": {"type": "integer"}});
        let paths = json!({"/items/{id}": get, "/items/count": count});
        Document { schemas: Schemas::new(json!({"components": {"schemas": schemas}, "paths": paths})).unwrap() }
    }

    #[test]
    fn body_is_checked_by_path_method_and_status() {
        let document = document();
        let violations =
            |method: Method, path: &str, status, body: &Value| document.violations(&method, path, status, body).len();
        let (item, error) = (json!({"id": "a"}), json!({"error": {}}));
        assert_eq!(violations(Method::GET, "/items/a", 200, &item), 0);
        assert_eq!(violations(Method::GET, "/items/a", 200, &json!({"id": 1})), 1);
        assert_eq!(violations(Method::GET, "/items/count", 200, &json!(1)), 0, "literal segments precede parameters");
        assert_eq!(violations(Method::GET, "/items/count", 200, &item), 1);
        assert_eq!(violations(Method::GET, "/items/a", 404, &error), 1, "the status is not described");
        assert_eq!(violations(Method::POST, "/items/a", 405, &error), 0);
        assert_eq!(violations(Method::POST, "/items/a", 405, &item), 2);
        assert_eq!(violations(Method::GET, "/items/a", 431, &error), 0, "before the operation is known");
        assert_eq!(violations(Method::GET, "/elsewhere", 404, &error), 0);
        assert_eq!(violations(Method::GET, "/elsewhere", 404, &item), 2);
    }
}
