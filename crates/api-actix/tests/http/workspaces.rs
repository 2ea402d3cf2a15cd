//! Workspaces, their budgets and their credit.

use domain::api_key::{ApiKey, ApiKeyRepository, ApiKeyScope};
use domain::audit::AuditLog;
use domain::authority::{ManagementAccess, ManagementScope};
use domain::testing::{FixedSecrets, MemoryStore, SequentialIds};
use futures_util::future::join_all;
use serde_json::{Value, json};

use super::client::Reply;
use super::gateway::{BASE, Caller, Gateway, Setup, audit_draft, guardrail, workspace};

const AGENT: (&str, &str) = ("User-Agent", "speakeasy-sdk/python 1.3.84 2.914.0 1.0.0 openrouter");

struct Fixture {
    gateway: Gateway,
    store: MemoryStore,
    bearer: String,
}

impl Fixture {
    async fn new() -> Self {
        let setup = Setup::new().await;
        let store = setup.store.clone();
        Self { gateway: setup.start(), store, bearer: Caller::Management.bearer() }
    }

    async fn send(&self, method: &str, path: &str, headers: &[(&str, &str)], body: &str) -> Reply {
        let mut all = vec![("Authorization", self.bearer.as_str()), ("Content-Type", "application/json")];
        all.extend(headers);
        self.gateway.send(method, &format!("{BASE}{path}"), &all, body.as_bytes()).await
    }

    async fn get(&self, path: &str) -> Reply {
        self.send("GET", path, &[], "").await
    }

    async fn patch(&self, path: &str, body: &str) -> Reply {
        self.send("PATCH", path, &[], body).await
    }

    async fn put(&self, path: &str, body: &str) -> Reply {
        self.send("PUT", path, &[], body).await
    }

    async fn entries(&self) -> usize {
        self.store.audit_log().read(0, 1_000).await.unwrap().len()
    }

    /// Returns the bearer of a new management key of some workspaces.
    async fn narrowed(&self, access: ManagementAccess, numbers: &[u64]) -> String {
        let workspaces = numbers.iter().map(|number| workspace(*number)).collect();
        let scope = ManagementScope::try_new(access, Some(workspaces)).unwrap();
        let key = self.store.api_keys().find(&SequentialIds::key(Caller::Management as u64).into()).await.unwrap();
        let secret = FixedSecrets::secret(50);
        let (id, hash) = (SequentialIds::key(50), secret.hash());
        let key = ApiKey { id, hash, scope: ApiKeyScope::Management(scope), ..key.unwrap() };
        assert!(self.store.api_keys().insert(&key, &audit_draft()).await.unwrap().is_inserted());
        format!("Bearer {}", secret.expose())
    }
}

fn data(reply: &Reply) -> Value {
    assert!(reply.status < 300, "{}", String::from_utf8_lossy(&reply.body));
    reply.json()["data"].clone()
}

fn text(reply: &Reply) -> String {
    String::from_utf8(reply.body.clone()).unwrap()
}

