//! Health checks and the OpenAPI document.

use std::sync::Arc;

use api_actix::openapi_document;
use domain::testing::ToggleHealthCheck;
use serde_json::Value;

use super::gateway::{BASE, CONTAINER, Caller, Setup, answer, guardrail, workspace};

#[tokio::test]
async fn readiness_names_unavailable_store() {
    let (database, blobs) = (ToggleHealthCheck::new("database"), ToggleHealthCheck::new("blobs"));
    let probes = Setup { probes: vec![Arc::new(database.clone()), Arc::new(blobs.clone())], ..Setup::new().await };
    let gateway = probes.start();
    let reply = gateway.send("GET", "/health/ready", &[], b"").await;
    assert_eq!((reply.status, reply.json()), (200, serde_json::json!({"status": "ok"})));
    database.set_healthy(false);
    let reply = gateway.send("GET", "/health/ready", &[], b"").await;
    assert_eq!(reply.expect_error(503), "Service temporarily unavailable");
    assert_eq!(reply.json()["error"]["metadata"]["unavailable"], serde_json::json!(["database"]));
    database.set_bridged(true);
    let reply = gateway.send("GET", "/health/ready", &[], b"").await;
    let degraded = serde_json::json!({"status": "degraded", "unavailable": ["database"]});
    assert_eq!((reply.status, reply.json()), (200, degraded), "requests are served without it");
    blobs.set_healthy(false);
    let reply = gateway.send("GET", "/health/ready", &[], b"").await;
    assert_eq!(reply.status, 503, "nothing bridges the other one");
    assert_eq!(reply.json()["error"]["metadata"]["unavailable"], serde_json::json!(["database", "blobs"]));
    assert_eq!(gateway.send("GET", "/health/live", &[], b"").await.status, 200);
    assert_eq!(gateway.send("HEAD", "/health/live", &[], b"").await.body, b"");
}

#[tokio::test]
async fn openapi_route_serves_generated_document() {
    let gateway = Setup::new().await.start();
    let reply = gateway.send("GET", "/openapi.json", &[], b"").await;
    let (served, generated) = (reply.json(), openapi_document(BASE));
    assert_eq!((&served["components"], &served["info"]), (&generated["components"], &generated["info"]));
    // The examples name a model that can be called.
    let paths = |document: &Value| document["paths"].as_object().unwrap().keys().cloned().collect::<Vec<_>>();
    assert_eq!(paths(&served), paths(&generated));
}

