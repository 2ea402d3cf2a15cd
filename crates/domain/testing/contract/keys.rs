//! Cases of [`crate::api_key::ApiKeyRepository`].

use super::super::{delete_key, join_all, set_disabled};
use super::Stores;
use super::key_queries::{names_are_resolved_within_the_scope, page_has_filters_order_and_total};
use super::key_secrets::{
    previous_secret_is_the_same_key_until_its_expiry, rotation_disabling_and_deletion_end_the_previous_secret,
};
use super::samples::{
    add_guardrail, add_key, add_workspace, at, audit, changed_since, guardrail, guardrail_id, hash, inference_key,
    key_id, management_key, narrowed_key, newest_change, workspace_id,
};
use crate::api_key::{
    ApiKey, ApiKeyName, GrantScope, KeyInsertion, KeyReference, KeyUpdate, KeyUsers, LastKeyRule, UserLabel,
};
use crate::authority::ManagementAccess;
use crate::budget::{ResetInterval, SpendLimit};
use crate::change_feed::ChangeSubject;
use crate::error::StoreError;
use crate::money::Usd;
use crate::rate::RateLimits;

suite! {
    /// Every case of the port's contract.
    api_key_repository_cases as api_key_repository_contract over Stores {
        find_returns_inserted_key,
        insert_rejects_unknown_workspace,
        list_is_newest_first,
        set_disabled_is_visible_and_writes_the_feed,
        update_is_visible_and_writes_the_feed,
        concurrent_updates_succeed_once,
        changed_scope_is_visible_and_rejects_stale_changes,
        update_is_rejected_when_any_other_field_changed,
        deleted_key_is_unknown_to_every_method,
        rotate_replaces_hash_and_writes_the_feed,
        rotate_keeps_other_changes,
        concurrent_rotations_succeed_once,
        identities_include_deleted_keys,
        insert_rejects_used_id_or_hash,
        concurrent_inserts_succeed_once,
        insert_unique_rejects_names_of_live_keys_in_the_same_scope,
        concurrent_unique_inserts_succeed_once,
        concurrent_deletes_succeed_once,
        delete_of_another_state_changes_nothing,
        update_replaces_state_guardrail_and_labels,
        insert_and_update_reject_unknown_workspaces_and_guardrails,
        names_are_resolved_within_the_scope,
        page_has_filters_order_and_total,
        previous_secret_is_the_same_key_until_its_expiry,
        rotation_disabling_and_deletion_end_the_previous_secret,
    }
}

async fn find_returns_inserted_key(stores: &Stores) {
    assert_eq!(stores.api_keys.find(&key_id(1).into()).await.unwrap(), None);
    add_workspace(stores, 1).await;
    add_workspace(stores, 7).await;
    let forever = SpendLimit { amount: Usd::from_pico(1), reset: None };
    let keys = [
        inference_key(1, 1),
        ApiKey { disabled: true, limit: Some(forever), expires_at: None, ..inference_key(2, 1) },
        ApiKey { limit: None, ..inference_key(3, 1) },
        management_key(4),
        narrowed_key(5, ManagementAccess::Read, 1),
        narrowed_key(6, ManagementAccess::Write, 7),
    ];
    for key in &keys {
        add_key(stores, key).await;
        for name in [key.id.into(), key.hash.into()] {
            assert_eq!(stores.api_keys.find(&name).await.unwrap().as_ref(), Some(key), "field by field");
        }
    }
}

async fn insert_rejects_unknown_workspace(stores: &Stores) {
    assert!(!stores.api_keys.insert(&inference_key(1, 1), &audit()).await.unwrap().is_inserted());
    assert_eq!(stores.api_keys.find(&key_id(1).into()).await.unwrap(), None, "nothing is added");
    add_workspace(stores, 1).await;
    assert!(
        stores.api_keys.insert(&inference_key(1, 1), &audit()).await.unwrap().is_inserted(),
        "its hash is not used up"
    );
}

