//! The implementations of the ports.

use std::iter;
use std::time::Duration;

use async_trait::async_trait;
use chrono::{DateTime, Utc};
use domain::audit::AuditDraft;
use domain::budget::allowances::{CounterId, CounterPeriod};
use domain::budget::{
    Account, BudgetSignals, BudgetStore, BudgetStoreError, CounterLimits, DrawReply, DrawRequest, FoldRequest,
    KeySpend, LedgerAudit, LedgerMaintenance, LedgerReader, LimitStatus, LiveProcess, Payer, ProcessStatus,
    PruneReport, Recall, RemainingAllowances, ResetInterval, ReturnRequest, prunable_before,
};
use domain::error::StoreError;
use domain::ids::{ApiKeyId, ProcessId, WorkspaceId};
use domain::money::Usd;
use sea_orm::QueryResult;

use super::audit::Audit;
use super::counters::{counter_of, read_counters, subject};
use super::draw::{self, RECALL};
use super::limits::AccountLimits;
use super::{fold, processes, pruning, usage_sums};
use crate::change_feed;
use crate::convert::{millis, moment};
use crate::statements::{column, read};

repository! {
    /// Stores allowances in the database.
    SeaOrmBudgetStore
}

#[async_trait]
impl BudgetStore for SeaOrmBudgetStore {
    async fn register(&self, process: ProcessId) -> Result<(), StoreError> {
        let transaction = self.database.begin().await?;
        processes::register(&transaction, process, false, millis(self.database.now())).await?;
        transaction.commit().await
    }

    async fn process(&self, process: ProcessId) -> Result<Option<ProcessStatus>, StoreError> {
        let row = processes::find(self.database.readers()?, process).await?;
        row.map(|row| processes::status(&row)).transpose()
    }

    async fn draw(&self, request: &DrawRequest) -> Result<DrawReply, BudgetStoreError> {
        draw::draw(&self.database, request).await
    }

    async fn return_allowances(&self, request: &ReturnRequest) -> Result<(), BudgetStoreError> {
        fold::return_allowances(&self.database, request).await
    }

    async fn fold(&self, request: &FoldRequest) -> Result<(), BudgetStoreError> {
        fold::fold(&self.database, request).await
    }

    async fn declare_older(&self) -> Result<(), StoreError> {
        let transaction = self.database.begin().await?;
        let now = self.database.now();
        let counters = change_feed::counters(&transaction).await?;
        if draw::is_folding_again(counters.declared_older_at, now) {
            return Ok(());
        }
        change_feed::set_declared_older_at(&transaction, now).await?;
        transaction.commit().await
    }

    async fn end(&self, process: ProcessId, remaining: RemainingAllowances) -> Result<(), StoreError> {
        fold::end(&self.database, process, remaining, None).await
    }

    async fn forget(
        &self,
        process: ProcessId,
        remaining: RemainingAllowances,
        audit: &AuditDraft,
    ) -> Result<(), StoreError> {
        fold::end(&self.database, process, remaining, Some(audit)).await
    }

    async fn live_processes(&self) -> Result<Vec<LiveProcess>, StoreError> {
        processes::live(self.database.readers()?, self.database.now()).await
    }

    async fn limits(&self, payer: &Payer) -> Result<(Vec<CounterLimits>, u64), StoreError> {
        let snapshot = self.database.snapshot().await?;
        let feed = change_feed::counters(&snapshot).await?.limits;
        let limits = AccountLimits::read(&snapshot, payer.accounts(), [payer]).await?;
        limits.check(payer)?;
        Ok((limits.of_accounts(payer.accounts()), feed))
    }

    async fn signals(&self) -> Result<BudgetSignals, StoreError> {
        let readers = self.database.readers()?;
        // Taken before the reads: a later recall is not answered by this reply.
        let now = self.database.now();
        let counters = change_feed::counters(readers).await?;
        let since = millis(now).saturating_sub(RECALL);
        let text = "SELECT scope, subject, \"interval\", period_start, recall_began_at FROM spend_counters \
                    WHERE recalled_at > ?";
        let rows = read(readers, text, vec![since.into()]).await?;
        Ok(BudgetSignals {
            feed: counters.limits,
            at: now,
            declared_older_at: counters.declared_older_at,
            recalled: rows.iter().map(recall_of).collect::<Result<_, _>>()?,
        })
    }
}

