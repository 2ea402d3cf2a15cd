//! Cases of [`crate::api_key::ApiKeyRepository`]: names and filters.

use super::super::delete_key;
use super::Stores;
use super::samples::{
    add_guardrail, add_key, add_workspace, at, audit, guardrail, guardrail_id, hash, inference_key, key_id,
    management_key, narrowed_key, workspace_id,
};
use crate::api_key::{ApiKey, ApiKeyName, KeyFilter, KeyUsers, LastKeyRule, UserLabel};
use crate::authority::{ManagementAccess, ManagementScope};
use crate::ids::ApiKeyId;
use crate::naming::ResourceName;
use crate::secret::ApiKeyHash;

async fn named(stores: &Stores, name: &str, within: &ManagementScope) -> Vec<ApiKeyId> {
    let found = stores.api_keys.find_named(&ResourceName::new(name), within).await.unwrap();
    let mut ids: Vec<ApiKeyId> = found.into_iter().map(|key| key.id).collect();
    ids.sort_unstable();
    ids
}

fn with_hash(number: u64, first: u8) -> ApiKey {
    let mut hash = [u8::try_from(number).unwrap(); 32];
    hash[..5].fill(first);
    let name = ApiKeyName::try_new(&format!("name {}", number / 2)).unwrap();
    ApiKey { hash: ApiKeyHash::from_bytes(hash), name, ..inference_key(number, 1 + number % 2) }
}

pub(super) async fn names_are_resolved_within_the_scope(stores: &Stores) {
    add_workspace(stores, 1).await;
    add_workspace(stores, 2).await;
    // Two keys a name, of two workspaces.
    for key in [with_hash(2, 0xab), with_hash(3, 0xab), with_hash(4, 0xff), with_hash(5, 0)] {
        add_key(stores, &key).await;
    }
    add_key(stores, &ApiKey { name: ApiKeyName::try_new("abababab").unwrap(), ..inference_key(6, 1) }).await;
    add_key(stores, &management_key(7)).await;
    let scope = |access, of: Option<u64>| {
        ManagementScope::try_new(access, of.map(|number| vec![workspace_id(number)])).unwrap()
    };
    let (all, first) = (ManagementScope::UNRESTRICTED, scope(ManagementAccess::Write, Some(1)));
    let ids = |numbers: &[u64]| numbers.iter().map(|number| key_id(*number)).collect::<Vec<_>>();
    let of_key = |number: u64| (key_id(number).to_string(), with_hash(number, 0xab).hash.to_string());
    for (name, expected, in_first) in [
        (of_key(2).0.as_str(), &[2][..], &[2][..]),
        (&of_key(2).0.to_uppercase(), &[2], &[2]),
        (&of_key(3).0, &[3], &[]),
        (&of_key(2).1, &[2], &[2]),
        (&of_key(3).1[..12], &[3], &[]),
        (&of_key(3).1[..12].to_uppercase(), &[3], &[]),
        (&of_key(2).1[..10], &[2, 3], &[2]),
        ("abababab", &[2, 3, 6], &[2, 6]),
        ("ffffffff", &[4], &[4]),
        ("00000000", &[5], &[]),
        ("ababab", &[], &[]),
        ("name 1", &[2, 3], &[2]),
        ("Name 1", &[], &[]),
        ("", &[], &[]),
        ("%", &[], &[]),
        (&key_id(99).to_string(), &[], &[]),
        (&"9".repeat(64), &[], &[]),
        (&"9".repeat(600), &[], &[]),
    ] {
        assert_eq!(named(stores, name, &all).await, ids(expected), "{name}");
        assert_eq!(named(stores, name, &first).await, ids(in_first), "{name}");
    }
    let hash = with_hash(3, 0xab).hash.to_string();
    add_key(stores, &ApiKey { name: ApiKeyName::try_new(&hash).unwrap(), ..inference_key(8, 1) }).await;
    assert_eq!(named(stores, &hash, &all).await, ids(&[3]), "a whole hash is no name");
    let management = key_id(7).to_string();
    assert_eq!(named(stores, &management, &all).await, ids(&[7]));
    assert_eq!(named(stores, &management, &scope(ManagementAccess::Keys, None)).await, [], "unrestricted only");
    assert_eq!(named(stores, &of_key(3).0, &scope(ManagementAccess::Keys, None)).await, ids(&[3]));
    assert!(delete_key(&*stores.api_keys, key_id(2), LastKeyRule::Waived, &audit()).await.unwrap());
    assert_eq!(named(stores, "name 1", &all).await, ids(&[3]), "deleted keys have no names");
    for number in 20..40 {
        add_key(stores, &ApiKey { name: ApiKeyName::try_new("many").unwrap(), ..inference_key(number, 1) }).await;
    }
    assert_eq!(named(stores, "many", &all).await.len(), ResourceName::MAX_MATCHES);
}

