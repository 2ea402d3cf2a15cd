//! Bulk assignment of keys to a guardrail.

use std::sync::Arc;

use domain::error::StoreError;
use domain::guardrail::{GuardrailRepository, MockGuardrailRepository};

use super::gateway::{BASE, Caller, Setup, guardrail};

#[tokio::test]
async fn assign_keys_skips_keys_of_other_workspaces() {
    let gateway = Setup::new().await.start();
    let hashes = [Caller::Inference, Caller::Inference, Caller::Disabled, Caller::OfOtherWorkspace, Caller::Management];
    let hashes: Vec<String> =
        hashes.into_iter().map(Caller::hash).chain(["nonsense".to_owned(), Caller::Disabled.id()]).collect();
    let body = serde_json::json!({"key_hashes": hashes, "unknown": null}).to_string();
    let path = format!("/guardrails/{}/assignments/keys", guardrail());
    let reply = gateway.post_json(Caller::Management, &path, &body).await;
    assert_eq!((reply.status, reply.json()), (200, serde_json::json!({"assigned_count": 2})));
    assert_eq!(gateway.store.guardrails().count_keys(guardrail()).await.unwrap(), 2);
    let none = gateway.post_json(Caller::Management, &path, r#"{"key_hashes":["nobody"]}"#).await;
    assert_eq!(none.json()["assigned_count"], 0);
}

#[tokio::test]
async fn assignments_are_conditional_and_repeatable() {
    let gateway = Setup::new().await.start();
    let path = format!("/guardrails/{}", guardrail());
    let tag = gateway.get(Caller::Management, &path, &[]).await.header("etag").unwrap().to_owned();
    let (bearer, other) = (Caller::Management.bearer(), format!("\"{}\"", "0".repeat(32)));
    let post = async |path: &str, headers: &[(&str, &str)], key: Caller| {
        let body = serde_json::json!({"key_hashes": [key.hash()]}).to_string();
        let own = [("Authorization", bearer.as_str()), ("Content-Type", "application/json")];
        gateway.send("POST", &format!("{BASE}{path}"), &[&own, headers].concat(), body.as_bytes()).await
    };
    let (assign, count) = (format!("{path}/assignments/keys"), "assigned_count");
    for (path, count) in [(&assign, count), (&format!("{assign}/remove"), "unassigned_count")] {
        post(path, &[("If-Match", &other)], Caller::Inference).await.expect_error(412);
        let headers = [("If-Match", tag.as_str()), ("Idempotency-Key", "k")];
        let first = post(path, &headers, Caller::Inference).await;
        assert_eq!((first.status, first.json()), (200, serde_json::json!({count: 1})));
        let again = post(path, &headers, Caller::Inference).await;
        assert_eq!((again.status, again.body), (200, first.body), "{count}");
        post(path, &headers, Caller::Disabled).await.expect_error(409);
    }
    let destination = "/observability/destinations/01990000-0000-7000-8000-00000000000a";
    for verb in ["test", "retry"] {
        let path = format!("{destination}/{verb}");
        post(&path, &[("If-Match", "bare")], Caller::Inference).await.expect_error(400);
    }
}

#[tokio::test]
async fn assign_keys_rejects_other_shapes_with_path() {
    let gateway = Setup::new().await.start();
    let path = format!("/guardrails/{}/assignments/keys", guardrail());
    for (body, fault) in [
        ("{}", "key_hashes is required"),
        (r#"{"key_hashes":null}"#, "key_hashes is required"),
        (r#"{"key_hashes":"a"}"#, "key_hashes must be an array of strings"),
        (r#"{"key_hashes":[]}"#, "key_hashes must have at least one element"),
        (r#"{"key_hashes":["a",""]}"#, "key_hashes[1] must not be empty"),
        (r#"{"key_hashes":["a","b","c",{"x":1}]}"#, "key_hashes[3] must be a string"),
        (r#"{"key_hashes":["a"],"key_hashes":[]}"#, "key_hashes is in the body more than once"),
    ] {
        assert_eq!(gateway.post_json(Caller::Management, &path, body).await.expect_error(400), fault);
    }
}

#[tokio::test]
async fn unknown_guardrail_id_returns_404() {
    let gateway = Setup::new().await.start();
    for id in ["01990000-0000-7000-8000-00000000ffff", "nonsense", "%ff", "..%2F.."] {
        let path = format!("/guardrails/{id}/assignments/keys");
        let reply = gateway.post_json(Caller::Management, &path, r#"{"key_hashes":["a"]}"#).await;
        assert_eq!(reply.expect_error(404), "Resource not found", "{id}");
    }
}

#[tokio::test]
async fn unavailable_store_returns_503_without_details() {
    let mut guardrails = MockGuardrailRepository::new();
    guardrails.expect_assign_keys().returning(|_, _, _| Err(StoreError::unavailable("SQLITE_BUSY at /var/db").into()));
    let gateway = Setup { guardrails: Arc::new(guardrails), ..Setup::new().await }.start();
    let path = format!("/guardrails/{}/assignments/keys", guardrail());
    let reply = gateway.post_json(Caller::Management, &path, r#"{"key_hashes":["a"]}"#).await;
    assert_eq!(reply.expect_error(503), "Service temporarily unavailable");
    assert!(!String::from_utf8_lossy(&reply.body).contains("SQLITE"));
}
