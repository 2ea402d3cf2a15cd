//! Authentication and its errors.

use std::sync::Arc;

use api_actix::openapi_document;
use domain::api_key::MockKeyGrants;
use domain::error::StoreError;
use domain::testing::FixedRateLimiter;

use super::client::request;
use super::gateway::{BASE, Caller, Setup};

/// Returns every path of the OpenAPI document with sample parameters.
fn described() -> Vec<(String, String, bool)> {
    let document = openapi_document(BASE);
    let mut routes = Vec::new();
    for (path, item) in document["paths"].as_object().unwrap() {
        for (method, operation) in item.as_object().unwrap() {
            let open = operation["security"].as_array().unwrap().is_empty();
            routes.push((method.to_uppercase(), path.replace(['{', '}'], ""), open));
        }
    }
    assert!(routes.len() >= 31);
    routes
}

#[tokio::test]
async fn every_described_route_except_open_ones_needs_a_key() {
    let gateway = Setup::new().await.start();
    let mut open_paths = Vec::new();
    for (method, path, open) in described() {
        let reply = gateway.send(&method, &path, &[], b"").await;
        if open {
            assert_eq!(reply.status, 200, "{path}");
            open_paths.push(path);
        } else {
            assert_eq!(reply.expect_error_in_any_format(401), "Missing Authentication header", "{path}");
            assert_eq!(reply.header("www-authenticate"), Some("Bearer"));
        }
    }
    open_paths.sort();
    let expected = ["/", "/docs", "/docs/rapidoc-9.3.8.min.js", "/health/live", "/health/ready", "/openapi.json"];
    assert_eq!(open_paths, expected);
}

#[tokio::test]
async fn authentication_precedes_method_and_body_checks() {
    let gateway = Setup::new().await.start();
    let bearer = Caller::Inference.bearer();
    let routes = described();
    for (_, path, open) in &routes {
        let taken: Vec<&str> = ["GET", "POST", "PUT", "PATCH", "DELETE"]
            .into_iter()
            .filter(|method| routes.iter().any(|(of, other, _)| other == path && of == method))
            .collect();
        let allow = taken.join(", ").replace("GET", "GET, HEAD");
        for wrong in
            ["GET", "POST", "PUT", "PATCH", "DELETE", "OPTIONS"].into_iter().filter(|wrong| !taken.contains(wrong))
        {
            if !open {
                gateway.send(wrong, path, &[], b"").await.expect_error_in_any_format(401);
            }
            let reply = gateway.send(wrong, path, &[("Authorization", &bearer)], b"").await;
            assert_eq!(reply.expect_error_in_any_format(405), "Method not allowed", "{wrong} {path}");
            assert_eq!(reply.header("allow"), Some(allow.as_str()), "{path}");
        }
    }
    // The server must answer without waiting for the body, which is never sent.
    let headers = "Host: x\r\nConnection: close\r\nContent-Type: application/json\r\nContent-Length: 100";
    let reply = gateway.raw(format!("POST {BASE}/api/alpha/decisions HTTP/1.1\r\n{headers}\r\n\r\n").as_bytes()).await;
    reply.expect_error(401);
}

#[tokio::test]
async fn malformed_key_header_returns_same_401() {
    let gateway = Setup::new().await.start();
    let path = format!("{BASE}/models/count");
    let good = Caller::Inference.bearer();
    let long = format!("Bearer {}", "a".repeat(10_000));
    let keys = [Caller::Unknown, Caller::Disabled, Caller::Expired].map(Caller::bearer);
    let mut bad =
        vec!["", "Bearer", "Bearer ", "Basic YTpi", "Bearer ' OR '1'='1", "Bearer sk-tg-v1-é", &long, &good[7..]];
    bad.extend(keys.iter().map(String::as_str));
    for header in bad {
        let reply = gateway.send("GET", &path, &[("Authorization", header)], b"").await;
        assert_eq!(reply.expect_error(401), "Invalid API key", "{header:.80}");
        assert_eq!(reply.header("www-authenticate"), Some("Bearer"));
    }
    let twice = [("Authorization", good.as_str()), ("Authorization", good.as_str())];
    assert_eq!(gateway.send("GET", &path, &twice, b"").await.expect_error(401), "Invalid API key");
    for header in [good.clone(), good.replace("Bearer ", "bEARER   ")] {
        assert_eq!(gateway.send("GET", &path, &[("Authorization", &header)], b"").await.status, 200);
    }
}

