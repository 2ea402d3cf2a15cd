//! Every class of error on the vendor paths, in the format of each client.

use std::sync::Arc;
use std::time::Duration;

use domain::api_key::MockKeyGrants;
use domain::decision::ProviderAnswer;
use domain::error::ErrorKind;
use domain::error::StoreError;
use domain::routing::{AttemptFailure, AttemptFailureKind};
use domain::testing::FixedRateLimiter;
use serde_json::Value;

use super::client::Reply;
use super::gateway::{Caller, Gateway, Setup};

/// A path, a valid body, and the check of its error format.
#[derive(Clone, Copy)]
struct Client {
    path: &'static str,
    body: &'static str,
    check: fn(&Reply),
}

const SYSTEM_ONE: &str = r#"{"model":"acme/judge","state":"s","questions":{"q":{"type":"noul","instructions":"?"}}}"#;

const CLIENTS: [Client; 6] = [
    Client { path: "/v1/systemone", body: SYSTEM_ONE, check: system_one },
    Client { path: "/api/v1/systemone", body: SYSTEM_ONE, check: system_one },
    Client { path: "/v1/decisions", body: SYSTEM_ONE, check: system_one },
    Client {
        path: "/v1/decisions",
        body: r#"{"model":"acme/judge","input":"s","questions":[{"type":"predicate","instructions":"?"}]}"#,
        check: openai,
    },
    Client {
        path: "/v1beta/decisions",
        body: r#"{"model":"acme/judge","input":"s","questions":{"q":{"type":"noul","instructions":"?"}}}"#,
        check: gemini,
    },
    Client {
        path: "/v1/decisions",
        body: r#"{"model":"acme/judge","input":"s","questions":[{"id":"q","type":"yes_no","question":"?"}]}"#,
        check: sglang,
    },
];

/// The clients whose error format is known before the body is read.
const BY_PATH: [Client; 4] = [CLIENTS[0], CLIENTS[1], Client { check: openai, ..CLIENTS[2] }, CLIENTS[4]];

fn system_one(reply: &Reply) {
    let json = reply.json();
    assert_eq!(json["error"]["code"], reply.status);
    assert!(json["error"]["message"].is_string() && json["error"]["metadata"]["request_id"].is_string());
    let detail = &json["detail"];
    let listed = detail.as_array().is_some_and(|faults| {
        faults.iter().all(|fault| {
            fault["loc"].is_array()
                && fault["msg"].is_string()
                && fault["type"].is_string()
                && fault.get("input").is_none()
        })
    });
    assert!(listed || (detail["type"].is_string() && detail["message"].is_string()), "{json}");
}

fn openai(reply: &Reply) {
    let error = reply.json()["error"].clone();
    assert!(error["message"].is_string() && error["type"].is_string() && error["code"].is_string(), "{error}");
    assert!(error["param"].is_string() || error["param"].is_null());
    assert!(error["metadata"]["request_id"].is_string());
}

fn gemini(reply: &Reply) {
    let error = reply.json()["error"].clone();
    assert_eq!(error["code"], reply.status);
    assert!(
        error["message"].is_string() && error["status"].as_str().unwrap().chars().all(|c| c == '_' || c.is_uppercase())
    );
    let details = error["details"].as_array().unwrap();
    assert!(details.iter().all(|detail| detail["@type"].as_str().unwrap().starts_with("type.googleapis.com/")));
    assert!(details[0]["metadata"].as_object().unwrap().values().all(Value::is_string));
}

fn sglang(reply: &Reply) {
    let json = reply.json();
    assert_eq!((&json["object"], &json["code"], &json["param"]), (&"error".into(), &reply.status.into(), &Value::Null));
    assert!(json["message"].is_string() && json["type"].is_string());
}

async fn post(gateway: &Gateway, client: Client, headers: &[(&str, &str)], body: &str) -> Reply {
    let bearer = Caller::Inference.bearer();
    let own = [("Content-Type", "application/json"), ("Authorization", bearer.as_str())];
    let missing = own.iter().filter(|(name, _)| !headers.iter().any(|(other, _)| other == name));
    let headers: Vec<_> = missing.chain(headers).copied().collect();
    gateway.send("POST", client.path, &headers, body.as_bytes()).await
}

