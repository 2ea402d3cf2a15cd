//! Tests of changes of guardrails.

mod update;

use std::sync::Arc;

use super::*;
use crate::audit::AuditLog;
use crate::error::{ErrorKind, StoreError};
use crate::guardrail::fixtures::{actor, by, ports, read, store, workspace_id};
use crate::guardrail::{GuardrailRepository, MockGuardrailRepository};
use crate::testing::MemoryStore;
use crate::workspace::WorkspaceRepository;

async fn create(store: &MemoryStore, record: &str) -> Result<PlacedGuardrail, GuardrailError> {
    ports(store).create(&Change::plain(&by()), &read(record).unwrap()).await
}

/// Returns the newest audit entry: action, subject and details.
async fn noted(store: &MemoryStore) -> (String, String, serde_json::Value) {
    let entry = store.audit_log().newest(1).await.unwrap().remove(0);
    assert_eq!(entry.actor, actor());
    (entry.action, entry.subject, serde_json::from_str(entry.details.text()).unwrap())
}

async fn default_of(store: &MemoryStore, workspace: u64) -> Option<crate::ids::GuardrailId> {
    store.workspaces().find(workspace_id(workspace)).await.unwrap().unwrap().default_guardrail_id
}

#[tokio::test]
async fn create_uses_default_workspace_when_none_is_named() {
    let store = store().await;
    let made =
        create(&store, r#"{"name":"a","allowed_models":["judge"],"limit_usd":5,"reset_interval":null}"#).await.unwrap();
    assert_eq!(
        (made.guardrail.workspace_id, made.guardrail.version, made.workspace_default),
        (workspace_id(900), 1, false)
    );
    let id = made.guardrail.id;
    assert_eq!(store.guardrails().find(id).await.unwrap().as_ref(), Some(&made.guardrail));
    assert_eq!(ports(&store).get(&by(), &id.to_string()).await.unwrap(), made);
    let (action, subject, details) = noted(&store).await;
    assert_eq!((action.as_str(), subject), ("guardrail.create", format!("guardrail {id}")));
    assert!(details.get("before").is_none());
    let after = serde_json::json!({
        "name": "a", "workspace_id": workspace_id(900).to_string(), "workspace_default": false, "version": 1,
        "limit_usd": 5, "reset_interval": null, "allowed_models": ["acme/judge-20260901"],
    });
    assert_eq!(details["after"], after);
}

#[tokio::test]
async fn create_truncates_long_patterns_in_the_audit_log_only() {
    let store = store().await;
    let pattern = "é".repeat(501);
    let filters = format!(r#"[{{"pattern":"{pattern}","action":"flag"}},{{"pattern":"short","action":"flag"}}]"#);
    let made = create(&store, &format!(r#"{{"name":"a","content_filters":{filters}}}"#)).await.unwrap();
    assert_eq!(made.guardrail.rules.content_filters[0].pattern, pattern);
    let entry = noted(&store).await.2;
    let patterns = &entry["after"]["content_filters"];
    assert_eq!(patterns[0]["pattern"], format!("{}…", "é".repeat(500)));
    assert_eq!(patterns[1]["pattern"], "short");
}

#[tokio::test]
async fn create_sets_workspace_default_in_the_same_transaction() {
    let store = store().await;
    let record = format!(r#"{{"name":"a","workspace_id":"{}","workspace_default":true}}"#, workspace_id(901));
    let made = create(&store, &record).await.unwrap();
    assert!(made.workspace_default);
    assert_eq!(default_of(&store, 901).await, Some(made.guardrail.id));
    assert_eq!(default_of(&store, 900).await, None);
    assert_eq!(noted(&store).await.2["after"]["workspace_default"], true);
    assert!(ports(&store).get(&by(), &made.guardrail.id.to_string()).await.unwrap().workspace_default);
}

#[tokio::test]
async fn create_stores_nothing_when_the_draft_is_invalid() {
    let store = store().await;
    for (record, kind) in [
        (r#"{"description":"no name"}"#, ErrorKind::InvalidRequest),
        (r#"{"name":" "}"#, ErrorKind::InvalidRequest),
        (r#"{"name":"a","allowed_models":["nope"]}"#, ErrorKind::InvalidRequest),
        (r#"{"name":"a","workspace_id":"01990000-0000-7000-8000-00000000dead"}"#, ErrorKind::NotFound),
    ] {
        let before = store.audit_log().newest(1).await.unwrap();
        let error = create(&store, record).await.unwrap_err();
        assert_eq!(error.kind(), kind, "{record}");
        assert_eq!(store.audit_log().newest(1).await.unwrap(), before, "{record}");
    }
    assert_eq!(create(&store, "{}").await.unwrap_err().to_string(), "name: is required");
    assert!(store.guardrails().list(workspace_id(900)).await.unwrap().is_empty());
}

#[tokio::test]
async fn create_reports_store_failure_and_missing_workspace() {
    let store = store().await;
    for default in [false, true] {
        let mut away = MockGuardrailRepository::new();
        away.expect_insert().returning(|_, _, _| Err(StoreError::unavailable("away")));
        let mut gone = MockGuardrailRepository::new();
        gone.expect_insert().returning(|_, _, _| Ok(false));
        for (guardrails, kind) in [(away, ErrorKind::Unavailable), (gone, ErrorKind::NotFound)] {
            let ports = ManageGuardrails { guardrails: Arc::new(guardrails), ..ports(&store) };
            let draft = read(&format!(r#"{{"name":"a","workspace_default":{default}}}"#)).unwrap();
            let error = ports.create(&Change::plain(&by()), &draft).await.unwrap_err();
            assert_eq!(error.kind(), kind);
        }
    }
}

#[tokio::test]
async fn list_returns_pages_newest_first() {
    let store = store().await;
    let ports = ports(&store);
    let mut made = Vec::new();
    for number in 0..5 {
        let record = format!(r#"{{"name":"g{number}","workspace_default":{}}}"#, number == 3);
        made.push(ports.create(&Change::plain(&by()), &read(&record).unwrap()).await.unwrap());
    }
    let names = |page: &[PlacedGuardrail]| -> Vec<(String, bool)> {
        let entry = |one: &PlacedGuardrail| (one.guardrail.name.as_str().to_owned(), one.workspace_default);
        page.iter().map(entry).collect()
    };
    let (page, total) = ports.list(&by(), None, 1, 2).await.unwrap();
    assert_eq!((names(&page), total), (vec![("g3".to_owned(), true), ("g2".to_owned(), false)], 5));
    let beyond = ports.list(&by(), Some(workspace_id(900)), 9, 2).await.unwrap();
    assert_eq!((beyond.0.len(), beyond.1), (0, 5));
    assert_eq!(ports.list(&by(), Some(workspace_id(901)), 0, 50).await.unwrap().1, 0);
}

#[tokio::test]
async fn delete_removes_guardrail_and_its_default() {
    let store = store().await;
    let made = create(&store, r#"{"name":"a","workspace_default":true}"#).await.unwrap();
    let id = made.guardrail.id.to_string();
    let manage = ports(&store);
    manage.delete(&Change::plain(&by()), &id).await.unwrap();
    let (action, subject, details) = noted(&store).await;
    assert_eq!((action.as_str(), subject), ("guardrail.delete", format!("guardrail {id}")));
    assert_eq!((&details["before"]["name"], details.get("after")), (&"a".into(), None));
    assert_eq!(default_of(&store, 900).await, None);
    for id in [id.as_str(), "nonsense", ""] {
        assert_eq!(manage.delete(&Change::plain(&by()), id).await.unwrap_err().kind(), ErrorKind::NotFound);
        assert_eq!(ports(&store).get(&by(), id).await.unwrap_err().kind(), ErrorKind::NotFound);
    }
}
