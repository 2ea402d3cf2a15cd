//! Creating, reading, changing and deleting guardrails, and their key assignments.

use std::sync::Arc;

use domain::api_key::ApiKeyRepository;
use domain::error::StoreError;
use domain::guardrail::{GuardrailRepository, MockGuardrailRepository};
use serde_json::{Value, json};

use super::client::Reply;
use super::gateway::{Caller, Gateway, Setup, guardrail, workspace};

/// Every member of a record.
const MEMBERS: [&str; 31] = [
    "id",
    "name",
    "description",
    "workspace_id",
    "workspace_default",
    "version",
    "created_at",
    "updated_at",
    "allowed_models",
    "ignored_models",
    "allowed_providers",
    "ignored_providers",
    "limit_usd",
    "reset_interval",
    "enforce_zdr",
    "enforce_zdr_anthropic",
    "enforce_zdr_openai",
    "enforce_zdr_google",
    "enforce_zdr_xai",
    "enforce_zdr_other",
    "enable_free_model_training",
    "enable_paid_model_training",
    "content_filters",
    "content_filter_builtins",
    "enable_free_model_publication",
    "allow_safety_retention_google",
    "allow_safety_retention_other",
    "allowed_data_regions",
    "include_byok_in_budgets",
    "key_count",
    "deleted",
];

fn full() -> Value {
    json!({
        "name": "careful", "description": "all of it", "workspace_id": workspace(1).to_string(),
        "allowed_models": ["ACME/Judge", "acme/idle"], "ignored_providers": ["second"],
        "reset_interval": "daily", "enforce_zdr": true, "enable_paid_model_training": false,
        "content_filters": [{"pattern": r"PRJ-\d{4}", "action": "redact", "label": "PROJECT"}, {"pattern": "x", "action": "flag"}],
        "content_filter_builtins": [{"slug": "credit-card", "action": "block", "label": "ignored", "scan_scope": "user_only"}],
    })
}

fn with_limit(mut record: Value, text: &str) -> String {
    record["limit_usd"] = json!("LIMIT");
    record.to_string().replace("\"LIMIT\"", text)
}

async fn create(gateway: &Gateway, body: &str) -> Reply {
    gateway.json(Caller::Management, "POST", "/guardrails", body).await
}

async fn made(gateway: &Gateway) -> String {
    let body = json!({"name": "g", "workspace_id": workspace(1).to_string()}).to_string();
    let reply = create(gateway, &body).await;
    assert_eq!(reply.status, 201, "{}", String::from_utf8_lossy(&reply.body));
    reply.json()["data"]["id"].as_str().unwrap().to_owned()
}

async fn change(gateway: &Gateway, id: &str, body: &str) -> Reply {
    gateway.json(Caller::Management, "PATCH", &format!("/guardrails/{id}"), body).await
}

async fn read(gateway: &Gateway, id: &str) -> Reply {
    gateway.get(Caller::Management, &format!("/guardrails/{id}"), &[]).await
}