/// Checks the status, the format and the ids of an error, and returns its message.
#[track_caller]
fn refused(reply: &Reply, client: Client, status: u16) -> String {
    let message = reply.expect_error_in_any_format(status);
    (client.check)(reply);
    assert_eq!(reply.header("x-request-id"), reply.header("x-typesafe-request-id"));
    let asks_again = reply.header("retry-after").is_some();
    assert_eq!(asks_again, reply.header("retry-after-ms").is_some());
    assert!(asks_again || ![429, 503, 529].contains(&status), "{status}");
    message
}

#[tokio::test]
async fn errors_before_body_use_path_format() {
    let gateway = Setup::new().await.start();
    for client in BY_PATH {
        refused(&gateway.send("POST", client.path, &[], b"").await, client, 401);
        let suspended = Caller::OfSuspendedWorkspace.bearer();
        refused(&post(&gateway, client, &[("Authorization", &suspended)], client.body).await, client, 403);
        let management = Caller::Management.bearer();
        refused(&post(&gateway, client, &[("Authorization", &management)], client.body).await, client, 403);
        let bearer = Caller::Inference.bearer();
        let reply = gateway.send("DELETE", client.path, &[("Authorization", &bearer)], b"").await;
        refused(&reply, client, 405);
        assert_eq!(reply.header("allow"), Some("POST"));
        let reply = post(&gateway, client, &[("Content-Encoding", "br")], client.body).await;
        refused(&reply, client, 415);
        assert_eq!(reply.header("accept-encoding"), Some("zstd, gzip"));
    }
}

#[tokio::test]
async fn overload_and_store_errors_use_path_format() {
    let mut full = Setup::new().await;
    full.settings.admission.max_in_flight = 0;
    let full = full.start();
    let mut grants = MockKeyGrants::new();
    grants.expect_find().returning(|_| Err(StoreError::unavailable("away")));
    let away = Setup { grants: Arc::new(grants), ..Setup::new().await }.start();
    let limited = Setup { rate_limiter: Arc::new(FixedRateLimiter::new(0)), ..Setup::new().await }.start();
    for client in BY_PATH {
        refused(&post(&full, client, &[], client.body).await, client, 503);
        refused(&post(&away, client, &[], client.body).await, client, 503);
        let reply = post(&limited, client, &[], client.body).await;
        refused(&reply, client, 429);
        assert_eq!((reply.header("retry-after"), reply.header("retry-after-ms")), (Some("1"), Some("1000")));
    }
}

#[tokio::test]
async fn invalid_bodies_use_wire_format() {
    let mut setup = Setup::new().await;
    setup.settings.max_json_bytes = 1_000;
    let gateway = setup.start();
    for client in BY_PATH {
        let invalid = if client.path == "/v1/systemone" { 422 } else { 400 };
        for body in ["", "{", "[]", "\u{feff}{}"] {
            refused(&post(&gateway, client, &[], body).await, client, invalid);
        }
        refused(&post(&gateway, client, &[("Content-Type", "text/plain")], "{}").await, client, invalid);
        refused(&post(&gateway, client, &[], &" ".repeat(1_001)).await, client, 413);
    }
}

#[tokio::test]
async fn unknown_models_use_wire_format() {
    let gateway = Setup::new().await.start();
    for client in CLIENTS {
        let named = |name: &str| client.body.replace("acme/judge", name);
        let reply = post(&gateway, client, &[], &named("acme/jugde")).await;
        assert_eq!(refused(&reply, client, 404), "Model not found; nearest callable models: acme/judge");
        let idle = refused(&post(&gateway, client, &[], &named("acme/idle")).await, client, 404);
        assert!(idle.ends_with("; nearest callable models: acme/judge"), "{idle}");
        refused(&post(&gateway, client, &[], &named("acme/varies")).await, client, 400);
    }
    let reply = post(&gateway, CLIENTS[3], &[], &CLIENTS[3].body.replace("acme/judge", "nobody")).await;
    let error = &reply.json()["error"];
    assert_eq!((&error["param"], &error["code"]), (&"model".into(), &"model_not_found".into()));
}

