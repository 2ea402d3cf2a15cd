//! Changes to trace destinations; callers never see their secrets.

use std::sync::{Arc, Mutex};

use domain::api_key::LastKeyRule;
use domain::audit::AuditLog;
use domain::observability::{Destination, MockMessageSender};
use domain::testing::delete_key;
use serde_json::{Value, json};

use super::client::Reply;
use super::gateway::{BASE, Caller, Gateway, Setup, workspace};

const PATH: &str = "/observability/destinations";
const SECRET: &str = "a secret of sufficient length";

/// A gateway with one destination, and the calls to it.
struct DestinationFixture {
    gateway: Gateway,
    called: Arc<Mutex<Vec<Destination>>>,
    path: String,
}

impl DestinationFixture {
    async fn new(config: Value) -> Self {
        Self::of("webhook", config).await
    }

    async fn of(kind: &str, config: Value) -> Self {
        let called: Arc<Mutex<Vec<Destination>>> = Arc::default();
        let mut sender = MockMessageSender::new();
        let calls = Arc::clone(&called);
        sender.expect_send().returning(move |to, _| {
            calls.lock().unwrap().push(to.clone());
            Ok(())
        });
        let gateway = Setup { sender: Arc::new(sender), ..Setup::new().await }.start();
        let workspace = workspace(1).to_string();
        let body = json!({"name": "hook", "type": kind, "config": config, "workspace_id": workspace});
        let made = gateway.json(Caller::Management, "POST", PATH, &body.to_string()).await;
        assert_eq!(made.status, 201, "{}", String::from_utf8_lossy(&made.body));
        let path = format!("{PATH}/{}", made.json()["data"]["id"].as_str().unwrap());
        called.lock().unwrap().clear();
        Self { gateway, called, path }
    }

    async fn change(&self, body: &Value) -> Reply {
        self.gateway.json(Caller::Management, "PATCH", &self.path, &body.to_string()).await
    }

    async fn record(&self) -> Value {
        self.gateway.get(Caller::Management, &self.path, &[]).await.json()["data"].clone()
    }

    /// Returns the called URLs.
    fn called(&self) -> Vec<String> {
        self.called.lock().unwrap().drain(..).map(|to| to.url).collect()
    }

    async fn entries(&self) -> usize {
        self.gateway.store.audit_log().newest(100).await.unwrap().len()
    }
}

fn config() -> Value {
    json!({"url": "https://example.org/in?t=t0ken", "secret": SECRET, "headers": {"Authorization": "Bearer t0psecret", "x-key": "h1dden"}})
}

#[tokio::test]
async fn stored_secret_is_not_sent_to_another_origin() {
    let fixture = DestinationFixture::new(config()).await;
    let (before, entries) = (fixture.record().await, fixture.entries().await);
    let elsewhere = "https://attacker.example/";
    for (config, missing) in [
        (json!({"url": elsewhere}), "config.secret"),
        (
            json!({"endpoint": "http://example.org/in", "headers": before["config"]["headers"]}),
            "config.headers.authorization, config.headers.x-key, config.secret",
        ),
        (
            json!({"url": elsewhere, "headers": before["config"]["headers"], "secret": "********"}),
            "config.headers.authorization, config.headers.x-key, config.secret",
        ),
        (
            json!({"url": elsewhere, "headers": {"X-Key": "new", "Authorization": "********"}, "secret": SECRET}),
            "config.headers.authorization",
        ),
        (json!({"url": elsewhere, "headers": {}}), "config.secret"),
        (
            json!({"url": "https://example.org:8443/?********", "headers": {}, "secret": SECRET}),
            "the query of config.url",
        ),
    ] {
        let message = fixture.change(&json!({"config": config})).await.expect_error(400);
        let expected = "config.url has another scheme, host or port, to which stored secrets are not sent; include in the same request: ";
        assert_eq!(message, format!("{expected}{missing}"));
    }
    assert_eq!(fixture.called(), [""; 0]);
    assert_eq!((fixture.record().await, fixture.entries().await), (before, entries));
}

