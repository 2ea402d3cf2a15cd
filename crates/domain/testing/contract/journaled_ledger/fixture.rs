//! A store, processes that fold into it, and their requests.

use std::any::Any;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use async_trait::async_trait;
use uuid::Uuid;

use super::super::{JournalMachine, Stores};
use crate::api_key::{ApiKey, ApiKeyName, ApiKeyScope, KeyUpdate, LastKeyRule};
use crate::audit::{Actor, AuditDraft};
use crate::budget::allowances::{AllowanceSettings, CounterId, CounterPeriod};
use crate::budget::{
    Account, BudgetStore, Hold, HoldRequest, JournalFactory, JournaledLedger, Ledger, LedgerReader, LedgerSettings,
    LimitExceeded, LimitStatus, Payer, RecoverJournals, RecoveryReport, RenewingLedger, RenewingLedgerPorts,
    SpendLimit, UsageCharge, UsageJournal, UsageJournalError, WorkspaceBudgets,
};
use crate::error::StoreError;
use crate::ids::{ApiKeyId, DecisionId, ProcessId, RequestId, WorkspaceId};
use crate::json::Json;
use crate::money::{Price, Usd};
use crate::pricing::TokenPrices;
use crate::rate::RateLimits;
use crate::secret::ApiKeyHash;
use crate::system::{Clock, TimeSource};
use crate::testing::{
    FaultyBudgetStore, FixedClock, JournalBounds, MemoryJournals, MemoryStore, create_time_without_timer,
};
use crate::usage::{AttemptOutcome, AttemptRecord, UnknownUsage, UsageOutcome, UsageRecord, UsageShare, UsageSource};
use crate::workspace::{Workspace, WorkspaceName, WorkspaceSlug};

/// Creates backups of a store.
#[async_trait]
pub trait StoreBackup: Send + Sync {
    /// Returns an independent copy of the store.
    async fn copy(&self) -> Stores;
}

/// An empty store, and a machine whose processes fold into it.
pub struct LedgerMachine {
    /// The store. Its clock is also that of the processes.
    pub stores: Stores,
    /// The machine.
    pub journals: Arc<dyn JournalMachine>,
    /// Backups of the store.
    pub backup: Arc<dyn StoreBackup>,
    /// Values that must live as long, such as a temporary folder.
    pub keep: Box<dyn Any + Send + Sync>,
}

struct MemoryBackup(MemoryStore, FixedClock);

#[async_trait]
impl StoreBackup for MemoryBackup {
    async fn copy(&self) -> Stores {
        Stores::over(&self.0.copy(), self.1.clone())
    }
}

impl LedgerMachine {
    /// Returns the fakes.
    pub fn memory() -> Self {
        let clock = FixedClock::at(chrono::DateTime::from_timestamp(1_784_116_800, 0).unwrap_or_default());
        let store = MemoryStore::new().with_clock(clock.clone());
        Self {
            stores: Stores::over(&store, clock.clone()),
            journals: Arc::new(MemoryJournals::default()),
            backup: Arc::new(MemoryBackup(store, clock)),
            keep: Box::new(()),
        }
    }
}

/// Creates journals on a machine, for processes with consecutive numbers.
pub(super) struct MachineJournals {
    machine: Arc<dyn JournalMachine>,
    next: AtomicU64,
}

#[async_trait]
impl JournalFactory for MachineJournals {
    async fn create(&self) -> Result<Arc<dyn UsageJournal>, UsageJournalError> {
        let number = self.next.fetch_add(1, Ordering::Relaxed);
        let bounds = JournalBounds { keeps_folded: true, ..JournalBounds::default() };
        Ok(self.machine.start(process_id(number.into()), bounds))
    }
}

/// A process whose ledger can be renewed.
pub(super) struct RenewingProcess {
    pub(super) ledger: RenewingLedger,
    pub(super) store: Arc<FaultyBudgetStore>,
    recover: Arc<RecoverJournals>,
}

