//! Sample records.

use std::sync::atomic::{AtomicU64, Ordering};

use chrono::{DateTime, TimeDelta, Utc};

use super::super::{FixedSecrets, SequentialIds};
use super::Stores;
use crate::api_key::{ApiKey, ApiKeyName, ApiKeyScope};
use crate::audit::{Actor, AuditDraft};
use crate::authority::{ManagementAccess, ManagementScope};
use crate::budget::{
    BudgetStoreError, FoldEntry, FoldRequest, ResetInterval, SpendLimit, UsageCharge, WorkspaceBudgets,
};
use crate::change_feed::{ChangePosition, ChangeSubject, Changes};
use crate::error::StoreError;
use crate::guardrail::{Guardrail, GuardrailName, GuardrailRepository, GuardrailRules, PlacedGuardrail};
use crate::ids::{ApiKeyId, DestinationId, DocumentId, GuardrailId, ProcessId, WorkspaceId};
use crate::json::Json;
use crate::money::Usd;
use crate::observability::{Destination, DestinationKind};
use crate::rate::RateLimits;
use crate::secret::{ApiKeyHash, SecretString};
use crate::workspace::{Workspace, WorkspaceName, WorkspaceSlug, WorkspaceUpdate};

/// Returns a time in whole milliseconds, `minutes` after the first one.
pub(super) fn at(minutes: i64) -> DateTime<Utc> {
    DateTime::from_timestamp_millis(1_790_000_000_123).unwrap() + TimeDelta::minutes(minutes)
}

pub(super) fn workspace_id(number: u64) -> WorkspaceId {
    WorkspaceId::from_uuid(SequentialIds::uuid(number))
}

pub(super) fn guardrail_id(number: u64) -> GuardrailId {
    GuardrailId::from_uuid(SequentialIds::uuid(number))
}

pub(super) fn document_id(number: u64) -> DocumentId {
    DocumentId::from_uuid(SequentialIds::uuid(number))
}

/// Returns the id of a key.
pub fn key_id(number: u64) -> ApiKeyId {
    SequentialIds::key(number)
}

pub(super) fn hash(number: u64) -> ApiKeyHash {
    FixedSecrets::secret(number).hash()
}

pub(super) fn workspace(number: u64) -> Workspace {
    Workspace {
        id: workspace_id(number),
        name: WorkspaceName::try_new(&format!("wörk {number}")).unwrap(),
        slug: WorkspaceSlug::try_new(&format!("w-{number}")).unwrap(),
        description: Some(format!("description {number}")),
        owner_id: Some(format!("owner {number} 'quoted'")),
        is_default: false,
        suspended: false,
        credit: None,
        budgets: WorkspaceBudgets::default(),
        rates: RateLimits::default(),
        default_guardrail_id: None,
        storage_used_bytes: 0,
        created_at: at(i64::try_from(number).unwrap()),
        updated_at: None,
    }
}

/// Returns a key with limits.
///
/// # Panics
/// The name is invalid, which it is not.
pub fn inference_key(number: u64, workspace: u64) -> ApiKey {
    let secret = FixedSecrets::secret(number);
    ApiKey {
        id: key_id(number),
        hash: secret.hash(),
        label: secret.label(),
        name: ApiKeyName::try_new(&format!("key {number} ✓")).unwrap(),
        scope: ApiKeyScope::Inference(workspace_id(workspace)),
        disabled: false,
        expires_at: Some(at(1_000_000)),
        limit: Some(SpendLimit { amount: Usd::from_pico(25_500_000_000_001), reset: Some(ResetInterval::Weekly) }),
        rates: RateLimits { requests_per_minute: Some(60), tokens_per_minute: None },
        guardrail_id: None,
        users: crate::api_key::KeyUsers::default(),
        previous_secret: None,
        created_at: at(i64::try_from(number).unwrap()),
        updated_at: None,
    }
}

pub(super) fn management_key(number: u64) -> ApiKey {
    ApiKey {
        scope: ApiKeyScope::Management(ManagementScope::UNRESTRICTED),
        expires_at: None,
        limit: None,
        rates: RateLimits::default(),
        ..inference_key(number, 0)
    }
}

/// Returns a management key with this access to one workspace.
pub(super) fn narrowed_key(number: u64, access: ManagementAccess, workspace: u64) -> ApiKey {
    let scope = ManagementScope::try_new(access, Some(vec![workspace_id(workspace)])).unwrap();
    ApiKey { scope: ApiKeyScope::Management(scope), ..management_key(number) }
}

pub(super) fn guardrail(number: u64, workspace: u64) -> Guardrail {
    Guardrail {
        id: guardrail_id(number),
        workspace_id: workspace_id(workspace),
        name: GuardrailName::try_new(&format!("guardrail {number} ✓")).unwrap(),
        budget: None,
        rules: GuardrailRules::default(),
        version: 1,
        created_at: at(i64::try_from(number).unwrap()),
        updated_at: None,
    }
}

