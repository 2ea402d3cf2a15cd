//! Cases of [`crate::routing::ProviderPauses`].

use super::super::join_all;
use super::Stores;
use super::samples::audit;
use crate::change_feed::{ChangeSubject, Changes};
use crate::routing::ProviderSlug;

suite! {
    /// Every case of the port's contract.
    provider_pauses_cases as provider_pauses_contract over Stores {
        list_returns_paused_providers_sorted,
        change_writes_feed_and_audit_log_once,
        concurrent_changes_take_effect_once,
    }
}

fn slug(text: &str) -> ProviderSlug {
    text.parse().unwrap()
}

async fn set(stores: &Stores, provider: &str, paused: bool) -> bool {
    stores.pauses.set(&slug(provider), paused, &audit()).await.unwrap()
}

async fn entries(stores: &Stores) -> usize {
    stores.audit.newest(100).await.unwrap().len()
}

async fn list_returns_paused_providers_sorted(stores: &Stores) {
    assert_eq!(stores.pauses.list().await.unwrap(), []);
    for provider in ["two", "one", "three-3"] {
        assert!(set(stores, provider, true).await);
    }
    assert_eq!(stores.pauses.list().await.unwrap(), [slug("one"), slug("three-3"), slug("two")]);
    assert!(set(stores, "one", false).await);
    assert_eq!(stores.pauses.list().await.unwrap(), [slug("three-3"), slug("two")]);
}

async fn change_writes_feed_and_audit_log_once(stores: &Stores) {
    let Changes::StartOver(newest) = stores.changes.changes_since(None).await.unwrap() else { panic!("no position") };
    assert!(!set(stores, "one", false).await);
    assert!(set(stores, "one", true).await);
    assert!(!set(stores, "one", true).await);
    let changes = stores.changes.changes_since(Some(newest)).await.unwrap();
    let Changes::Continued(changes) = changes else { panic!("{changes:?}") };
    assert_eq!(changes.iter().map(|change| change.subject).collect::<Vec<_>>(), [ChangeSubject::Providers]);
    assert_eq!(entries(stores).await, 1);
}

async fn concurrent_changes_take_effect_once(stores: &Stores) {
    let done = join_all((0..8).map(|_| set(stores, "one", true))).await;
    assert_eq!(done.iter().filter(|is_changed| **is_changed).count(), 1);
    assert_eq!((stores.pauses.list().await.unwrap(), entries(stores).await), (vec![slug("one")], 1));
}
