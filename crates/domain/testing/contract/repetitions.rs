//! Cases of [`crate::repetition::IdempotentRequests`].

use std::time::Duration;

use chrono::TimeDelta;

use super::super::join_all;
use super::Stores;
use super::samples::{audit, guardrail, placed, workspace, workspace_id};
use crate::audit::AuditDraft;
use crate::error::StoreError;
use crate::repetition::{Repetition, RepetitionScope, StoredRepetition, StoredResponse};
use crate::system::Clock;
use crate::version::Version;

suite! {
    /// Every case of the port's contract.
    idempotent_requests_cases as idempotent_requests_contract over Stores {
        find_returns_request_of_a_committed_change,
        find_returns_nothing_for_another_scope_or_an_undone_change,
        repeated_change_fails_and_changes_nothing,
        request_without_a_change_is_stored_once,
        of_many_concurrent_changes_of_a_scope_one_takes_effect,
        request_counts_as_stored_for_24_hours,
        prune_removes_oldest_first,
    }
}

fn scope(key: &str) -> RepetitionScope {
    RepetitionScope { caller: "key:1".to_owned(), route: "POST /guardrails".to_owned(), key: key.parse().unwrap() }
}

fn stored(scope: RepetitionScope) -> StoredRepetition {
    let response = StoredResponse::Content {
        status: 201,
        body: "{\"data\" : {\"ö\":1.0}}".to_owned(),
        version: Some(Version::from_digest([0xf7; 32])),
    };
    StoredRepetition { request: Repetition { scope, fingerprint: [0x80; 32] }, response }
}

fn draft(repetition: &StoredRepetition) -> AuditDraft {
    AuditDraft { repetition: Some(repetition.clone()), ..audit() }
}

async fn insert_guardrail(stores: &Stores, number: u64, repetition: &StoredRepetition) -> Result<bool, StoreError> {
    stores.guardrails.insert(&guardrail(number, 1), false, &draft(repetition)).await
}

async fn insert_workspace(stores: &Stores) {
    stores.workspaces.insert(&workspace(1), false, &audit()).await.unwrap();
}

async fn find_returns_request_of_a_committed_change(stores: &Stores) {
    insert_workspace(stores).await;
    let content = stored(scope("content"));
    let plain = match content.response.clone() {
        StoredResponse::Content { status, body, .. } => StoredResponse::Content { status, body, version: None },
        secret @ StoredResponse::Secret { .. } => secret,
    };
    let plain = StoredRepetition { response: plain, ..stored(scope("plain")) };
    let secret = StoredRepetition { response: StoredResponse::Secret { id: "a".to_owned() }, ..stored(scope("s")) };
    for (number, request) in (10..).zip([&content, &plain, &secret]) {
        assert!(insert_guardrail(stores, number, request).await.unwrap());
        assert_eq!(stores.repetitions.find(&request.request.scope).await.unwrap().as_ref(), Some(request));
    }
}

async fn request_without_a_change_is_stored_once(stores: &Stores) {
    let request = stored(scope("a"));
    let other =
        StoredRepetition { request: Repetition { fingerprint: [1; 32], ..request.request.clone() }, ..request.clone() };
    let (first, second) = (stores.repetitions.store(&request), stores.repetitions.store(&other));
    let results = join_all([Box::pin(first), Box::pin(second)]).await;
    assert_eq!(results.iter().filter(|result| result.is_ok()).count(), 1);
    assert!(results.iter().any(|result| matches!(result, Err(StoreError::Repeated))), "{results:?}");
    let found = stores.repetitions.find(&scope("a")).await.unwrap().unwrap();
    assert_eq!(found, if results[0].is_ok() { request.clone() } else { other });
    insert_workspace(stores).await;
    assert!(matches!(insert_guardrail(stores, 10, &request).await, Err(StoreError::Repeated)));
    assert_eq!(stores.guardrails.list(workspace_id(1)).await.unwrap(), []);
}

