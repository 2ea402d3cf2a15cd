//! Conditional and repeated changes: `ETag`, `If-Match` and `Idempotency-Key`.

use domain::api_key::{ApiKey, ApiKeyRepository, ApiKeyScope, KeyUpdate, LastKeyRule};
use domain::audit::AuditLog;
use domain::authority::{ManagementAccess, ManagementScope};
use domain::ids::ApiKeyId;
use futures_util::future::join_all;
use serde_json::{Value, json};

use super::client::Reply;
use super::gateway::{BASE, CONTAINER, Caller, Gateway, Setup, audit_draft, workspace};

fn body(name: &str) -> String {
    json!({"name": name, "workspace_id": workspace(1).to_string()}).to_string()
}

async fn send(gateway: &Gateway, method: &str, path: &str, headers: &[(&str, &str)], body: &str) -> Reply {
    let bearer = Caller::Management.bearer();
    let mut all = vec![("Authorization", bearer.as_str()), ("Content-Type", "application/json")];
    all.extend(headers);
    gateway.send(method, &format!("{BASE}{path}"), &all, body.as_bytes()).await
}

async fn create(gateway: &Gateway, key: &str, body: &str) -> Reply {
    send(gateway, "POST", "/guardrails", &[("Idempotency-Key", key)], body).await
}

async fn entries(setup: &domain::testing::MemoryStore) -> usize {
    setup.audit_log().read(0, 1_000).await.unwrap().len()
}

/// Returns status, body, tag and cache policy.
fn whole(reply: &Reply) -> (u16, Value, Option<String>, Option<String>) {
    let header = |name| reply.header(name).map(str::to_owned);
    (reply.status, reply.json(), header("etag"), header("cache-control"))
}