async fn list_is_newest_first(stores: &Stores) {
    add_workspace(stores, 1).await;
    add_workspace(stores, 2).await;
    for number in [2, 3, 1] {
        add_key(stores, &inference_key(number, 1)).await;
    }
    for key in [inference_key(4, 2), management_key(5), management_key(6)] {
        add_key(stores, &key).await;
    }
    let of_first = stores.api_keys.list(Some(workspace_id(1))).await.unwrap();
    assert_eq!(of_first, [inference_key(3, 1), inference_key(2, 1), inference_key(1, 1)]);
    assert_eq!(stores.api_keys.list(None).await.unwrap(), [management_key(6), management_key(5)]);
    assert_eq!(stores.api_keys.list(Some(workspace_id(3))).await.unwrap(), []);
}

async fn set_disabled_is_visible_and_writes_the_feed(stores: &Stores) {
    add_workspace(stores, 1).await;
    add_key(stores, &inference_key(1, 1)).await;
    add_key(stores, &inference_key(2, 1)).await;
    for disabled in [true, false] {
        let before = newest_change(stores).await;
        assert!(set_disabled(&*stores.api_keys, key_id(1), disabled, LastKeyRule::Waived, &audit()).await.unwrap());
        assert_eq!(stores.api_keys.find(&key_id(1).into()).await.unwrap().unwrap().disabled, disabled);
        assert_eq!(changed_since(stores, before).await, [ChangeSubject::Key(hash(1))]);
    }
    assert_eq!(
        stores.api_keys.find(&key_id(2).into()).await.unwrap(),
        Some(inference_key(2, 1)),
        "another key is untouched"
    );
    assert!(
        !set_disabled(&*stores.api_keys, key_id(3), true, LastKeyRule::Waived, &audit()).await.unwrap(),
        "there is no such key"
    );
}

async fn update_is_visible_and_writes_the_feed(stores: &Stores) {
    add_workspace(stores, 1).await;
    add_key(stores, &inference_key(2, 1)).await;
    let states = [
        inference_key(1, 1),
        ApiKey { limit: None, rates: RateLimits::default(), expires_at: None, ..inference_key(1, 1) },
        ApiKey { name: ApiKeyName::try_new("other").unwrap(), expires_at: None, ..inference_key(1, 1) },
        ApiKey {
            limit: Some(SpendLimit { amount: Usd::from_pico(7), reset: Some(ResetInterval::Daily) }),
            rates: RateLimits { requests_per_minute: None, tokens_per_minute: Some(u32::MAX) },
            ..inference_key(1, 1)
        },
    ];
    add_key(stores, &states[0]).await;
    for pair in states.windows(2) {
        let before = newest_change(stores).await;
        assert_eq!(
            stores.api_keys.update(&pair[0], &pair[1], LastKeyRule::Waived, &audit()).await.unwrap(),
            KeyUpdate::Updated
        );
        assert_eq!(stores.api_keys.find(&key_id(1).into()).await.unwrap().as_ref(), Some(&pair[1]), "field by field");
        assert_eq!(changed_since(stores, before).await, [ChangeSubject::Key(hash(1))]);
        assert_eq!(
            stores.api_keys.update(&pair[0], &pair[1], LastKeyRule::Waived, &audit()).await.unwrap(),
            KeyUpdate::Conflict,
            "it is not so any more"
        );
    }
    assert_eq!(
        stores.api_keys.find(&key_id(2).into()).await.unwrap(),
        Some(inference_key(2, 1)),
        "another key is untouched"
    );
    let [before, after] = [&inference_key(3, 1), &ApiKey { limit: None, ..inference_key(3, 1) }];
    assert_eq!(
        stores.api_keys.update(before, after, LastKeyRule::Waived, &audit()).await.unwrap(),
        KeyUpdate::Conflict,
        "there is no such key"
    );
    assert!(delete_key(&*stores.api_keys, key_id(1), LastKeyRule::Waived, &audit()).await.unwrap());
    assert_eq!(
        stores.api_keys.update(&states[3], &states[0], LastKeyRule::Waived, &audit()).await.unwrap(),
        KeyUpdate::Conflict,
        "a deleted key is gone"
    );
}

