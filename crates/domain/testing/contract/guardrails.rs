//! Cases of [`crate::guardrail::GuardrailRepository`].

use super::super::{assign_keys, delete_key, join_all, set_default_guardrail};
use super::Stores;
use super::guardrail_changes::{
    change_compares_whether_guardrail_is_default, changes_write_their_audit_entry, concurrent_updates_succeed_once,
    delete_clears_default, update_accepts_next_version_only, update_default_sets_default_in_same_transaction,
    update_stores_every_field, versions_returns_every_version, workspace_default_accepts_own_guardrail_only,
};
use super::samples::{
    add_guardrail, add_key, add_workspace, audit, changed_since, guardrail, guardrail_id, hash, inference_key, key_id,
    management_key, newest_change, placed, workspace_id,
};
use crate::api_key::{ApiKey, KeyReference, LastKeyRule};
use crate::audit::Actor;
use crate::authority::ManagementScope;
use crate::change_feed::ChangeSubject;
use crate::guardrail::{Guardrail, PlacedGuardrail};
use crate::ids::GuardrailId;
use crate::naming::ResourceName;

suite! {
    /// Every case of the port's contract.
    guardrail_repository_cases as guardrail_repository_contract over Stores {
        find_named_returns_guardrails_of_id_or_name_within_scope,
        find_returns_inserted_guardrail,
        assign_keys_accepts_live_keys_of_the_workspace_only,
        assign_keys_replaces_previous_guardrail,
        assign_keys_counts_keys_again_when_repeated,
        unknown_guardrail_changes_nothing,
        assign_keys_takes_many_hashes,
        assign_keys_counts_key_once_under_both_references,
        rotated_key_keeps_its_guardrail,
        delete_unassigns_all_keys,
        deleted_key_has_no_guardrail,
        concurrent_assignments_are_atomic,
        delete_during_assignment_leaves_no_key,
        update_stores_every_field,
        versions_returns_every_version,
        update_accepts_next_version_only,
        concurrent_updates_succeed_once,
        workspace_default_accepts_own_guardrail_only,
        update_default_sets_default_in_same_transaction,
        change_compares_whether_guardrail_is_default,
        delete_clears_default,
        changes_write_their_audit_entry,
    }
}

async fn assign(stores: &Stores, id: GuardrailId, keys: &[u64]) -> Option<u64> {
    let names: Vec<KeyReference> = keys.iter().map(|number| key_id(*number).into()).collect();
    assign_keys(&*stores.guardrails, id, &names, &Actor::system()).await.unwrap()
}

async fn held_by(stores: &Stores, key: u64) -> Option<GuardrailId> {
    stores.api_keys.find(&key_id(key).into()).await.unwrap().expect("the key is live").guardrail_id
}

/// Inserts workspaces 1 and 2; keys 1 to 3 and guardrails 10 and 11 are in the first one.
async fn insert_fixtures(stores: &Stores) {
    add_workspace(stores, 1).await;
    add_workspace(stores, 2).await;
    for number in 1..=3 {
        add_key(stores, &inference_key(number, 1)).await;
    }
    for number in [10, 11] {
        add_guardrail(stores, &guardrail(number, 1)).await;
    }
}

async fn find_returns_inserted_guardrail(stores: &Stores) {
    assert!(
        !stores.guardrails.insert(&guardrail(1, 1), false, &audit()).await.unwrap(),
        "its workspace does not exist"
    );
    assert_eq!(stores.guardrails.find(guardrail_id(1)).await.unwrap(), None);
    add_workspace(stores, 1).await;
    add_workspace(stores, 2).await;
    for (number, workspace) in [(2, 1), (3, 1), (1, 1), (4, 2)] {
        add_guardrail(stores, &guardrail(number, workspace)).await;
    }
    assert_eq!(stores.guardrails.find(guardrail_id(4)).await.unwrap(), Some(guardrail(4, 2)));
    let listed = stores.guardrails.list(workspace_id(1)).await.unwrap();
    assert_eq!(listed, [guardrail(3, 1), guardrail(2, 1), guardrail(1, 1)], "newest first, of that workspace");
    assert_eq!(stores.guardrails.list(workspace_id(3)).await.unwrap(), []);
    set_default_guardrail(&*stores.workspaces, workspace_id(1), Some(guardrail_id(2)), &audit()).await.unwrap();
    let placed =
        |number, workspace| PlacedGuardrail { guardrail: guardrail(number, workspace), workspace_default: number == 2 };
    let page =
        async |within: &ManagementScope, offset, limit| stores.guardrails.page(within, offset, limit).await.unwrap();
    let all = ManagementScope::UNRESTRICTED;
    assert_eq!(page(&all, 1, 2).await, (vec![placed(3, 1), placed(2, 1)], 4));
    let own = ManagementScope::of_one(workspace_id(2));
    assert_eq!(page(&own, 0, 9).await, (vec![placed(4, 2)], 1));
    assert_eq!(page(&own, 1, 9).await, (vec![], 1));
}

