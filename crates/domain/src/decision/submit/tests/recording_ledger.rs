//! A ledger over a store in memory that records its calls, and limited keys for it.

use super::*;
use crate::api_key::{ApiKey, ApiKeyName, ApiKeyRepository, ApiKeyScope};
use crate::audit::{Actor, AuditDraft};
use crate::budget::{
    Hold, HoldRequest, LedgerMaintenance, LedgerReader, LimitExceeded, SpendLimit, UsageCharge, WorkspaceBudgets,
};
use crate::rate::RateLimits;
use crate::testing::{FixedSecrets, MemoryStore};
use crate::usage::{AttemptRecord, UsageFilter, UsageRepository};
use crate::workspace::{Workspace, WorkspaceName, WorkspaceRepository, WorkspaceSlug};

/// A call of the ledger with its result.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum LedgerCall {
    Held(Usd),
    Increased(Usd),
    /// A later stage begins with the bounds of its attempts.
    Begun(Usd),
    Rejected(Usd),
    Charged(Usd),
    Released,
}

#[derive(Default)]
pub(super) struct RecordingLedger {
    pub(super) store: MemoryStore,
    calls: Mutex<Vec<LedgerCall>>,
    hold_requests: Mutex<Vec<HoldRequest>>,
    /// True while holds and increases fail.
    pub(super) is_unavailable: std::sync::atomic::AtomicBool,
    /// True while charges fail.
    pub(super) rejects_charges: std::sync::atomic::AtomicBool,
    /// The number of charges passed to the ledger.
    pub(super) settle_calls: std::sync::atomic::AtomicUsize,
    /// The clock of the store.
    pub(super) clock: FixedClock,
}

pub(super) fn usd(pico: i64) -> Usd {
    Usd::from_pico(pico)
}

fn workspace_id() -> WorkspaceId {
    WorkspaceId::from_uuid(SequentialIds::uuid(900))
}

/// The limited key with this number.
pub(super) fn key(number: u64) -> InferenceKey {
    InferenceKey::for_tests(SequentialIds::key(number), workspace_id()).with_limit()
}

impl RecordingLedger {
    /// Creates a workspace with this credit, and keys with these limits, numbered from one.
    pub(super) async fn new(credit: Option<i64>, limits: &[Option<i64>]) -> Arc<Self> {
        let clock = FixedClock::default();
        let store = MemoryStore::new().with_clock(clock.clone());
        let audit = AuditDraft::done(&Actor::system(), "test.change", "subject", Json::object([]));
        let workspace = Workspace {
            id: workspace_id(),
            name: WorkspaceName::try_new("w").unwrap(),
            slug: WorkspaceSlug::of_name("w"),
            description: None,
            owner_id: None,
            is_default: true,
            suspended: false,
            credit: credit.map(usd),
            budgets: WorkspaceBudgets::default(),
            rates: RateLimits::default(),
            default_guardrail_id: None,
            storage_used_bytes: 0,
            created_at: DateTime::UNIX_EPOCH,
            updated_at: None,
        };
        store.workspaces().insert(&workspace, false, &audit).await.unwrap();
        for (number, limit) in (1..).zip(limits) {
            let secret = FixedSecrets::secret(number);
            let key = ApiKey {
                id: SequentialIds::key(number),
                hash: secret.hash(),
                label: secret.label(),
                name: ApiKeyName::try_new("k").unwrap(),
                scope: ApiKeyScope::Inference(workspace_id()),
                disabled: false,
                expires_at: None,
                limit: limit.map(|amount| SpendLimit { amount: usd(amount), reset: None }),
                rates: RateLimits::default(),
                guardrail_id: None,
                users: crate::api_key::KeyUsers::default(),
                previous_secret: None,
                created_at: DateTime::UNIX_EPOCH,
                updated_at: None,
            };
            assert!(store.api_keys().insert(&key, &audit).await.unwrap().is_inserted());
        }
        Arc::new(Self { store, clock, ..Self::default() })
    }

    /// All calls so far.
    pub(super) fn calls(&self) -> Vec<LedgerCall> {
        self.calls.lock().unwrap().clone()
    }