async fn concurrent_updates_succeed_once(stores: &Stores) {
    add_workspace(stores, 1).await;
    let before = ApiKey { limit: None, ..inference_key(1, 1) };
    add_key(stores, &before).await;
    let rivals = (1..=8).map(|pico| {
        let (repository, before) = (&stores.api_keys, &before);
        let limit = Some(SpendLimit { amount: Usd::from_pico(pico), reset: None });
        async move {
            repository.update(before, &ApiKey { limit, ..before.clone() }, LastKeyRule::Waived, &audit()).await.unwrap()
        }
    });
    assert_eq!(join_all(rivals).await.into_iter().filter(|won| *won == KeyUpdate::Updated).count(), 1);
}

async fn changed_scope_is_visible_and_rejects_stale_changes(stores: &Stores) {
    add_workspace(stores, 1).await;
    add_workspace(stores, 2).await;
    let states = [
        management_key(1),
        narrowed_key(1, ManagementAccess::Write, 1),
        narrowed_key(1, ManagementAccess::Keys, 1),
        narrowed_key(1, ManagementAccess::Keys, 2),
    ];
    add_key(stores, &states[0]).await;
    for pair in states.windows(2) {
        let newest = newest_change(stores).await;
        assert_eq!(
            stores.api_keys.update(&pair[0], &pair[1], LastKeyRule::Waived, &audit()).await.unwrap(),
            KeyUpdate::Updated
        );
        assert_eq!(stores.api_keys.find(&key_id(1).into()).await.unwrap().as_ref(), Some(&pair[1]));
        assert_eq!(changed_since(stores, newest).await, [ChangeSubject::Key(hash(1))]);
        let stale = ApiKey { name: ApiKeyName::try_new("other").unwrap(), ..pair[0].clone() };
        assert_eq!(
            stores.api_keys.update(&pair[0], &stale, LastKeyRule::Waived, &audit()).await.unwrap(),
            KeyUpdate::Conflict
        );
    }
    let grant = stores.key_grants.find(&hash(1)).await.unwrap().unwrap();
    assert_eq!(states[3].scope.management().cloned().map(GrantScope::Management).as_ref(), Some(&grant.scope));
    assert_eq!(stores.audit.check_rows(10).await.unwrap(), [], "the log accounts for it");
}

/// Every column is compared: a change based on an outdated key must fail.
async fn update_is_rejected_when_any_other_field_changed(stores: &Stores) {
    add_workspace(stores, 1).await;
    let changed = |number: u64| {
        let before = inference_key(number, 1);
        let limit = |pico, reset| Some(SpendLimit { amount: Usd::from_pico(pico), reset });
        let old = before.limit.unwrap();
        let rates = before.rates;
        vec![
            ApiKey { name: ApiKeyName::try_new("other").unwrap(), ..before.clone() },
            ApiKey { limit: limit(7, old.reset), ..before.clone() },
            ApiKey { limit: limit(old.amount.pico(), Some(ResetInterval::Daily)), ..before.clone() },
            ApiKey { limit: limit(old.amount.pico(), None), ..before.clone() },
            ApiKey { rates: RateLimits { requests_per_minute: Some(61), ..rates }, ..before.clone() },
            ApiKey { rates: RateLimits { tokens_per_minute: Some(1), ..rates }, ..before.clone() },
            ApiKey { expires_at: None, ..before },
        ]
    };
    for number in 1..=7 {
        let before = inference_key(number, 1);
        add_key(stores, &before).await;
        let all = changed(number);
        let rival = &all[usize::try_from(number).unwrap() - 1];
        assert_eq!(
            stores.api_keys.update(&before, rival, LastKeyRule::Waived, &audit()).await.unwrap(),
            KeyUpdate::Updated
        );
        for stale in all.iter().filter(|stale| *stale != rival) {
            let updated = stores.api_keys.update(&before, stale, LastKeyRule::Waived, &audit()).await.unwrap();
            assert_eq!(updated, KeyUpdate::Conflict, "{stale:?} after {rival:?}");
        }
        assert_eq!(stores.api_keys.find(&before.id.into()).await.unwrap().as_ref(), Some(rival));
    }
}