#[tokio::test]
async fn if_match_of_another_version_is_412_and_changes_nothing() {
    let setup = Setup::new().await;
    let store = setup.store.clone();
    let gateway = setup.start();
    let made = send(&gateway, "POST", "/guardrails", &[], &body("g")).await;
    let first = made.header("etag").unwrap().to_owned();
    let id = made.json()["data"]["id"].as_str().unwrap().to_owned();
    let path = format!("/guardrails/{id}");
    let changed = send(&gateway, "PATCH", &path, &[("If-Match", &first)], r#"{"name":"h"}"#).await;
    assert_eq!((changed.status, changed.header("cache-control")), (200, Some("private, no-cache")));
    let second = changed.header("etag").unwrap().to_owned();
    assert_ne!(first, second);
    let count = entries(&store).await;
    let weak = format!("W/{second}");
    for (method, path, body) in [
        ("PATCH", path.clone(), r#"{"name":"i"}"#),
        ("PATCH", path.clone(), r#"{"name":"h"}"#),
        ("DELETE", path.clone(), ""),
        ("POST", format!("{path}/versions/1/restore"), ""),
    ] {
        for tag in [&first, &weak, "\"x\""] {
            let reply = send(&gateway, method, &path, &[("If-Match", tag)], body).await;
            assert!(reply.expect_error(412).contains("another version"), "{method} {tag}");
        }
        let reply = send(&gateway, method, &path, &[("If-Match", "x")], body).await;
        assert!(reply.expect_error(400).contains("If-Match"), "{method}");
    }
    let read = send(&gateway, "GET", &path, &[], "").await;
    assert_eq!((read.header("etag"), read.json()["data"]["name"].as_str()), (Some(second.as_str()), Some("h")));
    assert_eq!(entries(&store).await, count);
    let listed = format!("\"x\", {second}");
    assert_eq!(send(&gateway, "PATCH", &path, &[("If-Match", &listed)], r#"{"name":"i"}"#).await.status, 200);
    assert_eq!(send(&gateway, "DELETE", &path, &[("If-Match", "*")], "").await.status, 200);
    assert_eq!(send(&gateway, "DELETE", &path, &[("If-Match", "*")], "").await.status, 404);
}

#[tokio::test]
async fn change_of_something_without_versions_matches_no_entity_tag() {
    let setup = Setup::new().await;
    let file = setup.put("a.csv", 5).await;
    let gateway = setup.start();
    let document = format!("/files/{}?workspace_id={}", "tgfile_00000000000000000000000000000001", workspace(1));
    let container = format!("/containers/{CONTAINER}/files");
    for (method, path, body) in [
        ("PATCH", "/providers/first".to_owned(), r#"{"paused":true}"#),
        ("POST", "/providers/first/test".to_owned(), "{}"),
        ("PUT", format!("{container}?path=b.csv&workspace_id={}", workspace(1)), "content"),
        ("DELETE", document, ""),
    ] {
        let text = send(&gateway, method, &path, &[("If-Match", "\"x\"")], body).await.expect_error(412);
        assert!(text.contains("has versions"), "{method} {path}: {text}");
        send(&gateway, method, &path, &[("If-Match", "x")], body).await.expect_error(400);
        send(&gateway, method, &path, &[("If-None-Match", "*")], body).await.expect_error(400);
    }
    let paused = send(&gateway, "PATCH", "/providers/first", &[("If-Match", "*")], r#"{"paused":true}"#).await;
    assert_eq!(paused.status, 200);
    let bearer = Caller::Inference.bearer();
    let headers = [("Authorization", bearer.as_str()), ("If-Match", "\"x\"")];
    gateway.send("DELETE", &format!("{BASE}{container}/{file}"), &headers, b"").await.expect_error(412);
}

#[tokio::test]
async fn repeated_post_has_one_effect_and_the_first_response() {
    let setup = Setup::new().await;
    let store = setup.store.clone();
    let gateway = setup.start();
    let first = create(&gateway, "a", &body("g")).await;
    assert_eq!(first.status, 201);
    let count = entries(&store).await;
    let id = first.json()["data"]["id"].as_str().unwrap().to_owned();
    assert_eq!(send(&gateway, "PATCH", &format!("/guardrails/{id}"), &[], r#"{"name":"h"}"#).await.status, 200);
    assert_eq!(whole(&create(&gateway, "a", &body("g")).await), whole(&first), "byte for byte, although it changed");
    assert!(create(&gateway, "a", &body("other")).await.expect_error(409).contains("Idempotency-Key"));
    assert_eq!(create(&gateway, "b", &body("g")).await.status, 201, "another key");
    assert_eq!(entries(&store).await, count + 2);
    let restore = format!("/guardrails/{id}/versions/1/restore");
    let restored = send(&gateway, "POST", &restore, &[("Idempotency-Key", "a")], "").await;
    assert_eq!(restored.status, 200, "another route");
    let other = format!("/guardrails/{id}/versions/2/restore");
    send(&gateway, "POST", &other, &[("Idempotency-Key", "a")], "").await.expect_error(409);
    let count = entries(&store).await;
    let again = send(&gateway, "POST", &restore, &[("Idempotency-Key", "a"), ("If-Match", "\"x\"")], "").await;
    assert_eq!((whole(&again), entries(&store).await), (whole(&restored), count), "it was accepted once");
}

#[tokio::test]
async fn request_that_changed_nothing_keeps_its_key() {
    let gateway = Setup::new().await.start();
    let made = create(&gateway, "a", &body("g")).await;
    let path = format!("/guardrails/{}", made.json()["data"]["id"].as_str().unwrap());
    let restore = async |version: u8| {
        send(&gateway, "POST", &format!("{path}/versions/{version}/restore"), &[("Idempotency-Key", "n")], "").await
    };
    let first = restore(1).await;
    assert_eq!((first.status, first.json()["data"]["version"].as_u64()), (200, Some(1)), "nothing to restore");
    assert_eq!(send(&gateway, "PATCH", &path, &[], r#"{"name":"h"}"#).await.status, 200);
    assert_eq!(whole(&restore(1).await), whole(&first));
    assert_eq!(send(&gateway, "GET", &path, &[], "").await.json()["data"]["name"], "h", "no second effect");
    restore(2).await.expect_error(409);
}

/// The first response is returned before anything in the request is looked up again.
#[tokio::test]
async fn repetition_does_not_depend_on_the_state_of_today() {
    let gateway = Setup::new().await.start();
    let made = send(&gateway, "POST", "/workspaces", &[], r#"{"name":"team","slug":"team-a"}"#).await;
    assert_eq!(made.status, 201);
    let body = r#"{"model":"sandbox/decider","questions":{"q":{"type":"noul","instructions":"Is it?"}}}"#;
    let path = "/presets/p/decisions?workspace_id=team-a";
    let post = async || send(&gateway, "POST", path, &[("Idempotency-Key", "r")], body).await;
    let first = post().await;
    assert_eq!(first.status, 200, "{}", first.json());
    let renamed = send(&gateway, "PATCH", "/workspaces/team-a", &[], r#"{"name":"b","slug":"team-b"}"#).await;
    assert_eq!(renamed.status, 200);
    assert_eq!(whole(&post().await), whole(&first));
    let deleted = send(&gateway, "DELETE", "/workspaces/team-b?with=presets", &[], "").await;
    assert_eq!(deleted.status, 200, "{}", deleted.json());
    assert_eq!(whole(&post().await), whole(&first));
}

#[tokio::test]
async fn narrowed_key_does_not_get_responses_from_before() {
    let setup = Setup::new().await;
    let keys = setup.store.api_keys();
    let gateway = setup.start();
    assert_eq!(create(&gateway, "a", &body("g")).await.status, 201);
    let id: ApiKeyId = Caller::Management.id().parse().unwrap();
    let before = keys.find(&id.into()).await.unwrap().unwrap();
    let narrow = ManagementScope::try_new(ManagementAccess::Write, Some(vec![workspace(1)])).unwrap();
    let after = ApiKey { scope: ApiKeyScope::Management(narrow), ..before.clone() };
    let rule = LastKeyRule::Waived;
    assert_eq!(keys.update(&before, &after, rule, &audit_draft()).await.unwrap(), KeyUpdate::Updated);
    create(&gateway, "a", &body("g")).await.expect_error(409);
}

#[tokio::test]
async fn failed_call_is_not_stored() {
    let gateway = Setup::new().await.start();
    create(&gateway, "a", r#"{"description":"no name"}"#).await.expect_error(400);
    assert_eq!(create(&gateway, "a", &body("g")).await.status, 201);
    for key in ["", "a b", &"x".repeat(256)] {
        assert!(create(&gateway, key, &body("g")).await.expect_error(400).contains("Idempotency-Key"), "{key:?}");
    }
}

#[tokio::test]
async fn concurrent_posts_with_one_key_have_one_effect_and_one_response() {
    let setup = Setup::new().await;
    let store = setup.store.clone();
    let gateway = setup.start();
    let before = entries(&store).await;
    let text = body("g");
    let replies = join_all((0..8).map(|_| create(&gateway, "a", &text))).await;
    for reply in &replies {
        assert_eq!(whole(reply), whole(&replies[0]));
    }
    assert_eq!((replies[0].status, entries(&store).await), (201, before + 1));
}