/// A key in a workspace of a store, and the processes that serve it.
pub(super) struct LedgerFixture<'a> {
    pub(super) machine: &'a LedgerMachine,
    /// The stores of the machine, or of a copy.
    stores: &'a Stores,
}

/// A process, which dies when it is dropped.
pub(super) struct Process {
    pub(super) ledger: JournaledLedger,
    pub(super) store: Arc<FaultyBudgetStore>,
}

pub(super) fn usd(pico: i64) -> Usd {
    Usd::from_pico(pico)
}

pub(super) fn id(number: u128) -> DecisionId {
    DecisionId::from_uuid(Uuid::from_u128(number))
}

pub(super) fn process_id(number: u128) -> ProcessId {
    ProcessId::from_uuid(Uuid::from_u128(number))
}

fn audit() -> AuditDraft {
    AuditDraft::done(&Actor::system(), "test", "test", Json::object([]))
}

/// Returns the payer of these cases.
pub fn payer() -> Payer {
    Payer {
        workspace_id: WorkspaceId::from_uuid(Uuid::from_u128(1)),
        api_key: ApiKeyId::from_uuid(Uuid::from_u128(3)),
        guardrails: Vec::new(),
    }
}

/// Inserts the workspace and the key of [`payer`], without limits.
///
/// # Panics
/// The store fails.
pub async fn insert_payer(stores: &Stores) {
    let workspace = Workspace {
        id: payer().workspace_id,
        name: WorkspaceName::try_new("one").unwrap(),
        slug: WorkspaceSlug::of_name("w"),
        description: None,
        owner_id: None,
        is_default: false,
        suspended: false,
        credit: None,
        budgets: WorkspaceBudgets::default(),
        rates: RateLimits::default(),
        default_guardrail_id: None,
        storage_used_bytes: 0,
        created_at: stores.clock.now(),
        updated_at: None,
    };
    stores.workspaces.insert(&workspace, false, &audit()).await.unwrap();
    let key = ApiKey {
        id: payer().api_key,
        hash: ApiKeyHash::from_bytes([1; 32]),
        label: "sk-tg-v1-a…z".to_owned(),
        name: ApiKeyName::try_new("one").unwrap(),
        scope: ApiKeyScope::Inference(workspace.id),
        disabled: false,
        expires_at: None,
        limit: None,
        rates: RateLimits::default(),
        guardrail_id: None,
        users: crate::api_key::KeyUsers::default(),
        previous_secret: None,
        created_at: stores.clock.now(),
        updated_at: None,
    };
    stores.api_keys.insert(&key, &audit()).await.unwrap();
}

/// Changes the limit of the key of [`payer`], in picodollars.
///
/// # Panics
/// The store fails.
pub async fn limit_payer(stores: &Stores, pico: Option<i64>) {
    let before = stores.api_keys.find(&payer().api_key.into()).await.unwrap().unwrap();
    let limit = pico.map(|pico| SpendLimit { amount: usd(pico), reset: None });
    let after = ApiKey { limit, ..before.clone() };
    let updated = stores.api_keys.update(&before, &after, LastKeyRule::Waived, &audit()).await.unwrap();
    assert_eq!(updated, KeyUpdate::Updated);
}

/// Returns the counter of the key's limit.
pub(super) fn key_counter() -> CounterId {
    CounterId { account: Account::Key(payer().api_key), period: CounterPeriod::Lifetime }
}

impl<'a> LedgerFixture<'a> {
    /// Creates a fixture whose key has a limit for all time.
    pub(super) async fn limited(machine: &'a LedgerMachine, pico: i64) -> Self {
        let fixture = Self::unlimited(machine).await;
        fixture.limit_key(Some(pico)).await;
        fixture
    }

    /// Returns the same machine with another store.
    pub(super) fn over(&self, stores: &'a Stores) -> Self {
        LedgerFixture { machine: self.machine, stores }
    }

    /// Changes the limit of the key.
    pub(super) async fn limit_key(&self, pico: Option<i64>) {
        limit_payer(self.stores, pico).await;
    }