#[tokio::test]
async fn docs_page_and_script_come_from_this_server() {
    let gateway = Setup::new().await.start();
    let page = gateway.send("GET", "/docs", &[], b"").await;
    assert_eq!((page.status, page.header("content-type")), (200, Some("text/html; charset=utf-8")));
    let policy = page.header("content-security-policy").unwrap();
    assert!(policy.starts_with("default-src 'none'; script-src 'self';"), "{policy}");
    assert_eq!(page.header("cache-control"), Some("no-cache"));
    let html = String::from_utf8_lossy(&page.body).into_owned();
    assert!(html.contains(r#"spec-url="openapi.json""#), "{html}");
    let script = html.split_once("<script src=\"").unwrap().1.split_once('"').unwrap().0;
    let path = format!("/{script}");
    let plain = gateway.send("GET", &path, &[], b"").await;
    assert_eq!((plain.status, plain.header("content-encoding")), (200, None));
    assert!(plain.body.starts_with(b"/*! RapiDoc"));
    let gzip = gateway.send("GET", &path, &[("Accept-Encoding", "gzip, deflate, br")], b"").await;
    assert_eq!((gzip.status, gzip.header("content-encoding")), (200, Some("gzip")));
    assert!(gzip.body.len() < 300_000, "{} bytes", gzip.body.len());
    for reply in [&plain, &gzip] {
        assert_eq!(reply.header("content-type"), Some("text/javascript; charset=utf-8"));
        assert_eq!(reply.header("cache-control"), Some("public, max-age=31536000, immutable"));
        assert_eq!(reply.header("vary"), Some("accept-encoding"));
        assert_eq!(reply.header("x-content-type-options"), Some("nosniff"));
    }
    assert_eq!(gateway.send("HEAD", &path, &[], b"").await.body, b"");
    gateway.send("GET", "/docs/rapidoc.js", &[], b"").await.expect_error(404);
}

#[tokio::test]
async fn root_names_service_and_unknown_paths_get_hints() {
    let gateway = Setup::new().await.start();
    let root = gateway.send("GET", "/", &[], b"").await;
    assert_eq!(root.status, 200);
    fits(&openapi_document(BASE), "RootResponse", &root.json());
    for (method, path, expected) in [
        ("POST", "/v1/chat/completions", "Resource not found; Tollgate serves decision models"),
        ("POST", "/v1/v1/decisions", "Resource not found; check the base URL: this operation is at /v1/decisions"),
        ("GET", "/index.html", "Resource not found"),
    ] {
        let message = gateway.send(method, path, &[], b"").await.expect_error(404);
        assert!(message.starts_with(expected), "{path}: {message}");
    }
}

/// Checks that the members of `body` include all that the schema requires and no unknown ones.
#[track_caller]
fn fits(document: &Value, schema: &str, body: &Value) {
    let shape = &document["components"]["schemas"][schema];
    for required in shape["required"].as_array().unwrap() {
        assert!(body.get(required.as_str().unwrap()).is_some(), "{schema} lacks {required}: {body}");
    }
    for (name, value) in body.as_object().unwrap_or_else(|| panic!("{schema}: {body}")) {
        let described = shape["properties"].get(name).unwrap_or_else(|| panic!("{schema} does not know {name}"));
        if let Some(reference) = described["$ref"].as_str() {
            let target = reference.rsplit('/').next().unwrap();
            if value.is_object() {
                fits(document, target, value);
            }
        }
    }
}

#[tokio::test]
async fn responses_match_openapi_schemas() {
    let document = openapi_document(BASE);
    let setup = Setup::answering([answer("{}")]).await;
    let file = setup.put("a", 1).await;
    let gateway = setup.start();
    let promote = format!("/containers/{CONTAINER}/files/{file}/promote");
    for (schema, header) in
        [("NativeFile", "x-none"), ("VendorAFile", "anthropic-version"), ("VendorBFile", "x-stainless-os")]
    {
        fits(&document, schema, &gateway.post(Caller::Inference, &promote, &[(header, "1")], b"").await.json());
    }
    let headers = [("Content-Type", "application/json"), ("x-tollgate-metadata", "enabled")];
    let body = br#"{"model":"acme/judge","questions":"?"}"#;
    let reply = gateway.post(Caller::Inference, "/api/alpha/decisions", &headers, body).await;
    fits(&document, "DecisionsResponse", &reply.json());
    let reply = gateway.post(Caller::Inference, "/api/alpha/decisions", &headers, b"{}").await;
    fits(&document, "ErrorEnvelope", &reply.json());
    let path = format!("/guardrails/{}/assignments/keys", guardrail());
    let reply = gateway.post_json(Caller::Management, &path, r#"{"key_hashes":["a"]}"#).await;
    fits(&document, "AssignKeysResponse", &reply.json());
    let body = format!(r#"{{"name":"g","workspace_id":"{}"}}"#, workspace(1));
    fits(&document, "GuardrailResponse", &gateway.post_json(Caller::Management, "/guardrails", &body).await.json());
    let own = format!("/guardrails/{}", guardrail());
    for (schema, path) in [
        ("GuardrailListResponse", format!("/guardrails?workspace_id={}", workspace(1))),
        ("GuardrailResponse", own.clone()),
        ("GuardrailVersionListResponse", format!("{own}/versions")),
        ("GuardrailVersionResponse", format!("{own}/versions/1")),
        ("KeyAssignmentListResponse", path.clone()),
    ] {
        fits(&document, schema, &gateway.get(Caller::Management, &path, &[]).await.json());
    }
    let body = r#"{"body":{"model":"acme/judge","questions":"?"}}"#;
    let explained = gateway.post_json(Caller::Management, &format!("{own}/explain"), body).await;
    fits(&document, "ExplainResponse", &explained.json());
    let removed = gateway.post_json(Caller::Management, &format!("{path}/remove"), r#"{"key_hashes":["a"]}"#).await;
    fits(&document, "RemoveKeysResponse", &removed.json());
    let deleted = gateway.json(Caller::Management, "DELETE", &own, "").await;
    fits(&document, "GuardrailDeletedResponse", &deleted.json());
    fits(&document, "ModelResponse", &gateway.get(Caller::Inference, "/model/acme/judge", &[]).await.json());
    fits(&document, "CountResponse", &gateway.get(Caller::Inference, "/models/count", &[]).await.json());
    fits(&document, "LiveResponse", &gateway.send("GET", "/health/live", &[], b"").await.json());
}
