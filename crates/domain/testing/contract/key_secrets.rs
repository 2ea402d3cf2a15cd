//! Cases of [`crate::api_key::ApiKeyRepository`] and [`crate::api_key::KeyGrants`]: secrets before a rotation.

use chrono::{DateTime, TimeDelta, Utc};

use super::super::{delete_key, set_disabled};
use super::Stores;
use super::samples::{
    add_key, add_workspace, audit, changed_since, hash, inference_key, key_id, management_key, newest_change,
};
use crate::api_key::{ApiKey, LastKeyRule, PreviousSecret};
use crate::authority::ManagementScope;
use crate::change_feed::ChangeSubject;
use crate::naming::ResourceName;
use crate::system::Clock;

fn rotated(key: &ApiKey, number: u64, previous_until: Option<DateTime<Utc>>) -> ApiKey {
    let previous = |expires_at| PreviousSecret { hash: key.hash, expires_at };
    let previous_secret = previous_until.map(previous);
    ApiKey { hash: hash(number), label: format!("label {number}"), previous_secret, ..key.clone() }
}

async fn is_named(stores: &Stores, number: u64) -> bool {
    let name = ResourceName::from(&hash(number));
    !stores.api_keys.find_named(&name, &ManagementScope::UNRESTRICTED).await.unwrap().is_empty()
}

/// Returns true if the secret is accepted.
async fn is_granted(stores: &Stores, number: u64) -> bool {
    stores.key_grants.find(&hash(number)).await.unwrap().is_some_and(|grant| !grant.disabled)
}

pub(super) async fn previous_secret_is_the_same_key_until_its_expiry(stores: &Stores) {
    add_workspace(stores, 1).await;
    let before = ApiKey { expires_at: None, ..inference_key(1, 1) };
    add_key(stores, &before).await;
    let until = stores.clock.now() + TimeDelta::hours(1);
    let (newest, after) = (newest_change(stores).await, rotated(&before, 101, Some(until)));
    assert!(stores.api_keys.rotate(&before, &after, &audit()).await.unwrap());
    assert_eq!(changed_since(stores, newest).await, [ChangeSubject::Key(hash(1))]);
    assert_eq!(stores.api_keys.find(&key_id(1).into()).await.unwrap().as_ref(), Some(&after), "field by field");
    let grant = async |number| stores.key_grants.find(&hash(number)).await.unwrap().map(|grant| (*grant).clone());
    let (old, new) = (grant(1).await.unwrap(), grant(101).await.unwrap());
    assert_eq!((old.hash, old.expires_at), (hash(1), Some(until)));
    assert_eq!((new.hash, new.expires_at), (hash(101), None));
    assert_eq!((old.id, &old.scope), (new.id, &new.scope), "limits, rates and guardrail are those of the key");
    assert!(is_named(stores, 1).await && is_named(stores, 101).await);
    assert_eq!(stores.audit.check_rows(10).await.unwrap(), [], "the log accounts for it");
    stores.clock.set(until);
    assert_eq!((grant(1).await, is_named(stores, 1).await), (None, false), "it has expired");
    assert!(grant(101).await.is_some());
    let key = stores.api_keys.find(&key_id(1).into()).await.unwrap().unwrap();
    assert_eq!(key.previous_secret, None);
    assert_eq!(stores.audit.check_rows(10).await.unwrap(), []);
}

pub(super) async fn rotation_disabling_and_deletion_end_the_previous_secret(stores: &Stores) {
    let until = stores.clock.now() + TimeDelta::hours(1);
    for number in 1..=4 {
        let before = management_key(number);
        add_key(stores, &before).await;
        assert!(stores.api_keys.rotate(&before, &rotated(&before, 100 + number, Some(until)), &audit()).await.unwrap());
        assert!(is_granted(stores, number).await && is_granted(stores, 100 + number).await);
        let newest = newest_change(stores).await;
        let key = stores.api_keys.find(&key_id(number).into()).await.unwrap().unwrap();
        match number {
            1 => assert!(stores.api_keys.rotate(&key, &rotated(&key, 201, None), &audit()).await.unwrap()),
            2 => assert!(stores.api_keys.rotate(&key, &rotated(&key, 202, Some(until)), &audit()).await.unwrap()),
            3 => {
                let switch = |disabled| (key_id(number), disabled, LastKeyRule::Waived);
                for (id, disabled, rule) in [switch(true), switch(false)] {
                    assert!(set_disabled(&*stores.api_keys, id, disabled, rule, &audit()).await.unwrap());
                }
            }
            _ => assert!(delete_key(&*stores.api_keys, key_id(number), LastKeyRule::Waived, &audit()).await.unwrap()),
        }
        assert!(!is_granted(stores, number).await && !is_named(stores, number).await, "{number}");
        let changed = changed_since(stores, newest).await;
        for secret in [number, 100 + number] {
            assert!(changed.contains(&ChangeSubject::Key(hash(secret))), "caches store both: {changed:?}");
        }
    }
    assert!(is_granted(stores, 102).await && !is_granted(stores, 101).await, "the newest rotation has a grace period");
    assert_eq!(stores.audit.check_rows(10).await.unwrap(), [], "the log accounts for it");
}