#[tokio::test]
async fn new_path_keeps_stored_secrets_and_new_origin_needs_new_ones() {
    let fixture = DestinationFixture::new(config()).await;
    let masked = fixture.record().await["config"]["headers"].clone();
    let other_path = json!({"url": "HTTPS://Example.org:443/other?********", "headers": masked});
    let reply = fixture.change(&json!({"config": other_path})).await;
    assert_eq!(reply.status, 200);
    let called = fixture.called.lock().unwrap().remove(0);
    assert_eq!(called.url, "HTTPS://Example.org:443/other?t=t0ken");
    assert_eq!(called.headers[0].1.expose(), "Bearer t0psecret");
    let new = json!({"config": {"url": "https://new.example/", "secret": "another secret, long enough", "headers": {"x-key": "n3w"}}});
    let reply = fixture.change(&new).await;
    assert_eq!(reply.status, 200);
    assert_eq!(reply.json()["data"]["config"]["headers"], json!({"x-key": "********"}));
    let called = fixture.called.lock().unwrap().remove(0);
    let sent: Vec<(&str, &str)> = called.headers.iter().map(|(name, value)| (name.as_str(), value.expose())).collect();
    assert_eq!((called.url.as_str(), sent), ("https://new.example/", vec![("x-key", "n3w")]));
}

#[tokio::test]
async fn config_is_replaced_as_a_whole_and_an_absent_secret_stays() {
    let fixture = DestinationFixture::new(config()).await;
    let url = "https://example.org/in";
    let replaced = fixture.change(&json!({"config": {"url": url}})).await.json()["data"].clone();
    assert_eq!(replaced["config"], json!({"url": url, "headers": {}, "secret": "********"}));
    let unsigned = fixture.change(&json!({"config": {"url": url, "secret": null}})).await.json()["data"].clone();
    assert_eq!((&unsigned["config"], &unsigned["signed"]), (&json!({"url": url, "headers": {}}), &json!(false)));
    for config in [json!({"headers": {}}), json!({}), json!(null)] {
        fixture.change(&json!({"config": config})).await.expect_error(400);
    }
    let defaults = json!({"enabled": null, "privacy_mode": null, "sampling_rate": null, "api_key_hashes": null});
    let changes = json!({"enabled": false, "privacy_mode": false, "sampling_rate": 0.5});
    assert_eq!(fixture.change(&changes).await.json()["data"]["sampling_rate"], json!(0.5));
    let cleared = fixture.change(&defaults).await.json()["data"].clone();
    for (name, value) in [("enabled", json!(true)), ("privacy_mode", json!(true)), ("sampling_rate", json!(1))] {
        assert_eq!(cleared[name], value, "{name}");
    }
}

#[tokio::test]
async fn mask_refers_only_to_stored_value() {
    let fixture = DestinationFixture::new(json!({"url": "https://example.org/in", "secret": SECRET})).await;
    for (config, expected) in [
        (json!({"url": "https://example.org/in?********"}), "config.url has a masked query, but no query is stored"),
        (
            json!({"url": "https://example.org/in?a=********"}),
            "config.url has a partly masked query; give the whole query, or only the mask to keep the stored one",
        ),
        (
            json!({"url": "https://example.org/in", "headers": {"x-a": "********"}}),
            "config.headers, member 1, has a masked value, but no value is stored",
        ),
    ] {
        assert_eq!(fixture.change(&json!({"config": config})).await.expect_error(400), expected);
    }
    assert_eq!(fixture.called(), [""; 0]);
    assert!(fixture.record().await["updated_at"] == fixture.record().await["created_at"]);
}

#[tokio::test]
async fn unchanged_update_writes_no_audit_entry() {
    let fixture = DestinationFixture::new(config()).await;
    let (before, entries) = (fixture.record().await, fixture.entries().await);
    for body in [json!({"name": "hook"}), json!({"config": before["config"]}), before.clone()] {
        let reply = fixture.change(&body).await;
        assert_eq!((reply.status, &reply.json()["data"]), (200, &before));
    }
    assert_eq!((fixture.entries().await, fixture.called().len()), (entries, 0));
    assert_eq!(fixture.change(&json!({"name": "other"})).await.status, 200);
    assert_eq!(fixture.entries().await, entries + 1);
    assert!(fixture.record().await["updated_at"].is_string());
}

