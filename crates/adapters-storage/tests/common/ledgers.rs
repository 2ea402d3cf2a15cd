//! The ledger as several processes have it, and as a test of single records wants it.

use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use adapters_storage::{Database, SeaOrmLedger, SeaOrmUsageRepository};
use async_trait::async_trait;
use domain::budget::{
    Claim, ExpiryReport, Ledger, LedgerAudit, Overspent, Payer, PruneReport, Reservation, Settlement, StandingLimit,
};
use domain::decision::UnknownUsage;
use domain::error::StoreError;
use domain::ids::{DecisionId, WorkspaceId};
use domain::money::Usd;
use domain::usage::{AttemptRecord, UsageFilter, UsageRecord, UsageRepository};
use tokio_util::task::TaskTracker;

/// One ledger a handle, which are asked in turn: whoever reserves at one is settled at another.
pub struct Ledgers {
    each: Vec<SeaOrmLedger>,
    next: AtomicUsize,
}

impl Ledgers {
    pub fn start(handles: &[Database], tasks: &TaskTracker) -> Self {
        let each = handles.iter().map(|database| SeaOrmLedger::start(database.clone(), tasks)).collect();
        Self { each, next: AtomicUsize::new(0) }
    }

    fn next(&self) -> &SeaOrmLedger {
        &self.each[self.next.fetch_add(1, Ordering::Relaxed) % self.each.len()]
    }
}

#[async_trait]
impl Ledger for Ledgers {
    async fn reserve(&self, claim: Claim) -> Result<Result<Reservation, Overspent>, StoreError> {
        self.next().reserve(claim).await
    }

    async fn extend(
        &self,
        id: &DecisionId,
        more: Usd,
        attempts: &[AttemptRecord],
    ) -> Result<Result<(), Overspent>, StoreError> {
        self.next().extend(id, more, attempts).await
    }

    async fn settle(&self, settlement: Settlement) -> Result<(), StoreError> {
        self.next().settle(settlement).await
    }

    async fn release(&self, id: &DecisionId) -> Result<(), StoreError> {
        self.next().release(id).await
    }

    async fn expire(&self, unknown: UnknownUsage, limit: u64) -> Result<ExpiryReport, StoreError> {
        self.next().expire(unknown, limit).await
    }

    async fn standing(&self, payer: &Payer) -> Result<Vec<StandingLimit>, StoreError> {
        self.next().standing(payer).await
    }

    async fn recorded_bytes(&self, workspace_id: WorkspaceId) -> Result<u64, StoreError> {
        self.next().recorded_bytes(workspace_id).await
    }

    async fn audit(&self) -> Result<LedgerAudit, StoreError> {
        self.next().audit().await
    }

    async fn prune(&self, older_than: Duration, limit: u64) -> Result<PruneReport, StoreError> {
        self.next().prune(older_than, limit).await
    }
}

/// Records, written and read.
#[derive(Clone)]
pub struct Records {
    pub ledger: SeaOrmLedger,
    usage: SeaOrmUsageRepository,
}

impl Records {
    pub fn start(database: Database, tasks: &TaskTracker) -> Self {
        Self { ledger: SeaOrmLedger::start(database.clone(), tasks), usage: SeaOrmUsageRepository::new(database) }
    }

    pub async fn record(&self, record: UsageRecord) -> Result<(), StoreError> {
        self.ledger.settle(Settlement { record, messages: Vec::new() }).await
    }

    pub async fn find(&self, id: &DecisionId) -> Result<Option<UsageRecord>, StoreError> {
        self.usage.find(id).await
    }

    pub async fn list(&self, workspace_id: WorkspaceId, limit: u64) -> Result<Vec<UsageRecord>, StoreError> {
        self.usage.list(&UsageFilter::of(workspace_id), limit).await
    }
}