/// Returns a guardrail of workspace 1 in a version.
pub(super) fn placed(number: u64, version: u32, workspace_default: bool) -> PlacedGuardrail {
    PlacedGuardrail { guardrail: Guardrail { version, ..guardrail(number, 1) }, workspace_default }
}

/// Replaces the version before `after` by `after`. `defaults`: whether it is the default before and after.
pub(super) async fn update_guardrail(
    guardrails: &dyn GuardrailRepository,
    after: &Guardrail,
    defaults: [bool; 2],
    audit: &AuditDraft,
) -> Result<bool, StoreError> {
    let before = Guardrail { version: after.version.saturating_sub(1), ..after.clone() };
    let [before, after] = [(before, defaults[0]), (after.clone(), defaults[1])]
        .map(|(guardrail, workspace_default)| PlacedGuardrail { guardrail, workspace_default });
    guardrails.update(&before, &after, audit).await
}

/// Returns the audit entry of test changes.
pub(super) fn audit() -> AuditDraft {
    let details = Json::object([("after", "{}")]);
    AuditDraft::done(&Actor::system(), "test.change", "subject", details)
}

/// Folds a charge as the only one of a new process.
pub(super) async fn fold_charge(stores: &Stores, charge: UsageCharge) -> Result<(), StoreError> {
    static PROCESSES: AtomicU64 = AtomicU64::new(1 << 40);
    let process = ProcessId::from_uuid(SequentialIds::uuid(PROCESSES.fetch_add(1, Ordering::Relaxed)));
    stores.budget.register(process).await?;
    let entries = vec![FoldEntry { charge, allowances: Vec::new() }];
    match stores.budget.fold(&FoldRequest { process, after: 0, up_to: 1, entries }).await {
        Ok(()) => Ok(()),
        Err(BudgetStoreError::Store(error)) => Err(error),
        Err(other) => panic!("{other}"),
    }
}

pub(super) async fn add_workspace(stores: &Stores, number: u64) {
    stores.workspaces.insert(&workspace(number), false, &audit()).await.expect("a workspace is added");
}

/// Suspends or resumes a workspace.
pub(super) async fn suspend(stores: &Stores, number: u64, suspended: bool) {
    update_workspace(stores, number, |before| Workspace { suspended, ..before }).await;
}

/// Replaces the budgets of a workspace.
pub(super) async fn limit_workspace(stores: &Stores, number: u64, budgets: WorkspaceBudgets) {
    update_workspace(stores, number, |before| Workspace { budgets, ..before }).await;
}

async fn update_workspace(stores: &Stores, number: u64, change: impl FnOnce(Workspace) -> Workspace) {
    let before = stores.workspaces.find(workspace_id(number)).await.unwrap().expect("the workspace exists");
    let after = change(before.clone());
    let updated = stores.workspaces.update(&before, &after, &audit()).await.unwrap();
    assert_eq!(updated, WorkspaceUpdate::Updated);
}

pub(super) async fn add_key(stores: &Stores, key: &ApiKey) {
    assert!(
        stores.api_keys.insert(key, &audit()).await.expect("a key is added").is_inserted(),
        "the key's workspace is there"
    );
}

pub(super) async fn add_guardrail(stores: &Stores, guardrail: &Guardrail) {
    assert!(
        stores.guardrails.insert(guardrail, false, &audit()).await.expect("a guardrail is added"),
        "its workspace is there"
    );
}

/// Returns the newest position of the change feed.
pub(super) async fn newest_change(stores: &Stores) -> ChangePosition {
    match stores.changes.changes_since(None).await.expect("the change feed answers") {
        Changes::StartOver(newest) => newest,
        Changes::Continued(changes) => panic!("a reader without a position gets {changes:?}"),
    }
}

/// Returns the subjects of the changes after a position.
pub(super) async fn changed_since(stores: &Stores, last: ChangePosition) -> Vec<ChangeSubject> {
    match stores.changes.changes_since(Some(last)).await.expect("the change feed answers") {
        Changes::Continued(changes) => changes.iter().map(|change| change.subject).collect(),
        Changes::StartOver(newest) => panic!("the feed does not continue from {last:?}; it is at {newest:?}"),
    }
}

pub(super) async fn catalogue_version(stores: &Stores) -> u64 {
    stores.models.version().await.expect("the catalogue has a version")
}

pub(super) fn destination_id(number: u64) -> DestinationId {
    DestinationId::from_uuid(SequentialIds::uuid(number))
}

pub(super) fn destination(number: u64, workspace: u64) -> Destination {
    Destination {
        id: destination_id(number),
        workspace_id: workspace_id(workspace),
        name: format!("destination {number} ✓"),
        kind: DestinationKind::Webhook,
        url: "https://example.org/in?x=1".to_owned(),
        headers: vec![("x-team".to_owned(), SecretString::new("a \"b\""))],
        signing_secret: Some(SecretString::new("0123456789abcdef")),
        enabled: true,
        privacy_mode: true,
        sampling: 2_500,
        api_key_ids: Some(vec![key_id(1), key_id(2)]),
        created_at: at(i64::try_from(number).unwrap()),
        updated_at: None,
    }
}
