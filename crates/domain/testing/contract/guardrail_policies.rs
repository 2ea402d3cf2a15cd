//! Cases of [`GuardrailPolicies`].

use std::sync::Arc;

use async_trait::async_trait;
use chrono::DateTime;

use super::super::{SequentialIds, join_all};
use crate::api_key::InferenceKey;
use crate::error::{ErrorKind, StoreError};
use crate::guardrail::{ContentFilter, Guardrail, GuardrailName, GuardrailPolicies, GuardrailRules};
use crate::ids::{GuardrailId, WorkspaceId};
use crate::secret::ApiKeyHash;
use crate::usage::FilterAction;

suite! {
    /// Every case of the port's contract.
    guardrail_policies_cases as guardrail_policies_contract over Policies {
        key_without_guardrails_has_no_policy,
        policy_applies_guardrail_of_workspace_first,
        guardrail_of_both_counts_once,
        changed_guardrail_applies_when_changes_are_visible,
        deleted_guardrail_is_that_of_the_key_now,
        missing_guardrail_is_never_no_policy,
        unavailable_store_is_an_error,
        unavailable_store_recovers,
        invalid_filters_are_an_error,
        concurrent_look_ups_find_the_same_policy,
    }
}

/// The policies over an empty store, and the store.
pub struct Policies {
    /// The policies.
    pub policies: Arc<dyn GuardrailPolicies>,
    /// The store.
    pub source: Arc<dyn PolicySource>,
}

/// The store of the guardrails behind policies. All methods but [`Self::show_changes`] are for any time, also while it
/// is unavailable.
#[async_trait]
pub trait PolicySource: Send + Sync {
    /// Adds a guardrail, or replaces that with its id.
    fn put(&self, guardrail: Guardrail);

    /// Deletes a guardrail.
    fn delete(&self, id: GuardrailId);

    /// Sets the guardrails of the workspace and of the key in the store.
    fn assign(&self, workspace: Option<GuardrailId>, key: Option<GuardrailId>);

    /// Sets whether the store can be read.
    fn set_available(&self, available: bool);

    /// Lets the time pass after which changes MUST be visible.
    async fn show_changes(&self);

    /// Lets the time pass after which nothing that was read before may be used.
    async fn expire(&self);
}

impl Policies {
    /// Stores guardrails 1 and 2, which the key has, and guardrail 3.
    async fn with_guardrails(&self) {
        for number in 1..=3 {
            self.source.put(guardrail(number, &format!("guardrail {number}")));
        }
        self.source.assign(Some(id(1)), Some(id(2)));
        self.source.show_changes().await;
    }

    async fn names(&self, key: &InferenceKey) -> Result<Vec<String>, StoreError> {
        let policy = self.policies.find(key).await?;
        let guardrails = policy.iter().flat_map(|policy| policy.guardrails());
        Ok(guardrails.map(|guardrail| guardrail.name.as_str().to_owned()).collect())
    }
}

fn id(number: u64) -> GuardrailId {
    GuardrailId::from_uuid(SequentialIds::uuid(number))
}

fn workspace_id() -> WorkspaceId {
    WorkspaceId::from_uuid(SequentialIds::uuid(1))
}

fn guardrail(number: u64, name: &str) -> Guardrail {
    Guardrail {
        id: id(number),
        workspace_id: workspace_id(),
        name: GuardrailName::try_new(name).unwrap(),
        budget: None,
        rules: GuardrailRules::default(),
        version: 1,
        created_at: DateTime::UNIX_EPOCH,
        updated_at: None,
    }
}

/// Returns the key with these guardrails, as its grant was read.
fn key(workspace: Option<u64>, own: Option<u64>) -> InferenceKey {
    InferenceKey::for_tests(SequentialIds::key(1), workspace_id())
        .with_hash(ApiKeyHash::from_bytes([7; 32]))
        .under(workspace.map(id), own.map(id))
}

async fn key_without_guardrails_has_no_policy(subject: &Policies) {
    subject.with_guardrails().await;
    assert!(subject.policies.find(&key(None, None)).await.unwrap().is_none());
}

async fn policy_applies_guardrail_of_workspace_first(subject: &Policies) {
    subject.with_guardrails().await;
    for (key, names) in [
        (key(Some(1), Some(2)), &["guardrail 1", "guardrail 2"][..]),
        (key(Some(2), Some(1)), &["guardrail 2", "guardrail 1"]),
        (key(Some(1), None), &["guardrail 1"]),
        (key(None, Some(2)), &["guardrail 2"]),
    ] {
        assert_eq!(subject.names(&key).await.unwrap(), names);
    }
}