#[tokio::test]
async fn provider_failures_use_wire_format() {
    let broken = || Err(AttemptFailure::new(AttemptFailureKind::InvalidResponse, "secret detail"));
    let late = || Err(AttemptFailure::new(AttemptFailureKind::TimedOut, "late"));
    let overloaded = |wait| Err::<ProviderAnswer, _>(AttemptFailure::from_status(529, wait));
    let wait = Some(Duration::from_millis(2_500));
    for client in CLIENTS {
        for (script, status, ms) in [
            ([broken(), broken()], 502, None),
            ([late(), late()], 524, None),
            ([overloaded(wait), overloaded(wait)], 529, Some("2500")),
            ([overloaded(None), overloaded(None)], 529, Some("1000")),
            ([Err(AttemptFailure::from_status(422, None)), Err(AttemptFailure::from_status(422, None))], 400, None),
        ] {
            let gateway = Setup::answering(script).await.start();
            let reply = post(&gateway, client, &[], client.body).await;
            refused(&reply, client, status);
            assert!(reply.header("x-generation-id").is_some());
            assert_eq!(reply.header("retry-after-ms"), ms, "{} {status}", client.path);
            let body = String::from_utf8_lossy(&reply.body);
            assert!(body.contains("attempts") && !body.contains("secret detail"), "{body}");
        }
    }
}

#[tokio::test]
async fn exhausted_credit_and_service_metadata_use_wire_format() {
    for client in CLIENTS {
        let simulated = AttemptFailure::new(AttemptFailureKind::Simulated(ErrorKind::InsufficientCredits), "x");
        let gateway = Setup::answering([Err(simulated)]).await.start();
        let reply = post(&gateway, client, &[("x-tollgate-metadata", "enabled")], client.body).await;
        refused(&reply, client, 402);
        assert_eq!(reply.json()["service_metadata"]["routing"]["requested_model"], "acme/judge");
    }
}

#[tokio::test]
async fn errors_are_short_if_the_request_has_long_names() {
    let gateway = Setup::answering([]).await.start();
    let long = "é".repeat(100_000);
    let question = |rest: &str| format!(r#"{{"model":"acme/judge","state":"s","questions":{{"{long}":{rest}}}}}"#);
    let short = |reply: &Reply| {
        let text = String::from_utf8_lossy(&reply.body).into_owned();
        assert!((400..500).contains(&reply.status) && reply.body.len() < 6_000, "{}: {text:.500}", reply.status);
        text
    };
    let invalid = question(r#"{"type":"nuol","instructions":"?"}"#);
    for path in ["/api/alpha/decisions", "/systemone", "/decisions"] {
        let text = short(&gateway.post_json(Caller::Inference, path, &invalid).await);
        assert!(text.contains("type: must be noul, choice, score or box"), "{text}");
    }
    let state = r#""state":"s","questions":{}"#;
    let noul = r#"{"type":"noul","instructions":"?"}"#;
    for body in [
        format!(r#"{{"model":"{long}","state":"s","questions":{{"q":{{"type":"box"}}}}}}"#),
        format!(r#"{{"model":"@preset/{long}",{state}}}"#),
        format!(r#"{{"model":"acme/judge","state":"s","questions":{{"q":{noul}}},"provider":{{"{long}":1}}}}"#),
        format!(r#"{{"model":"acme/judge","state":"s","questions":{{"q":{noul}}},"provider":{{"order":["{long}"]}}}}"#),
    ] {
        short(&gateway.decide(&body).await);
        let (path, headers) =
            ("/api/alpha/decisions", [("Content-Type", "application/json"), ("x-tollgate-metadata", "enabled")]);
        short(&gateway.post(Caller::Inference, path, &headers, body.as_bytes()).await);
    }
    let id = "gen-dec-a";
    for (method, path, body) in [
        ("POST", "/generation/feedback", format!(r#"{{"generation_id":"{id}","category":"{long}"}}"#)),
        ("POST", "/labels", format!(r#"{{"labels":[{{"generation_id":"{id}","{long}":1}}]}}"#)),
        ("POST", "/guardrails", format!(r#"{{"name":"g","allowed_models":["{long}"]}}"#)),
        ("POST", "/guardrails", format!(r#"{{"name":"g","{long}":1}}"#)),
        ("POST", "/presets/p/decisions", invalid.clone()),
        ("POST", "/keys", format!(r#"{{"name":"{long}","limit":"{long}"}}"#)),
    ] {
        let reply = gateway.json(Caller::Management, method, path, &body).await;
        if path != "/labels" {
            short(&reply);
        }
        assert!(reply.body.len() < 6_000, "{path}: {} bytes", reply.body.len());
    }
}
