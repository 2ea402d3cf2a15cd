//! A ledger over a store in memory that remembers what it was asked, and a key that pays by it.

use super::*;
use crate::api_key::{ApiKey, ApiKeyName, ApiKeyRepository, ApiKeyScope};
use crate::audit::{Actor, AuditDraft};
use crate::budget::{
    Hold, HoldRequest, LedgerAuditor, LimitExceeded, LimitStatusReader, SpendLimit, UsageCharge, WorkspaceBudgets,
};
use crate::rate::RateLimits;
use crate::testing::{FixedSecrets, MemoryStore};
use crate::usage::{AttemptRecord, UsageFilter, UsageRepository};
use crate::workspace::{Workspace, WorkspaceName, WorkspaceRepository};

/// What the ledger was asked, and what became of it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Entry {
    Reserved(Usd),
    Extended(Usd),
    Refused(Usd),
    Settled(Usd),
    Released,
}

#[derive(Default)]
pub(super) struct Books {
    pub(super) store: MemoryStore,
    entries: Mutex<Vec<Entry>>,
    claims: Mutex<Vec<HoldRequest>>,
    /// True while money cannot be reserved, or no more of it.
    pub(super) is_away: std::sync::atomic::AtomicBool,
    /// True while nothing can be charged.
    pub(super) takes_no_records: std::sync::atomic::AtomicBool,
    /// How often a charge was passed to the ledger.
    pub(super) settle_calls: std::sync::atomic::AtomicUsize,
    /// The store's.
    pub(super) clock: FixedClock,
}

pub(super) fn usd(pico: i64) -> Usd {
    Usd::from_pico(pico)
}

fn workspace_id() -> WorkspaceId {
    WorkspaceId::from_uuid(SequentialIds::uuid(900))
}

/// The limited key of that number.
pub(super) fn key(number: u64) -> InferenceKey {
    InferenceKey::for_tests(SequentialIds::key(number), workspace_id()).with_limit()
}

impl Books {
    /// One workspace with so much credit, and keys with these limits, numbered from one.
    pub(super) async fn new(credit: Option<i64>, limits: &[Option<i64>]) -> Arc<Self> {
        let clock = FixedClock::default();
        let store = MemoryStore::new().with_clock(clock.clone());
        let audit = AuditDraft::done(&Actor::system(), "test.change", "subject", Json::object([]));
        let workspace = Workspace {
            id: workspace_id(),
            name: WorkspaceName::try_new("w").unwrap(),
            owner_id: None,
            is_default: true,
            suspended: false,
            credit: credit.map(usd),
            budgets: WorkspaceBudgets::default(),
            rates: RateLimits::default(),
            default_guardrail_id: None,
            storage_used_bytes: 0,
            created_at: DateTime::UNIX_EPOCH,
        };
        WorkspaceRepository::insert(&store, &workspace, &audit).await.unwrap();
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
                created_at: DateTime::UNIX_EPOCH,
            };
            assert!(ApiKeyRepository::insert(&store, &key, &audit).await.unwrap());
        }
        Arc::new(Self { store, clock, ..Self::default() })
    }

    /// Everything so far.
    pub(super) fn entries(&self) -> Vec<Entry> {
        self.entries.lock().unwrap().clone()
    }

    pub(super) fn claims(&self) -> Vec<HoldRequest> {
        self.claims.lock().unwrap().clone()
    }

    /// What the first limit of a key says is spent and reserved.
    pub(super) async fn standing(&self, number: u64) -> (i64, i64) {
        let payer = Payer { workspace_id: workspace_id(), api_key: SequentialIds::key(number), guardrails: Vec::new() };
        let limits = self.store.limit_statuses(&payer).await.unwrap();
        (limits[0].spent.pico(), limits[0].reserved.pico())
    }

    /// Every record, newest first, after the books have been found to add up.
    pub(super) async fn records(&self) -> Vec<UsageRecord> {
        assert_eq!(self.store.audit().await.unwrap().discrepancies, []);
        UsageRepository::list(&self.store, &UsageFilter::of(workspace_id()), 1_000).await.unwrap()
    }

    fn note(&self, entry: Entry) {
        self.entries.lock().unwrap().push(entry);
    }

    fn answers(&self) -> Result<(), StoreError> {
        let is_away = self.is_away.load(std::sync::atomic::Ordering::SeqCst);
        if is_away { Err(StoreError::unavailable("away")) } else { Ok(()) }
    }
}

#[async_trait]
impl Ledger for Books {
    async fn reserve(&self, claim: HoldRequest) -> Result<Result<Hold, LimitExceeded>, StoreError> {
        self.answers()?;
        let amount = claim.amount;
        assert_eq!(bounds::total(&claim.attempts), amount, "its attempts come to what is reserved");
        self.claims.lock().unwrap().push(claim.clone());
        let reserved = self.store.reserve(claim).await?;
        self.note(if reserved.is_ok() { Entry::Reserved(amount) } else { Entry::Refused(amount) });
        Ok(reserved)
    }

    async fn extend(
        &self,
        id: &DecisionId,
        more: Usd,
        attempts: &[AttemptRecord],
    ) -> Result<Result<(), LimitExceeded>, StoreError> {
        self.answers()?;
        assert!(more > Usd::ZERO && !attempts.is_empty());
        assert!(bounds::total(attempts) <= more, "who dies is not charged more than is reserved");
        let extended = self.store.extend(id, more, attempts).await?;
        self.note(if extended.is_ok() { Entry::Extended(more) } else { Entry::Refused(more) });
        Ok(extended)
    }

    async fn settle(&self, settlement: UsageCharge) -> Result<(), StoreError> {
        self.settle_calls.fetch_add(1, std::sync::atomic::Ordering::SeqCst);
        if self.takes_no_records.load(std::sync::atomic::Ordering::SeqCst) {
            return Err(StoreError::unavailable("away"));
        }
        self.note(Entry::Settled(settlement.record.cost));
        self.store.settle(settlement).await
    }

    async fn release(&self, id: &DecisionId) -> Result<(), StoreError> {
        self.note(Entry::Released);
        self.store.release(id).await
    }
}

/// What a request may come to at a picodollar a token, at an endpoint of these tests.
pub(super) fn bound(request: &DecisionRequest) -> i64 {
    i64::try_from(request.provider_input.len_bytes()).unwrap() + 20
}

/// A model at two endpoints, each at a picodollar a token, whose money is in these books.
pub(super) fn plan(books: &Arc<Books>) -> Plan {
    let endpoints = [("one", "a"), ("two", "b")]
        .map(|(provider, upstream)| at_price(endpoint("acme/judge", provider, upstream), "0.000000000001"));
    Plan { ledger: Some(Arc::clone(books) as Arc<dyn Ledger>), ..Plan::new(endpoints.into()) }
}

use super::stage::{Plan, at_price};