async fn deleted_key_is_unknown_to_every_method(stores: &Stores) {
    add_workspace(stores, 1).await;
    add_key(stores, &inference_key(1, 1)).await;
    add_key(stores, &inference_key(2, 1)).await;
    let before = newest_change(stores).await;
    assert!(delete_key(&*stores.api_keys, key_id(1), LastKeyRule::Waived, &audit()).await.unwrap());
    assert_eq!(changed_since(stores, before).await, [ChangeSubject::Key(hash(1))]);
    assert_eq!(stores.api_keys.find(&key_id(1).into()).await.unwrap(), None);
    assert_eq!(stores.api_keys.list(Some(workspace_id(1))).await.unwrap(), [inference_key(2, 1)]);
    assert!(!set_disabled(&*stores.api_keys, key_id(1), true, LastKeyRule::Waived, &audit()).await.unwrap());
    assert!(!delete_key(&*stores.api_keys, key_id(1), LastKeyRule::Waived, &audit()).await.unwrap());
    assert!(
        !delete_key(&*stores.api_keys, key_id(3), LastKeyRule::Waived, &audit()).await.unwrap(),
        "there is no such key"
    );
}

fn rotated(key: &ApiKey, number: u64) -> ApiKey {
    ApiKey { hash: hash(number), label: format!("label {number}"), ..key.clone() }
}

async fn rotate_replaces_hash_and_writes_the_feed(stores: &Stores) {
    add_workspace(stores, 1).await;
    add_key(stores, &inference_key(2, 1)).await;
    let before = inference_key(1, 1);
    add_key(stores, &before).await;
    let (newest, after) = (newest_change(stores).await, rotated(&before, 101));
    assert!(stores.api_keys.rotate(&before, &after, &audit()).await.unwrap());
    assert_eq!(changed_since(stores, newest).await, [ChangeSubject::Key(before.hash)], "as caches have it");
    for name in [after.id.into(), after.hash.into()] {
        assert_eq!(stores.api_keys.find(&name).await.unwrap().as_ref(), Some(&after));
    }
    assert_eq!(stores.api_keys.find(&before.hash.into()).await.unwrap(), None, "the old hash names nothing");
    assert_eq!(stores.key_grants.find(&before.hash).await.unwrap(), None, "the old secret is refused");
    let grant = stores.key_grants.find(&after.hash).await.unwrap().unwrap();
    assert_eq!((grant.id, grant.hash), (before.id, after.hash));
    assert_eq!(stores.api_keys.list(Some(workspace_id(1))).await.unwrap(), [inference_key(2, 1), after.clone()]);
    assert!(!stores.api_keys.rotate(&before, &rotated(&before, 102), &audit()).await.unwrap(), "it has another hash");
    let enabled = ApiKey { disabled: true, ..after.clone() };
    assert!(!stores.api_keys.rotate(&enabled, &rotated(&enabled, 104), &audit()).await.unwrap(), "it was changed");
    assert!(delete_key(&*stores.api_keys, after.id, LastKeyRule::Waived, &audit()).await.unwrap());
    assert!(!stores.api_keys.rotate(&after, &rotated(&before, 103), &audit()).await.unwrap(), "it is deleted");
    assert_eq!(stores.audit.check_rows(10).await.unwrap(), [], "the log accounts for it");
}

