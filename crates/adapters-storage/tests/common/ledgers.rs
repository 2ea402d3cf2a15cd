//! The allowance store with several processes, and records for tests of single ones.

use std::sync::atomic::{AtomicUsize, Ordering};

use adapters_storage::{Database, SeaOrmBudgetStore, SeaOrmLedgerReports, SeaOrmUsageRepository};
use async_trait::async_trait;
use domain::audit::AuditDraft;
use domain::budget::{
    BudgetSignals, BudgetStore, BudgetStoreError, CounterLimits, Discrepancy, DrawReply, DrawRequest, FoldEntry,
    FoldRequest, LedgerMaintenance, LiveProcess, Payer, ProcessStatus, RemainingAllowances, ReturnRequest, UsageCharge,
};
use domain::error::StoreError;
use domain::ids::{DecisionId, ProcessId, WorkspaceId};
use domain::usage::{UsageFilter, UsageRecord, UsageRepository};
use uuid::Uuid;

/// Several handles of the allowance store, used in turn.
pub struct BudgetStores {
    each: Vec<SeaOrmBudgetStore>,
    next: AtomicUsize,
}

impl BudgetStores {
    pub fn over(handles: &[Database]) -> Self {
        Self { each: handles.iter().cloned().map(SeaOrmBudgetStore::new).collect(), next: AtomicUsize::new(0) }
    }

    fn next(&self) -> &SeaOrmBudgetStore {
        &self.each[self.next.fetch_add(1, Ordering::Relaxed) % self.each.len()]
    }
}

#[async_trait]
impl BudgetStore for BudgetStores {
    async fn register(&self, process: ProcessId) -> Result<(), StoreError> {
        self.next().register(process).await
    }

    async fn process(&self, process: ProcessId) -> Result<Option<ProcessStatus>, StoreError> {
        self.next().process(process).await
    }

    async fn draw(&self, request: &DrawRequest) -> Result<DrawReply, BudgetStoreError> {
        self.next().draw(request).await
    }

    async fn return_allowances(&self, request: &ReturnRequest) -> Result<(), BudgetStoreError> {
        self.next().return_allowances(request).await
    }

    async fn fold(&self, request: &FoldRequest) -> Result<(), BudgetStoreError> {
        self.next().fold(request).await
    }

    async fn declare_older(&self) -> Result<(), StoreError> {
        self.next().declare_older().await
    }

    async fn end(&self, process: ProcessId, remaining: RemainingAllowances) -> Result<(), StoreError> {
        self.next().end(process, remaining).await
    }

    async fn forget(
        &self,
        process: ProcessId,
        remaining: RemainingAllowances,
        audit: &AuditDraft,
    ) -> Result<(), StoreError> {
        self.next().forget(process, remaining, audit).await
    }

    async fn live_processes(&self) -> Result<Vec<LiveProcess>, StoreError> {
        self.next().live_processes().await
    }

    async fn limits(&self, payer: &Payer) -> Result<(Vec<CounterLimits>, u64), StoreError> {
        self.next().limits(payer).await
    }

    async fn signals(&self) -> Result<BudgetSignals, StoreError> {
        self.next().signals().await
    }
}

/// Access to records.
#[derive(Clone)]
pub struct Records {
    pub budget: SeaOrmBudgetStore,
    pub reports: SeaOrmLedgerReports,
    usage: SeaOrmUsageRepository,
}

impl Records {
    pub fn over(database: Database) -> Self {
        Self {
            budget: SeaOrmBudgetStore::new(database.clone()),
            reports: SeaOrmLedgerReports::new(database.clone()),
            usage: SeaOrmUsageRepository::new(database),
        }
    }

    /// Folds a record as the only one of a new process.
    pub async fn record(&self, record: UsageRecord) -> Result<(), StoreError> {
        self.record_all(vec![record]).await
    }

    /// Folds records in one transaction.
    pub async fn record_all(&self, records: Vec<UsageRecord>) -> Result<(), StoreError> {
        let process = new_process();
        self.budget.register(process).await?;
        let charge = |record| UsageCharge::new(record);
        let entries = records.into_iter().map(|record| FoldEntry { charge: charge(record), allowances: Vec::new() });
        let request = FoldRequest { process, after: 0, up_to: 1, entries: entries.collect() };
        self.budget.fold(&request).await.map_err(store_failure)
    }

    pub async fn find(&self, id: &DecisionId) -> Result<Option<UsageRecord>, StoreError> {
        self.usage.find(id).await
    }

    pub async fn list(&self, workspace_id: WorkspaceId, limit: u64) -> Result<Vec<UsageRecord>, StoreError> {
        self.usage.list(&UsageFilter::for_workspace(workspace_id), limit).await
    }

    /// Returns the discrepancies that an audit finds.
    pub async fn discrepancies(&self) -> Vec<String> {
        let audit = self.reports.audit().await.unwrap();
        let line = |found: &Discrepancy| format!("{}: {} for {}", found.what, found.found, found.expected);
        audit.discrepancies.iter().map(line).collect()
    }
}

/// Returns a process that no other test uses.
pub fn new_process() -> ProcessId {
    static PROCESSES: AtomicUsize = AtomicUsize::new(1);
    ProcessId::from_uuid(Uuid::from_u128((1 << 100) + PROCESSES.fetch_add(1, Ordering::Relaxed) as u128))
}

/// Unwraps the store failure; a store must not return other errors here.
pub fn store_failure(error: BudgetStoreError) -> StoreError {
    match error {
        BudgetStoreError::Store(error) => error,
        other => StoreError::Corrupt(other.to_string()),
    }
}
