//! Explanations of requests.

use serde_json::{Value, json};

use super::client::Reply;
use super::gateway::{Caller, Gateway, Setup, guardrail};

const BODY: &str =
    r#"{"model":"acme/judge","state":"mail joe@example.com","questions":{"q":{"type":"noul","instructions":"?"}}}"#;

async fn explain(gateway: &Gateway, body: &str) -> Reply {
    gateway.post_json(Caller::Management, &format!("/guardrails/{}/explain", guardrail()), body).await
}

async fn explain_data(gateway: &Gateway, body: &str) -> Value {
    let reply = explain(gateway, body).await;
    assert_eq!(reply.status, 200, "{}", String::from_utf8_lossy(&reply.body));
    reply.json()["data"].clone()
}

async fn rule(gateway: &Gateway, change: &Value) {
    let path = format!("/guardrails/{}", guardrail());
    let reply = gateway.json(Caller::Management, "PATCH", &path, &change.to_string()).await;
    assert_eq!(reply.status, 200, "{}", String::from_utf8_lossy(&reply.body));
}

#[tokio::test]
async fn explain_returns_sent_content_when_allowed() {
    let gateway = Setup::new().await.start();
    let explanation = explain_data(&gateway, &format!(r#"{{"body":{BODY}}}"#)).await;
    assert_eq!(
        (&explanation["allowed"], &explanation["decided_by"], &explanation["model"]),
        (&json!(true), &Value::Null, &json!("acme/judge"))
    );
    assert_eq!(explanation["sent"]["state"], "mail joe@example.com");
    let endpoint = |provider: &str| json!({"model": "acme/judge", "provider": provider, "verdict": "allowed", "rule": null, "guardrail_id": null});
    assert_eq!(explanation["endpoints"], json!([endpoint("first"), endpoint("second")]));
    assert_eq!((&explanation["limits"], &explanation["guardrails"]), (&json!([]), &json!([guardrail().to_string()])));
    assert!(explanation["bound_usd"].is_number(), "{explanation}");
}

#[tokio::test]
async fn explain_names_deciding_rule() {
    let gateway = Setup::new().await.start();
    rule(
        &gateway,
        &json!({"ignored_providers": ["second"], "content_filter_builtins": [{"slug": "email", "action": "redact"}]}),
    )
    .await;
    let explanation = explain_data(&gateway, &format!(r#"{{"body":{BODY}}}"#)).await;
    assert_eq!(explanation["allowed"], true);
    assert_eq!(
        (&explanation["endpoints"][1]["verdict"], &explanation["endpoints"][1]["rule"]),
        (&json!("forbidden"), &json!("ignored_providers"))
    );
    assert_eq!(explanation["sent"]["state"], "mail [EMAIL]");
    let finding = &explanation["findings"][0];
    assert_eq!(
        (&finding["label"], &finding["action"], &finding["path"], &finding["count"]),
        (&json!("EMAIL"), &json!("redact"), &json!("state"), &json!(1))
    );

    rule(&gateway, &json!({"content_filter_builtins": [{"slug": "email", "action": "block"}]})).await;
    let explanation = explain_data(&gateway, &format!(r#"{{"body":{BODY}}}"#)).await;
    let by = &explanation["decided_by"];
    assert_eq!(
        (&explanation["allowed"], &explanation["sent"], &by["rule"]),
        (&json!(false), &Value::Null, &json!("content_filter"))
    );
    assert_eq!(
        (&by["label"], &by["path"], &by["guardrail_id"]),
        (&json!("EMAIL"), &json!("state"), &json!(guardrail().to_string()))
    );
    assert!(!explanation.to_string().contains("joe"), "the matched text is never told");

    rule(&gateway, &json!({"content_filter_builtins": null, "allowed_models": ["acme/idle"]})).await;
    let explanation = explain_data(&gateway, &format!(r#"{{"body":{BODY}}}"#)).await;
    assert_eq!(explanation["decided_by"]["rule"], "allowed_models");

    rule(&gateway, &json!({"allowed_models": null, "limit_usd": 0.000_000_000_001, "reset_interval": "daily"})).await;
    let explanation =
        explain_data(&gateway, &format!(r#"{{"key_hash":"{}","body":{BODY}}}"#, Caller::Inference.id())).await;
    let by = &explanation["decided_by"];
    assert_eq!(
        (&by["rule"], &by["scope"], &explanation["bound_fits"]),
        (&json!("budget"), &json!("guardrail"), &json!(false))
    );
    let limit = &explanation["limits"][0];
    assert_eq!(
        (&limit["scope"], &limit["reset_interval"], &limit["resets_at"]),
        (&json!("guardrail"), &json!("daily"), &json!("2026-01-02T00:00:00.000Z"))
    );
    assert_eq!((&limit["spent_usd"], &limit["reserved_usd"]), (&json!(0), &json!(0)));
}

#[tokio::test]
async fn explain_reports_unusable_key() {
    let gateway = Setup::new().await.start();
    let by = async |caller: Caller| {
        let explanation = explain_data(&gateway, &format!(r#"{{"key_hash":"{}","body":{BODY}}}"#, caller.hash())).await;
        explanation["decided_by"]["rule"].clone()
    };
    assert_eq!(by(Caller::Disabled).await, "key_disabled");
    assert_eq!(by(Caller::Expired).await, "key_expired");
    assert_eq!(by(Caller::OfSuspendedWorkspace).await, "workspace_suspended");
    for hash in [
        Caller::Management.hash(),
        Caller::Management.id(),
        Caller::Unknown.hash(),
        "nonsense".to_owned(),
        String::new(),
    ] {
        let refused = explain(&gateway, &format!(r#"{{"key_hash":"{hash}","body":{BODY}}}"#)).await.expect_error(400);
        assert_eq!(refused, "key_hash is not an active inference key");
    }
}

#[tokio::test]
async fn explain_accepts_every_wire_and_reports_decision_errors() {
    let gateway = Setup::new().await.start();
    for body in [
        r#"{"model":"acme/judge","questions":"opaque"}"#,
        r#"{"model":"acme/judge","input":"s","questions":[{"type":"predicate","instructions":"?"}]}"#,
        r#"{"model":"acme/judge","input":"s","questions":{"q":{"type":"noul","instructions":"?"}}}"#,
        r#"{"model":"acme/judge","input":"s","questions":[{"id":"q","type":"yes_no","question":"?"}]}"#,
    ] {
        assert_eq!(explain_data(&gateway, &format!(r#"{{"body":{body}}}"#)).await["allowed"], true, "{body}");
    }
    for (body, message) in [
        ("{}", "body is required: that of a Decisions request"),
        (r#"{"body":null}"#, "body is required: that of a Decisions request"),
        (r#"{"body":[]}"#, "body must be a JSON object: that of a Decisions request"),
        (r#"{"body":"{}"}"#, "body must be a JSON object: that of a Decisions request"),
        (r#"{"key_hash":7,"body":{}}"#, "key_hash must be a string"),
        (r#"{"body":{},"body":{}}"#, "body is in the body more than once"),
    ] {
        assert_eq!(explain(&gateway, body).await.expect_error(400), message, "{body}");
    }
    let decisions = gateway
        .decide(r#"{"model":"acme/judge","questions":{"q":{"type":"noul"}},"state":"s"}"#)
        .await
        .expect_error(400);
    let explained =
        explain(&gateway, r#"{"body":{"model":"acme/judge","questions":{"q":{"type":"noul"}},"state":"s"}}"#).await;
    assert_eq!(explained.expect_error(400), decisions);
    let unknown = explain(&gateway, &format!(r#"{{"body":{}}}"#, BODY.replace("acme/judge", "acme/jugde"))).await;
    assert_eq!(unknown.expect_error(404), "Model not found; nearest callable models: acme/judge");
    assert_eq!(unknown.json()["error"]["metadata"]["nearest"][0], "acme/judge");
    let blocking = json!({"content_filter_builtins": [{"slug": "email", "action": "block"}]});
    rule(&gateway, &blocking).await;
    let blocked = explain_data(&gateway, &format!(r#"{{"body":{}}}"#, BODY.replace("acme/judge", "acme/jugde"))).await;
    assert_eq!((&blocked["allowed"], &blocked["decided_by"]["rule"]), (&json!(false), &json!("content_filter")));
    assert_eq!((&blocked["model"], &blocked["endpoints"]), (&Value::Null, &json!([])), "as Decisions: filters first");
}
