//! Reading the caller's own key.

use std::sync::Arc;

use super::{ApiKeyRepository, KeyRecord, Principal, ReadApiKeys};
use crate::budget::{BudgetScope, LedgerReader, LimitStatus, Payer};
use crate::error::{ErrorKind, StoreError};
use crate::ids::{ApiKeyId, GuardrailId, WorkspaceId};

/// The caller's own key, with its spend and the limits that apply to it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct OwnKey {
    /// The key with its usage.
    pub record: KeyRecord,
    /// Every limit that applies, in the order of checking; a management key has none.
    pub limits: Vec<OwnLimit>,
}

impl OwnKey {
    /// Returns the limit with the least room; of several, the first.
    pub fn tightest_limit(&self) -> Option<&OwnLimit> {
        self.limits.iter().min_by_key(|limit| limit.status.room())
    }
}

/// A limit of the caller.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct OwnLimit {
    /// The limited subject.
    pub scope: OwnLimitScope,
    /// Its current amounts: those that reject the next request.
    pub status: LimitStatus,
}

named_enum! {
    /// The subject of a limit of the caller, in the order of checking.
    #[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
    pub enum OwnLimitScope {
        /// The workspace: its credit, or one of its budgets.
        Workspace = "workspace",
        /// The budget of the workspace's default guardrail, for this key.
        DefaultGuardrail = "workspace_default_key",
        /// The budget of the key's guardrail.
        Guardrail = "api_key",
        /// The key itself.
        Key = "key_limit",
    }
}

/// An error of reading the caller's own key.
#[derive(Debug, thiserror::Error)]
pub enum GetOwnKeyError {
    /// The caller is the operator.
    #[error("the operator has no key")]
    NoKey,
    /// The key was deleted after it was authenticated.
    #[error("the key was deleted")]
    Deleted,
    /// The store failed.
    #[error("the key store failed")]
    Store(#[from] StoreError),
}

impl GetOwnKeyError {
    /// Returns the meaning of the error.
    pub fn kind(&self) -> ErrorKind {
        match self {
            Self::NoKey => ErrorKind::NotFound,
            Self::Deleted => ErrorKind::Unauthenticated,
            Self::Store(error) => error.kind(),
        }
    }
}

/// Reads the caller's own key.
pub struct GetOwnKey {
    keys: Arc<dyn ApiKeyRepository>,
    ledger: Arc<dyn LedgerReader>,
    records: ReadApiKeys,
}

impl GetOwnKey {
    /// Wires the ports; `ledger` is that of the process, so that the figures contain its charges and holds.
    pub fn new(keys: Arc<dyn ApiKeyRepository>, ledger: Arc<dyn LedgerReader>, records: ReadApiKeys) -> Self {
        Self { keys, ledger, records }
    }

    /// Reads the key of the caller.
    pub async fn execute(&self, caller: &Principal) -> Result<OwnKey, GetOwnKeyError> {
        let limits = self.limits(caller).await?;
        let id = caller.id().ok_or(GetOwnKeyError::NoKey)?;
        let key = self.keys.find(&id.into()).await?.ok_or(GetOwnKeyError::Deleted)?;
        let mut record = self.records.record(key).await?;
        if let Some(OwnLimit { status, .. }) = limits.iter().find(|limit| limit.scope == OwnLimitScope::Key) {
            // The amounts that reject the next request.
            record.limit_remaining = Some(status.unspent());
            record.spend.reserved = status.reserved;
        }
        Ok(OwnKey { record, limits })
    }

    async fn limits(&self, caller: &Principal) -> Result<Vec<OwnLimit>, StoreError> {
        let Principal::Inference(key) = caller else { return Ok(Vec::new()) };
        let (default, own) = (key.workspace_guardrail_id(), key.guardrail_id());
        self.limits_of((key.workspace_id(), key.id()), default, own).await
    }

