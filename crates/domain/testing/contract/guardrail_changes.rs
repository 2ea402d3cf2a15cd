//! Cases of [`crate::guardrail::GuardrailRepository`]: versions, defaults, and audit entries of changes.

use super::super::{assign_keys, join_all, set_default_guardrail};
use super::Stores;
use super::samples::{
    add_guardrail, add_key, add_workspace, at, audit, changed_since, guardrail, guardrail_id, hash, inference_key,
    key_id, newest_change, placed, update_guardrail, workspace_id,
};
use crate::api_key::GrantScope;
use crate::audit::{Actor, AuditDraft, AuditEntry};
use crate::budget::{ResetInterval, SpendLimit};
use crate::change_feed::ChangeSubject;
use crate::guardrail::{
    BuiltinContentFilter, BuiltinFilter, ContentFilter, DataPolicyRules, Guardrail, GuardrailName, GuardrailRules,
    ScanScope,
};
use crate::ids::GuardrailId;
use crate::json::Json;
use crate::money::Usd;
use crate::usage::FilterAction;
use crate::workspace::WorkspaceUpdate;

fn by(name: &str, subject: &str) -> AuditDraft {
    let actor = Actor { name: name.to_owned(), source: Some("203.0.113.7".to_owned()) };
    AuditDraft::done(&actor, "guardrail.test", subject, Json::object([("after", "{}")]))
}

fn named(number: u64, name: &str, version: u32) -> Guardrail {
    let updated_at = (version > 1).then(|| at(100 + i64::from(version)));
    Guardrail { name: GuardrailName::try_new(name).unwrap(), version, updated_at, ..guardrail(number, 1) }
}

/// Returns a guardrail with every field, in texts that are hard to store.
fn whole(number: u64, version: u32) -> Guardrail {
    let list = |names: &[&str]| Some(names.iter().map(|name| (*name).to_owned()).collect());
    let rules = GuardrailRules {
        description: Some("what \"it\" says\n✓ 'and' does\u{0}".to_owned()),
        allowed_models: list(&["acme/judge-20260901", "sandbox/decider"]),
        ignored_models: list(&["rival/oracle-1"]),
        ignored_model_ids: vec!["rival/oracle".to_owned()],
        allowed_providers: list(&["typesafe"]),
        ignored_providers: list(&["mirror", "sandbox"]),
        data_policy: DataPolicyRules {
            enforce_zdr: Some(true),
            enforce_zdr_openai: Some(false),
            enable_free_model_training: Some(false),
            ..DataPolicyRules::default()
        },
        content_filters: vec![
            ContentFilter { pattern: r"(?i)\bh\x20ush\b".to_owned(), action: FilterAction::Block, label: None },
            ContentFilter {
                pattern: "[ÄÖ]".to_owned(),
                action: FilterAction::Redact,
                label: Some("ÜMLAUT".to_owned()),
            },
        ],
        content_filter_builtins: BuiltinFilter::ALL
            .map(|slug| BuiltinContentFilter {
                scan_scope: ScanScope::UserOnly,
                ..BuiltinContentFilter::new(slug, FilterAction::Flag)
            })
            .to_vec(),
    };
    let budget = SpendLimit { amount: Usd::from_pico(1), reset: Some(ResetInterval::Monthly) };
    Guardrail { rules, budget: Some(budget), ..named(number, "whole", version) }
}

async fn update(stores: &Stores, guardrail: &Guardrail, audit: &AuditDraft) -> bool {
    update_guardrail(&*stores.guardrails, guardrail, [false; 2], audit).await.unwrap()
}

async fn stored(stores: &Stores, number: u64) -> Guardrail {
    stores.guardrails.find(guardrail_id(number)).await.unwrap().expect("it is there")
}

async fn default_of(stores: &Stores, number: u64) -> Option<GuardrailId> {
    stores.workspaces.find(workspace_id(number)).await.unwrap().expect("it is there").default_guardrail_id
}

async fn newest_entry(stores: &Stores) -> AuditEntry {
    stores.audit.newest(1).await.unwrap().remove(0)
}

