//! Cases of [`crate::guardrail::GuardrailRepository`]: assignments.

use super::super::{assign_keys, delete_key, join_all, remove_keys};
use super::Stores;
use super::samples::{
    add_guardrail, add_key, add_workspace, audit, changed_since, guardrail, guardrail_id, hash, inference_key, key_id,
    newest_change, workspace_id,
};
use crate::api_key::{KeyReference, LastKeyRule};
use crate::audit::Actor;
use crate::authority::{Authority, ManagementScope};
use crate::change::Change;
use crate::change_feed::ChangeSubject;
use crate::error::StoreError;
use crate::guardrail::{AssignKeysError, KeyAssignment, PlacedGuardrail};
use crate::ids::ApiKeyId;
use crate::repetition::{Repetition, RepetitionScope, StoredResponse};
use crate::version::IfMatch;

suite! {
    /// Every case of the port's contract.
    guardrail_assignments_cases as guardrail_assignments_contract over Stores {
        list_returns_assigned_keys,
        list_returns_consecutive_pages,
        remove_unassigns_keys,
        remove_keeps_keys_of_other_guardrails,
        concurrent_removals_count_each_key_once,
        remove_takes_many_keys,
        remove_counts_key_once_under_both_references,
        changes_check_the_version_and_store_the_request,
    }
}

/// Inserts a workspace with two guardrails, and `keys` keys with the first guardrail.
async fn insert_keys(stores: &Stores, keys: u64) -> Vec<ApiKeyId> {
    add_workspace(stores, 1).await;
    add_guardrail(stores, &guardrail(1, 1)).await;
    add_guardrail(stores, &guardrail(2, 1)).await;
    for number in 1..=keys {
        add_key(stores, &inference_key(number, 1)).await;
    }
    let ids: Vec<ApiKeyId> = (1..=keys).map(key_id).collect();
    assert_eq!(
        assign_keys(&*stores.guardrails, guardrail_id(1), &names(&ids), &Actor::system()).await.unwrap(),
        Some(keys)
    );
    ids
}

fn names(ids: &[ApiKeyId]) -> Vec<KeyReference> {
    ids.iter().copied().map(KeyReference::Id).collect()
}

async fn listed(stores: &Stores, number: u64, offset: u64, limit: u64) -> (Vec<KeyAssignment>, u64) {
    let all = &ManagementScope::UNRESTRICTED;
    stores.guardrails.list_keys(Some(guardrail_id(number)), all, offset, limit).await.unwrap()
}

async fn list_returns_assigned_keys(stores: &Stores) {
    let ids = insert_keys(stores, 2).await;
    let (assignments, total) = listed(stores, 1, 0, 10).await;
    assert_eq!(total, 2);
    let keys: Vec<_> = assignments.iter().rev().map(|found| found.key_id).collect();
    assert_eq!(keys, ids, "given at once, the newest key first");
    let key = stores.api_keys.find(&ids[1].into()).await.unwrap().unwrap();
    let first = &assignments[0];
    assert_eq!((&first.key_name, &first.key_label, first.guardrail_id), (&key.name, &key.label, guardrail_id(1)));
    assert_eq!(first.assigned_by.as_deref(), Some("system"));
    assert!(first.assigned_at > key.created_at - chrono::TimeDelta::days(400_000), "a moment");
    assert_eq!(listed(stores, 2, 0, 10).await, (Vec::new(), 0));
    assert_eq!(listed(stores, 9, 0, 10).await, (Vec::new(), 0), "there is no such guardrail");
    let within = async |workspace| {
        let scope = ManagementScope::of_one(workspace_id(workspace));
        stores.guardrails.list_keys(None, &scope, 0, 10).await.unwrap().1
    };
    assert_eq!((within(1).await, within(2).await), (2, 0), "of all guardrails");
    assert!(delete_key(&*stores.api_keys, ids[0], LastKeyRule::Waived, &audit()).await.unwrap());
    assert_eq!(listed(stores, 1, 0, 10).await.1, 1, "a deleted key holds nothing");
}

async fn list_returns_consecutive_pages(stores: &Stores) {
    let ids = insert_keys(stores, 5).await;
    let mut seen = Vec::new();
    for offset in [0, 2, 4, 6] {
        let (page, total) = listed(stores, 1, offset, 2).await;
        assert_eq!(total, 5, "the whole, whatever the page");
        seen.extend(page.into_iter().map(|found| found.key_id));
    }
    seen.reverse();
    assert_eq!(seen, ids, "each once, in one order");
}