    pub(super) fn hold_requests(&self) -> Vec<HoldRequest> {
        self.hold_requests.lock().unwrap().clone()
    }

    /// The spent and the held amount of a key's first limit.
    pub(super) async fn spent_and_held(&self, number: u64) -> (i64, i64) {
        let payer = Payer { workspace_id: workspace_id(), api_key: SequentialIds::key(number), guardrails: Vec::new() };
        let limits = self.store.limits().limit_statuses(&payer).await.unwrap();
        (limits[0].spent.pico(), limits[0].reserved.pico())
    }

    /// Audits the ledger and returns every record, newest first.
    pub(super) async fn records(&self) -> Vec<UsageRecord> {
        assert_eq!(self.store.maintenance().audit().await.unwrap().discrepancies, []);
        self.store.usage().list(&UsageFilter::for_workspace(workspace_id()), 1_000).await.unwrap()
    }

    fn record(&self, call: LedgerCall) {
        self.calls.lock().unwrap().push(call);
    }

    fn check_available(&self) -> Result<(), StoreError> {
        let is_unavailable = self.is_unavailable.load(std::sync::atomic::Ordering::SeqCst);
        if is_unavailable { Err(StoreError::unavailable("away")) } else { Ok(()) }
    }
}

#[async_trait]
impl Ledger for RecordingLedger {
    async fn reserve(&self, request: HoldRequest) -> Result<Result<Hold, LimitExceeded>, StoreError> {
        self.check_available()?;
        let amount = request.amount;
        assert_eq!(bounds::total(&request.attempts), amount, "the bounds of the attempts sum to the hold");
        self.hold_requests.lock().unwrap().push(request.clone());
        let reserved = self.store.ledger().reserve(request).await?;
        self.record(if reserved.is_ok() { LedgerCall::Held(amount) } else { LedgerCall::Rejected(amount) });
        Ok(reserved)
    }

    async fn increase(
        &self,
        id: &DecisionId,
        more: Usd,
        attempts: &[AttemptRecord],
    ) -> Result<Result<(), LimitExceeded>, StoreError> {
        self.check_available()?;
        assert!(!attempts.is_empty());
        if more == Usd::ZERO {
            self.record(LedgerCall::Begun(bounds::total(attempts)));
            return self.store.ledger().increase(id, more, attempts).await;
        }
        assert!(bounds::total(attempts) <= more, "the bounds of the attempts fit into the increase");
        let extended = self.store.ledger().increase(id, more, attempts).await?;
        self.record(if extended.is_ok() { LedgerCall::Increased(more) } else { LedgerCall::Rejected(more) });
        Ok(extended)
    }

    async fn settle(&self, settlement: &UsageCharge) -> Result<(), StoreError> {
        self.settle_calls.fetch_add(1, std::sync::atomic::Ordering::SeqCst);
        if self.rejects_charges.load(std::sync::atomic::Ordering::SeqCst) {
            return Err(StoreError::unavailable("away"));
        }
        self.record(LedgerCall::Charged(settlement.record.cost));
        self.store.ledger().settle(settlement).await
    }

    async fn release(&self, id: &DecisionId) -> Result<(), StoreError> {
        self.record(LedgerCall::Released);
        self.store.ledger().release(id).await
    }
}

/// The upper bound of a request's cost at one picodollar per token, at an endpoint of these tests.
pub(super) fn bound(request: &DecisionRequest) -> i64 {
    i64::try_from(request.provider_input.len_bytes()).unwrap() + 20
}

/// A model at two endpoints, each at one picodollar per token, with this ledger.
pub(super) fn setup(ledger: &Arc<RecordingLedger>) -> GatewaySetup {
    let endpoints = [("one", "a"), ("two", "b")]
        .map(|(provider, upstream)| at_price(endpoint("acme/judge", provider, upstream), "0.000000000001"));
    GatewaySetup { ledger: Some(Arc::clone(ledger) as Arc<dyn Ledger>), ..GatewaySetup::new(endpoints.into()) }
}

use super::fixture::{GatewaySetup, at_price};