async fn assign_keys_accepts_live_keys_of_the_workspace_only(stores: &Stores) {
    insert_fixtures(stores).await;
    add_key(stores, &inference_key(4, 2)).await;
    add_key(stores, &management_key(5)).await;
    add_key(stores, &ApiKey { disabled: true, ..inference_key(6, 1) }).await;
    add_key(stores, &ApiKey { expires_at: Some(super::samples::at(-9_999_999)), ..inference_key(7, 1) }).await;
    add_key(stores, &inference_key(8, 1)).await;
    assert!(delete_key(&*stores.api_keys, key_id(8), LastKeyRule::Waived, &audit()).await.unwrap());
    let before = newest_change(stores).await;
    assert_eq!(assign(stores, guardrail_id(10), &[1, 2, 4, 5, 6, 7, 8, 99]).await, Some(4));
    let named = ChangeSubject::keys_of(workspace_id(1), &[1, 2, 6, 7].map(hash));
    assert_eq!(changed_since(stores, before).await, named);
    for key in [1, 2, 6, 7] {
        assert_eq!(held_by(stores, key).await, Some(guardrail_id(10)), "disabled and expired keys count: {key}");
    }
    for key in [3, 4, 5] {
        assert_eq!(held_by(stores, key).await, None, "not named, of another workspace, or for management: {key}");
    }
    assert_eq!(stores.guardrails.count_keys(guardrail_id(10)).await.unwrap(), 4);
}

async fn assign_keys_replaces_previous_guardrail(stores: &Stores) {
    insert_fixtures(stores).await;
    assert_eq!(assign(stores, guardrail_id(10), &[1, 2]).await, Some(2));
    assert_eq!(assign(stores, guardrail_id(11), &[2, 3]).await, Some(2), "it replaces what a key held");
    assert_eq!(stores.guardrails.count_keys(guardrail_id(10)).await.unwrap(), 1);
    assert_eq!(stores.guardrails.count_keys(guardrail_id(11)).await.unwrap(), 2);
    assert_eq!(held_by(stores, 2).await, Some(guardrail_id(11)));
}

async fn assign_keys_counts_keys_again_when_repeated(stores: &Stores) {
    insert_fixtures(stores).await;
    assert_eq!(assign(stores, guardrail_id(10), &[1]).await, Some(1));
    assert_eq!(assign(stores, guardrail_id(10), &[1, 2]).await, Some(2), "those that held it already are counted");
    assert_eq!(assign(stores, guardrail_id(10), &[]).await, Some(0));
    assert_eq!(stores.guardrails.count_keys(guardrail_id(10)).await.unwrap(), 2);
}

async fn unknown_guardrail_changes_nothing(stores: &Stores) {
    insert_fixtures(stores).await;
    assert_eq!(assign(stores, guardrail_id(10), &[1]).await, Some(1));
    assert_eq!(assign(stores, guardrail_id(99), &[1, 2]).await, None);
    assert_eq!(assign(stores, guardrail_id(99), &[]).await, None);
    assert_eq!(held_by(stores, 1).await, Some(guardrail_id(10)));
    assert_eq!(stores.guardrails.count_keys(guardrail_id(99)).await.unwrap(), 0);
}

/// The hashes exceed the parameters of a statement in common databases.
async fn assign_keys_takes_many_hashes(stores: &Stores) {
    insert_fixtures(stores).await;
    let numbers: Vec<u64> = (1..=70_000).collect();
    for number in [4, 30_000, 70_000] {
        add_key(stores, &inference_key(number, 1)).await;
    }
    assert_eq!(assign(stores, guardrail_id(10), &numbers).await, Some(6));
    assert_eq!(stores.guardrails.count_keys(guardrail_id(10)).await.unwrap(), 6);
}