#[tokio::test]
async fn unavailable_store_returns_503_not_401() {
    let mut grants = MockKeyGrants::new();
    grants.expect_find().returning(|_| Err(StoreError::unavailable("disk on db-7 is gone")));
    let gateway = Setup { grants: Arc::new(grants), ..Setup::new().await }.start();
    let reply = gateway.get(Caller::Inference, "/models/count", &[]).await;
    assert_eq!(reply.expect_error(503), "Service temporarily unavailable");
    assert_eq!(reply.header("retry-after"), Some("1"));
    assert!(!String::from_utf8_lossy(&reply.body).contains("db-7"));
}

#[tokio::test]
async fn suspended_workspace_returns_403_with_owner() {
    let gateway = Setup::new().await.start();
    let reply = gateway.get(Caller::OfSuspendedWorkspace, "/models/count", &[]).await;
    assert_eq!(reply.expect_error(403), "This workspace is suspended");
    assert_eq!(reply.json()["user_id"], "owner-3");
}

#[tokio::test]
async fn key_above_rate_limit_gets_429_with_reset() {
    let setup = Setup { rate_limiter: Arc::new(FixedRateLimiter::new(1)), ..Setup::new().await };
    let gateway = setup.start();
    assert_eq!(gateway.get(Caller::Inference, "/models/count", &[]).await.status, 200);
    let reply = gateway.get(Caller::Inference, "/models/count", &[]).await;
    assert_eq!(reply.expect_error(429), "Rate limit exceeded");
    assert_eq!(reply.header("retry-after"), Some("1"));
    assert_eq!(reply.header("x-ratelimit-limit"), Some("1"));
    assert_eq!(reply.header("x-ratelimit-remaining"), Some("0"));
    assert_eq!(reply.header("x-ratelimit-reset"), Some("1767225601000"));
    let metadata = &reply.json()["error"]["metadata"];
    assert_eq!(
        (&metadata["scope"], &metadata["unit"], &metadata["limit"]),
        (&"key".into(), &"requests".into(), &1.into())
    );
    assert_eq!(gateway.get(Caller::Management, "/models/count", &[]).await.status, 200);
}

#[tokio::test]
async fn full_gateway_returns_503_and_serves_open_routes() {
    let mut setup = Setup::new().await;
    setup.settings.admission.max_in_flight = 0;
    let gateway = setup.start();
    let reply = gateway.get(Caller::Inference, "/models/count", &[]).await;
    assert_eq!(reply.expect_error(503), "Service temporarily unavailable");
    assert_eq!(reply.header("retry-after"), Some("1"));
    assert_eq!(gateway.raw(&request("GET", "/health/live", &[], b"")).await.status, 200);
}

#[tokio::test]
async fn each_key_kind_is_limited_to_its_operations() {
    let gateway = Setup::new().await.start();
    let promote = "/containers/c/files/f/promote";
    let management_only = format!("/guardrails/{}/assignments/keys", super::gateway::guardrail());
    for path in ["/api/alpha/decisions", promote] {
        let reply = gateway.post(Caller::Management, path, &[], b"not even read").await;
        assert_eq!(reply.expect_error(403), "Management keys cannot perform this operation");
    }
    let reply = gateway.post(Caller::Inference, &management_only, &[], b"not even read").await;
    assert_eq!(reply.expect_error(403), "Only management keys can perform this operation");
    assert_eq!(reply.json()["user_id"], "owner-1");
}