pub(super) async fn page_has_filters_order_and_total(stores: &Stores) {
    add_workspace(stores, 1).await;
    add_workspace(stores, 2).await;
    add_guardrail(stores, &guardrail(9, 1)).await;
    let external = Some(UserLabel::try_new("ann").unwrap());
    let keys = [
        inference_key(1, 1),
        ApiKey { disabled: true, ..inference_key(2, 1) },
        ApiKey { expires_at: Some(at(0)), ..inference_key(3, 2) },
        ApiKey { users: KeyUsers { creator: None, external }, expires_at: None, ..inference_key(4, 2) },
        ApiKey { guardrail_id: Some(guardrail_id(9)), created_at: at(4), ..inference_key(5, 1) },
        management_key(6),
        narrowed_key(7, ManagementAccess::Read, 1),
    ];
    for key in &keys {
        add_key(stores, key).await;
    }
    let page = async |filter: &KeyFilter, offset, limit| {
        let (keys, total) = stores.api_keys.page(filter, offset, limit).await.unwrap();
        (keys.into_iter().map(|key| key.hash).collect::<Vec<_>>(), total)
    };
    let hashes = |numbers: &[u64]| numbers.iter().map(|number| hash(*number)).collect::<Vec<_>>();
    let all = KeyFilter::default();
    // Keys 4 and 5 were created at the same time.
    assert_eq!(page(&all, 0, 100).await, (hashes(&[5, 4, 3, 2, 1]), 5));
    assert_eq!(page(&all, 1, 2).await, (hashes(&[4, 3]), 5));
    assert_eq!(page(&all, 5, 2).await, (hashes(&[]), 5));
    for (filter, expected) in [
        (KeyFilter { is_management: true, ..all.clone() }, &[7, 6][..]),
        (KeyFilter { workspaces: Some(vec![workspace_id(2)]), ..all.clone() }, &[4, 3]),
        (KeyFilter { workspaces: Some(Vec::new()), ..all.clone() }, &[]),
        (KeyFilter { name: Some("key 2 ✓".to_owned()), ..all.clone() }, &[2]),
        (KeyFilter { external_user: Some("ann".to_owned()), ..all.clone() }, &[4]),
        (KeyFilter { guardrail_id: Some(guardrail_id(9)), ..all.clone() }, &[5]),
        (KeyFilter { only_enabled: true, ..all.clone() }, &[5, 4, 3, 1]),
        (KeyFilter { unexpired_at: Some(at(0)), ..all.clone() }, &[5, 4, 2, 1]),
        (KeyFilter { unexpired_at: Some(at(-1)), ..all.clone() }, &[5, 4, 3, 2, 1]),
    ] {
        assert_eq!(page(&filter, 0, 100).await, (hashes(expected), expected.len() as u64), "{filter:?}");
    }
    for filter in every_filter() {
        let (whole, total) = page(&filter, 0, 100).await;
        let mut expected: Vec<_> = keys.iter().filter(|key| matches(key, &filter)).map(|key| key.hash).collect();
        let mut listed = whole.clone();
        listed.sort_unstable();
        expected.sort_unstable();
        assert_eq!((listed, total), (expected, whole.len() as u64), "{filter:?}");
        let mut walked = Vec::new();
        while let (next, count) = page(&filter, walked.len() as u64, 2).await
            && !next.is_empty()
        {
            assert_eq!(count, total, "{filter:?}");
            walked.extend(next);
        }
        assert_eq!(walked, whole, "{filter:?}");
    }
    let (found, _) = stores.api_keys.page(&KeyFilter { only_enabled: true, ..all }, 0, 2).await.unwrap();
    assert_eq!(found, [keys[4].clone(), keys[3].clone()], "field by field");
}

/// Returns all combinations of the values of a filter.
fn every_filter() -> Vec<KeyFilter> {
    let mut filters = vec![KeyFilter::default()];
    let mut vary = |change: fn(&mut KeyFilter)| {
        let mut changed = filters.clone();
        changed.iter_mut().for_each(change);
        filters.extend(changed);
    };
    vary(|filter| filter.is_management = true);
    vary(|filter| filter.workspaces = Some(vec![workspace_id(1), workspace_id(3)]));
    vary(|filter| filter.name = Some("key 4 ✓".to_owned()));
    vary(|filter| filter.external_user = Some("ann".to_owned()));
    vary(|filter| filter.guardrail_id = Some(guardrail_id(9)));
    vary(|filter| filter.only_enabled = true);
    vary(|filter| filter.unexpired_at = Some(at(0)));
    filters
}

fn matches(key: &ApiKey, filter: &KeyFilter) -> bool {
    let workspace = key.scope.workspace_id();
    let label = key.users.external.as_ref().map(UserLabel::as_str);
    workspace.is_none() == filter.is_management
        && filter.workspaces.as_ref().is_none_or(|of| workspace.is_none_or(|own| of.contains(&own)))
        && filter.name.as_deref().is_none_or(|name| key.name.as_str() == name)
        && filter.external_user.as_deref().is_none_or(|user| label == Some(user))
        && filter.guardrail_id.is_none_or(|guardrail| key.guardrail_id == Some(guardrail))
        && !(filter.only_enabled && key.disabled)
        && filter.unexpired_at.is_none_or(|at| key.expires_at.is_none_or(|expiry| expiry > at))
}
