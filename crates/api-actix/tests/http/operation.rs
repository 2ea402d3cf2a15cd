//! Operation over HTTP: the audit log, imports of the catalogue and pauses of providers.

use std::sync::Arc;

use domain::audit::{Actor, AuditDraft, AuditLog};
use domain::error::StoreError;
use domain::json::Json;
use domain::model::ModelRepository;
use domain::routing::AttemptFailure;
use domain::system::MockHealthProbe;
use domain::testing::MemoryStore;
use futures_util::future::join_all;
use serde_json::{Value, json};

use super::client::Reply;
use super::gateway::{Caller, Gateway, Setup, answer};

async fn append(store: &MemoryStore, action: &'static str, details: &str) {
    let actor = Actor { name: "user:ann".to_owned(), source: Some("host".to_owned()) };
    let draft = AuditDraft::done(&actor, action, "key 1", Json::parse(details).unwrap());
    store.audit_log().append(&draft).await.unwrap();
}

async fn audit(gateway: &Gateway, query: &str) -> Reply {
    gateway.get(Caller::Management, &format!("/audit{query}"), &[]).await
}

#[tokio::test]
async fn audit_log_is_listed_newest_first_with_both_states_and_hashes() {
    let setup = Setup::new().await;
    let store = setup.store.clone();
    append(&store, "key.create", r#"{"after":{"limit":1.50}}"#).await;
    append(&store, "key.update", r#"{"before":{"limit":1.50},"after":{"limit":null},"x":7}"#).await;
    let stored = store.audit_log().newest(2).await.unwrap();
    let gateway = setup.start();
    let reply = audit(&gateway, "?limit=1&actor=ann&action=key.&subject=key").await;
    assert_eq!((reply.status, reply.header("cache-control")), (200, Some("private, no-cache")));
    assert!(String::from_utf8_lossy(&reply.body).contains(r#""before":{"limit":1.50}"#), "numbers keep their digits");
    let page = reply.json();
    let entry = &page["data"][0];
    assert_eq!((&entry["number"], &entry["action"]), (&json!(stored[0].seq), &json!("key.update")));
    assert_eq!(
        (&entry["actor"], &entry["source"], &entry["outcome"]),
        (&json!("user:ann"), &json!("host"), &json!("done"))
    );
    assert_eq!((&entry["before"], &entry["after"]), (&json!({"limit": 1.5}), &json!({"limit": null})));
    assert_eq!(entry["details"]["x"], 7);
    assert_eq!(entry["hash"], stored[0].hash.to_string());
    assert_eq!(entry["previous_hash"], stored[1].hash.to_string());
    let cursor = page["next_cursor"].as_str().unwrap();
    let next = audit(&gateway, &format!("?limit=1&actor=ann&action=key.&subject=key&cursor={cursor}")).await.json();
    assert_eq!((&next["data"][0]["number"], &next["data"][0]["before"]), (&json!(stored[1].seq), &Value::Null));
    assert_eq!(next["next_cursor"], Value::Null);
    audit(&gateway, &format!("?limit=1&cursor={cursor}")).await.expect_error(400);
}

#[tokio::test]
async fn audit_log_rejects_invalid_parameters_and_inference_keys() {
    let gateway = Setup::new().await.start();
    for query in [
        "?limit=0",
        "?limit=1001",
        "?cursor=x",
        "?actr=x",
        "?actor=a&actor=b",
        "?since=2026-11-27T09:00:00",
        "?since=2026-11-27&until=2026-11-27",
        "?subject=%ff",
    ] {
        audit(&gateway, query).await.expect_error(400);
    }
    gateway.get(Caller::Inference, "/audit", &[]).await.expect_error(403);
    let hostile = audit(&gateway, "?actor=%27%20OR%201%3D1%20--&subject=%25").await;
    assert_eq!(hostile.json()["data"], json!([]));
}

fn row(id: &str) -> Value {
    json!({"id": id, "architecture": {"output_modalities": ["decisions"]}, "pricing": {"prompt": "0.000000042", "completion": "0"}})
}

async fn import(gateway: &Gateway, query: &str, headers: &[(&str, &str)], rows: &Value) -> Reply {
    let headers = [&[("Content-Type", "application/json")], headers].concat();
    gateway.post(Caller::Management, &format!("/catalogue/imports{query}"), &headers, rows.to_string().as_bytes()).await
}

async fn ids(store: &MemoryStore) -> Vec<String> {
    store.models().list().await.unwrap().iter().map(|row| row.id.to_string()).collect()
}

#[tokio::test]
async fn replacement_needs_the_version_of_a_dry_run() {
    let setup = Setup::new().await;
    let store = setup.store.clone();
    let gateway = setup.start();
    let made =
        import(&gateway, "", &[], &json!({"data": [row("a/one"), row("acme/judge"), row("a/two")]})).await.json();
    assert_eq!(made["data"]["imported"], 3, "{made}");
    let rows = json!([row("a/two"), row("sandbox/decider")]);
    let entries = store.audit_log().newest(100).await.unwrap().len();
    import(&gateway, "?mode=replace", &[], &rows).await.expect_error(428);
    import(&gateway, "?dry_run=true", &[("Idempotency-Key", "a b")], &rows).await.expect_error(400);
    let key = [("Idempotency-Key", "import-1")];
    let dry = import(&gateway, "?mode=replace&dry_run=true", &key, &rows).await;
    let result = &dry.json()["data"];
    assert_eq!((&result["imported"], &result["updated"], &result["removed"]), (&json!(1), &json!(0), &json!(1)));
    assert_eq!((&result["removed_models"], &result["callable_models"]), (&json!(["a/one"]), &json!(2)));
    assert_eq!(result["dry_run"], true);
    let tag = dry.header("etag").unwrap().to_owned();
    assert_eq!(tag, format!("\"{}\"", result["version"].as_str().unwrap()));
    assert_eq!(ids(&store).await, ["a/one", "acme/judge", "a/two"]);
    assert_eq!(store.audit_log().newest(100).await.unwrap().len(), entries, "nothing is written");

    assert_eq!(import(&gateway, "?mode=merge", &[], &json!([row("a/three")])).await.status, 200);
    import(&gateway, "?mode=replace", &[("If-Match", &tag)], &rows).await.expect_error(412);
    assert_eq!(ids(&store).await.len(), 4);
    import(&gateway, "?mode=replace&dry_run=true", &[("If-Match", &tag)], &rows).await.expect_error(412);
    let tag = import(&gateway, "?mode=replace&dry_run=true", &[], &rows).await.header("etag").unwrap().to_owned();
    let headers = [("If-Match", tag.as_str()), ("Idempotency-Key", "import-1")];
    let done = import(&gateway, "?mode=replace", &headers, &rows).await;
    assert_eq!((done.status, done.header("etag")), (200, None), "the dry run did not use up the key");
    assert_eq!(done.json()["data"]["removed_models"], json!(["a/one", "a/three"]));
    assert_eq!(ids(&store).await, ["acme/judge", "a/two", "sandbox/decider"]);
    let entry = store.audit_log().newest(1).await.unwrap().remove(0);
    assert_eq!(
        (entry.action.as_str(), entry.actor.name),
        ("catalogue.import", format!("key:{}", Caller::Management.id()))
    );
}

#[tokio::test]
async fn repeated_and_concurrent_imports_have_one_effect() {
    let setup = Setup::new().await;
    let store = setup.store.clone();
    let gateway = setup.start();
    let before = store.audit_log().newest(100).await.unwrap().len();
    let rows = json!([row("a/one")]);
    let key = [("Idempotency-Key", "i")];
    let replies = join_all((0..4).map(|_| import(&gateway, "", &key, &rows))).await;
    for reply in &replies {
        assert_eq!((reply.status, &reply.body), (200, &replies[0].body));
    }
    assert_eq!(replies[0].json()["data"]["imported"], 1);
    assert_eq!(store.audit_log().newest(100).await.unwrap().len(), before + 1);
    import(&gateway, "", &key, &json!([row("a/two")])).await.expect_error(409);
    // Two replacements of one version: one takes effect.
    let tag = import(&gateway, "?dry_run=true", &[], &rows).await.header("etag").unwrap().to_owned();
    let (one, two) = (json!([row("b/one")]), json!([row("b/two")]));
    let matching = [("If-Match", tag.as_str())];
    let replies = tokio::join!(
        import(&gateway, "?mode=replace", &matching, &one),
        import(&gateway, "?mode=replace", &matching, &two)
    );
    let mut statuses = [replies.0.status, replies.1.status];
    statuses.sort_unstable();
    assert_eq!(statuses, [200, 412]);
    assert_eq!(ids(&store).await.len(), 1);
}

#[tokio::test]
async fn invalid_import_changes_nothing() {
    let mut setup = Setup::new().await;
    let store = setup.store.clone();
    setup.settings.max_json_bytes = 2_000_000;
    let gateway = setup.start();
    for (rows, message) in [
        (json!([]), "no rows"),
        (json!({}), "must be a JSON array"),
        (json!([{"id": "a/b"}]), "row 0 (a/b): architecture is required"),
        (json!([row("a/b"), row("a/b")]), "a/b is among the rows more than once"),
        (json!([{"id": "../../etc", "architecture": {"output_modalities": ["text"]}, "pricing": {}}]), "row 0"),
    ] {
        let text = import(&gateway, "", &[], &rows).await.expect_error(400);
        assert!(text.contains(message), "{text}");
    }
    let misplaced = json!({"data": [row("a/b")], "dry_run": true});
    assert!(import(&gateway, "", &[], &misplaced).await.expect_error(400).contains("query parameters"));
    let path = "/catalogue/imports";
    let text = gateway.json(Caller::Management, "POST", path, &format!("\n {misplaced}")).await.expect_error(400);
    assert!(text.contains("query parameters"), "{text}");
    for query in ["?mode=remove", "?dry_run=1", "?dryrun=true", "?mode=merge&mode=merge"] {
        import(&gateway, query, &[], &json!([row("a/b")])).await.expect_error(400);
    }
    // A large body is parsed on another thread.
    let many: Vec<Value> = (0..8_000).map(|number| row(&format!("a/m{number}"))).collect();
    let text = import(&gateway, "", &[], &json!([&many[..], &[row("a/m0")]].concat())).await.expect_error(400);
    assert!(text.contains("a/m0 is among the rows more than once"), "{text}");
    assert_eq!(import(&gateway, "?dry_run=true", &[], &json!(many)).await.json()["data"]["imported"], 8_000);
    let larger: Vec<Value> = (0..20_000).map(|number| row(&format!("a/m{number}"))).collect();
    import(&gateway, "", &[], &json!(larger)).await.expect_error(413);
    let body = json!([row("a/b")]).to_string();
    gateway.post_json(Caller::Inference, "/catalogue/imports", &body).await.expect_error(403);
    assert_eq!(ids(&store).await, [""; 0]);
}

const DECISION: &str =
    r#"{"model":"acme/judge","state":"s","questions":{"q":{"type":"noul","instructions":"Is it?"}}}"#;

#[tokio::test]
async fn paused_provider_gets_no_attempt_and_its_model_is_503() {
    let setup = Setup::answering([answer(r#"{"q":{"type":"noul","noul":0.9}}"#)]).await;
    let store = setup.store.clone();
    let gateway = setup.start();
    let pause = async |slug: &str, body: &str| {
        gateway.json(Caller::Management, "PATCH", &format!("/providers/{slug}"), body).await
    };
    let paused = pause("first", r#"{"paused":true}"#).await;
    assert_eq!((paused.status, paused.json()["data"]["paused"].clone()), (200, json!(true)));
    let listed = gateway.get(Caller::Inference, "/providers", &[]).await.json();
    let states: Vec<&Value> = listed["data"].as_array().unwrap().iter().map(|one| &one["paused"]).collect();
    assert_eq!(states, [true, false]);
    // The record as it was read changes nothing.
    let entries = store.audit_log().newest(100).await.unwrap().len();
    assert_eq!(pause("first", &listed["data"][0].to_string()).await.json()["data"], listed["data"][0]);
    assert_eq!(store.audit_log().newest(100).await.unwrap().len(), entries);
    assert_eq!(gateway.decide(DECISION).await.status, 200, "the other provider answers");
    pause("second", r#"{"paused":true}"#).await;
    let rejected = gateway.decide(DECISION).await;
    assert_eq!(rejected.header("retry-after"), Some("60"));
    let message = rejected.expect_error(503);
    assert!(message.contains("first paused by the operator") && message.contains("second paused"), "{message}");
    let funnel = &rejected.json()["error"]["metadata"]["routing_funnel"];
    assert!(funnel.to_string().contains("paused"), "{funnel}");
    assert_eq!(pause("second", r#"{"paused":false}"#).await.json()["data"]["paused"], false);
}

#[tokio::test]
async fn pause_rejects_unknown_providers_bodies_and_callers() {
    let gateway = Setup::new().await.start();
    for slug in ["third", "FIRST", "%2e%2e", "first%00", "first/x"] {
        gateway
            .json(Caller::Management, "PATCH", &format!("/providers/{slug}"), r#"{"paused":true}"#)
            .await
            .expect_error(404);
    }
    for body in ["{}", r#"{"paused":1}"#, r#"{"pause":true}"#, "[]", "{"] {
        gateway.json(Caller::Management, "PATCH", "/providers/first", body).await.expect_error(400);
    }
    gateway.json(Caller::Inference, "PATCH", "/providers/first", r#"{"paused":true}"#).await.expect_error(403);
}

#[tokio::test]
async fn provider_test_calls_the_endpoint_and_reports_failures() {
    let script = [answer(r#"{"test":{"type":"noul","noul":0.9}}"#), Err(AttemptFailure::from_status(401, None))];
    let gateway = Setup::answering(script).await.start();
    let test = async |slug: &str, body: &str| {
        gateway.json(Caller::Management, "POST", &format!("/providers/{slug}/test"), body).await
    };
    // Without a body.
    let answered = gateway.post(Caller::Management, "/providers/first/test", &[], b"").await;
    let report = &answered.json()["data"];
    assert_eq!((answered.status, &report["ok"], &report["outcome"]), (200, &json!(true), &json!("answered")));
    assert_eq!((&report["provider"], &report["input_tokens"]), (&json!("first"), &json!(429)));
    let failed = test("second", r#"{"model":"acme/judge"}"#).await.json();
    assert_eq!((&failed["data"]["ok"], &failed["data"]["upstream_status"]), (&json!(false), &json!(401)));
    test("third", "{}").await.expect_error(404);
    test("first", r#"{"model":"unknown"}"#).await.expect_error(404);
    assert!(test("unused", "{}").await.expect_error(400).contains("name a model"));
    test("first", r#"{"model":7}"#).await.expect_error(400);
    gateway.json(Caller::Inference, "POST", "/providers/first/test", "{}").await.expect_error(403);
}

#[tokio::test]
async fn status_describes_this_server_and_its_endpoints() {
    let mut database = MockHealthProbe::new();
    database.expect_name().return_const("database");
    database.expect_probe().returning(|| Err(StoreError::unavailable("locked")));
    database.expect_serves_during_outage().return_const(true);
    let setup = Setup { probes: vec![Arc::new(database)], ..Setup::new().await };
    setup.paused.replace(vec!["second".parse().unwrap()]);
    let gateway = setup.start();
    let reply = gateway.get(Caller::Management, "/status", &[]).await;
    let status = &reply.json()["data"];
    assert_eq!((reply.status, &status["ok"], &status["database"]), (200, &json!(true), &json!("memory")));
    assert_eq!(status["processes"], json!([]));
    let server = &status["servers"][0];
    assert_eq!((&server["id"], &server["version"]), (&json!("server-1"), &json!("1.2.3")));
    assert_eq!((&server["state"], &server["journal"]), (&json!("degraded"), &Value::Null));
    assert_eq!((&server["address"], &server["base_path"]), (&json!(gateway.address.to_string()), &json!("/api/v1")));
    let store = json!({
        "name": "database", "ready": false, "error": "the store is unavailable: locked", "serves_during_outage": true
    });
    assert_eq!(server["stores"], json!([store]));
    let of_providers: Vec<&Value> = server["providers"].as_array().unwrap().iter().map(|one| &one["state"]).collect();
    assert_eq!(of_providers, ["unused", "paused"]);
    assert_eq!((&server["endpoints"][1]["paused"], &server["variables"]), (&json!(true), &json!(["A_KEY"])));
    gateway.get(Caller::Management, "/status?x=1", &[]).await.expect_error(400);
    gateway.get(Caller::Inference, "/status", &[]).await.expect_error(403);
}