pub(super) async fn update_stores_every_field(stores: &Stores) {
    add_workspace(stores, 1).await;
    add_guardrail(stores, &whole(10, 1)).await;
    assert_eq!(stored(stores, 10).await, whole(10, 1));
    assert_eq!(stores.guardrails.list(workspace_id(1)).await.unwrap(), [whole(10, 1)]);
    let bare = named(10, "bare", 2);
    assert!(update(stores, &bare, &audit()).await);
    assert_eq!(stored(stores, 10).await, bare, "what is taken away is gone");
    let forever = SpendLimit { amount: Usd::from_pico(i64::MAX), reset: None };
    let forever = Guardrail { budget: Some(forever), ..whole(10, 3) };
    assert!(update(stores, &forever, &audit()).await);
    assert_eq!(stored(stores, 10).await, forever);
}

pub(super) async fn versions_returns_every_version(stores: &Stores) {
    add_workspace(stores, 1).await;
    assert_eq!(stores.guardrails.versions(guardrail_id(10), 99, 99).await.unwrap(), []);
    assert!(stores.guardrails.insert(&named(10, "one", 1), false, &by("user:ada", "s")).await.unwrap());
    add_guardrail(stores, &guardrail(11, 1)).await;
    assert!(update(stores, &whole(10, 2), &by("key:00", "s")).await);
    assert!(update(stores, &named(10, "three", 3), &by("user:bob", "s")).await);
    let versions = stores.guardrails.versions(guardrail_id(10), 99, 99).await.unwrap();
    let guardrails: Vec<&Guardrail> = versions.iter().map(|kept| &kept.guardrail).collect();
    assert_eq!(guardrails, [&named(10, "three", 3), &whole(10, 2), &named(10, "one", 1)], "the newest first");
    let by: Vec<&str> = versions.iter().map(|kept| kept.changed_by.as_str()).collect();
    assert_eq!(by, ["user:bob", "key:00", "user:ada"]);
    assert_eq!(stores.guardrails.versions(guardrail_id(10), 2, 1).await.unwrap(), versions[1..2], "from a number down");
    let times: Vec<_> = versions.iter().map(|kept| kept.changed_at).collect();
    assert_eq!(times, [at(103), at(102), at(10)], "when each came to be");
    assert_eq!(stores.guardrails.versions(guardrail_id(11), 99, 99).await.unwrap().len(), 1, "each has its own");
    assert!(stores.guardrails.delete(&placed(10, 3, false), &audit()).await.unwrap());
    assert_eq!(stores.guardrails.versions(guardrail_id(10), 99, 99).await.unwrap(), [], "they go with it");
}

pub(super) async fn update_accepts_next_version_only(stores: &Stores) {
    add_workspace(stores, 1).await;
    add_guardrail(stores, &named(10, "one", 1)).await;
    let before = (newest_change(stores).await, newest_entry(stores).await);
    for version in [0, 1, 3, u32::MAX] {
        assert!(!update(stores, &named(10, "no", version), &audit()).await, "{version}");
        let default =
            update_guardrail(&*stores.guardrails, &named(10, "no", version), [false, true], &audit()).await.unwrap();
        assert!(!default, "{version}");
    }
    assert!(!update(stores, &named(12, "unknown", 2), &audit()).await);
    assert_eq!((newest_change(stores).await, newest_entry(stores).await), before, "nothing has changed");
    assert_eq!(stored(stores, 10).await, named(10, "one", 1));
    assert_eq!(default_of(stores, 1).await, None);
    assert!(update(stores, &named(10, "two", 2), &audit()).await);
    assert_eq!(changed_since(stores, before.0).await, [ChangeSubject::Guardrail(guardrail_id(10))]);
}

pub(super) async fn concurrent_updates_succeed_once(stores: &Stores) {
    add_workspace(stores, 1).await;
    add_guardrail(stores, &named(10, "one", 1)).await;
    let rivals = (0..8).map(|number| async move {
        let rival = named(10, &format!("rival {number}"), 2);
        let won = if number % 2 == 0 {
            update(stores, &rival, &by("user:ada", &format!("rival {number}"))).await
        } else {
            let audit = by("user:ada", &format!("rival {number}"));
            update_guardrail(&*stores.guardrails, &rival, [false, true], &audit).await.unwrap()
        };
        won.then_some(number)
    });
    let won: Vec<i32> = join_all(rivals).await.into_iter().flatten().collect();
    assert_eq!(won.len(), 1, "{won:?}");
    let name = format!("rival {}", won[0]);
    assert_eq!(stored(stores, 10).await, named(10, &name, 2));
    assert_eq!(newest_entry(stores).await.subject, name, "and only that one is written down");
    assert_eq!(stores.guardrails.versions(guardrail_id(10), 99, 99).await.unwrap().len(), 2);
    assert_eq!(default_of(stores, 1).await, (won[0] % 2 == 1).then(|| guardrail_id(10)));
}

