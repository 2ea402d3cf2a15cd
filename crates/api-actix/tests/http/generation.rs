//! Generation records over HTTP.

use std::sync::Arc;

use domain::error::StoreError;
use domain::routing::{AttemptFailure, AttemptFailureKind};
use domain::usage::{MockUsageRepository, UsageRepository};
use serde_json::{Value, json};

use super::gateway::{Caller, Gateway, Setup, answer, workspace};

const BODY: &str = r#"{"model":"ACME/judge:nitro","questions":{"q":{"type":"noul","instructions":"?"}},"state":"s",
    "session_id":"sëssion","user":"u-1","trace":{"trace_id" : "t","n":1.00}}"#;

/// Members that existing clients require, null if unknown.
const INSISTED_ON: [&str; 35] = [
    "api_type",
    "app_id",
    "cache_discount",
    "cancelled",
    "created_at",
    "data_region",
    "external_user",
    "finish_reason",
    "generation_time",
    "http_referer",
    "is_byok",
    "latency",
    "moderation_latency",
    "native_finish_reason",
    "native_tokens_cached",
    "native_tokens_completion",
    "native_tokens_completion_images",
    "native_tokens_prompt",
    "native_tokens_reasoning",
    "num_fetches",
    "num_input_audio_prompt",
    "num_media_completion",
    "num_media_prompt",
    "num_search_results",
    "preset_id",
    "router",
    "service_tier",
    "streamed",
    "tokens_completion",
    "tokens_prompt",
    "upstream_id",
    "upstream_inference_cost",
    "user_agent",
    "web_search_engine",
    "workspace_id",
];