    /// Creates a fixture whose key has no limit.
    pub(super) async fn unlimited(machine: &'a LedgerMachine) -> Self {
        insert_payer(&machine.stores).await;
        LedgerFixture { machine, stores: &machine.stores }
    }

    /// Advances all clocks.
    pub(super) fn advance(&self, duration: Duration) {
        self.stores.clock.advance(duration);
    }

    /// Starts a process.
    pub(super) fn process(&self, number: u128) -> Process {
        self.process_with(number, JournalBounds::default())
    }

    pub(super) fn process_with(&self, number: u128, bounds: JournalBounds) -> Process {
        self.process_with_time(number, bounds, create_time_without_timer(&self.stores.clock))
    }

    pub(super) fn process_with_time(&self, number: u128, bounds: JournalBounds, time: TimeSource) -> Process {
        let store = Arc::new(FaultyBudgetStore::new(Arc::clone(&self.stores.budget)));
        let settings = LedgerSettings {
            allowances: AllowanceSettings::default(),
            limits_recheck: Duration::ZERO,
            ..LedgerSettings::default()
        };
        let ledger = JournaledLedger::new(
            Arc::clone(&store) as Arc<dyn BudgetStore>,
            self.machine.journals.start(process_id(number), bounds),
            time,
            Arc::clone(&self.stores.limits),
            settings,
        );
        Process { ledger, store }
    }

    /// Starts a process whose ledger can be renewed, with the ids from a number on.
    pub(super) async fn renewing_process(&self, first: u64) -> RenewingProcess {
        let store = self.faulty_store();
        let budget: Arc<dyn BudgetStore> = Arc::clone(&store) as _;
        let journals = self.machine.journals.orphans(Duration::from_hours(1));
        let recover = Arc::new(RecoverJournals::new(Arc::clone(&budget), journals, UnknownUsage::Bound));
        let ports = RenewingLedgerPorts {
            store: budget,
            journals: Arc::new(MachineJournals { machine: Arc::clone(&self.machine.journals), next: first.into() }),
            time: create_time_without_timer(&self.stores.clock),
            limits: Arc::clone(&self.stores.limits),
            recover: Arc::clone(&recover),
        };
        let settings = LedgerSettings { limits_recheck: Duration::ZERO, ..LedgerSettings::default() };
        RenewingProcess { ledger: RenewingLedger::start(ports, settings).await.unwrap(), store, recover }
    }

    /// Recovers the journals of dead processes. A second recovery changes nothing.
    pub(super) async fn recover(&self, unknown: UnknownUsage) -> RecoveryReport {
        let report = self.recover_by(Arc::clone(&self.stores.budget), unknown).await;
        self.audit().await;
        let again = self.recover_by(Arc::clone(&self.stores.budget), unknown).await;
        assert_eq!(again, RecoveryReport::default(), "a second time changes nothing");
        self.audit().await;
        report
    }

    pub(super) async fn recover_by(&self, store: Arc<dyn BudgetStore>, unknown: UnknownUsage) -> RecoveryReport {
        let journals = self.machine.journals.orphans(Duration::from_hours(1));
        RecoverJournals::new(store, journals, unknown).execute().await.unwrap()
    }

    /// Removes the journals of dead processes.
    pub(super) async fn remove_recovered(&self) {
        for orphan in self.machine.journals.orphans(Duration::ZERO).find().await.unwrap() {
            assert!(orphan.remove_if_old().await.unwrap());
        }
    }

    /// Returns a store whose calls can fail.
    pub(super) fn faulty_store(&self) -> Arc<FaultyBudgetStore> {
        Arc::new(FaultyBudgetStore::new(Arc::clone(&self.stores.budget)))
    }

    /// Returns the record of a request.
    pub(super) async fn record(&self, number: u128) -> Option<UsageRecord> {
        self.stores.usage.find(&id(number)).await.unwrap()
    }

    /// Returns the spent and allotted amounts of the key's limit in the store.
    pub(super) async fn counted(&self) -> (i64, i64) {
        let found = self.stores.limits.limit_statuses(&payer()).await.unwrap();
        let [LimitStatus { spent, reserved, .. }] = found[..] else { panic!("one limit: {found:?}") };
        (spent.pico(), reserved.pico())
    }