/// Returns the guardrails of a key, once changes are visible.
async fn effective_guardrails(stores: &Stores, key: u64) -> (Option<GuardrailId>, Option<GuardrailId>) {
    stores.wait_for_grants().await;
    let grant = stores.key_grants.find(&hash(key)).await.unwrap().expect("the key is live");
    match &grant.scope {
        GrantScope::Inference { workspace_guardrail_id, guardrail_id, .. } => (*workspace_guardrail_id, *guardrail_id),
        GrantScope::Management(_) => panic!("an inference key was made"),
    }
}

pub(super) async fn workspace_default_accepts_own_guardrail_only(stores: &Stores) {
    add_workspace(stores, 1).await;
    add_workspace(stores, 2).await;
    add_key(stores, &inference_key(1, 1)).await;
    for (number, workspace) in [(10, 1), (11, 1), (20, 2)] {
        add_guardrail(stores, &guardrail(number, workspace)).await;
    }
    let set = async |workspace: u64, guardrail: Option<u64>| {
        let (id, guardrail) = (workspace_id(workspace), guardrail.map(guardrail_id));
        set_default_guardrail(&*stores.workspaces, id, guardrail, &audit()).await.unwrap()
    };
    assert_eq!(effective_guardrails(stores, 1).await, (None, None));
    for (guardrail, why) in [(20, "of another workspace"), (99, "unknown")] {
        let before = (newest_change(stores).await, newest_entry(stores).await);
        assert_eq!(set(1, Some(guardrail)).await, WorkspaceUpdate::UnknownGuardrail, "{why}");
        assert_eq!((newest_change(stores).await, newest_entry(stores).await), before, "{why}");
    }
    let before = newest_change(stores).await;
    assert_eq!(set(1, Some(10)).await, WorkspaceUpdate::Updated);
    assert_eq!(changed_since(stores, before).await, [ChangeSubject::Workspace(workspace_id(1))]);
    assert_eq!(default_of(stores, 1).await, Some(guardrail_id(10)));
    assert_eq!(effective_guardrails(stores, 1).await, (Some(guardrail_id(10)), None));
    assert_eq!(set(1, Some(11)).await, WorkspaceUpdate::Updated, "one in place of the other");
    assign_keys(&*stores.guardrails, guardrail_id(10), &[key_id(1).into()], &Actor::system()).await.unwrap();
    assert_eq!(effective_guardrails(stores, 1).await, (Some(guardrail_id(11)), Some(guardrail_id(10))));
    assert_eq!(set(1, None).await, WorkspaceUpdate::Updated);
    assert_eq!(default_of(stores, 1).await, None);
    assert_eq!(effective_guardrails(stores, 1).await, (None, Some(guardrail_id(10))));
    assert_eq!(default_of(stores, 2).await, None, "another workspace is untouched");
}

pub(super) async fn update_default_sets_default_in_same_transaction(stores: &Stores) {
    assert!(!stores.guardrails.insert(&guardrail(10, 1), true, &audit()).await.unwrap(), "no workspace");
    add_workspace(stores, 1).await;
    let before = newest_change(stores).await;
    assert!(stores.guardrails.insert(&guardrail(10, 1), true, &audit()).await.unwrap());
    assert_eq!(changed_since(stores, before).await, [ChangeSubject::Workspace(workspace_id(1))]);
    assert_eq!(default_of(stores, 1).await, Some(guardrail_id(10)));
    assert_eq!(stores.guardrails.versions(guardrail_id(10), 99, 99).await.unwrap().len(), 1);
    add_guardrail(stores, &guardrail(11, 1)).await;
    let update = async |number: u64, version: u32, was: bool, default: bool| {
        let changed = named(number, "changed", version);
        assert!(update_guardrail(&*stores.guardrails, &changed, [was, default], &audit()).await.unwrap());
        assert_eq!(stored(stores, number).await, changed);
        default_of(stores, 1).await
    };
    assert_eq!(update(11, 2, false, false).await, Some(guardrail_id(10)), "another default stays");
    assert_eq!(update(11, 3, false, true).await, Some(guardrail_id(11)));
    assert_eq!(update(11, 4, true, false).await, None);
}