async fn find_returns_nothing_for_another_scope_or_an_undone_change(stores: &Stores) {
    let request = stored(scope("a"));
    assert!(!insert_guardrail(stores, 10, &request).await.unwrap(), "the workspace does not exist");
    assert_eq!(stores.repetitions.find(&scope("a")).await.unwrap(), None);
    insert_workspace(stores).await;
    assert!(insert_guardrail(stores, 10, &request).await.unwrap());
    let others = [
        scope("A"),
        RepetitionScope { caller: "key:2".to_owned(), ..scope("a") },
        RepetitionScope { route: "POST /keys".to_owned(), ..scope("a") },
    ];
    for (number, other) in (11..).zip(others) {
        assert_eq!(stores.repetitions.find(&other).await.unwrap(), None, "{other:?}");
        assert!(insert_guardrail(stores, number, &stored(other)).await.unwrap());
    }
}

async fn repeated_change_fails_and_changes_nothing(stores: &Stores) {
    insert_workspace(stores).await;
    let request = stored(scope("a"));
    assert!(insert_guardrail(stores, 10, &request).await.unwrap());
    let other = StoredRepetition { request: Repetition { fingerprint: [1; 32], ..request.request.clone() }, ..request };
    let entries = stores.audit.read(0, 10).await.unwrap().len();
    let again = insert_guardrail(stores, 11, &other).await;
    assert!(matches!(again, Err(StoreError::Repeated)), "{again:?}");
    let deleted = stores.guardrails.delete(&placed(10, 1, false), &draft(&other)).await;
    assert!(matches!(deleted, Err(StoreError::Repeated)), "{deleted:?}");
    assert_eq!(stores.guardrails.list(workspace_id(1)).await.unwrap().len(), 1);
    assert_eq!(stores.audit.read(0, 10).await.unwrap().len(), entries);
    assert_eq!(stores.repetitions.find(&scope("a")).await.unwrap().unwrap().request.fingerprint, [0x80; 32]);
}

async fn of_many_concurrent_changes_of_a_scope_one_takes_effect(stores: &Stores) {
    insert_workspace(stores).await;
    let request = stored(scope("a"));
    let outcomes = join_all((10..20).map(|number| insert_guardrail(stores, number, &request))).await;
    let added = outcomes.iter().filter(|outcome| matches!(outcome, Ok(true))).count();
    let repeated = outcomes.iter().filter(|outcome| matches!(outcome, Err(StoreError::Repeated))).count();
    assert_eq!((added, repeated), (1, 9), "{outcomes:?}");
    assert_eq!(stores.guardrails.list(workspace_id(1)).await.unwrap().len(), 1);
}

async fn request_counts_as_stored_for_24_hours(stores: &Stores) {
    insert_workspace(stores).await;
    let request = stored(scope("a"));
    assert!(insert_guardrail(stores, 10, &request).await.unwrap());
    stores.clock.advance(Duration::from_hours(24) - Duration::from_millis(1));
    assert!(matches!(insert_guardrail(stores, 11, &request).await, Err(StoreError::Repeated)));
    assert!(stores.repetitions.find(&scope("a")).await.unwrap().is_some());
    stores.clock.advance(Duration::from_millis(1));
    assert_eq!(stores.repetitions.find(&scope("a")).await.unwrap(), None);
    assert!(insert_guardrail(stores, 11, &request).await.unwrap(), "it replaces the old one");
    assert!(stores.repetitions.find(&scope("a")).await.unwrap().is_some());
}

async fn prune_removes_oldest_first(stores: &Stores) {
    insert_workspace(stores).await;
    assert_eq!(stores.repetitions.prune(stores.clock.now(), 10).await.unwrap(), 0);
    for (number, key) in (10..).zip(["a", "b", "c", "d"]) {
        assert!(insert_guardrail(stores, number, &stored(scope(key))).await.unwrap());
        stores.clock.advance(Duration::from_mins(1));
    }
    let before = stores.clock.now() - TimeDelta::minutes(1);
    assert_eq!(stores.repetitions.prune(before, 2).await.unwrap(), 2);
    let mut left = Vec::new();
    for key in ["a", "b", "c", "d"] {
        left.push(stores.repetitions.find(&scope(key)).await.unwrap().is_some());
    }
    assert_eq!(left, [false, false, true, true]);
    assert_eq!(stores.repetitions.prune(before, 2).await.unwrap(), 1, "the newest is not that old");
    assert_eq!(stores.repetitions.prune(before, 2).await.unwrap(), 0);
}