#[tokio::test]
async fn keys_are_accepted_by_hash_or_id_and_shown_by_current_hash() {
    let fixture = DestinationFixture::new(config()).await;
    let (key, other) = (Caller::Inference, Caller::Disabled);
    let given = json!({"api_key_hashes": [key.id(), key.hash(), other.hash()]});
    let hashes = [key.hash(), other.hash()];
    assert_eq!(fixture.change(&given).await.json()["data"]["api_key_hashes"], json!(hashes), "each once");
    for name in [Caller::OfOtherWorkspace.id(), Caller::Management.id(), Caller::Unknown.id()] {
        let message = fixture.change(&json!({"api_key_hashes": [name]})).await.expect_error(400);
        assert_eq!(
            message,
            format!("api_key_hashes has {name}, which is not an active inference key of the workspace")
        );
    }
    let rotated = format!("/keys/{}/rotate", key.hash());
    let new = fixture.gateway.post(Caller::Management, &rotated, &[], b"").await.json()["data"]["hash"].clone();
    let shown = json!([new, other.hash()]);
    assert_eq!(fixture.record().await["api_key_hashes"], shown, "a rotation leaves the filter");
    let deleted = other.id().parse().unwrap();
    assert!(
        delete_key(&*fixture.gateway.store.api_keys(), deleted, LastKeyRule::Waived, &super::gateway::audit_draft())
            .await
            .unwrap()
    );
    let entries = fixture.entries().await;
    let same = fixture.change(&json!({"api_key_hashes": shown})).await;
    assert_eq!((same.status, fixture.entries().await), (200, entries), "a deleted key may stay");
    let list = fixture.gateway.get(Caller::Management, PATH, &[]).await.json();
    assert_eq!(list["data"][0]["api_key_hashes"], shown);
}

#[tokio::test]
async fn record_that_is_sent_back_changes_nothing() {
    let collector = json!({"url": "https://example.org/v1/traces?t=t0ken", "headers": {"x-key": "h1dden"}});
    for (kind, config) in [("webhook", config()), ("otel-collector", collector)] {
        let fixture = DestinationFixture::of(kind, config).await;
        let reply = fixture.gateway.get(Caller::Management, &fixture.path, &[]).await;
        let (tag, record) = (reply.header("etag").unwrap().to_owned(), reply.json()["data"].clone());
        let entries = fixture.entries().await;
        let back = fixture.change(&record).await;
        assert_eq!((back.status, back.json()["data"].clone()), (200, record), "{kind}");
        assert_eq!(back.header("etag"), Some(tag.as_str()), "{kind}");
        assert_eq!((fixture.entries().await, fixture.called()), (entries, vec![]), "{kind}");
    }
}

#[tokio::test]
async fn published_clients_decode_the_record_and_create_a_webhook_without_secret() {
    // The members that published clients always send.
    let fixture = DestinationFixture::new(json!({"url": "https://example.org/in", "method": "POST"})).await;
    let record = fixture.record().await;
    let constants = json!({
        "broadcast_generation_cost": false, "broadcast_generation_cost_allocation": false,
        "broadcast_generation_identity": false, "broadcast_generation_request_context": false,
        "filter_rules": null, "regions": ["global"], "signed": false, "updated_at": record["created_at"],
    });
    for (name, value) in constants.as_object().unwrap() {
        assert_eq!(record.get(name), Some(value), "{name}");
    }
    let mut body = json!({"name": "otel", "type": "otel-collector", "config": {"endpoint": "https://example.org"}});
    body["workspace_id"] = json!(workspace(1).to_string());
    for name in ["cost", "cost_allocation", "identity", "request_context"] {
        body[format!("broadcast_generation_{name}")] = json!(false);
    }
    let made = fixture.gateway.json(Caller::Management, "POST", PATH, &body.to_string()).await;
    assert_eq!(made.status, 201, "{}", String::from_utf8_lossy(&made.body));
    let config = made.json()["data"]["config"].clone();
    assert_eq!((&config["url"], &config["endpoint"]), (&json!("https://example.org"), &json!("https://example.org")));
    body["broadcast_generation_cost"] = json!(true);
    let message = fixture.gateway.json(Caller::Management, "POST", PATH, &body.to_string()).await.expect_error(400);
    assert_eq!(message, "broadcast_generation_cost is not supported");
}

