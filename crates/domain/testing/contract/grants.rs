//! Cases of [`crate::api_key::KeyGrants`].

use std::sync::Arc;

use super::super::{assign_keys, delete_key, set_disabled};
use super::Stores;
use super::samples::{
    add_guardrail, add_key, add_workspace, at, audit, guardrail, guardrail_id, hash, inference_key, key_id,
    limit_workspace, management_key, placed, suspend, workspace, workspace_id,
};
use crate::api_key::{ApiKey, GrantScope, KeyGrant, KeyUpdate, LastKeyRule};
use crate::audit::Actor;
use crate::authority::ManagementScope;
use crate::budget::{SpendLimit, WorkspaceBudgets};
use crate::money::Usd;
use crate::testing::{add_credit, clear_credit};
use crate::workspace::Workspace;

suite! {
    /// Every case of the port's contract but failures of the store, which are for the adapter's own tests.
    key_grants_cases as key_grants_contract over Stores {
        grant_has_fields_of_key_and_workspace,
        new_key_is_found_at_once,
        changes_become_visible,
        grant_is_limited_when_a_single_limit_is_set,
        grant_is_limited_after_first_credit,
        deleted_key_has_no_grant,
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

async fn grant_has_fields_of_key_and_workspace(stores: &Stores) {
    add_workspace(stores, 1).await;
    stores
        .workspaces
        .insert(&Workspace { owner_id: None, suspended: true, ..workspace(2) }, false, &audit())
        .await
        .unwrap();
    let expired = ApiKey { expires_at: Some(at(-9_999_999)), disabled: true, ..inference_key(2, 2) };
    for key in [&inference_key(1, 1), &expired, &management_key(3)] {
        add_key(stores, key).await;
    }
    let expected = KeyGrant {
        id: key_id(1),
        hash: hash(1),
        disabled: false,
        expires_at: Some(at(1_000_000)),
        scope: inference(1, |_| {}),
    };
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
    let expected = KeyGrant { id: key_id(2), hash: hash(2), disabled: true, expires_at: expired.expires_at, scope };
    assert_eq!(find(stores, 2).await, Some(expected), "a disabled and expired key is returned as it is");
    let expected = KeyGrant {
        id: key_id(3),
        hash: hash(3),
        disabled: false,
        expires_at: None,
        scope: GrantScope::Management(ManagementScope::UNRESTRICTED),
    };
    assert_eq!(find(stores, 3).await, Some(expected));
}

async fn new_key_is_found_at_once(stores: &Stores) {
    add_workspace(stores, 1).await;
    assert_eq!(find(stores, 1).await, None);
    add_key(stores, &inference_key(1, 1)).await;
    assert!(find(stores, 1).await.is_some(), "that it was not there a moment ago is not remembered");
}

async fn changes_become_visible(stores: &Stores) {
    add_workspace(stores, 1).await;
    add_key(stores, &inference_key(1, 1)).await;
    add_guardrail(stores, &guardrail(9, 1)).await;
    assert!(!find(stores, 1).await.unwrap().disabled);

    set_disabled(&*stores.api_keys, key_id(1), true, LastKeyRule::Waived, &audit()).await.unwrap();
    stores.wait_for_grants().await;
    assert!(find(stores, 1).await.unwrap().disabled);
    set_disabled(&*stores.api_keys, key_id(1), false, LastKeyRule::Waived, &audit()).await.unwrap();
    stores.wait_for_grants().await;
    assert!(!find(stores, 1).await.unwrap().disabled);

    suspend(stores, 1, true).await;
    stores.wait_for_grants().await;
    assert_eq!(find(stores, 1).await.unwrap().scope, inference(1, |suspended| *suspended = true));
    suspend(stores, 1, false).await;

    assign_keys(&*stores.guardrails, guardrail_id(9), &[key_id(1).into()], &Actor::system()).await.unwrap();
    stores.wait_for_grants().await;
    let held = |grant: KeyGrant| match grant.scope {
        GrantScope::Inference { guardrail_id, .. } => guardrail_id,
        GrantScope::Management(_) => None,
    };
    assert_eq!(find(stores, 1).await.map(held), Some(Some(guardrail_id(9))));
    stores.guardrails.delete(&placed(9, 1, false), &audit()).await.unwrap();
    stores.wait_for_grants().await;
    assert_eq!(find(stores, 1).await.map(held), Some(None));
}

/// Returns true if requests of the key need a hold.
async fn is_limited(stores: &Stores, number: u64) -> bool {
    match find(stores, number).await.unwrap().scope {
        GrantScope::Inference { limited, .. } => limited,
        GrantScope::Management(_) => false,
    }
}

/// Adds a key without a limit, in a workspace without limits.
async fn add_unlimited(stores: &Stores, number: u64) {
    add_workspace(stores, number).await;
    add_key(stores, &ApiKey { limit: None, ..inference_key(number, number) }).await;
}

/// A limit that the grant misses is not enforced.
async fn grant_is_limited_when_a_single_limit_is_set(stores: &Stores) {
    add_unlimited(stores, 1).await;
    assert!(!is_limited(stores, 1).await, "without any limit");
    let (none, one) = (WorkspaceBudgets::default(), Some(Usd::from_pico(1)));
    for (name, alone) in [
        ("daily", WorkspaceBudgets { daily: one, ..none }),
        ("weekly", WorkspaceBudgets { weekly: one, ..none }),
        ("monthly", WorkspaceBudgets { monthly: one, ..none }),
        ("lifetime", WorkspaceBudgets { lifetime: one, ..none }),
    ] {
        limit_workspace(stores, 1, alone).await;
        stores.wait_for_grants().await;
        assert!(is_limited(stores, 1).await, "the {name} budget alone");
        limit_workspace(stores, 1, none).await;
        stores.wait_for_grants().await;
        assert!(!is_limited(stores, 1).await, "without the {name} budget");
    }
    let unlimited = ApiKey { limit: None, ..inference_key(1, 1) };
    let limit = Some(SpendLimit { amount: Usd::from_pico(1), reset: None });
    let limited = ApiKey { limit, ..unlimited.clone() };
    assert_eq!(
        stores.api_keys.update(&unlimited, &limited, LastKeyRule::Waived, &audit()).await.unwrap(),
        KeyUpdate::Updated
    );
    stores.wait_for_grants().await;
    assert!(is_limited(stores, 1).await, "the key's own limit alone");
}

async fn grant_is_limited_after_first_credit(stores: &Stores) {
    add_unlimited(stores, 1).await;
    assert!(!is_limited(stores, 1).await);
    // A credit of zero is a limit too.
    add_credit(&*stores.workspaces, workspace_id(1), Usd::ZERO, &audit()).await.unwrap();
    stores.wait_for_grants().await;
    assert!(is_limited(stores, 1).await);
    assert!(clear_credit(&*stores.workspaces, workspace_id(1), &audit()).await.unwrap());
    stores.wait_for_grants().await;
    assert!(!is_limited(stores, 1).await);
}

async fn deleted_key_has_no_grant(stores: &Stores) {
    add_key(stores, &management_key(1)).await;
    assert!(find(stores, 1).await.is_some());
    delete_key(&*stores.api_keys, key_id(1), LastKeyRule::Waived, &audit()).await.unwrap();
    stores.wait_for_grants().await;
    assert_eq!(find(stores, 1).await, None);
}
