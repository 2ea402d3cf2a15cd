//! Cases of [`crate::api_key::LastKeyRule`].

use chrono::TimeDelta;

use super::super::join_all;
use super::super::{delete_key, set_disabled};
use super::Stores;
use super::samples::{add_key, add_workspace, at, audit, inference_key, key_id, management_key, workspace_id};
use crate::api_key::{ApiKey, ApiKeyScope, KeyUpdate, LastKeyRule, LastUnrestrictedKey, StoreKeyError};
use crate::authority::{ManagementAccess, ManagementScope};
use crate::system::Clock as _;

suite! {
    /// Every case of the rule.
    last_key_cases as last_key_contract over Stores {
        last_lasting_unrestricted_key_stays,
        last_expiring_unrestricted_key_stays,
        operator_may_change_last_key,
        other_lasting_key_permits_changes,
        concurrent_deletions_of_last_two_keys_leave_one,
    }
}

fn scope(access: ManagementAccess, workspaces: Option<u64>) -> ApiKeyScope {
    let workspaces = workspaces.map(|number| vec![workspace_id(number)]);
    ApiKeyScope::Management(ManagementScope::try_new(access, workspaces).unwrap())
}

/// The changes of a key after which it is no lasting unrestricted key.
fn losses(key: &ApiKey) -> [ApiKey; 3] {
    [
        ApiKey { scope: scope(ManagementAccess::Keys, None), ..key.clone() },
        ApiKey { scope: scope(ManagementAccess::Write, Some(1)), ..key.clone() },
        ApiKey { expires_at: Some(at(1_000_000)), ..key.clone() },
    ]
}

fn is_last<T>(result: &Result<T, StoreKeyError>) -> bool {
    matches!(result, Err(StoreKeyError::LastUnrestrictedKey(LastUnrestrictedKey)))
}

/// Adds keys that do not count: narrowed, with less access, expiring, disabled, deleted, and an inference key.
async fn add_lesser_keys(stores: &Stores) {
    add_workspace(stores, 1).await;
    add_key(stores, &inference_key(20, 1)).await;
    let losses = losses(&management_key(21));
    for (number, loss) in (21..).zip(losses) {
        let ApiKey { scope, expires_at, .. } = loss;
        add_key(stores, &ApiKey { scope, expires_at, ..management_key(number) }).await;
    }
    add_key(stores, &ApiKey { disabled: true, ..management_key(24) }).await;
    add_key(stores, &management_key(25)).await;
    assert!(delete_key(&*stores.api_keys, key_id(25), LastKeyRule::Waived, &audit()).await.unwrap());
}

async fn last_lasting_unrestricted_key_stays(stores: &Stores) {
    add_lesser_keys(stores).await;
    let last = management_key(1);
    add_key(stores, &last).await;
    let entries = stores.audit.newest(100).await.unwrap().len();
    let rule = LastKeyRule::Enforced;
    assert!(is_last(&delete_key(&*stores.api_keys, last.id, rule, &audit()).await));
    assert!(is_last(&set_disabled(&*stores.api_keys, last.id, true, rule, &audit()).await));
    for loss in losses(&last) {
        assert!(is_last(&stores.api_keys.update(&last, &loss, rule, &audit()).await), "{loss:?}");
    }
    assert_eq!(stores.api_keys.find(&last.id.into()).await.unwrap(), Some(last.clone()), "nothing changed");
    assert_eq!(stores.audit.newest(100).await.unwrap().len(), entries, "and nothing is logged");
    // Other changes of the key, and changes of keys that do not count, are free.
    let renamed = ApiKey { name: inference_key(9, 1).name, ..last.clone() };
    assert_eq!(stores.api_keys.update(&last, &renamed, rule, &audit()).await.unwrap(), KeyUpdate::Updated);
    assert!(set_disabled(&*stores.api_keys, last.id, false, rule, &audit()).await.unwrap());
    for number in 20..=24 {
        assert!(delete_key(&*stores.api_keys, key_id(number), rule, &audit()).await.unwrap(), "{number}");
    }
}