    pub(super) async fn audit(&self) {
        assert_eq!(self.stores.maintenance.audit().await.unwrap().discrepancies, []);
    }
}

impl RenewingProcess {
    pub(super) async fn hold(&self, number: u128, pico: i64) -> Result<Result<Hold, LimitExceeded>, StoreError> {
        self.ledger.reserve(hold_request(number, pico)).await
    }

    pub(super) async fn charge(&self, number: u128, pico: i64) -> Result<(), StoreError> {
        self.ledger.settle(&UsageCharge::new(usage_record(number, pico))).await
    }

    /// Does background work until everything is folded: the second round is that of a renewed ledger.
    pub(super) async fn work(&self) {
        let mut last = Ok(());
        for _ in 0..4 {
            last = match self.ledger.tick().await {
                Ok(_) => self.ledger.store_pending().await,
                Err(error) => Err(error),
            };
            if last.is_ok() {
                return;
            }
        }
        panic!("entries stay unfolded: {last:?}");
    }

    /// Recovers the journals of dead processes of the machine.
    pub(super) async fn recover(&self) -> RecoveryReport {
        self.recover.execute().await.unwrap()
    }
}

impl Process {
    pub(super) async fn hold(&self, number: u128, pico: i64) -> Result<Result<Hold, LimitExceeded>, StoreError> {
        self.ledger.reserve(hold_request(number, pico)).await
    }

    pub(super) async fn charge(&self, number: u128, pico: i64) -> Result<(), StoreError> {
        self.ledger.settle(&UsageCharge::new(usage_record(number, pico))).await
    }
}

pub(super) fn attempt(pico: i64) -> AttemptRecord {
    AttemptRecord {
        provider: "acme".into(),
        model: "acme/judge".parse().unwrap(),
        upstream_model: "judge".into(),
        part: 0,
        outcome: AttemptOutcome::Completed,
        upstream_status: None,
        began: Duration::ZERO,
        latency: Duration::from_millis(3),
        input_tokens: u64::try_from(pico).unwrap(),
        output_tokens: 0,
        usage_source: UsageSource::UpperBound,
        prices: TokenPrices { prompt: "0.000000000001".parse().unwrap(), completion: Price::ZERO },
    }
}

/// Returns a request of [`payer`] that holds an amount, in picodollars.
///
/// # Panics
/// The amount is negative.
pub fn hold_request(number: u128, pico: i64) -> HoldRequest {
    HoldRequest {
        id: id(number),
        payer: payer(),
        amount: usd(pico),
        is_limited: true,
        request_id: RequestId::from_uuid(Uuid::from_u128(number)),
        requested_model: "acme/judge".to_owned(),
        client_address: None,
        attempts: Arc::new([attempt(pico)]),
        begun: 1,
    }
}

/// Returns the record of that request with a cost, in picodollars.
///
/// # Panics
/// The amount is negative.
pub fn usage_record(number: u128, pico: i64) -> UsageRecord {
    let at = "2026-07-15T12:00:00Z".parse().unwrap();
    UsageRecord {
        id: id(number),
        workspace_id: payer().workspace_id,
        api_key: payer().api_key,
        request_id: RequestId::from_uuid(Uuid::from_u128(number)),
        requested_model: "acme/judge".to_owned(),
        model: "acme/judge".parse().unwrap(),
        provider: "acme".to_owned(),
        outcome: UsageOutcome::Completed,
        input_tokens: u64::try_from(pico).unwrap(),
        output_tokens: 0,
        usage_source: UsageSource::Reported,
        cost: usd(pico),
        prices: attempt(0).prices,
        share: UsageShare::WHOLE,
        attempts: Arc::new([attempt(pico)]),
        guardrails: Vec::new(),
        findings: Vec::new(),
        charged_at: at,
        session_id: None,
        trace: None,
        user: None,
        client_address: None,
        preset: None,
        outcomes: None,
        created_at: at,
        latency: Duration::from_millis(4),
    }
}
