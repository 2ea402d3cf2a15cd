//! Behaviour common to all requests.

use std::sync::Arc;

use domain::model::MockCatalogue;

use super::client::request;
use super::gateway::{BASE, Caller, Setup};

#[tokio::test]
async fn unknown_paths_return_404_with_and_without_key() {
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
                let message = reply.expect_error(404);
                let hint = message.strip_prefix("Resource not found").unwrap();
                assert!(hint.is_empty() || hint.starts_with("; check the base URL"), "{path}: {message}");
            }
        }
    }
}

#[tokio::test]
async fn well_formed_request_id_is_adopted() {
    let gateway = Setup::new().await.start();
    let path = format!("{BASE}/models/count");
    let id_of = async |given: &[(&str, &str)]| {
        let reply = gateway.send("GET", &path, given, b"").await;
        reply.expect_error(401);
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
async fn panic_returns_500_and_server_continues() {
    let mut catalogue = MockCatalogue::new();
    catalogue.expect_snapshot().returning(|| panic!("secret state"));
    let gateway = Setup { catalogue: Arc::new(catalogue), ..Setup::new().await }.start();
    let json = [("Content-Type", "application/json")];
    for _ in 0..2 {
        let reply = gateway.get(Caller::Inference, "/models/count", &[]).await;
        assert_eq!(reply.expect_error(500), "Internal Server Error");
        assert!(!String::from_utf8_lossy(&reply.body).contains("secret"));
        let body = br#"{"model":"a/b","questions":"?"}"#;
        gateway.post(Caller::Inference, "/api/alpha/decisions", &json, body).await.expect_error(500);
    }
    assert_eq!(gateway.raw(&request("GET", "/health/live", &[], b"")).await.status, 200);
}

#[tokio::test]
async fn service_metadata_is_sent_on_request() {
    let gateway = Setup::new().await.start();
    let reply = gateway.get(Caller::Inference, "/model/acme/nobody", &[("x-tollgate-metadata", "enabled")]).await;
    reply.expect_error(404);
    assert_eq!(reply.json()["service_metadata"]["route"], "/model/{author}/{slug}");
    let reply = gateway.get(Caller::Inference, "/model/acme/nobody", &[]).await;
    assert_eq!(reply.json().get("service_metadata"), None);
}