async fn answered() -> (Gateway, String) {
    let script = [Err(AttemptFailure::from_status(529, None)), answer(r#"{"q":{"type":"noul","noul":0.5}}"#)];
    let gateway = Setup::answering(script).await.start();
    let reply = gateway.decide(BODY).await;
    assert_eq!(reply.status, 200, "{}", String::from_utf8_lossy(&reply.body));
    let id = reply.json()["id"].as_str().unwrap().to_owned();
    (gateway, id)
}

#[tokio::test]
async fn activity_names_the_parameter_of_published_clients() {
    let gateway = Setup::new().await.start();
    for (query, message) in [("user_id=u", "user_id is not supported"), ("foo=1", r#"unknown query parameter "foo""#)] {
        let reply = gateway.get(Caller::Inference, &format!("/activity?{query}"), &[]).await;
        assert!(reply.expect_error(400).starts_with(message), "{query}");
    }
}

#[tokio::test]
async fn record_contains_request_attempts_and_cost() {
    let (gateway, id) = answered().await;
    let reply = gateway.get(Caller::Inference, &format!("/generation?id={id}"), &[]).await;
    assert_eq!((reply.status, reply.header("cache-control")), (200, Some("private, no-cache")));
    assert_eq!(reply.header("content-type"), Some("application/json"));
    let text = String::from_utf8(reply.body.clone()).unwrap();
    assert!(text.contains(r#""total_cost":0.000018018,"usage":0.000018018,"#), "{text}");
    assert!(text.contains(r#""trace":{"trace_id" : "t","n":1.00}"#), "byte for byte: {text}");
    let json = reply.json();
    let data = json["data"].as_object().unwrap();
    for member in INSISTED_ON {
        assert!(data.contains_key(member), "{member}");
    }
    let select = |names: &[&str]| -> Value { names.iter().map(|&name| (name, data[name].clone())).collect() };
    assert_eq!(
        select(&["id", "api_type", "model", "requested_model", "alias_resolved", "provider_name", "outcome"]),
        json!({
            "id": id, "api_type": "decisions", "model": "acme/judge", "requested_model": "ACME/judge:nitro",
            "alias_resolved": null, "provider_name": "The second", "outcome": "completed",
        })
    );
    assert_eq!(
        select(&["created_at", "tokens_prompt", "native_tokens_prompt", "tokens_completion", "usage_source"]),
        json!({
            "created_at": "2026-01-01T00:00:00.000Z", "tokens_prompt": 429, "native_tokens_prompt": 429,
            "tokens_completion": 0, "usage_source": "reported",
        })
    );
    assert_eq!(
        select(&["streamed", "cancelled", "finish_reason", "is_byok", "origin", "data_region", "cost_share"]),
        json!({
            "streamed": false, "cancelled": false, "finish_reason": "stop", "is_byok": false, "origin": "",
            "data_region": "global", "cost_share": {"index": 0, "of": 1},
        })
    );
    assert_eq!(
        select(&["external_user", "session_id", "workspace_id", "upstream_inference_cost"]),
        json!({
            "external_user": "u-1", "session_id": "sëssion", "workspace_id": workspace(1).to_string(),
            "upstream_inference_cost": null,
        })
    );
    assert_eq!(
        select(&["charged_at", "guardrail_ids", "findings"]),
        json!({"charged_at": "2026-01-01T00:00:00.000Z", "guardrail_ids": [], "findings": []})
    );
    assert!(data["latency"].is_u64() && data["generation_time"].is_u64() && data["request_id"].is_string());
    let [failed, completed] = data["provider_responses"].as_array().unwrap().as_slice() else { panic!("{text}") };
    assert_eq!(
        failed,
        &json!({
            "provider_name": "The first", "provider": "first", "model": "acme/judge", "model_permaslug": "acme/judge",
            "upstream_model": "judge-1", "part": 0, "status": 529, "outcome": "overloaded", "began": 0, "latency": 0,
            "input_tokens": 0, "output_tokens": 0, "usage_source": failed["usage_source"],
            "pricing": {"prompt": "0.000000042", "completion": "0"}, "cost": 0, "is_byok": false,
        })
    );
    assert_eq!((&completed["provider"], &completed["status"]), (&"second".into(), &200.into()));
    assert_eq!((&completed["outcome"], &completed["input_tokens"]), (&"completed".into(), &429.into()));
    assert!(text.contains(r#""cost":0.000018018,"is_byok":false}]"#), "{text}");
}

#[tokio::test]
async fn failed_request_has_record() {
    let broken = || Err(AttemptFailure::new(AttemptFailureKind::InvalidResponse, "it broke"));
    let gateway = Setup::answering([broken(), broken()]).await.start();
    let refused = gateway.decide(BODY).await;
    refused.expect_error(502);
    let id = refused.header("x-generation-id").unwrap();
    let json = gateway.get(Caller::Inference, &format!("/generation?id={id}"), &[]).await.json();
    assert_eq!((&json["data"]["outcome"], &json["data"]["finish_reason"]), (&"failed".into(), &"error".into()));
    assert_eq!(json["data"]["provider_responses"][1]["status"], Value::Null);
}

#[tokio::test]
async fn record_is_readable_by_its_workspace_and_management_keys_only() {
    let (gateway, id) = answered().await;
    let path = format!("/generation?id={id}");
    assert_eq!(gateway.get(Caller::Management, &path, &[]).await.status, 200);
    let foreign = gateway.get(Caller::OfOtherWorkspace, &path, &[]).await;
    let unknown = gateway.get(Caller::OfOtherWorkspace, "/generation?id=gen-dec-0", &[]).await;
    assert_eq!(foreign.expect_error(404), unknown.expect_error(404));
    gateway.get(Caller::OfSuspendedWorkspace, &path, &[]).await.expect_error(403);
    gateway.get(Caller::Unknown, &path, &[]).await.expect_error(401);
}

#[tokio::test]
async fn malformed_generation_id_is_rejected() {
    let gateway = Setup::new().await.start();
    for query in ["", "?id=", "?id", "?id=gen-1", "?id=gen-dec-", "?id=gen-dec-a%2Fb", "?ids=gen-dec-1"] {
        let reply = gateway.get(Caller::Inference, &format!("/generation{query}"), &[]).await;
        assert!(reply.expect_error(400).starts_with("id must be"), "{query}");
    }
    for query in ["?id=gen-dec-1&id=gen-dec-1", "?id=%ff"] {
        gateway.get(Caller::Inference, &format!("/generation{query}"), &[]).await.expect_error(400);
    }
    gateway.post(Caller::Inference, "/generation?id=gen-dec-1", &[], b"").await.expect_error(405);
}

#[tokio::test]
async fn list_has_own_records_and_pages_by_cursor() {
    let script = (0..3).map(|_| answer(r#"{"q":{"type":"noul","noul":0.5}}"#));
    let gateway = Setup::answering(script).await.start();
    for _ in 0..3 {
        assert_eq!(gateway.decide(BODY).await.status, 200);
    }
    let first = gateway.get(Caller::Inference, "/generations?limit=2&user=u-1", &[]).await;
    assert_eq!((first.status, first.header("cache-control")), (200, Some("private, no-cache")));
    let first = first.json();
    assert_eq!(first["data"].as_array().unwrap().len(), 2);
    let id = first["data"][0]["id"].as_str().unwrap();
    let one = gateway.get(Caller::Inference, &format!("/generation?id={id}"), &[]).await.json();
    assert_eq!(first["data"][0], one["data"], "the record as GET /generation returns it");
    let cursor = first["next_cursor"].as_str().unwrap();
    let next = gateway.get(Caller::Inference, &format!("/generations?user=u-1&cursor={cursor}"), &[]).await.json();
    assert_eq!((next["data"].as_array().unwrap().len(), &next["next_cursor"]), (1, &Value::Null));
    let count = async |caller, query: &str| {
        let reply = gateway.get(caller, &format!("/generations{query}"), &[]).await;
        assert_eq!(reply.status, 200, "{query}");
        reply.json()["data"].as_array().unwrap().len()
    };
    assert_eq!(count(Caller::OfOtherWorkspace, "").await, 0);
    assert_eq!(count(Caller::Management, "").await, 3);
    assert_eq!(count(Caller::Management, &format!("?workspace_id={}", workspace(2))).await, 0);
    assert_eq!(count(Caller::Management, &format!("?key={}", Caller::Inference.id())).await, 3);
    assert_eq!(count(Caller::Management, &format!("?key={}", Caller::Inference.hash())).await, 3);
    assert_eq!(
        count(Caller::Inference, "?outcome=completed&model=acme/judge&since=2026-01-01&until=2026-01-02").await,
        3
    );
    assert_eq!(count(Caller::Inference, "?outcome=failed").await, 0);
    assert_eq!(count(Caller::Inference, "?session_id=s%C3%ABssion").await, 3);
    for (caller, query) in [
        (Caller::Inference, format!("?cursor={cursor}")),
        (Caller::Management, format!("?user=u-1&cursor={cursor}")),
        (Caller::Inference, format!("?key={}", Caller::Management.id())),
        (Caller::Inference, format!("?workspace_id={}", workspace(2))),
        (Caller::Inference, "?limit=0".to_owned()),
        (Caller::Inference, "?limit=1001".to_owned()),
        (Caller::Inference, "?since=2026-01-02&until=2026-01-01".to_owned()),
        (Caller::Inference, "?since=2026-01-01T00:00:00%2B01:00".to_owned()),
        (Caller::Inference, "?outcome=broken".to_owned()),
        (Caller::Inference, "?offset=1".to_owned()),
    ] {
        gateway.get(caller, &format!("/generations{query}"), &[]).await.expect_error(400);
    }
    gateway.get(Caller::Management, "/generations?key=x", &[]).await.expect_error(404);
}

#[tokio::test]
async fn unavailable_store_returns_503() {
    let mut usage = MockUsageRepository::new();
    usage.expect_find().returning(|_| Err(StoreError::unavailable("db-7")));
    let mut setup = Setup::new().await;
    setup.usage = Arc::new(usage) as Arc<dyn UsageRepository>;
    let reply = setup.start().get(Caller::Inference, "/generation?id=gen-dec-1", &[]).await;
    reply.expect_error(503);
    assert_eq!(reply.header("retry-after"), Some("1"));
}