/// The right to change a guardrail depends on this: a change that was decided before another call made the guardrail the
/// default, or removed it, is decided again.
pub(super) async fn change_compares_whether_guardrail_is_default(stores: &Stores) {
    add_workspace(stores, 1).await;
    add_guardrail(stores, &guardrail(10, 1)).await;
    assert!(stores.guardrails.insert(&guardrail(11, 1), true, &audit()).await.unwrap());
    let before = (newest_change(stores).await, newest_entry(stores).await);
    for (number, was) in [(10, true), (11, false)] {
        for becomes in [false, true] {
            let next = named(number, "next", 2);
            assert!(!update_guardrail(&*stores.guardrails, &next, [was, becomes], &audit()).await.unwrap());
        }
        assert!(!stores.guardrails.delete(&placed(number, 1, was), &audit()).await.unwrap());
    }
    assert_eq!((newest_change(stores).await, newest_entry(stores).await), before, "nothing has changed");
    assert_eq!(default_of(stores, 1).await, Some(guardrail_id(11)));
    assert_eq!(stores.guardrails.list(workspace_id(1)).await.unwrap(), [guardrail(11, 1), guardrail(10, 1)]);
}

pub(super) async fn delete_clears_default(stores: &Stores) {
    add_workspace(stores, 1).await;
    add_key(stores, &inference_key(1, 1)).await;
    assert!(stores.guardrails.insert(&guardrail(10, 1), true, &audit()).await.unwrap());
    let before = newest_change(stores).await;
    assert!(stores.guardrails.delete(&placed(10, 1, true), &audit()).await.unwrap());
    let subjects = [ChangeSubject::Guardrail(guardrail_id(10)), ChangeSubject::Workspace(workspace_id(1))];
    assert_eq!(changed_since(stores, before).await, subjects);
    assert_eq!(default_of(stores, 1).await, None);
    assert_eq!(effective_guardrails(stores, 1).await, (None, None));
}

pub(super) async fn changes_write_their_audit_entry(stores: &Stores) {
    add_workspace(stores, 1).await;
    let wrote = async |subject: &str| {
        let entry = newest_entry(stores).await;
        assert_eq!((entry.subject.as_str(), entry.actor.name.as_str()), (subject, "user:ada"));
        assert_eq!(entry.actor.source.as_deref(), Some("203.0.113.7"));
    };
    let by = |subject: &str| by("user:ada", subject);
    assert!(stores.guardrails.insert(&guardrail(10, 1), false, &by("insert")).await.unwrap());
    wrote("insert").await;
    assert!(stores.guardrails.insert(&guardrail(11, 1), true, &by("insert default")).await.unwrap());
    wrote("insert default").await;
    assert!(update(stores, &named(10, "two", 2), &by("update")).await);
    wrote("update").await;
    assert!(
        update_guardrail(&*stores.guardrails, &named(10, "three", 3), [false, true], &by("update default"))
            .await
            .unwrap()
    );
    wrote("update default").await;
    add_key(stores, &inference_key(1, 1)).await;
    assign_keys(&*stores.guardrails, guardrail_id(10), &[key_id(1).into()], &by("").actor).await.unwrap();
    wrote(&format!("guardrail {}", guardrail_id(10))).await;
    assert!(stores.guardrails.delete(&placed(11, 1, false), &by("delete")).await.unwrap());
    wrote("delete").await;
    // Failed changes have no entry.
    assert!(!stores.guardrails.delete(&placed(11, 1, false), &by("again")).await.unwrap());
    assert!(!stores.guardrails.insert(&guardrail(12, 9), false, &by("nowhere")).await.unwrap());
    assert!(!update(stores, &named(10, "stale", 3), &by("stale")).await);
    assert_eq!(
        assign_keys(&*stores.guardrails, guardrail_id(11), &[key_id(1).into()], &by("").actor).await.unwrap(),
        None
    );
    wrote("delete").await;
}