    /// Returns the limits of an inference key, in the order of checking.
    ///
    /// # Errors
    /// The store failed.
    pub async fn limits_of(
        &self,
        (workspace_id, api_key): (WorkspaceId, ApiKeyId),
        default_guardrail: Option<GuardrailId>,
        own_guardrail: Option<GuardrailId>,
    ) -> Result<Vec<OwnLimit>, StoreError> {
        let mut guardrails: Vec<_> = default_guardrail.into_iter().chain(own_guardrail).collect();
        guardrails.dedup();
        let payer = Payer { workspace_id, api_key, guardrails };
        let statuses = self.ledger.limit_statuses(&payer).await?;
        let scope = |status: &LimitStatus| match status.scope {
            BudgetScope::Workspace => OwnLimitScope::Workspace,
            BudgetScope::Guardrail if status.guardrail_id == default_guardrail => OwnLimitScope::DefaultGuardrail,
            BudgetScope::Guardrail => OwnLimitScope::Guardrail,
            BudgetScope::Key => OwnLimitScope::Key,
        };
        let mut limits: Vec<_> =
            statuses.into_iter().map(|status| OwnLimit { scope: scope(&status), status }).collect();
        limits.sort_by_key(|limit| limit.scope);
        Ok(limits)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::api_key::{InferenceKey, ManagementKey, MockApiKeyRepository};
    use crate::budget::{MockLedgerReader, ResetInterval};
    use crate::money::Usd;
    use crate::system::MockClock;
    use crate::usage::MockUsageRepository;
    use uuid::Uuid;

    fn guardrail(number: u128) -> GuardrailId {
        GuardrailId::from_uuid(Uuid::from_u128(number))
    }

    fn key_id() -> ApiKeyId {
        ApiKeyId::from_uuid(Uuid::from_u128(7))
    }

    fn status(scope: BudgetScope, guardrail_id: Option<GuardrailId>, limit: i64) -> LimitStatus {
        LimitStatus {
            scope,
            guardrail_id,
            is_credit: false,
            limit: Usd::from_pico(limit),
            reset: Some(ResetInterval::Daily),
            spent: Usd::from_pico(3),
            reserved: Usd::from_pico(2),
            resets_at: None,
        }
    }

    fn inference(default: Option<u128>, own: Option<u128>) -> Principal {
        let key = InferenceKey::for_tests(key_id(), WorkspaceId::from_uuid(Uuid::from_u128(1)));
        Principal::Inference(key.under(default.map(guardrail), own.map(guardrail)))
    }

    fn over(keys: MockApiKeyRepository, ledger: MockLedgerReader) -> GetOwnKey {
        let (keys, ledger): (Arc<dyn ApiKeyRepository>, Arc<dyn LedgerReader>) = (Arc::new(keys), Arc::new(ledger));
        let (usage, clock) = (Arc::new(MockUsageRepository::new()), Arc::new(MockClock::new()));
        let records = ReadApiKeys::new(Arc::clone(&keys), Arc::clone(&ledger), usage, clock);
        GetOwnKey::new(keys, ledger, records)
    }

    async fn limits(caller: &Principal, statuses: Vec<LimitStatus>) -> Vec<OwnLimit> {
        let mut ledger = MockLedgerReader::new();
        ledger.expect_limit_statuses().return_once(move |_| Ok(statuses));
        over(MockApiKeyRepository::new(), ledger).limits(caller).await.unwrap()
    }

    #[tokio::test]
    async fn limits_are_in_the_order_of_checking() {
        let statuses = vec![
            status(BudgetScope::Key, None, 1),
            status(BudgetScope::Guardrail, Some(guardrail(2)), 2),
            status(BudgetScope::Workspace, None, 3),
            status(BudgetScope::Guardrail, Some(guardrail(1)), 4),
        ];
        let found = limits(&inference(Some(1), Some(2)), statuses).await;
        let scopes: Vec<_> = found.iter().map(|limit| (limit.scope.as_str(), limit.status.limit.pico())).collect();
        assert_eq!(scopes, [("workspace", 3), ("workspace_default_key", 4), ("api_key", 2), ("key_limit", 1)]);
    }

    #[tokio::test]
    async fn guardrail_of_key_and_workspace_counts_once() {
        let statuses = vec![status(BudgetScope::Guardrail, Some(guardrail(1)), 4)];
        let found = limits(&inference(Some(1), Some(1)), statuses).await;
        assert_eq!(found[0].scope, OwnLimitScope::DefaultGuardrail);
        let statuses = vec![status(BudgetScope::Guardrail, Some(guardrail(1)), 4)];
        let other = limits(&inference(None, Some(1)), statuses).await;
        assert_eq!(other[0].scope, OwnLimitScope::Guardrail);
    }

    #[tokio::test]
    async fn management_key_has_no_limits_and_reads_no_ledger_of_them() {
        let caller = Principal::Management(ManagementKey::for_tests(key_id()));
        let use_case = over(MockApiKeyRepository::new(), MockLedgerReader::new());
        assert_eq!(use_case.limits(&caller).await.unwrap(), []);
    }

    #[tokio::test]
    async fn key_deleted_after_authentication_is_unauthenticated() {
        let mut keys = MockApiKeyRepository::new();
        keys.expect_find().return_once(|_| Ok(None));
        let caller = Principal::Management(ManagementKey::for_tests(key_id()));
        let use_case = over(keys, MockLedgerReader::new());
        assert_eq!(use_case.execute(&caller).await.unwrap_err().kind(), ErrorKind::Unauthenticated);
    }

    #[tokio::test]
    async fn failing_ledger_is_unavailable_and_never_unlimited() {
        let mut ledger = MockLedgerReader::new();
        ledger.expect_limit_statuses().return_once(|_| Err(StoreError::unavailable("gone")));
        let use_case = over(MockApiKeyRepository::new(), ledger);
        let error = use_case.execute(&inference(None, None)).await.unwrap_err();
        assert_eq!(error.kind(), ErrorKind::Unavailable);
    }
}