#[tokio::test]
async fn destination_changes_are_conditional_and_repeatable() {
    let fixture = DestinationFixture::new(config()).await;
    let read = fixture.gateway.get(Caller::Management, &fixture.path, &[]).await;
    let tag = read.header("etag").unwrap().to_owned();
    let bearer = Caller::Management.bearer();
    let send = async |method: &str, path: &str, name: &str, value: &str, body: &str| {
        let headers = [("Authorization", bearer.as_str()), ("Content-Type", "application/json"), (name, value)];
        fixture.gateway.send(method, &format!("{BASE}{path}"), &headers, body.as_bytes()).await
    };
    assert_eq!(send("PATCH", &fixture.path, "If-Match", &tag, r#"{"name":"b"}"#).await.status, 200);
    send("PATCH", &fixture.path, "If-Match", &tag, r#"{"name":"c"}"#).await.expect_error(412);
    send("DELETE", &fixture.path, "If-Match", &tag, "").await.expect_error(412);
    assert_eq!(fixture.record().await["name"], "b");
    let body = json!({"name": "d", "type": "webhook", "config": {"url": "https://example.org/d"},
        "workspace_id": workspace(1).to_string(), "api_key_hashes": [Caller::Inference.hash()]});
    let first = send("POST", PATH, "Idempotency-Key", "k", &body.to_string()).await;
    let again = send("POST", PATH, "Idempotency-Key", "k", &body.to_string()).await;
    assert_eq!((first.status, again.status), (201, 201));
    assert_eq!((&again.body, again.header("etag")), (&first.body, first.header("etag")));
    assert_eq!(first.json()["data"]["api_key_hashes"], json!([Caller::Inference.hash()]));
    let path = format!("{PATH}/{}", first.json()["data"]["id"].as_str().unwrap());
    for verb in ["test", "retry"] {
        let action = format!("{path}/{verb}");
        send("POST", &action, "If-Match", &tag, "").await.expect_error(412);
        assert_eq!(send("POST", &action, "If-Match", first.header("etag").unwrap(), "").await.status, 200);
    }
    assert_eq!(send("DELETE", &path, "If-Match", first.header("etag").unwrap(), "").await.status, 200);
}

#[tokio::test]
async fn test_and_retry_act_on_an_existing_destination() {
    let fixture = DestinationFixture::new(config()).await;
    let post = async |path: &str| fixture.gateway.json(Caller::Management, "POST", path, "").await;
    let tested = post(&format!("{}/test", fixture.path)).await;
    assert_eq!((tested.status, &tested.json()["data"]["reached"]), (200, &json!(true)));
    assert_eq!(fixture.called().len(), 1);
    let entries = fixture.entries().await;
    let retried = post(&format!("{}/retry", fixture.path)).await;
    assert_eq!((retried.status, retried.json()), (200, json!({"data": {"retried_count": 0}})));
    assert!(fixture.entries().await <= entries + 1);
    for id in ["x", "%2e%2e", "01990000-0000-7000-8000-00000000000a"] {
        post(&format!("{PATH}/{id}/test")).await.expect_error(404);
    }
    post(&format!("{PATH}/x/retry")).await.expect_error(404);
    for verb in ["test", "retry"] {
        fixture
            .gateway
            .json(Caller::Inference, "POST", &format!("{}/{verb}", fixture.path), "")
            .await
            .expect_error(403);
    }
}