#[tokio::test]
async fn workspace_is_named_by_id_slug_and_unique_name() {
    let fixture = Fixture::new().await;
    data(&fixture.patch("/workspaces/w-2", r#"{"name":"Zwei / 2"}"#).await);
    let id = workspace(2).to_string();
    for name in [id.as_str(), &id.to_uppercase(), "w-2", "Zwei%20%2F%202"] {
        assert_eq!(data(&fixture.get(&format!("/workspaces/{name}")).await)["id"], id.as_str(), "{name}");
    }
    let ambiguous = fixture.get("/workspaces/w").await;
    ambiguous.expect_error(409);
    let ids = json!([workspace(1).to_string(), workspace(3).to_string()]);
    assert_eq!(ambiguous.json()["error"]["metadata"]["ids"], ids);
    for unknown in ["x", "W-2", "%ff", "w-2%20", "' OR 1=1", "00000000-0000-0000-0000-000000000000", "%2e%2e"] {
        let path = unknown.replace(' ', "%20");
        fixture.get(&format!("/workspaces/{path}")).await.expect_error(404);
        fixture.get(&format!("/workspaces/{path}/budgets")).await.expect_error(404);
        fixture.get(&format!("/credits?workspace_id={path}")).await.json()["error"]["code"].as_u64().unwrap();
        fixture.patch(&format!("/workspaces/{path}"), r#"{"name":"n"}"#).await.expect_error(404);
    }
}

#[tokio::test]
async fn record_is_created_listed_and_sent_back_without_a_change() {
    let fixture = Fixture::new().await;
    let body = r#"{"name":"Team A","description":"d","owner_id":"o","requests_per_minute":7,"io_logging_sampling_rate":1.0,
        "is_observability_broadcast_enabled":false,"io_logging_api_key_ids":null,"default_guardrail_id":null}"#;
    let made = fixture.send("POST", "/workspaces", &[], body).await;
    assert_eq!((made.status, made.header("cache-control")), (201, Some("private, no-cache")));
    let record = data(&made);
    let expected = json!({"name": "Team A", "slug": "team-a", "description": "d", "owner_id": "o", "is_default": false,
        "suspended": false, "requests_per_minute": 7, "tokens_per_minute": null, "default_guardrail_id": null,
        "credit_usd": null, "storage_used_bytes": 0, "updated_at": null, "created_by": null,
        "io_logging_sampling_rate": 1, "is_observability_broadcast_enabled": false, "disabled_server_tools": [],
        "io_logging_api_key_ids": null, "include_byok_in_budgets": false});
    for (name, value) in expected.as_object().unwrap() {
        assert_eq!(record[name], *value, "{name}");
    }
    let second = data(&fixture.send("POST", "/workspaces", &[], r#"{"name":"Team A"}"#).await);
    assert_eq!(second["slug"], "team-a-2");
    let taken = fixture.send("POST", "/workspaces", &[], r#"{"name":"x","slug":"team-a"}"#).await;
    assert_eq!(taken.expect_error(409), "slug: another workspace has the slug team-a");
    let path = format!("/workspaces/{}", record["id"].as_str().unwrap());
    let count = fixture.entries().await;
    for client in [&[][..], &[AGENT]] {
        let read = fixture.send("GET", &path, client, "").await;
        let is_published = !client.is_empty();
        let guardrail = if is_published { json!("") } else { Value::Null };
        assert_eq!(data(&read)["default_guardrail_id"], guardrail, "clients decode no null");
        assert_eq!(read.header("etag"), made.header("etag"));
        let back = fixture.send("PATCH", &path, client, &data(&read).to_string()).await;
        assert_eq!((data(&back), back.header("etag")), (data(&read), read.header("etag")));
    }
    assert_eq!(fixture.entries().await, count, "nothing changed");
    let list = fixture.get("/workspaces?limit=3&offset=3").await.json();
    assert_eq!((list["total_count"].as_u64(), list["data"].as_array().unwrap().len()), (Some(5), 2));
    for query in ["limit=0", "limit=101", "offset=-1", "workspace=x"] {
        fixture.get(&format!("/workspaces?{query}")).await.expect_error(400);
    }
}

#[tokio::test]
async fn change_rejects_invalid_members_and_foreign_guardrails() {
    let fixture = Fixture::new().await;
    let long = "x".repeat(101);
    for (body, message) in [
        ("{}", "No update fields provided"),
        (r#"{"id":"x"}"#, "No update fields provided"),
        (&format!(r#"{{"name":"{long}"}}"#), "name: a workspace name has 1 to 100 characters"),
        (r#"{"name":"a\u0000b"}"#, "name: a workspace name has 1 to 100 characters"),
        (r#"{"slug":"-a"}"#, "slug: a slug has 1 to 50"),
        (r#"{"owner_id":""}"#, "owner_id: owner_id has 1 to 512 characters"),
        (r#"{"default_text_model":"m"}"#, "default_text_model is not supported"),
        (r#"{"suspend":true}"#, r#"unknown member "suspend"; the nearest known member is "suspended""#),
        (
            &format!(r#"{{"default_guardrail_id":"{}"}}"#, guardrail()),
            "default_guardrail_id: the default guardrail must be a guardrail of the workspace",
        ),
    ] {
        let said = fixture.patch("/workspaces/w-2", body).await.expect_error(400);
        assert!(said.starts_with(message), "{body}: {said}");
    }
    let own = format!(r#"{{"default_guardrail_id":"{}"}}"#, guardrail());
    let changed = data(&fixture.patch("/workspaces/w-1", &own).await);
    assert_eq!(changed["default_guardrail_id"], guardrail().to_string());
    let cleared = data(&fixture.patch("/workspaces/w-1", r#"{"default_guardrail_id":null}"#).await);
    assert_eq!(cleared["default_guardrail_id"], Value::Null);
    let suspended = data(&fixture.patch("/workspaces/w-1", r#"{"suspended":true}"#).await);
    assert_eq!(suspended["suspended"], true);
    assert_eq!(fixture.gateway.get(Caller::Inference, "/key", &[]).await.status, 403);
}

#[tokio::test]
async fn changes_of_another_version_are_412_and_one_of_two_at_once_wins() {
    let fixture = Fixture::new().await;
    let first = fixture.get("/workspaces/w-1").await.header("etag").unwrap().to_owned();
    let patch = async |name: &str, tag: &str| {
        fixture.send("PATCH", "/workspaces/w-1", &[("If-Match", tag)], &json!({"name": name}).to_string()).await.status
    };
    let mut statuses = join_all(["a", "b"].map(|name| patch(name, &first))).await;
    statuses.sort_unstable();
    assert_eq!(statuses, [200, 412]);
    let daily = "/workspaces/w-1/budgets/daily";
    let set = fixture.put(daily, r#"{"limit_usd":1.000000000001}"#).await;
    assert!(text(&set).contains(r#""limit_usd":1.000000000001,"#), "{}", text(&set));
    let tag = set.header("etag").unwrap().to_owned();
    assert_eq!(fixture.get(daily).await.header("etag"), Some(tag.as_str()));
    let put = async |amount: u32| {
        let body = json!({"limit_usd": amount}).to_string();
        fixture.send("PUT", daily, &[("If-Match", &tag)], &body).await.status
    };
    let mut statuses = join_all([2, 3].map(put)).await;
    statuses.sort_unstable();
    assert_eq!(statuses, [200, 412]);
    let count = fixture.entries().await;
    for (method, path, body) in [
        ("PATCH", "/workspaces/w-1", r#"{"name":"c"}"#),
        ("DELETE", "/workspaces/w-1?with=keys,guardrails", ""),
        ("POST", "/workspaces/w-1/credits", r#"{"add_usd":1}"#),
        ("PUT", daily, r#"{"limit_usd":9}"#),
        ("PUT", "/workspaces/w-1/budgets/weekly", r#"{"limit_usd":9}"#),
        ("DELETE", daily, ""),
    ] {
        fixture.send(method, path, &[("If-Match", &first)], body).await.expect_error(412);
    }
    let unset = fixture.send("PUT", "/workspaces/w-1/budgets/weekly", &[("If-Match", "*")], r#"{"limit_usd":9}"#).await;
    unset.expect_error(412);
    assert_eq!(fixture.entries().await, count);
}

#[tokio::test]
async fn budgets_keep_their_order_and_their_digits() {
    let fixture = Fixture::new().await;
    let of = |interval: &str| format!("/workspaces/w-1/budgets/{interval}");
    for interval in ["daily", "weekly", "monthly", "lifetime"] {
        fixture.get(&of(interval)).await.expect_error(404);
        fixture.send("DELETE", &of(interval), &[], "").await.expect_error(404);
    }
    let body = r#"{"limit_usd":9223372.036854775807,"include_byok_in_budgets":false}"#;
    let lifetime = fixture.put(&of("lifetime"), body).await;
    assert!(
        text(&lifetime).contains(r#""limit_usd":9223372.036854775807,"reset_interval":null"#),
        "{}",
        text(&lifetime)
    );
    data(&fixture.put(&of("daily"), r#"{"limit_usd":2}"#).await);
    data(&fixture.put(&of("monthly"), r#"{"limit_usd":2.000000000001}"#).await);
    let count = fixture.entries().await;
    let read = data(&fixture.get(&of("daily")).await);
    assert_eq!(data(&fixture.put(&of("daily"), &read.to_string()).await), read, "sent back");
    assert_eq!(fixture.entries().await, count);
    for (interval, amount, message) in [
        ("weekly", "2", "the weekly budget of 2 USD must be more than the daily one of 2 USD"),
        ("daily", "3", "the monthly budget of 2.000000000001 USD must be more than the daily one of 3 USD"),
        ("daily", "0", "the daily budget must be more than 0 USD"),
        ("daily", "-1", "the daily budget must be more than 0 USD"),
        ("daily", "0.0000000000001", "limit_usd: must be an amount of USD"),
        ("daily", "1e300", "limit_usd: must be an amount of USD"),
        ("daily", "\"1\"", "limit_usd: must be an amount of USD"),
        ("daily", "null", "limit_usd: is required"),
    ] {
        let said = fixture.put(&of(interval), &format!(r#"{{"limit_usd":{amount}}}"#)).await.expect_error(400);
        assert!(said.starts_with(message), "{interval} {amount}: {said}");
    }
    for interval in ["yearly", "Daily", "", "daily%20"] {
        assert_eq!(fixture.put(&of(interval), r#"{"limit_usd":1}"#).await.status, 404, "{interval}");
    }
    let list = fixture.get("/workspaces/w-1/budgets").await.json();
    let intervals: Vec<Value> =
        list["data"].as_array().unwrap().iter().map(|one| one["reset_interval"].clone()).collect();
    assert_eq!(json!([intervals, list["total_count"]]), json!([["daily", "monthly", null], 3]));
    for amount in ["spend_usd", "reserved_usd"] {
        assert_eq!(list["data"][0][amount], 0);
    }
    assert_eq!(fixture.send("DELETE", &of("daily"), &[], "").await.json(), json!({"deleted": true}));
    fixture.send("DELETE", &of("daily"), &[], "").await.expect_error(404);
}

#[tokio::test]
async fn concurrent_budgets_never_break_their_order() {
    let fixture = Fixture::new().await;
    let put = async |interval: &str, amount: u64| {
        let path = format!("/workspaces/w-1/budgets/{interval}");
        fixture.put(&path, &json!({"limit_usd": amount}).to_string()).await.status
    };
    let mut statuses = join_all([("daily", 5), ("weekly", 4)].map(|(interval, amount)| put(interval, amount))).await;
    statuses.sort_unstable();
    assert_eq!(statuses, [200, 400]);
}

#[tokio::test]
async fn repeated_credit_has_one_effect() {
    let fixture = Fixture::new().await;
    let credit = "/credits?workspace_id=w-1";
    let unlimited = json!({"total_credits": 0, "total_usage": 0, "remaining": null});
    assert_eq!(data(&fixture.get(credit).await), unlimited);
    let add = async |key: &str, amount: &str| {
        let body = format!(r#"{{"add_usd":{amount}}}"#);
        fixture.send("POST", "/workspaces/w-1/credits", &[("Idempotency-Key", key)], &body).await
    };
    let replies = join_all((0..8).map(|_| add("a", "5.000000000001"))).await;
    for reply in &replies {
        assert_eq!((reply.status, &reply.body), (200, &replies[0].body));
    }
    let expected = r#"{"data":{"total_credits":5.000000000001,"total_usage":0,"remaining":5.000000000001}}"#;
    assert_eq!(text(&replies[0]), expected);
    assert_eq!(text(&fixture.get(credit).await), expected);
    add("a", "6").await.expect_error(409);
    assert_eq!(data(&add("b", "-6").await)["total_credits"].to_string(), "-0.999999999999");
    for (amount, message) in [
        ("0", "add_usd: the added credit must not be 0"),
        ("-0.0", "add_usd: the added credit must not be 0"),
        ("9223372.036854775807", "add_usd: the credit would leave the range"),
        ("1e30", "add_usd: must be an amount of USD"),
        ("null", "add_usd: is required"),
    ] {
        if amount == "9223372.036854775807" {
            data(&add("c", "1").await);
        }
        let said = add("d", amount).await.expect_error(400);
        assert!(said.starts_with(message), "{amount}: {said}");
    }
    assert_eq!(fixture.send("DELETE", "/workspaces/w-1/credits", &[], "").await.json(), json!({"deleted": true}));
    fixture.send("DELETE", "/workspaces/w-1/credits", &[], "").await.expect_error(404);
    assert_eq!(data(&fixture.get(credit).await), unlimited);
    add("e", "-1").await.expect_error(400);
}

#[tokio::test]
async fn deletion_names_its_contents() {
    let fixture = Fixture::new().await;
    let refused = fixture.send("DELETE", "/workspaces/w-1?with=guardrails", &[], "").await;
    assert!(refused.expect_error(400).starts_with("the workspace still has keys: 3: delete them first"));
    let metadata = &refused.json()["error"]["metadata"];
    assert_eq!([&metadata["keys"], &metadata["guardrails"], &metadata["documents"]], [&json!(3), &json!(0), &json!(0)]);
    for query in ["with=key", "with=", "wiht=keys", "confirm_default_workspace_deletion=true"] {
        fixture.send("DELETE", &format!("/workspaces/w-1?{query}"), &[], "").await.expect_error(400);
    }
    let path = "/workspaces/w-1?with=keys,guardrails&confirm_default_workspace_deletion=false";
    assert_eq!(fixture.send("DELETE", path, &[], "").await.json(), json!({"deleted": true}));
    fixture.send("DELETE", path, &[], "").await.expect_error(404);
    fixture.get("/workspaces/w-1").await.expect_error(404);
    assert_eq!(fixture.gateway.get(Caller::Inference, "/key", &[]).await.status, 401);
}

#[tokio::test]
async fn narrowed_keys_see_their_workspaces_only_and_change_none() {
    let fixture = Fixture::new().await;
    let bearer = fixture.narrowed(ManagementAccess::Write, &[2]).await;
    let fixture = Fixture { bearer, ..fixture };
    let list = fixture.get("/workspaces").await.json();
    assert_eq!((list["total_count"].as_u64(), list["data"][0]["slug"].as_str()), (Some(1), Some("w-2")));
    let foreign = workspace(1).to_string();
    for name in ["w-1", foreign.as_str()] {
        for path in ["", "/budgets", "/budgets/daily"] {
            fixture.get(&format!("/workspaces/{name}{path}")).await.expect_error(404);
        }
        fixture.get(&format!("/credits?workspace_id={name}")).await.expect_error(404);
    }
    // The name that three workspaces have is unique among the caller's.
    assert_eq!(data(&fixture.get("/workspaces/w").await)["slug"], "w-2");
    assert_eq!(data(&fixture.get("/credits").await)["remaining"], Value::Null);
    for name in ["w-1", "w-2"] {
        for (method, path, body) in [
            ("PATCH", "", r#"{"name":"n"}"#),
            ("DELETE", "", ""),
            ("PUT", "/budgets/daily", r#"{"limit_usd":1}"#),
            ("DELETE", "/budgets/daily", ""),
            ("POST", "/credits", r#"{"add_usd":1}"#),
            ("DELETE", "/credits", ""),
        ] {
            let reply = fixture.send(method, &format!("/workspaces/{name}{path}"), &[], body).await;
            reply.expect_error(403);
            assert_eq!(reply.json()["error"]["metadata"]["needs"], "unrestricted", "{method} {path}");
        }
    }
    fixture.send("POST", "/workspaces", &[], r#"{"name":"n"}"#).await.expect_error(403);
    fixture.gateway.get(Caller::Inference, "/workspaces", &[]).await.expect_error(403);
    fixture.gateway.get(Caller::Unknown, "/credits", &[]).await.expect_error(401);
}
