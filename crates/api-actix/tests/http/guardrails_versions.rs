//! Versions of a guardrail.

use serde_json::json;

use super::gateway::{Caller, Gateway, Setup, guardrail};

async fn renamed() -> (Gateway, String) {
    let gateway = Setup::new().await.start();
    let path = format!("/guardrails/{}", guardrail());
    for name in ["second", "third"] {
        let body = json!({"name": name, "description": name}).to_string();
        assert_eq!(gateway.json(Caller::Management, "PATCH", &path, &body).await.status, 200);
    }
    (gateway, path)
}

#[tokio::test]
async fn every_version_is_readable() {
    let (gateway, path) = renamed().await;
    let list = gateway.get(Caller::Management, &format!("{path}/versions"), &[]).await.json();
    assert_eq!(list["total_count"], 3);
    let version_at =
        |index: usize| (list["data"][index]["version"].clone(), list["data"][index]["guardrail"]["name"].clone());
    assert_eq!(
        (version_at(0), version_at(2)),
        ((json!(3), json!("third")), (json!(1), json!("g"))),
        "the newest first"
    );
    assert_eq!(list["data"][0]["changed_by"], format!("key:{}", Caller::Management.id()));
    assert_eq!(list["data"][0]["changed_at"], "2026-01-01T00:00:00.000Z");
    assert_eq!(list["data"][0]["guardrail"].get("workspace_default"), None, "versions do not keep it");
    let page = gateway.get(Caller::Management, &format!("{path}/versions?offset=1&limit=1"), &[]).await.json();
    assert_eq!((&page["data"][0]["version"], &page["total_count"]), (&json!(2), &json!(3)));
    let one = gateway.get(Caller::Management, &format!("{path}/versions/2"), &[]).await.json();
    assert_eq!(one["data"]["guardrail"]["name"], "second");
    assert_eq!(
        gateway.get(Caller::Management, &format!("{path}/versions?limit=0"), &[]).await.expect_error(400),
        "limit must be 1 to 100"
    );
}

#[tokio::test]
async fn restore_creates_new_version() {
    let (gateway, path) = renamed().await;
    let reply = gateway.json(Caller::Management, "POST", &format!("{path}/versions/1/restore"), "").await;
    assert_eq!(reply.status, 200, "{}", String::from_utf8_lossy(&reply.body));
    let data = reply.json()["data"].clone();
    assert_eq!((&data["name"], &data["description"], &data["version"]), (&json!("g"), &json!(null), &json!(4)));
    assert_eq!(data["workspace_default"], false);
    let again = gateway.json(Caller::Management, "POST", &format!("{path}/versions/1/restore"), "ignored").await;
    assert_eq!(again.json()["data"]["version"], 4, "it is so already");
}

#[tokio::test]
async fn unknown_version_returns_404() {
    let (gateway, path) = renamed().await;
    for version in ["4", "0", "-1", "+1", "1.0", "one", "%31x", "4294967296", "99999999999999999999999"] {
        let reply = gateway.get(Caller::Management, &format!("{path}/versions/{version}"), &[]).await;
        assert_eq!(reply.expect_error(404), "Resource not found", "{version}");
        let restore = format!("{path}/versions/{version}/restore");
        gateway.json(Caller::Management, "POST", &restore, "").await.expect_error(404);
    }
}
