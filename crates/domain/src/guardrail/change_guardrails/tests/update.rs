//! Tests of updates.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use super::*;
use crate::audit::AuditLog;
use crate::error::{ErrorKind, StoreError};
use crate::guardrail::fixtures::{by, guardrail, ports, read, store, workspace_id};
use crate::guardrail::{GuardrailRepository, MockGuardrailRepository};
use crate::testing::{MemoryStore, join_all};
use crate::version::{IfMatch, Version};
use crate::workspace::WorkspaceRepository;

async fn made(store: &MemoryStore, record: &str) -> String {
    let made = ports(store).create(&Change::plain(&by()), &read(record).unwrap()).await.unwrap();
    made.guardrail.id.to_string()
}

async fn update(store: &MemoryStore, id: &str, change: &str) -> Result<PlacedGuardrail, GuardrailError> {
    ports(store).update(&Change::plain(&by()), id, &read(change).unwrap()).await
}

async fn entries(store: &MemoryStore) -> usize {
    store.audit_log().read(0, 1_000).await.unwrap().len()
}

#[tokio::test]
async fn update_creates_version_and_audit_entry() {
    let store = store().await;
    let id = made(&store, r#"{"name":"a","description":"d"}"#).await;
    let after = update(&store, &id, r#"{"name":"b","ignored_providers":["mirror"]}"#).await.unwrap();
    assert_eq!((after.guardrail.version, after.guardrail.name.as_str()), (2, "b"));
    assert_eq!(after.guardrail.rules.description.as_deref(), Some("d"), "absent members are unchanged");
    assert!(after.guardrail.updated_at.is_some());
    let entry = store.audit_log().newest(1).await.unwrap().remove(0);
    let details: serde_json::Value = serde_json::from_str(entry.details.text()).unwrap();
    assert_eq!((entry.action.as_str(), entry.subject), ("guardrail.update", format!("guardrail {id}")));
    assert_eq!((&details["before"]["name"], &details["after"]["name"]), (&"a".into(), &"b".into()));
    assert_eq!(details["after"]["ignored_providers"], serde_json::json!(["mirror"]));
    assert_eq!((&details["before"]["version"], &details["after"]["version"]), (&1.into(), &2.into()));
}

#[tokio::test]
async fn update_without_difference_creates_no_version() {
    let store = store().await;
    let id = made(&store, r#"{"name":"a","allowed_models":["judge"]}"#).await;
    let before = entries(&store).await;
    let same =
        update(&store, &id, r#"{"name":"a","allowed_models":["acme/judge:free"],"workspace_default":false}"#).await;
    assert_eq!(same.unwrap().guardrail.version, 1);
    assert_eq!(entries(&store).await, before);
}

#[tokio::test]
async fn update_changes_nothing_when_the_draft_is_invalid() {
    let store = store().await;
    let id = made(&store, r#"{"name":"a"}"#).await;
    for (id, change, kind) in [
        (id.as_str(), "{}", ErrorKind::InvalidRequest),
        (id.as_str(), r#"{"limit_usd":3}"#, ErrorKind::InvalidRequest),
        (id.as_str(), r#"{"name":"b","allowed_models":["nope"]}"#, ErrorKind::InvalidRequest),
        ("nonsense", r#"{"name":"b"}"#, ErrorKind::NotFound),
        ("01990000-0000-7000-8000-00000000dead", r#"{"name":"b"}"#, ErrorKind::NotFound),
    ] {
        assert_eq!(update(&store, id, change).await.unwrap_err().kind(), kind, "{change}");
    }
    assert_eq!(ports(&store).list_versions(&by(), &id, 0, 9).await.unwrap().1, 1);
}

#[tokio::test]
async fn update_changes_only_its_own_workspace_default() {
    let store = store().await;
    let (one, two) = (made(&store, r#"{"name":"a"}"#).await, made(&store, r#"{"name":"b"}"#).await);
    let default = async || {
        let workspace = store.workspaces().find(workspace_id(900)).await.unwrap().unwrap();
        workspace.default_guardrail_id.map(|id| id.to_string())
    };
    assert!(update(&store, &one, r#"{"workspace_default":true}"#).await.unwrap().workspace_default);
    assert_eq!(default().await, Some(one.clone()));
    assert!(!update(&store, &two, r#"{"name":"c","workspace_default":false}"#).await.unwrap().workspace_default);
    assert_eq!(default().await, Some(one.clone()), "that of another stays");
    assert!(update(&store, &one, r#"{"name":"d"}"#).await.unwrap().workspace_default);
    assert!(!update(&store, &one, r#"{"workspace_default":false}"#).await.unwrap().workspace_default);
    assert!(update(&store, &one, r#"{"workspace_default":true}"#).await.unwrap().workspace_default);
    assert!(!update(&store, &one, r#"{"workspace_default":null}"#).await.unwrap().workspace_default, "null clears it");
    assert_eq!(default().await, None);
}

#[tokio::test]
async fn concurrent_updates_are_all_applied() {
    let store = store().await;
    let id = made(&store, r#"{"name":"a"}"#).await;
    let changes = ["enforce_zdr_openai", "enforce_zdr_google", "enforce_zdr_xai", "enforce_zdr_other", "enforce_zdr"];
    let acts = changes.map(|flag| {
        let (store, id) = (store.clone(), id.clone());
        async move { update(&store, &id, &format!(r#"{{"{flag}":true}}"#)).await.unwrap() }
    });
    join_all(acts).await;
    let now = ports(&store).get(&by(), &id).await.unwrap().guardrail;
    let policy = now.rules.data_policy;
    assert_eq!(now.version, 6);
    let all = [
        policy.enforce_zdr_openai,
        policy.enforce_zdr_google,
        policy.enforce_zdr_xai,
        policy.enforce_zdr_other,
        policy.enforce_zdr,
    ];
    assert_eq!(all, [Some(true); 5]);
}

fn with(guardrails: MockGuardrailRepository, store: &MemoryStore) -> ManageGuardrails {
    ManageGuardrails { guardrails: Arc::new(guardrails), ..ports(store) }
}

#[tokio::test]
async fn update_retries_on_newest_record_and_gives_up() {
    let store = store().await;
    let tries = Arc::new(AtomicUsize::new(0));
    let mut overtaken = MockGuardrailRepository::new();
    let counted = Arc::clone(&tries);
    overtaken.expect_find_named().returning(move |_, _| {
        let version = u32::try_from(counted.fetch_add(1, Ordering::SeqCst)).unwrap() + 1;
        Ok(vec![Guardrail { version, ..guardrail(1) }])
    });
    overtaken.expect_update().returning(|_, after, _| Ok(after.guardrail.version == 4));
    let (id, draft) = (guardrail(1).id.to_string(), read(r#"{"name":"b"}"#).unwrap());
    let after = with(overtaken, &store).update(&Change::plain(&by()), &id, &draft).await.unwrap();
    assert_eq!((after.guardrail.version, tries.load(Ordering::SeqCst)), (4, 3));

    let mut hopeless = MockGuardrailRepository::new();
    hopeless.expect_find_named().times(MAX_ATTEMPTS).returning(|_, _| Ok(vec![guardrail(1)]));
    hopeless.expect_update().times(MAX_ATTEMPTS).returning(|_, _, _| Ok(false));
    let error = with(hopeless, &store).update(&Change::plain(&by()), &id, &draft).await.unwrap_err();
    assert_eq!(error.kind(), ErrorKind::Conflict);

    let mut deleted = MockGuardrailRepository::new();
    let mut there = [Some(guardrail(1)), None].into_iter();
    deleted.expect_find_named().returning(move |_, _| Ok(there.next().flatten().into_iter().collect()));
    deleted.expect_update().returning(|_, _, _| Ok(false));
    let error = with(deleted, &store).update(&Change::plain(&by()), &id, &draft).await.unwrap_err();
    assert_eq!(error.kind(), ErrorKind::NotFound);

    let mut away = MockGuardrailRepository::new();
    away.expect_find_named().returning(|_, _| Ok(vec![guardrail(1)]));
    away.expect_update().returning(|_, _, _| Err(StoreError::unavailable("away")));
    let error = with(away, &store).update(&Change::plain(&by()), &id, &draft).await.unwrap_err();
    assert_eq!(error.kind(), ErrorKind::Unavailable);
}

#[tokio::test]
async fn restore_creates_new_version() {
    let store = store().await;
    let record =
        r#"{"name":"a","limit_usd":5,"reset_interval":"daily","content_filters":[{"pattern":"x","action":"block"}]}"#;
    let id = made(&store, record).await;
    let first = ports(&store).get(&by(), &id).await.unwrap().guardrail;
    update(&store, &id, r#"{"name":"b","limit_usd":null,"content_filters":null,"workspace_default":true}"#)
        .await
        .unwrap();
    let manage = ports(&store);
    let kept = manage.get_version(&by(), &id, 1).await.unwrap();
    assert_eq!((&kept.guardrail, kept.changed_by.as_str()), (&first, "user:ada"));
    let back = manage.restore_version(&Change::plain(&by()), &id, 1).await.unwrap();
    let Guardrail { version, updated_at, .. } = back.guardrail;
    assert_eq!(back.guardrail, Guardrail { version: 3, updated_at, ..first.clone() });
    assert_eq!((version, back.workspace_default), (3, true), "the workspace default is unchanged");
    let entry = store.audit_log().newest(1).await.unwrap().remove(0);
    assert_eq!(entry.action, "guardrail.restore");
    let (versions, _) = ports(&store).list_versions(&by(), &id, 0, 9).await.unwrap();
    assert_eq!(versions.iter().map(|kept| kept.guardrail.version).collect::<Vec<_>>(), [3, 2, 1]);
    assert_eq!(
        manage.restore_version(&Change::plain(&by()), &id, 3).await.unwrap().guardrail.version,
        3,
        "nothing differs"
    );

    for (id, version, unknown) in
        [(id.as_str(), 9, "no such version"), (id.as_str(), 0, "no such version"), ("x", 1, "guardrail not found")]
    {
        let error = manage.restore_version(&Change::plain(&by()), id, version).await.unwrap_err();
        assert_eq!(error.kind(), ErrorKind::NotFound);
        assert!(error.to_string().contains(unknown), "{error}");
        assert_eq!(manage.get_version(&by(), id, version).await.unwrap_err().kind(), ErrorKind::NotFound);
    }
    let unknown = ports(&store).list_versions(&by(), "01990000-0000-7000-8000-00000000dead", 0, 9).await;
    assert_eq!(unknown.unwrap_err().kind(), ErrorKind::NotFound);
    assert!(store.guardrails().find(first.id).await.unwrap().is_some());
}

/// A change that accepts these versions.
fn accepting(versions: impl Into<Vec<Version>>) -> IfMatch {
    IfMatch::Versions(versions.into())
}

#[tokio::test]
async fn change_of_another_version_fails_and_changes_nothing() {
    let (store, by) = (store().await, by());
    let manage = ports(&store);
    let id = made(&store, r#"{"name":"a"}"#).await;
    let first = manage.get(&by, &id).await.unwrap().version();
    update(&store, &id, r#"{"name":"b"}"#).await.unwrap();
    let (second, before) = (manage.get(&by, &id).await.unwrap().version(), entries(&store).await);
    assert_ne!(first, second);
    for if_match in [Some(accepting([first])), Some(accepting([]))] {
        let draft = read(r#"{"name":"c"}"#).unwrap();
        let updated = manage.update(&Change::conditional(&by, if_match.clone()), &id, &draft).await.map(drop);
        let restored = manage.restore_version(&Change::conditional(&by, if_match.clone()), &id, 1).await.map(drop);
        let deleted = manage.delete(&Change::conditional(&by, if_match), &id).await;
        for outcome in [updated, restored, deleted] {
            assert_eq!(outcome.unwrap_err().kind(), ErrorKind::PreconditionFailed);
        }
    }
    assert_eq!((manage.get(&by, &id).await.unwrap().version(), entries(&store).await), (second, before));
    let draft = read(r#"{"name":"c"}"#).unwrap();
    let third = manage.update(&Change::conditional(&by, Some(accepting([first, second]))), &id, &draft).await.unwrap();
    let any = Change::conditional(&by, Some(IfMatch::Any));
    assert_eq!(manage.restore_version(&any, &id, 1).await.unwrap().guardrail.name.as_str(), "a");
    let stale = Change::conditional(&by, Some(accepting([third.version()])));
    assert!(manage.delete(&stale, &id).await.is_err());
    let unknown = guardrail(9_999).id.to_string();
    let error = manage.delete(&stale, &unknown).await.unwrap_err();
    assert_eq!(error.kind(), ErrorKind::NotFound, "of a guardrail that does not exist");
    manage.delete(&Change::conditional(&by, Some(IfMatch::Any)), &id).await.unwrap();
}

#[tokio::test]
async fn of_many_concurrent_changes_of_a_version_one_succeeds() {
    let (store, by) = (store().await, by());
    let manage = ports(&store);
    let id = made(&store, r#"{"name":"a"}"#).await;
    let version = manage.get(&by, &id).await.unwrap().version();
    let outcomes = join_all((0..10).map(|number| {
        let (manage, by, id) = (&manage, &by, &id);
        async move {
            let change = Change::conditional(by, Some(accepting([version])));
            manage.update(&change, id, &read(&format!(r#"{{"name":"n{number}"}}"#)).unwrap()).await.is_ok()
        }
    }))
    .await;
    assert_eq!(outcomes.iter().filter(|succeeded| **succeeded).count(), 1);
}

#[tokio::test]
async fn version_covers_every_writable_member_and_nothing_else() {
    let store = store().await;
    let id = made(&store, r#"{"name":"a"}"#).await;
    let mut seen = vec![ports(&store).get(&by(), &id).await.unwrap().version()];
    for change in [
        r#"{"name":"b"}"#,
        r#"{"description":"d"}"#,
        r#"{"ignored_providers":["mirror"]}"#,
        r#"{"limit_usd":1,"reset_interval":null}"#,
        r#"{"limit_usd":2,"reset_interval":null}"#,
        r#"{"limit_usd":2,"reset_interval":"daily"}"#,
        r#"{"enforce_zdr":true}"#,
        r#"{"content_filters":[{"pattern":"p","action":"flag"}]}"#,
        r#"{"content_filter_builtins":[{"slug":"email","action":"block"}]}"#,
        r#"{"workspace_default":true}"#,
    ] {
        let version = update(&store, &id, change).await.unwrap().version();
        assert!(!seen.contains(&version), "{change}");
        seen.push(version);
        assert_eq!(update(&store, &id, change).await.unwrap().version(), version, "{change}");
    }
}