#[tokio::test]
async fn created_guardrail_is_returned_with_every_member() {
    let gateway = Setup::new().await.start();
    let reply = create(&gateway, &with_limit(full(), "12.50")).await;
    assert_eq!(reply.status, 201, "{}", String::from_utf8_lossy(&reply.body));
    assert!(String::from_utf8_lossy(&reply.body).contains(r#""limit_usd":12.5,"#), "money is a number and no float");
    let data = reply.json()["data"].clone();
    let names: Vec<&String> = data.as_object().unwrap().keys().collect();
    assert_eq!(names.len(), MEMBERS.len() - 2, "{names:?}");
    assert!(names.iter().all(|name| MEMBERS.contains(&name.as_str())), "{names:?}");
    assert_eq!(data["allowed_models"], json!(["acme/judge", "acme/idle"]), "canonical slugs");
    assert_eq!((&data["version"], &data["workspace_default"]), (&json!(1), &json!(false)));
    assert_eq!(
        (&data["reset_interval"], &data["enforce_zdr"], &data["enforce_zdr_openai"]),
        (&json!("daily"), &json!(true), &Value::Null)
    );
    assert_eq!(data["content_filters"][1], json!({"pattern": "x", "action": "flag", "label": null}));
    let builtin = json!({"slug": "credit-card", "action": "block", "label": "CREDIT_CARD", "scan_scope": "user_only"});
    assert_eq!(data["content_filter_builtins"], json!([builtin]));
    assert_eq!((&data["created_at"], &data["updated_at"]), (&json!("2026-01-01T00:00:00.000Z"), &Value::Null));
    assert_eq!(data["include_byok_in_budgets"], false);
    let again = read(&gateway, data["id"].as_str().unwrap()).await;
    assert_eq!((again.status, again.json()["data"].clone()), (200, data.clone()));
    let unchanged = change(&gateway, data["id"].as_str().unwrap(), &data.to_string()).await;
    assert_eq!((unchanged.status, unchanged.json()["data"].clone()), (200, data), "what is read can be written back");
}

#[tokio::test]
async fn limit_accepts_every_number_notation() {
    let gateway = Setup::new().await.start();
    for (notation, written) in [
        ("1", "1"),
        ("1.0", "1"),
        ("1e0", "1"),
        ("25E-1", "2.5"),
        ("1.5e+1", "15"),
        ("0.000000000001", "0.000000000001"),
        ("9223372.036854775807", "9223372.036854775807"),
    ] {
        let reply = create(&gateway, &with_limit(full(), notation)).await;
        assert_eq!(reply.status, 201, "{notation}: {}", String::from_utf8_lossy(&reply.body));
        let text = String::from_utf8(reply.body).unwrap();
        assert!(text.contains(&format!("\"limit_usd\":{written},")), "{notation}: {text}");
    }
}

#[tokio::test]
async fn update_replaces_lists_clears_nulls_and_keeps_the_rest() {
    let gateway = Setup::new().await.start();
    let id = create(&gateway, &with_limit(full(), "1")).await.json()["data"]["id"].as_str().unwrap().to_owned();
    let reply = change(
        &gateway,
        &id,
        r#"{"allowed_models":["acme/idle"],"description":null,"limit_usd":null,"reset_interval":null,"content_filters":null}"#,
    )
    .await;
    assert_eq!(reply.status, 200, "{}", String::from_utf8_lossy(&reply.body));
    let data = reply.json()["data"].clone();
    assert_eq!(data["allowed_models"], json!(["acme/idle"]));
    for cleared in ["description", "limit_usd", "reset_interval", "content_filters"] {
        assert_eq!(data[cleared], Value::Null, "{cleared}");
    }
    assert_eq!((&data["name"], &data["ignored_providers"]), (&json!("careful"), &json!(["second"])));
    assert_eq!((&data["version"], &data["updated_at"]), (&json!(2), &json!("2026-01-01T00:00:00.000Z")));
    let default = change(&gateway, &id, r#"{"workspace_default":true}"#).await;
    assert_eq!(default.json()["data"]["workspace_default"], true);
    assert_eq!(change(&gateway, &id, "{}").await.expect_error(400), "No update fields provided");
    assert_eq!(change(&gateway, &id, r#"{"version":1}"#).await.expect_error(400), "No update fields provided");
    let message = change(&gateway, &id, r#"{"allowed_model":["acme/judge"]}"#).await.expect_error(400);
    assert_eq!(message, r#"unknown member "allowed_model"; the nearest known member is "allowed_models""#);
}

#[tokio::test]
async fn invalid_record_error_names_path() {
    let gateway = Setup::new().await.start();
    let with = |member: &str, value: &str| {
        let mut record = json!({"name": "g", "workspace_id": workspace(1).to_string()});
        record[member] = json!("VALUE");
        record.to_string().replace("\"VALUE\"", value)
    };
    let long = format!("\"{}\"", "x".repeat(1_001));
    for (member, value, message) in [
        ("name", "null", "name: must be a string, not null"),
        ("name", "7", "name: must be a string, not a number"),
        (
            "name",
            "\"\"",
            "name: a guardrail name has 1 to 200 characters, not all of them blank, and no control characters",
        ),
        ("description", long.as_str(), "description: must have at most 1000 characters"),
        ("workspace_id", "\"nonsense\"", "workspace_id: must be a UUID"),
        ("allowed_models", "[]", "allowed_models: must have at least one element; null removes the rule"),
        ("allowed_models", "\"acme/judge\"", "allowed_models: must be an array, not a string"),
        ("allowed_models", "[7]", "allowed_models[0]: must be a string, not a number"),
        ("limit_usd", "1", "reset_interval"),
        ("limit_usd", "\"1\"", "limit_usd: must be a number, not a string"),
        ("limit_usd", "0", "limit_usd: must be more than 0 USD"),
        ("limit_usd", "-1", "limit_usd: must be more than 0 USD"),
        ("limit_usd", "1e999", "limit_usd: must be more than 0 USD"),
        ("limit_usd", "99999999999999999999999999", "limit_usd: must be more than 0 USD"),
        (
            "limit_usd",
            "9223372.036854775808",
            "limit_usd: must be more than 0 USD and at most 9223372.036854775807, with",
        ),
        ("limit_usd", "0.0000000000001", "limit_usd: must be more than 0 USD"),
        ("reset_interval", "\"yearly\"", "reset_interval: must be daily, weekly, monthly or null"),
        ("enforce_zdr", "1", "enforce_zdr: must be a boolean, not a number"),
        ("workspace_default", "\"yes\"", "workspace_default: must be a boolean, not a string"),
        ("content_filters", "[{}]", "content_filters[0].pattern: is required"),
        ("content_filters", r#"[{"pattern":"a(","action":"block"}]"#, "content_filters[0].pattern: "),
        ("content_filters", r#"[{"pattern":"(?=a)","action":"block"}]"#, "content_filters[0].pattern: "),
        ("content_filters", r#"[{"pattern":"(a)\\1","action":"block"}]"#, "content_filters[0].pattern: "),
        (
            "content_filters",
            r#"[{"pattern":"a","action":"burn"}]"#,
            "content_filters[0].action: must be block, redact or flag",
        ),
        (
            "content_filter_builtins",
            r#"[{"slug":"address","action":"block"}]"#,
            "content_filter_builtins[0].slug: address requires a language model",
        ),
        ("allowed_data_regions", "[\"us\"]", "allowed_data_regions: cannot be kept"),
    ] {
        let refused = create(&gateway, &with(member, value)).await.expect_error(400);
        assert!(
            refused.starts_with(message) || (member == "limit_usd" && refused.contains(message)),
            "{member} {value}: {refused}"
        );
    }
    assert_eq!(create(&gateway, "{}").await.expect_error(400), "name: is required");
    let unknown = create(&gateway, &with("ignored_models", r#"["acme/jugde"]"#)).await;
    assert!(unknown.expect_error(400).starts_with("ignored_models[0]: "), "{unknown:?}");
    assert_eq!(unknown.json()["error"]["metadata"]["nearest"][0], "acme/judge");
    let unknown = create(&gateway, &with("allowed_providers", r#"["nobody"]"#)).await.expect_error(400);
    assert!(unknown.starts_with("allowed_providers[0]: "), "{unknown}");
    let nowhere = create(&gateway, r#"{"name":"g","workspace_id":"01990000-0000-7000-8000-00000000ffff"}"#).await;
    assert_eq!(nowhere.expect_error(404), "workspace_id: workspace not found");
}

#[tokio::test]
async fn duplicate_member_is_rejected() {
    let gateway = Setup::new().await.start();
    let id = made(&gateway).await;
    for body in [
        r#"{"limit_usd":1,"limit_usd":2,"reset_interval":"daily"}"#,
        r#"{"allowed_models":null,"allowed_m\u006fdels":["acme/judge"]}"#,
        r#"{"content_filters":[{"pattern":"a","pattern":"b","action":"block"}]}"#,
    ] {
        let refused = change(&gateway, &id, body).await.expect_error(400);
        assert!(refused.ends_with("is given more than once"), "{refused}");
    }
    assert_eq!(read(&gateway, &id).await.json()["data"]["version"], 1, "nothing was changed");
}

#[tokio::test]
async fn guardrail_bodies_follow_common_body_rules() {
    let mut setup = Setup::new().await;
    setup.settings.max_json_bytes = 1_000;
    let gateway = setup.start();
    let bearer = Caller::Management.bearer();
    let send = async |method, path: &str, content_type, body: &[u8]| {
        let headers = [("Authorization", bearer.as_str()), ("Content-Type", content_type)];
        gateway.send(method, &format!("{}{path}", super::gateway::BASE), &headers, body).await
    };
    let id = guardrail().to_string();
    let routes = [
        ("POST", "/guardrails".to_owned()),
        ("PATCH", format!("/guardrails/{id}")),
        ("POST", format!("/guardrails/{id}/explain")),
        ("POST", format!("/guardrails/{id}/assignments/keys/remove")),
    ];
    for (method, path) in &routes {
        for body in ["", "{", "[]", "null", "7", "\u{feff}{}", r#"{"name":"\ud800"}"#] {
            send(method, path, "application/json", body.as_bytes()).await.expect_error(400);
        }
        send(method, path, "application/json", b"{\"\xff\":1}").await.expect_error(400);
        send(method, path, "application/json", "[".repeat(200).as_bytes()).await.expect_error(400);
        send(method, path, "text/plain", b"{}").await.expect_error(400);
        send(method, path, "application/json", &vec![b' '; 1_001]).await.expect_error(413);
    }
}

#[tokio::test]
async fn list_is_paged_per_workspace() {
    let gateway = Setup::new().await.start();
    let mut ids = vec![guardrail().to_string()];
    for _ in 0..3 {
        ids.push(made(&gateway).await);
    }
    ids.sort();
    ids.reverse();
    let list = async |query: &str| gateway.get(Caller::Management, &format!("/guardrails?{query}"), &[]).await;
    let of = format!("workspace_id={}", workspace(1));
    let whole = list(&of).await.json();
    assert_eq!(whole["total_count"], 4);
    let listed: Vec<&str> = whole["data"].as_array().unwrap().iter().map(|one| one["id"].as_str().unwrap()).collect();
    assert_eq!(listed, ids, "the newest first");
    let page = list(&format!("{of}&offset=1&limit=2")).await.json();
    assert_eq!((&page["total_count"], &page["data"][0]["id"]), (&json!(4), &json!(ids[1])));
    assert_eq!(page["data"].as_array().unwrap().len(), 2);
    let beyond = list(&format!("{of}&offset=18446744073709551615")).await.json();
    assert_eq!(beyond["data"], json!([]));
    assert_eq!(list(&format!("workspace_id={}", workspace(2))).await.json(), json!({"data": [], "total_count": 0}));
    for (query, message) in [
        ("limit=0", "limit must be 1 to 100"),
        ("limit=101", "limit must be 1 to 100"),
        ("limit=ten", "limit must be a whole number"),
        ("offset=-1", "offset must be a whole number"),
        ("offset=1&offset=2", "offset is in the query more than once"),
    ] {
        assert_eq!(list(query).await.expect_error(400), message, "{query}");
    }
    for unknown in ["01990000-0000-7000-8000-00000000ffff", "%27%20OR%201"] {
        list(&format!("workspace_id={unknown}")).await.expect_error(404);
    }
}

#[tokio::test]
async fn deleted_guardrail_is_not_found_and_unassigned() {
    let gateway = Setup::new().await.start();
    let path = format!("/guardrails/{}", guardrail());
    let hash = Caller::Inference.hash();
    let body = json!({"key_hashes": [hash]}).to_string();
    gateway.post_json(Caller::Management, &format!("{path}/assignments/keys"), &body).await;
    let reply = gateway.json(Caller::Management, "DELETE", &path, "").await;
    assert_eq!((reply.status, reply.json()), (200, json!({"deleted": true})));
    assert_eq!(gateway.json(Caller::Management, "DELETE", &path, "").await.expect_error(404), "Resource not found");
    assert_eq!(read(&gateway, &guardrail().to_string()).await.expect_error(404), "Resource not found");
    let key = gateway.store.api_keys().find(&hash.parse().unwrap()).await.unwrap().unwrap();
    assert_eq!(key.guardrail_id, None);
}

#[tokio::test]
async fn assignments_are_listed_and_removed() {
    let gateway = Setup::new().await.start();
    let path = format!("/guardrails/{}/assignments/keys", guardrail());
    let hashes = [Caller::Inference, Caller::Disabled, Caller::Expired].map(Caller::hash);
    let body = json!({"key_hashes": hashes}).to_string();
    assert_eq!(gateway.post_json(Caller::Management, &path, &body).await.json()["assigned_count"], 3);
    let list = async |query: &str| gateway.get(Caller::Management, &format!("{path}{query}"), &[]).await;
    let whole = list("").await.json();
    assert_eq!(whole["total_count"], 3);
    let first = &whole["data"][0];
    // All keys were assigned at once, so they are ordered by id, the newest first.
    let mut sorted = hashes.clone();
    sorted.reverse();
    assert_eq!(
        (&first["key_hash"], &first["key_name"], &first["guardrail_id"]),
        (&json!(sorted[0]), &json!("k"), &json!(guardrail().to_string()))
    );
    assert_eq!(first["assigned_by"], format!("key:{}", Caller::Management.id()));
    assert_eq!(first["created_at"], "2026-01-01T00:00:00.000Z");
    assert_eq!(first["id"].as_str().unwrap().len(), 36);
    assert!(
        first["key_label"].as_str().unwrap().starts_with("sk-tg-v1-")
            && !whole.to_string().contains(&Caller::Inference.bearer()[7..])
    );
    assert_eq!(list("?offset=2&limit=1").await.json()["data"][0]["key_hash"], json!(sorted[2]));
    assert_eq!(list("?limit=101").await.expect_error(400), "limit must be 1 to 100");
    let body = json!({"key_hashes": [hashes[0], hashes[0], Caller::Inference.id(), hashes[1], Caller::OfOtherWorkspace.hash(), "nonsense"]})
        .to_string();
    let removed = gateway.post_json(Caller::Management, &format!("{path}/remove"), &body).await;
    assert_eq!((removed.status, removed.json()), (200, json!({"unassigned_count": 2})));
    assert_eq!(list("").await.json()["total_count"], 1);
    let again = gateway.post_json(Caller::Management, &format!("{path}/remove"), &body).await;
    assert_eq!(again.json(), json!({"unassigned_count": 0}));
    for (body, fault) in [
        ("{}", "key_hashes is required"),
        (r#"{"key_hashes":[]}"#, "key_hashes must have at least one element"),
        (r#"{"key_hashes":["a",""]}"#, "key_hashes[1] must not be empty"),
        (r#"{"key_hashes":["a",1]}"#, "key_hashes[1] must be a string"),
    ] {
        assert_eq!(
            gateway.post_json(Caller::Management, &format!("{path}/remove"), body).await.expect_error(400),
            fault
        );
    }
}

/// Returns all routes: the method, the path after `/guardrails`, and a valid body.
pub fn routes(id: &str) -> Vec<(&'static str, String, &'static str)> {
    let explain = r#"{"body":{"model":"acme/judge","state":"s","questions":{"q":{"type":"noul","instructions":"?"}}}}"#;
    vec![
        ("GET", String::new(), ""),
        ("POST", String::new(), r#"{"name":"g"}"#),
        ("GET", format!("/{id}"), ""),
        ("PATCH", format!("/{id}"), r#"{"name":"h"}"#),
        ("DELETE", format!("/{id}"), ""),
        ("GET", format!("/{id}/versions"), ""),
        ("GET", format!("/{id}/versions/1"), ""),
        ("POST", format!("/{id}/versions/1/restore"), ""),
        ("POST", format!("/{id}/explain"), explain),
        ("GET", format!("/{id}/assignments/keys"), ""),
        ("POST", format!("/{id}/assignments/keys/remove"), r#"{"key_hashes":["a"]}"#),
    ]
}

#[tokio::test]
async fn guardrail_routes_require_management_key() {
    let gateway = Setup::new().await.start();
    for (method, path, body) in routes(&guardrail().to_string()) {
        let path = format!("/guardrails{path}");
        let reply = gateway.json(Caller::Inference, method, &path, body).await;
        assert_eq!(reply.expect_error(403), "Only management keys can perform this operation", "{method} {path}");
        let whole = format!("{}{path}", super::gateway::BASE);
        let reply = gateway.send(method, &whole, &[("Content-Type", "application/json")], body.as_bytes()).await;
        assert_eq!(reply.expect_error(401), "Missing Authentication header", "{method} {path}");
        gateway.json(Caller::Unknown, method, &path, body).await.expect_error(401);
        gateway.json(Caller::OfSuspendedWorkspace, method, &path, body).await.expect_error(403);
    }
    assert_eq!(read(&gateway, &guardrail().to_string()).await.json()["data"]["version"], 1, "nothing was changed");
}

#[tokio::test]
async fn unknown_guardrail_id_returns_404() {
    let gateway = Setup::new().await.start();
    for id in
        ["01990000-0000-7000-8000-00000000ffff", "nonsense", "%ff", "..%2F..", "%00", "assignments", &"9".repeat(5_000)]
    {
        for (method, path, body) in routes(id).into_iter().skip(2) {
            let reply = gateway.json(Caller::Management, method, &format!("/guardrails{path}"), body).await;
            assert_eq!(reply.expect_error(404), "Resource not found", "{method} {path:.80}");
        }
    }
    let path = format!("{}/guardrails/{}", super::gateway::BASE, guardrail());
    let bearer = Caller::Management.bearer();
    let headers = [("Authorization", bearer.as_str())];
    let reply = gateway.send("HEAD", &path, &headers, b"").await;
    assert_eq!((reply.status, reply.body.len()), (200, 0));
    let reply = gateway.send("PUT", &path, &headers, b"").await;
    assert_eq!(
        (reply.expect_error(405).as_str(), reply.header("allow")),
        ("Method not allowed", Some("GET, HEAD, PATCH, DELETE"))
    );
}

#[tokio::test]
async fn unavailable_store_returns_503_without_details() {
    fn away<T>() -> Result<T, StoreError> {
        Err(StoreError::unavailable("SQLITE_BUSY at /var/db"))
    }
    let mut guardrails = MockGuardrailRepository::new();
    guardrails.expect_find_named().returning(|_, _| away());
    guardrails.expect_page().returning(|_, _, _| away());
    guardrails.expect_insert().returning(|_, _, _| away());
    guardrails.expect_versions().returning(|_, _, _| away());
    guardrails.expect_list_keys().returning(|_, _, _, _| away());
    guardrails.expect_remove_keys().returning(|_, _, _| Ok(away()?));
    let setup = Setup { guardrails: Arc::new(guardrails), ..Setup::new().await };
    let gateway = setup.start();
    for (method, path, body) in routes(&guardrail().to_string()) {
        let (path, body) = match (method, path.as_str()) {
            ("GET", "") => (format!("?workspace_id={}", workspace(1)), body.to_owned()),
            ("POST", "") => (path, format!(r#"{{"name":"g","workspace_id":"{}"}}"#, workspace(1))),
            // The hash of "a" matches no key, so the store is still queried.
            _ => (path, body.to_owned()),
        };
        let reply = gateway.json(Caller::Management, method, &format!("/guardrails{path}"), &body).await;
        assert_eq!(reply.expect_error(503), "Service temporarily unavailable", "{method} {path}");
        assert_eq!(reply.header("retry-after"), Some("1"));
        assert!(!String::from_utf8_lossy(&reply.body).contains("SQLITE"));
    }
}

#[tokio::test]
async fn repeated_concurrent_changes_return_409() {
    let store = Setup::new().await.store;
    let found = store.guardrails().find(guardrail()).await.unwrap();
    let mut guardrails = MockGuardrailRepository::new();
    guardrails.expect_find_named().returning(move |_, _| Ok(found.clone().into_iter().collect()));
    guardrails.expect_update().returning(|_, _, _| Ok(false));
    let gateway = Setup { guardrails: Arc::new(guardrails), ..Setup::new().await }.start();
    let refused = change(&gateway, &guardrail().to_string(), r#"{"name":"other"}"#).await.expect_error(409);
    assert_eq!(refused, "The resource was changed at the same time. Read it again and repeat the change.");
}

#[tokio::test]
async fn guardrail_is_named_by_its_id_or_unique_name() {
    let gateway = Setup::new().await.start();
    let named = json!({"name": "strict rules", "workspace_id": workspace(1).to_string()}).to_string();
    let id = create(&gateway, &named).await.json()["data"]["id"].as_str().unwrap().to_owned();
    let path = "/guardrails/strict%20rules";
    for suffix in ["", "/versions", "/versions/1", "/assignments/keys"] {
        assert_eq!(gateway.get(Caller::Management, &format!("{path}{suffix}"), &[]).await.status, 200, "{suffix}");
    }
    assert_eq!(gateway.get(Caller::Management, path, &[]).await.json()["data"]["id"], id.as_str());
    let assigned = json!({"key_hashes": [Caller::Inference.hash()]}).to_string();
    let assigned = gateway.post_json(Caller::Management, &format!("{path}/assignments/keys"), &assigned).await;
    assert_eq!((assigned.status, assigned.json()), (200, json!({"assigned_count": 1})));
    let keys = gateway.get(Caller::Management, "/keys?guardrail_id=strict%20rules", &[]).await;
    assert_eq!(keys.json()["total_count"], 1);
    let other = create(&gateway, &named).await.json()["data"]["id"].as_str().unwrap().to_owned();
    let ambiguous = gateway.get(Caller::Management, path, &[]).await;
    assert_eq!(ambiguous.status, 409);
    let mut ids = ambiguous.json()["error"]["metadata"]["ids"].as_array().unwrap().clone();
    ids.sort_by_key(ToString::to_string);
    let mut expected = [json!(id), json!(other)];
    expected.sort_by_key(ToString::to_string);
    assert_eq!(ids, expected);
    assert_eq!(gateway.json(Caller::Management, "DELETE", &format!("/guardrails/{other}"), "").await.status, 200);
    assert_eq!(gateway.json(Caller::Management, "DELETE", path, "").await.status, 200);
    gateway.get(Caller::Management, path, &[]).await.expect_error(404);
}
