//! What holds for every request.

use std::sync::Arc;

use domain::model::MockCatalogue;

use super::client::request;
use super::gateway::{BASE, Caller, Setup};

#[tokio::test]
async fn unknown_paths_are_not_found_with_a_key_or_without() {
    let gateway = Setup::new().await.start();
    let bearer = Caller::Inference.bearer();
    for path in [
        "/api/v1",
        "/api/v1/models/count/",
        "/api/v2/models/count",
        "/health",
        "/%00",
        "/api/v1/%2e%2e/x",
        "/favicon.ico",
    ] {
        for headers in [&[][..], &[("Authorization", bearer.as_str())]] {
            for method in ["GET", "POST"] {
                let reply = gateway.send(method, path, headers, if method == "POST" { b"{" } else { b"" }).await;
                let message = reply.refusal(404);
                let hint = message.strip_prefix("Resource not found").unwrap();
                assert!(hint.is_empty() || hint.starts_with("; check the base URL"), "{path}: {message}");
            }
        }
    }
}

#[tokio::test]
async fn a_well_formed_request_id_is_taken_over() {
    let gateway = Setup::new().await.start();
    let path = format!("{BASE}/models/count");
    let id_of = async |given: &[(&str, &str)]| {
        let reply = gateway.send("GET", &path, given, b"").await;
        reply.refusal(401);
        reply.header("x-request-id").unwrap().to_owned()
    };
    assert_eq!(id_of(&[("X-Request-Id", "req.1_A-z")]).await, "req.1_A-z");
    let long = "a".repeat(129);
    for given in [
        &[][..],
        &[("x-request-id", "")],
        &[("x-request-id", "a b")],
        &[("x-request-id", &long)],
        &[("x-request-id", "é")],
        &[("x-request-id", "a"), ("x-request-id", "b")],
    ] {
        assert_eq!(id_of(given).await.len(), 36, "{given:?}");
    }
    let reply = gateway.get(Caller::Inference, "/models/count", &[("x-request-id", "mine")]).await;
    assert_eq!((reply.status, reply.header("x-request-id")), (200, Some("mine")));
    assert_eq!(reply.header("server"), None);
}

#[tokio::test]
async fn a_panic_is_an_internal_error_and_the_server_lives_on() {
    let mut catalogue = MockCatalogue::new();
    catalogue.expect_snapshot().returning(|| panic!("secret state"));
    let gateway = Setup { catalogue: Arc::new(catalogue), ..Setup::new().await }.start();
    let json = [("Content-Type", "application/json")];
    for _ in 0..2 {
        let reply = gateway.get(Caller::Inference, "/models/count", &[]).await;
        assert_eq!(reply.refusal(500), "Internal Server Error");
        assert!(!String::from_utf8_lossy(&reply.body).contains("secret"));
        let body = br#"{"model":"a/b","questions":"?"}"#;
        gateway.post(Caller::Inference, "/api/alpha/decisions", &json, body).await.refusal(500);
    }
    assert_eq!(gateway.raw(&request("GET", "/health/live", &[], b"")).await.status, 200);
}

#[tokio::test]
async fn how_it_was_handled_is_told_on_request() {
    let gateway = Setup::new().await.start();
    let reply = gateway.get(Caller::Inference, "/model/acme/nobody", &[("x-tollgate-metadata", "enabled")]).await;
    reply.refusal(404);
    assert_eq!(reply.json()["service_metadata"]["route"], "/model/{author}/{slug}");
    let reply = gateway.get(Caller::Inference, "/model/acme/nobody", &[]).await;
    assert_eq!(reply.json().get("service_metadata"), None);
}