/// Reads a counter and the start of its recall.
fn recall_of(row: &QueryResult) -> Result<Recall, StoreError> {
    let counter = counter_of(row)?;
    Ok(Recall {
        counter,
        began_at: moment(column(row, 4)?, "spend_counters.recall_began_at", subject(&counter.account))?,
    })
}

repository! {
    /// Reads the ledger for operators, and removes its old records.
    SeaOrmLedgerReports
}

#[async_trait]
impl LedgerReader for SeaOrmLedgerReports {
    async fn limit_statuses(&self, payer: &Payer) -> Result<Vec<LimitStatus>, StoreError> {
        let snapshot = self.database.snapshot().await?;
        let now = self.database.now();
        let limits = AccountLimits::read(&snapshot, payer.accounts(), [payer]).await?;
        limits.check(payer)?;
        limits.read_statuses(&snapshot, payer.accounts(), now).await
    }

    async fn workspace_limit_statuses(&self, id: WorkspaceId) -> Result<Vec<LimitStatus>, StoreError> {
        // One transaction, so that limits and counters are consistent.
        let snapshot = self.database.snapshot().await?;
        let limits = AccountLimits::read(&snapshot, [Account::Workspace(id)], []).await?;
        limits.read_statuses(&snapshot, [Account::Workspace(id)], self.database.now()).await
    }

    async fn key_spend(&self, keys: &[(WorkspaceId, ApiKeyId)]) -> Result<Vec<KeySpend>, StoreError> {
        let now = self.database.now();
        let counter = |id: ApiKeyId, reset| CounterId {
            account: Account::Key(id),
            period: CounterPeriod::containing(reset, now),
        };
        let periods = || iter::once(None).chain(ResetInterval::ALL.map(Some));
        let counters: Vec<CounterId> =
            keys.iter().flat_map(|(_, id)| periods().map(|reset| counter(*id, reset))).collect();
        let rows = read_counters(self.database.readers()?, counters).await?;
        let of_period = |id, reset| Usd::from_pico(rows.get(&counter(id, reset)).map_or(0, |row| row.spent));
        let allotted = |id, reset| rows.get(&counter(id, reset)).map_or(0, |row| row.allotted);
        let of_key = |(_, id): &(WorkspaceId, ApiKeyId)| KeySpend {
            reserved: Usd::from_pico(periods().map(|reset| allotted(*id, reset)).max().unwrap_or_default()),
            total: of_period(*id, None),
            daily: of_period(*id, Some(ResetInterval::Daily)),
            weekly: of_period(*id, Some(ResetInterval::Weekly)),
            monthly: of_period(*id, Some(ResetInterval::Monthly)),
        };
        Ok(keys.iter().map(of_key).collect())
    }

    /// The database has no pending records: those of processes are in their journals.
    async fn store_pending(&self) -> Result<(), StoreError> {
        Ok(())
    }
}

#[async_trait]
impl LedgerMaintenance for SeaOrmLedgerReports {
    async fn audit(&self) -> Result<LedgerAudit, StoreError> {
        let mut report = Audit::new(&self.database).run().await?;
        let (sums, discrepancies) = usage_sums::audit(&self.database).await?;
        report.sums = sums;
        report.discrepancies.extend(discrepancies);
        Ok(report)
    }

    async fn prune(&self, older_than: Duration, limit: u64) -> Result<PruneReport, StoreError> {
        pruning::prune(&self.database, prunable_before(self.database.now(), older_than), limit).await
    }

    async fn prune_sums(&self, before: DateTime<Utc>, limit: u64) -> Result<u64, StoreError> {
        usage_sums::prune(&self.database, before, limit).await
    }
}
