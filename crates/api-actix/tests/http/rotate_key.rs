//! Rotation of a key's secret.

use domain::api_key::LastKeyRule;
use domain::audit::AuditLog;
use domain::secret::ApiKeySecret;
use domain::testing::delete_key;
use serde_json::json;

use super::client::Reply;
use super::gateway::{BASE, Caller, Gateway, Setup, guardrail, workspace};

async fn rotate(gateway: &Gateway, caller: Caller, name: &str) -> Reply {
    gateway.post(caller, &format!("/keys/{name}/rotate"), &[], b"").await
}

async fn status_of(gateway: &Gateway, secret: &str) -> u16 {
    let bearer = format!("Bearer {secret}");
    gateway.send("GET", &format!("{BASE}/providers"), &[("Authorization", &bearer)], b"").await.status
}

#[tokio::test]
async fn rotation_returns_new_secret_of_same_key() {
    let gateway = Setup::new().await.start();
    let path = format!("/guardrails/{}/assignments/keys", guardrail());
    let keys = json!({"key_hashes": [Caller::Inference.id(), Caller::Inference.hash()]}).to_string();
    assert_eq!(gateway.post_json(Caller::Management, &path, &keys).await.json()["assigned_count"], 1);
    let mut hash = Caller::Inference.hash();
    let mut secret = Caller::Inference.bearer()[7..].to_owned();
    for name in [hash.clone(), Caller::Inference.id()] {
        let reply = rotate(&gateway, Caller::Management, &name).await;
        assert_eq!(reply.status, 200, "{}", String::from_utf8_lossy(&reply.body));
        assert_eq!(reply.header("cache-control"), Some("private, no-store"));
        let answer = reply.json();
        let new: ApiKeySecret = answer["key"].as_str().unwrap().parse().unwrap();
        let expected = json!({
            "id": Caller::Inference.id(),
            "hash": new.hash().to_string(),
            "label": new.label(),
            "name": "k",
            "workspace_id": workspace(1).to_string(),
            "management": null,
            "disabled": false,
            "limit": null,
            "limit_remaining": null,
            "limit_reset": null,
            "requests_per_minute": null,
            "tokens_per_minute": null,
            "guardrail_id": guardrail().to_string(),
            "usage": 0,
            "usage_daily": 0,
            "usage_weekly": 0,
            "usage_monthly": 0,
            "reserved": 0,
            "byok_usage": 0,
            "byok_usage_daily": 0,
            "byok_usage_weekly": 0,
            "byok_usage_monthly": 0,
            "include_byok_in_limit": false,
            "creator_user_id": null,
            "external_user": null,
            "created_at": "2026-01-01T00:00:00.000Z",
            "updated_at": null,
            "last_used_at": null,
            "expires_at": null,
            "previous_secret_expires_at": null,
        });
        assert_eq!(answer, json!({"data": expected, "key": new.expose()}));
        assert_eq!((status_of(&gateway, &secret).await, status_of(&gateway, new.expose()).await), (401, 200));
        assert_eq!(rotate(&gateway, Caller::Management, &hash).await.expect_error(404), "Resource not found");
        (hash, secret) = (new.hash().to_string(), new.expose().to_owned());
    }
    let entry = gateway.store.audit_log().newest(1).await.unwrap().remove(0);
    assert_eq!((entry.action.as_str(), entry.subject), ("key.rotate", format!("key {}", Caller::Inference.id())));
    assert_eq!(entry.actor.name, format!("key:{}", Caller::Management.id()));
    assert!(!entry.details.text().contains(&secret));
}

#[tokio::test]
async fn rotation_needs_management_key_and_active_key() {
    let gateway = Setup::new().await.start();
    let own = Caller::Inference.hash();
    let forbidden = rotate(&gateway, Caller::Inference, &own).await.expect_error(403);
    assert_eq!(forbidden, "Only management keys can perform this operation");
    rotate(&gateway, Caller::Unknown, &own).await.expect_error(401);
    let deleted = Caller::OfOtherWorkspace.id().parse().unwrap();
    assert!(
        delete_key(&*gateway.store.api_keys(), deleted, LastKeyRule::Waived, &super::gateway::audit_draft())
            .await
            .unwrap()
    );
    let secret = Caller::Inference.bearer()[7..].to_owned();
    for name in ["nonsense", "%ff", &deleted.to_string(), &Caller::Unknown.hash(), &secret] {
        let refused = rotate(&gateway, Caller::Management, name).await;
        assert!(!String::from_utf8_lossy(&refused.body).contains(&secret));
        assert_eq!(refused.expect_error(404), "Resource not found", "{name}");
    }
    assert_eq!(status_of(&gateway, &secret).await, 200, "nothing was rotated");
    let disabled = rotate(&gateway, Caller::Management, &Caller::Disabled.id()).await.json();
    assert_eq!(disabled["data"]["disabled"], true, "what is disabled stays so");
    assert_eq!(status_of(&gateway, disabled["key"].as_str().unwrap()).await, 401);
}

#[tokio::test]
async fn management_key_rotates_itself() {
    let gateway = Setup::new().await.start();
    let answer = rotate(&gateway, Caller::Management, &Caller::Management.id()).await.json();
    assert_eq!(answer["data"]["workspace_id"], json!(null));
    rotate(&gateway, Caller::Management, &Caller::Inference.id()).await.expect_error(401);
    assert_eq!(status_of(&gateway, answer["key"].as_str().unwrap()).await, 200);
}