async fn remove_unassigns_keys(stores: &Stores) {
    let ids = insert_keys(stores, 3).await;
    let before = newest_change(stores).await;
    let removed = remove_keys(&*stores.guardrails, guardrail_id(1), &names(&ids[..2]), &Actor::system()).await.unwrap();
    assert_eq!(removed, Some(2));
    let changed = changed_since(stores, before).await;
    let named = ChangeSubject::keys_of(workspace_id(1), &[1, 2].map(hash));
    assert_eq!(changed, named, "cached keys carry what they hold");
    assert_eq!(listed(stores, 1, 0, 10).await.1, 1);
    assert_eq!(stores.api_keys.find(&ids[0].into()).await.unwrap().unwrap().guardrail_id, None);
    let (newest, entries) = (newest_change(stores).await, stores.audit.newest(100).await.unwrap().len());
    let again = remove_keys(&*stores.guardrails, guardrail_id(1), &names(&ids[..2]), &Actor::system()).await.unwrap();
    assert_eq!(again, Some(0), "they hold it no more");
    assert_eq!(newest_change(stores).await, newest, "and nothing changed");
    assert_eq!(stores.audit.newest(100).await.unwrap().len(), entries, "so nothing is written down");
    let unknown = remove_keys(&*stores.guardrails, guardrail_id(9), &names(&ids), &Actor::system()).await.unwrap();
    assert_eq!(unknown, None, "there is no such guardrail");
}

async fn remove_keeps_keys_of_other_guardrails(stores: &Stores) {
    let ids = insert_keys(stores, 2).await;
    assign_keys(&*stores.guardrails, guardrail_id(2), &names(&ids[..1]), &Actor::system()).await.unwrap();
    assert_eq!(
        remove_keys(&*stores.guardrails, guardrail_id(1), &names(&ids), &Actor::system()).await.unwrap(),
        Some(1)
    );
    assert_eq!(stores.api_keys.find(&ids[0].into()).await.unwrap().unwrap().guardrail_id, Some(guardrail_id(2)));
    assert_eq!(listed(stores, 2, 0, 10).await.1, 1);
}

async fn concurrent_removals_count_each_key_once(stores: &Stores) {
    let ids = insert_keys(stores, 4).await;
    let rivals = (0..8).map(|_| {
        let (port, ids) = (&stores.guardrails, &ids);
        async move { remove_keys(&**port, guardrail_id(1), &names(ids), &Actor::system()).await.unwrap().unwrap() }
    });
    assert_eq!(join_all(rivals).await.into_iter().sum::<u64>(), 4);
}

async fn remove_takes_many_keys(stores: &Stores) {
    let ids = insert_keys(stores, 2).await;
    let mut many: Vec<ApiKeyId> = (10..20_010).map(key_id).chain(ids).collect();
    many.sort_unstable();
    assert_eq!(
        remove_keys(&*stores.guardrails, guardrail_id(1), &names(&many), &Actor::system()).await.unwrap(),
        Some(2)
    );
}

async fn remove_counts_key_once_under_both_references(stores: &Stores) {
    let ids = insert_keys(stores, 3).await;
    let both = [ids[0].into(), ids[1].into(), hash(1).into(), hash(2).into()];
    assert_eq!(remove_keys(&*stores.guardrails, guardrail_id(1), &both, &Actor::system()).await.unwrap(), Some(2));
    let entry = stores.audit.newest(1).await.unwrap().remove(0);
    assert_eq!(entry.action, "guardrail.remove_keys");
    assert_eq!(entry.details.text(), format!(r#"{{"keys_count":2,"keys":["{}","{}"]}}"#, ids[0], ids[1]));
    let (left, _) = listed(stores, 1, 0, 10).await;
    assert_eq!(left.iter().map(|found| (found.key_id, found.key_hash)).collect::<Vec<_>>(), [(ids[2], hash(3))]);
}

async fn changes_check_the_version_and_store_the_request(stores: &Stores) {
    let (ids, by, port) = (insert_keys(stores, 2).await, Authority::system(), &stores.guardrails);
    let (names, second) = (names(&ids), guardrail_id(2));
    let version = |workspace_default| PlacedGuardrail { guardrail: guardrail(2, 1), workspace_default }.version();
    let conditional = |version| Change::conditional(&by, Some(IfMatch::Versions(vec![version])));
    for changed in [
        port.assign_keys(second, &names, &conditional(version(true))).await,
        port.remove_keys(guardrail_id(1), &names, &conditional(version(false))).await,
    ] {
        assert!(matches!(changed, Err(AssignKeysError::PreconditionFailed(_))), "{changed:?}");
    }
    assert_eq!((listed(stores, 1, 0, 9).await.1, listed(stores, 2, 0, 9).await.1), (2, 0), "nothing changed");
    let scope = RepetitionScope { caller: "key:1".to_owned(), route: "POST /a".to_owned(), key: "k".parse().unwrap() };
    let request = Repetition { scope, fingerprint: [1; 32] };
    let respond = |count: &u64| StoredResponse::Content { status: 200, body: count.to_string(), version: None };
    let repeatable = || conditional(version(false)).stored_as(request.clone(), &respond);
    assert_eq!(port.assign_keys(second, &names, &repeatable()).await.unwrap(), 2);
    assert_eq!(stores.repetitions.find(&request.scope).await.unwrap().unwrap().response, respond(&2));
    let again = port.remove_keys(second, &names, &repeatable()).await;
    assert!(matches!(again, Err(AssignKeysError::Store(StoreError::Repeated))), "{again:?}");
    assert_eq!(listed(stores, 2, 0, 9).await.1, 2, "nothing changed");
}