async fn rotate_keeps_other_changes(stores: &Stores) {
    let before = management_key(1);
    add_key(stores, &before).await;
    assert!(set_disabled(&*stores.api_keys, before.id, true, LastKeyRule::Waived, &audit()).await.unwrap());
    let disabled = ApiKey { disabled: true, ..before.clone() };
    let renamed = ApiKey { name: ApiKeyName::try_new("other").unwrap(), ..disabled.clone() };
    assert_eq!(
        stores.api_keys.update(&disabled, &renamed, LastKeyRule::Waived, &audit()).await.unwrap(),
        KeyUpdate::Updated
    );
    assert!(!stores.api_keys.rotate(&before, &rotated(&before, 101), &audit()).await.unwrap(), "it was changed");
    assert!(stores.api_keys.rotate(&renamed, &rotated(&renamed, 101), &audit()).await.unwrap());
    let expected = rotated(&renamed, 101);
    assert_eq!(stores.api_keys.find(&before.id.into()).await.unwrap(), Some(expected));
    assert_eq!(
        stores.api_keys.update(&renamed, &disabled, LastKeyRule::Waived, &audit()).await.unwrap(),
        KeyUpdate::Updated,
        "and a change leaves the new secret"
    );
    let hash_now = stores.api_keys.find(&before.id.into()).await.unwrap().map(|key| key.hash);
    assert_eq!(hash_now, Some(hash(101)));
}

async fn concurrent_rotations_succeed_once(stores: &Stores) {
    let before = management_key(1);
    add_key(stores, &before).await;
    let rivals = (0..8).map(|number| {
        let (repository, before) = (&stores.api_keys, &before);
        async move { repository.rotate(before, &rotated(before, 101 + number), &audit()).await.unwrap() }
    });
    let won = join_all(rivals).await;
    assert_eq!(won.iter().filter(|won| **won).count(), 1);
    let mut live = 0;
    for number in 1..=108 {
        live += usize::from(stores.key_grants.find(&hash(number)).await.unwrap().is_some());
    }
    assert_eq!(live, 1, "there are never two secrets");
}

async fn identities_include_deleted_keys(stores: &Stores) {
    add_workspace(stores, 1).await;
    add_key(stores, &inference_key(1, 1)).await;
    for number in 2..=3 {
        add_key(stores, &management_key(number)).await;
    }
    assert!(delete_key(&*stores.api_keys, key_id(1), LastKeyRule::Waived, &audit()).await.unwrap());
    let names = [key_id(1).into(), hash(1).into(), hash(2).into(), key_id(9).into(), hash(9).into()];
    let mut found = stores.api_keys.identities(&names).await.unwrap();
    found.sort_unstable();
    assert_eq!(found, [inference_key(1, 1).identity(), management_key(2).identity()], "each once");
    assert_eq!(stores.api_keys.identities(&[]).await.unwrap(), []);
    let many: Vec<KeyReference> = (3..20_000).map(|number| key_id(number).into()).collect();
    assert_eq!(stores.api_keys.identities(&many).await.unwrap(), [management_key(3).identity()]);
}

async fn insert_rejects_used_id_or_hash(stores: &Stores) {
    add_workspace(stores, 1).await;
    add_key(stores, &inference_key(1, 1)).await;
    add_key(stores, &inference_key(2, 1)).await;
    assert!(delete_key(&*stores.api_keys, key_id(1), LastKeyRule::Waived, &audit()).await.unwrap());
    for number in [1, 2] {
        let same = inference_key(number, 1);
        for again in [ApiKey { id: key_id(9), ..same.clone() }, ApiKey { hash: hash(9), ..same.clone() }, same] {
            let again = stores.api_keys.insert(&again, &audit()).await;
            assert!(matches!(again, Err(StoreError::Corrupt(_))), "{again:?}");
        }
    }
    assert_eq!(stores.api_keys.find(&key_id(1).into()).await.unwrap(), None, "it stays deleted");
}