async fn assign_keys_counts_key_once_under_both_references(stores: &Stores) {
    insert_fixtures(stores).await;
    assign(stores, guardrail_id(10), &[3]).await;
    let mut both =
        vec![key_id(1).into(), key_id(3).into(), hash(1).into(), hash(2).into(), hash(3).into(), hash(9).into()];
    both.sort_unstable();
    let assigned = assign_keys(&*stores.guardrails, guardrail_id(10), &both, &Actor::system()).await.unwrap();
    assert_eq!(assigned, Some(3));
    assert_eq!(stores.guardrails.count_keys(guardrail_id(10)).await.unwrap(), 3);
    let entry = stores.audit.newest(1).await.unwrap().remove(0);
    assert_eq!((entry.action.as_str(), &entry.actor), ("guardrail.assign_keys", &Actor::system()));
    let named = format!(r#"{{"keys_count":2,"keys":["{}","{}"]}}"#, key_id(1), key_id(2));
    assert_eq!(entry.details.text(), named, "those that changed, by id");
}

async fn rotated_key_keeps_its_guardrail(stores: &Stores) {
    insert_fixtures(stores).await;
    assign(stores, guardrail_id(10), &[1]).await;
    let before = stores.api_keys.find(&key_id(1).into()).await.unwrap().unwrap();
    let listed = async || {
        stores.guardrails.list_keys(Some(guardrail_id(10)), &ManagementScope::UNRESTRICTED, 0, 10).await.unwrap().0
    };
    let held = listed().await.remove(0);
    let after = ApiKey { hash: hash(101), label: "new".to_owned(), ..before.clone() };
    assert!(stores.api_keys.rotate(&before, &after, &audit()).await.unwrap());
    assert_eq!(held_by(stores, 1).await, Some(guardrail_id(10)));
    let rotated = listed().await.remove(0);
    assert_eq!((rotated.id(), rotated.assigned_at, rotated.key_hash), (held.id(), held.assigned_at, hash(101)));
    assert_eq!(stores.audit.check_rows(10).await.unwrap(), [], "the log accounts for it");
}

async fn delete_unassigns_all_keys(stores: &Stores) {
    insert_fixtures(stores).await;
    assign(stores, guardrail_id(10), &[1]).await;
    assign(stores, guardrail_id(11), &[2]).await;
    let before = newest_change(stores).await;
    assert!(stores.guardrails.delete(&placed(10, 1, false), &audit()).await.unwrap());
    let subjects = [ChangeSubject::Guardrail(guardrail_id(10)), ChangeSubject::Key(hash(1))];
    assert_eq!(changed_since(stores, before).await, subjects);
    assert_eq!(stores.guardrails.find(guardrail_id(10)).await.unwrap(), None);
    assert_eq!(held_by(stores, 1).await, None);
    assert_eq!(held_by(stores, 2).await, Some(guardrail_id(11)), "another guardrail is untouched");
    assert_eq!(stores.guardrails.count_keys(guardrail_id(10)).await.unwrap(), 0);
    assert!(!stores.guardrails.delete(&placed(10, 1, false), &audit()).await.unwrap());
    assert_eq!(stores.guardrails.list(workspace_id(1)).await.unwrap(), [guardrail(11, 1)]);
}

async fn deleted_key_has_no_guardrail(stores: &Stores) {
    insert_fixtures(stores).await;
    assign(stores, guardrail_id(10), &[1, 2]).await;
    assert!(delete_key(&*stores.api_keys, key_id(1), LastKeyRule::Waived, &audit()).await.unwrap());
    assert_eq!(stores.guardrails.count_keys(guardrail_id(10)).await.unwrap(), 1);
}

async fn concurrent_assignments_are_atomic(stores: &Stores) {
    insert_fixtures(stores).await;
    let rivals = (0..8).map(|number| assign(stores, guardrail_id(10 + number % 2), &[1, 2, 3]));
    assert_eq!(join_all(rivals).await, [Some(3); 8]);
    let first = held_by(stores, 1).await;
    assert!(first == Some(guardrail_id(10)) || first == Some(guardrail_id(11)));
    for key in [2, 3] {
        assert_eq!(held_by(stores, key).await, first, "a call is all or nothing");
    }
}

async fn delete_during_assignment_leaves_no_key(stores: &Stores) {
    insert_fixtures(stores).await;
    let acts = (0..6).map(|number| async move {
        if number == 3 {
            assert!(stores.guardrails.delete(&placed(10, 1, false), &audit()).await.unwrap());
        } else {
            let assigned = assign(stores, guardrail_id(10), &[1, 2, 3]).await;
            assert!(assigned == Some(3) || assigned.is_none(), "{assigned:?}");
        }
    });
    join_all(acts).await;
    for key in 1..=3 {
        assert_eq!(held_by(stores, key).await, None);
    }
}

async fn find_named_returns_guardrails_of_id_or_name_within_scope(stores: &Stores) {
    for workspace in [1, 2] {
        add_workspace(stores, workspace).await;
    }
    let same_name = Guardrail { name: guardrail(1, 1).name, ..guardrail(3, 2) };
    for guardrail in [&guardrail(1, 1), &guardrail(2, 1), &same_name] {
        add_guardrail(stores, guardrail).await;
    }
    let (all, second) = (ManagementScope::UNRESTRICTED, ManagementScope::of_one(workspace_id(2)));
    let find = async |name: &str, within: &ManagementScope| {
        let found = stores.guardrails.find_named(&ResourceName::new(name), within).await.unwrap();
        let mut ids: Vec<GuardrailId> = found.iter().map(|found| found.id).collect();
        ids.sort_unstable();
        ids
    };
    let (name, id) = (guardrail(1, 1).name.as_str().to_owned(), guardrail_id(1).to_string());
    assert_eq!(find(&name, &all).await, [guardrail_id(1), guardrail_id(3)]);
    assert_eq!((find(&name, &second).await, find(&id, &second).await), (vec![guardrail_id(3)], vec![]));
    assert_eq!(find(&id.to_uppercase(), &all).await, [guardrail_id(1)]);
    for other in ["", "nonsense", &name.to_uppercase(), &guardrail_id(9).to_string()] {
        assert_eq!(find(other, &all).await, [], "{other}");
    }
}