async fn guardrail_of_both_counts_once(subject: &Policies) {
    subject.with_guardrails().await;
    assert_eq!(subject.names(&key(Some(3), Some(3))).await.unwrap(), ["guardrail 3"]);
}

async fn changed_guardrail_applies_when_changes_are_visible(subject: &Policies) {
    subject.with_guardrails().await;
    let key = key(Some(1), Some(2));
    assert_eq!(subject.names(&key).await.unwrap(), ["guardrail 1", "guardrail 2"]);
    for name in ["changed", "changed again"] {
        subject.source.put(guardrail(2, name));
        subject.source.show_changes().await;
        assert_eq!(subject.names(&key).await.unwrap(), ["guardrail 1", name]);
    }
}

async fn deleted_guardrail_is_that_of_the_key_now(subject: &Policies) {
    subject.with_guardrails().await;
    let key = key(Some(1), Some(2));
    assert_eq!(subject.names(&key).await.unwrap(), ["guardrail 1", "guardrail 2"]);
    subject.source.delete(id(2));
    subject.source.assign(Some(id(1)), Some(id(3)));
    subject.source.show_changes().await;
    assert_eq!(subject.names(&key).await.unwrap(), ["guardrail 1", "guardrail 3"]);
    subject.source.delete(id(3));
    subject.source.assign(Some(id(1)), None);
    subject.source.show_changes().await;
    assert_eq!(subject.names(&key).await.unwrap(), ["guardrail 1"]);
}

async fn missing_guardrail_is_never_no_policy(subject: &Policies) {
    subject.with_guardrails().await;
    subject.source.delete(id(2));
    subject.source.show_changes().await;
    for key in [key(Some(1), Some(2)), key(None, Some(2))] {
        let error = subject.policies.find(&key).await.unwrap_err();
        assert_eq!(error.kind(), ErrorKind::Unavailable, "the key still has the guardrail");
    }
}

async fn unavailable_store_is_an_error(subject: &Policies) {
    subject.with_guardrails().await;
    let key = key(Some(1), Some(2));
    subject.source.set_available(false);
    let error = subject.policies.find(&key).await.unwrap_err();
    assert_eq!(error.kind(), ErrorKind::Unavailable, "an unread guardrail is not a missing one");
}

async fn unavailable_store_recovers(subject: &Policies) {
    subject.with_guardrails().await;
    let key = key(Some(1), Some(2));
    assert!(subject.policies.find(&key).await.unwrap().is_some());
    subject.source.set_available(false);
    subject.source.expire().await;
    assert_eq!(subject.policies.find(&key).await.unwrap_err().kind(), ErrorKind::Unavailable, "it is too old");
    subject.source.set_available(true);
    subject.source.show_changes().await;
    assert_eq!(subject.names(&key).await.unwrap(), ["guardrail 1", "guardrail 2"]);
}

async fn invalid_filters_are_an_error(subject: &Policies) {
    subject.with_guardrails().await;
    let filter = ContentFilter { pattern: "(".to_owned(), action: FilterAction::Block, label: None };
    let mut broken = guardrail(2, "broken");
    broken.rules.content_filters = vec![filter];
    subject.source.put(broken);
    subject.source.show_changes().await;
    let error = subject.policies.find(&key(Some(1), Some(2))).await.unwrap_err();
    assert_eq!(error.kind(), ErrorKind::Internal);
    assert_eq!(subject.names(&key(Some(1), None)).await.unwrap(), ["guardrail 1"], "other policies are valid");
}

async fn concurrent_look_ups_find_the_same_policy(subject: &Policies) {
    subject.with_guardrails().await;
    let (pair, single) = (key(Some(1), Some(2)), key(Some(1), None));
    let keys = (0..16).map(|number| if number % 2 == 0 { &pair } else { &single });
    let found = join_all(keys.map(|key| subject.names(key))).await;
    for (number, names) in found.into_iter().enumerate() {
        let expected = if number % 2 == 0 { &["guardrail 1", "guardrail 2"][..] } else { &["guardrail 1"] };
        assert_eq!(names.unwrap(), expected);
    }
}