async fn concurrent_inserts_succeed_once(stores: &Stores) {
    add_workspace(stores, 1).await;
    let rivals = (0..8).map(|_| {
        let repository = &stores.api_keys;
        async move { repository.insert(&inference_key(1, 1), &audit()).await }
    });
    let results = join_all(rivals).await;
    assert_eq!(results.iter().filter(|result| matches!(result, Ok(KeyInsertion::Inserted))).count(), 1, "{results:?}");
    assert_eq!(results.iter().filter(|result| matches!(result, Err(StoreError::Corrupt(_)))).count(), 7, "{results:?}");
}

async fn insert_unique_rejects_names_of_live_keys_in_the_same_scope(stores: &Stores) {
    let insert = async |key: ApiKey| stores.api_keys.insert_unique(&key, &audit()).await.unwrap();
    let named = |key: ApiKey| ApiKey { name: ApiKeyName::try_new("ci").unwrap(), ..key };
    assert_eq!(insert(named(inference_key(1, 1))).await, KeyInsertion::UnknownWorkspace);
    add_workspace(stores, 1).await;
    add_workspace(stores, 2).await;
    for key in [inference_key(1, 1), inference_key(2, 2), management_key(3)] {
        assert_eq!(insert(named(key)).await, KeyInsertion::Inserted, "one in each scope");
    }
    for key in [inference_key(4, 1), inference_key(5, 2), management_key(6)] {
        assert_eq!(insert(named(key.clone())).await, KeyInsertion::NameTaken);
        assert_eq!(stores.api_keys.find(&key.id.into()).await.unwrap(), None, "nothing is added");
    }
    assert!(
        stores.api_keys.insert(&named(inference_key(4, 1)), &audit()).await.unwrap().is_inserted(),
        "other inserts add any name"
    );
    for number in [1, 4] {
        assert!(delete_key(&*stores.api_keys, key_id(number), LastKeyRule::Waived, &audit()).await.unwrap());
    }
    assert_eq!(insert(named(inference_key(7, 1))).await, KeyInsertion::Inserted, "the name of deleted keys is free");
}

async fn concurrent_unique_inserts_succeed_once(stores: &Stores) {
    add_workspace(stores, 1).await;
    let rivals = (1..=8).map(|number| {
        let key = ApiKey { name: ApiKeyName::try_new("ci").unwrap(), ..inference_key(number, 1) };
        async move { stores.api_keys.insert_unique(&key, &audit()).await.unwrap() }
    });
    let results = join_all(rivals).await;
    let count = |wanted| results.iter().filter(|result| **result == wanted).count();
    assert_eq!((count(KeyInsertion::Inserted), count(KeyInsertion::NameTaken)), (1, 7), "{results:?}");
}

async fn delete_of_another_state_changes_nothing(stores: &Stores) {
    add_workspace(stores, 1).await;
    let before = inference_key(1, 1);
    add_key(stores, &before).await;
    let after = ApiKey { name: inference_key(2, 1).name, ..before.clone() };
    let rule = LastKeyRule::Waived;
    assert_eq!(stores.api_keys.update(&before, &after, rule, &audit()).await.unwrap(), KeyUpdate::Updated);
    let changes = newest_change(stores).await;
    assert!(!stores.api_keys.delete(&before, rule, &audit()).await.unwrap());
    assert_eq!(changed_since(stores, changes).await, []);
    assert!(stores.api_keys.find(&before.id.into()).await.unwrap().is_some());
    let rotated = rotated(&after, 9);
    assert!(stores.api_keys.rotate(&after, &rotated, &audit()).await.unwrap());
    assert!(stores.api_keys.delete(&after, rule, &audit()).await.unwrap(), "a rotation is no other state");
}

