//! The caller's own key.

use std::sync::Arc;

use domain::api_key::{ApiKeyRepository, LastKeyRule};
use domain::audit::{Actor, AuditDraft};
use domain::budget::SpendLimit;
use domain::error::StoreError;
use domain::json::Json;
use domain::usage::MockUsageRepository;
use serde_json::{Value, json};

use super::client::Reply;
use super::gateway::{Caller, Gateway, Setup, workspace};

async fn own_key(gateway: &Gateway, caller: Caller) -> Reply {
    gateway.get(caller, "/key", &[]).await
}

/// Sets a limit of one tenth of a USD.
async fn limit(setup: &Setup) {
    let keys = setup.store.api_keys();
    let before = keys.find(&Caller::Inference.id().parse().unwrap()).await.unwrap().unwrap();
    let mut after = before.clone();
    after.limit = Some(SpendLimit { amount: "0.1".parse().unwrap(), reset: None });
    let audit = AuditDraft::done(&Actor::system(), "key.update", "key", Json::object([]));
    keys.update(&before, &after, LastKeyRule::Waived, &audit).await.unwrap();
}

#[tokio::test]
async fn inference_key_reads_its_record_and_its_limits() {
    let setup = Setup::new().await;
    limit(&setup).await;
    let gateway = setup.start();
    let reply = own_key(&gateway, Caller::Inference).await;
    assert_eq!(reply.header("cache-control"), Some("private, no-cache"));
    let answer = reply.json();
    let key_limit = json!({
        "scope": "key_limit", "is_credit": false, "limit_usd": 0.1, "spend_usd": 0, "reserved_usd": 0,
        "remaining_usd": 0.1, "reset_interval": null, "resets_at": null, "guardrail_id": null, "budget_id": null,
        "include_byok": false,
    });
    assert_eq!(answer["data"]["budgets"], json!([key_limit]));
    assert_eq!(answer["data"]["effective_budget"], key_limit);
    let expected = [
        ("id", json!(Caller::Inference.id())),
        ("hash", json!(Caller::Inference.hash())),
        ("workspace_id", json!(workspace(1).to_string())),
        ("is_management_key", json!(false)),
        ("limit", json!(0.1)),
        ("limit_remaining", json!(0.1)),
        ("usage", json!(0)),
        ("last_used_at", Value::Null),
        ("rate_limit", json!({"requests": -1, "interval": "10s", "note": answer["data"]["rate_limit"]["note"]})),
    ];
    for (name, value) in expected {
        assert_eq!(answer["data"][name], value, "{name}");
    }
    assert!(!answer.to_string().contains(&Caller::Inference.bearer()[7..]), "no secret");
}

#[tokio::test]
async fn management_key_reads_its_record_without_limits() {
    let gateway = Setup::new().await.start();
    let answer = own_key(&gateway, Caller::Management).await.json();
    assert_eq!(answer["data"]["hash"], json!(Caller::Management.hash()));
    assert_eq!((&answer["data"]["is_management_key"], &answer["data"]["workspace_id"]), (&json!(true), &Value::Null));
    assert_eq!((&answer["data"]["budgets"], &answer["data"]["effective_budget"]), (&json!([]), &Value::Null));
}

#[tokio::test]
async fn rejected_keys_read_nothing() {
    let gateway = Setup::new().await.start();
    for (caller, status) in [(Caller::Unknown, 401), (Caller::Disabled, 401), (Caller::OfSuspendedWorkspace, 403)] {
        own_key(&gateway, caller).await.expect_error(status);
    }
}

#[tokio::test]
async fn failing_store_is_503() {
    let mut usage = MockUsageRepository::new();
    usage.expect_last_use().returning(|_| Err(StoreError::unavailable("gone")));
    let setup = Setup { usage: Arc::new(usage), ..Setup::new().await };
    own_key(&setup.start(), Caller::Inference).await.expect_error(503);
}