async fn last_expiring_unrestricted_key_stays(stores: &Stores) {
    add_workspace(stores, 1).await;
    let rule = LastKeyRule::Enforced;
    let until = |number: u64, offset: i64| {
        let expires_at = Some(stores.clock.now() + TimeDelta::seconds(offset));
        ApiKey { expires_at, ..management_key(number) }
    };
    let (last, other) = (until(1, 2_000), until(2, 1_000));
    for key in [&last, &other, &until(3, 0), &until(4, -1_000)] {
        add_key(stores, key).await;
    }
    for number in [3, 4, 2] {
        assert!(delete_key(&*stores.api_keys, key_id(number), rule, &audit()).await.unwrap(), "{number}");
    }
    assert!(is_last(&delete_key(&*stores.api_keys, last.id, rule, &audit()).await));
    assert!(is_last(&set_disabled(&*stores.api_keys, last.id, true, rule, &audit()).await));
    let earlier = ApiKey { expires_at: other.expires_at, ..last.clone() };
    let narrowed = ApiKey { scope: scope(ManagementAccess::Write, Some(1)), ..last.clone() };
    for loss in [earlier, narrowed] {
        assert!(is_last(&stores.api_keys.update(&last, &loss, rule, &audit()).await), "{loss:?}");
    }
    let (later, lasting) = (until(1, 3_000), management_key(1));
    assert_eq!(stores.api_keys.update(&last, &later, rule, &audit()).await.unwrap(), KeyUpdate::Updated);
    assert_eq!(stores.api_keys.update(&later, &lasting, rule, &audit()).await.unwrap(), KeyUpdate::Updated);
    assert!(is_last(&stores.api_keys.update(&lasting, &later, rule, &audit()).await), "it has no expiry again");
}

async fn operator_may_change_last_key(stores: &Stores) {
    add_workspace(stores, 1).await;
    let last = management_key(1);
    add_key(stores, &last).await;
    let rule = LastKeyRule::Waived;
    for loss in losses(&last) {
        assert_eq!(stores.api_keys.update(&last, &loss, rule, &audit()).await.unwrap(), KeyUpdate::Updated);
        assert_eq!(stores.api_keys.find(&last.id.into()).await.unwrap().as_ref(), Some(&loss), "field by field");
        assert_eq!(stores.api_keys.update(&loss, &last, rule, &audit()).await.unwrap(), KeyUpdate::Updated);
    }
    assert!(set_disabled(&*stores.api_keys, last.id, true, rule, &audit()).await.unwrap());
    assert!(set_disabled(&*stores.api_keys, last.id, false, rule, &audit()).await.unwrap());
    assert!(delete_key(&*stores.api_keys, last.id, rule, &audit()).await.unwrap());
}

async fn other_lasting_key_permits_changes(stores: &Stores) {
    add_workspace(stores, 1).await;
    let rule = LastKeyRule::Enforced;
    for number in 1..=6 {
        add_key(stores, &management_key(number)).await;
    }
    for (number, loss) in (1..).zip(losses(&management_key(1))) {
        let before = management_key(number);
        let after = ApiKey { scope: loss.scope, expires_at: loss.expires_at, ..before.clone() };
        assert_eq!(stores.api_keys.update(&before, &after, rule, &audit()).await.unwrap(), KeyUpdate::Updated);
    }
    assert!(set_disabled(&*stores.api_keys, key_id(4), true, rule, &audit()).await.unwrap());
    assert!(delete_key(&*stores.api_keys, key_id(5), rule, &audit()).await.unwrap());
    assert!(is_last(&delete_key(&*stores.api_keys, key_id(6), rule, &audit()).await));
}

async fn concurrent_deletions_of_last_two_keys_leave_one(stores: &Stores) {
    for number in 1..=2 {
        add_key(stores, &management_key(number)).await;
    }
    let deletions = (1..=2).map(|number| async move {
        delete_key(&*stores.api_keys, key_id(number), LastKeyRule::Enforced, &audit()).await
    });
    let results = join_all(deletions).await;
    assert_eq!(results.iter().filter(|result| is_last(result)).count(), 1, "{results:?}");
    assert_eq!(stores.api_keys.list(None).await.unwrap().len(), 1);
}