async fn concurrent_deletes_succeed_once(stores: &Stores) {
    add_key(stores, &management_key(1)).await;
    let rivals = (0..8).map(|_| {
        let repository = &stores.api_keys;
        async move { delete_key(&**repository, key_id(1), LastKeyRule::Waived, &audit()).await.unwrap() }
    });
    assert_eq!(join_all(rivals).await.iter().filter(|deleted| **deleted).count(), 1);
}

async fn update_replaces_state_guardrail_and_labels(stores: &Stores) {
    add_workspace(stores, 1).await;
    add_guardrail(stores, &guardrail(9, 1)).await;
    add_guardrail(stores, &guardrail(8, 1)).await;
    let label = |text: &str| Some(UserLabel::try_new(text).unwrap());
    let users = KeyUsers { creator: label("ann"), external: label("bob ✓") };
    let states = [
        inference_key(1, 1),
        ApiKey { guardrail_id: Some(guardrail_id(9)), users: users.clone(), ..inference_key(1, 1) },
        ApiKey { guardrail_id: Some(guardrail_id(8)), disabled: true, ..inference_key(1, 1) },
        ApiKey { updated_at: Some(at(7)), users: KeyUsers { creator: None, ..users }, ..inference_key(1, 1) },
        inference_key(1, 1),
    ];
    add_key(stores, &states[0]).await;
    for pair in states.windows(2) {
        let newest = newest_change(stores).await;
        let updated = stores.api_keys.update(&pair[0], &pair[1], LastKeyRule::Waived, &audit()).await.unwrap();
        assert_eq!(updated, KeyUpdate::Updated);
        assert_eq!(stores.api_keys.find(&key_id(1).into()).await.unwrap().as_ref(), Some(&pair[1]), "field by field");
        assert_eq!(changed_since(stores, newest).await, [ChangeSubject::Key(hash(1))]);
        let stale = stores.api_keys.update(&pair[0], &pair[1], LastKeyRule::Waived, &audit()).await.unwrap();
        assert_eq!(stale, KeyUpdate::Conflict);
        let assigned = stores.guardrails.count_keys(guardrail_id(9)).await.unwrap();
        assert_eq!(assigned, u64::from(pair[1].guardrail_id == Some(guardrail_id(9))));
    }
    assert_eq!(stores.audit.check_rows(10).await.unwrap(), [], "the log accounts for it");
}

async fn insert_and_update_reject_unknown_workspaces_and_guardrails(stores: &Stores) {
    add_workspace(stores, 1).await;
    add_workspace(stores, 2).await;
    add_guardrail(stores, &guardrail(9, 2)).await;
    let key = inference_key(1, 1);
    add_key(stores, &key).await;
    for foreign in [9, 7] {
        let id = Some(guardrail_id(foreign));
        let other = ApiKey { guardrail_id: id, ..inference_key(2, 1) };
        assert_eq!(stores.api_keys.insert(&other, &audit()).await.unwrap(), KeyInsertion::UnknownGuardrail);
        let after = ApiKey { guardrail_id: id, ..key.clone() };
        let updated = stores.api_keys.update(&key, &after, LastKeyRule::Waived, &audit()).await.unwrap();
        assert_eq!(updated, KeyUpdate::UnknownGuardrail);
    }
    let unknown = narrowed_key(3, ManagementAccess::Read, 3);
    assert_eq!(stores.api_keys.insert(&unknown, &audit()).await.unwrap(), KeyInsertion::UnknownWorkspace);
    let known = narrowed_key(3, ManagementAccess::Read, 2);
    add_key(stores, &known).await;
    let updated = stores.api_keys.update(&known, &unknown, LastKeyRule::Waived, &audit()).await.unwrap();
    assert_eq!(updated, KeyUpdate::UnknownWorkspace);
    assert_eq!(stores.api_keys.find(&key.id.into()).await.unwrap(), Some(key));
}
