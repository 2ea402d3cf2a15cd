//! Cases of [`crate::api_key::KeyGrants`].

use std::sync::Arc;

use super::Stores;
use super::samples::{
    add_guardrail, add_key, add_workspace, at, audit, guardrail, guardrail_id, hash, inference_key, management_key,
    workspace, workspace_id,
};
use crate::api_key::{ApiKey, GrantScope, KeyGrant};
use crate::workspace::Workspace;

suite! {
    /// Every case of the port's contract, but for failures of the store, which an adapter provokes in its own way.
    key_grants_cases as key_grants_contract over Stores {
        a_key_grants_what_it_says,
        a_key_is_found_at_once,
        every_change_shows,
        a_deleted_key_grants_nothing,
    }
}

async fn find(stores: &Stores, number: u64) -> Option<KeyGrant> {
    stores.key_grants.find(&hash(number)).await.unwrap().map(Arc::unwrap_or_clone)
}

fn inference(workspace: u64, change: impl FnOnce(&mut bool)) -> GrantScope {
    let mut workspace_suspended = false;
    change(&mut workspace_suspended);
    GrantScope::Inference {
        workspace_id: workspace_id(workspace),
        workspace_suspended,
        owner_id: Some(format!("owner {workspace} 'quoted'")),
        guardrail_id: None,
        workspace_guardrail_id: None,
        limited: true,
        rates: inference_key(1, 1).rates,
        workspace_rates: crate::rate::RateLimits::default(),
    }
}

async fn a_key_grants_what_it_says(stores: &Stores) {
    add_workspace(stores, 1).await;
    stores.workspaces.insert(&Workspace { owner_id: None, suspended: true, ..workspace(2) }, &audit()).await.unwrap();
    let expired = ApiKey { expires_at: Some(at(-9_999_999)), disabled: true, ..inference_key(2, 2) };
    for key in [&inference_key(1, 1), &expired, &management_key(3)] {
        add_key(stores, key).await;
    }
    let expected =
        KeyGrant { hash: hash(1), disabled: false, expires_at: Some(at(1_000_000)), scope: inference(1, |_| {}) };
    assert_eq!(find(stores, 1).await, Some(expected));
    let scope = GrantScope::Inference {
        workspace_id: workspace_id(2),
        workspace_suspended: true,
        owner_id: None,
        guardrail_id: None,
        workspace_guardrail_id: None,
        limited: true,
        rates: inference_key(1, 1).rates,
        workspace_rates: crate::rate::RateLimits::default(),
    };
    let expected = KeyGrant { hash: hash(2), disabled: true, expires_at: expired.expires_at, scope };
    assert_eq!(find(stores, 2).await, Some(expected), "a disabled and expired key is returned as it is");
    let expected = KeyGrant { hash: hash(3), disabled: false, expires_at: None, scope: GrantScope::Management };
    assert_eq!(find(stores, 3).await, Some(expected));
}

async fn a_key_is_found_at_once(stores: &Stores) {
    add_workspace(stores, 1).await;
    assert_eq!(find(stores, 1).await, None);
    add_key(stores, &inference_key(1, 1)).await;
    assert!(find(stores, 1).await.is_some(), "that it was not there a moment ago is not remembered");
}

async fn every_change_shows(stores: &Stores) {
    add_workspace(stores, 1).await;
    add_key(stores, &inference_key(1, 1)).await;
    add_guardrail(stores, &guardrail(9, 1)).await;
    assert!(!find(stores, 1).await.unwrap().disabled);

    stores.api_keys.set_disabled(&hash(1), true, &audit()).await.unwrap();
    stores.wait_for_grants().await;
    assert!(find(stores, 1).await.unwrap().disabled);
    stores.api_keys.set_disabled(&hash(1), false, &audit()).await.unwrap();
    stores.wait_for_grants().await;
    assert!(!find(stores, 1).await.unwrap().disabled);

    stores.workspaces.set_suspended(workspace_id(1), true, &audit()).await.unwrap();
    stores.wait_for_grants().await;
    assert_eq!(find(stores, 1).await.unwrap().scope, inference(1, |suspended| *suspended = true));
    stores.workspaces.set_suspended(workspace_id(1), false, &audit()).await.unwrap();

    stores.guardrails.assign_keys(guardrail_id(9), &[hash(1)], &audit()).await.unwrap();
    stores.wait_for_grants().await;
    let held = |grant: KeyGrant| match grant.scope {
        GrantScope::Inference { guardrail_id, .. } => guardrail_id,
        GrantScope::Management => None,
    };
    assert_eq!(find(stores, 1).await.map(held), Some(Some(guardrail_id(9))));
    stores.guardrails.delete(guardrail_id(9), &audit()).await.unwrap();
    stores.wait_for_grants().await;
    assert_eq!(find(stores, 1).await.map(held), Some(None));
}

async fn a_deleted_key_grants_nothing(stores: &Stores) {
    add_key(stores, &management_key(1)).await;
    assert!(find(stores, 1).await.is_some());
    stores.api_keys.delete(&hash(1), &audit()).await.unwrap();
    stores.wait_for_grants().await;
    assert_eq!(find(stores, 1).await, None);
}
