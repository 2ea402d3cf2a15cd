//! The implementation of the port.

use async_trait::async_trait;
use domain::budget::{
    BudgetSignals, BudgetStore, BudgetStoreError, CounterLimits, DrawReply, DrawRequest, FoldRequest, LiveProcess,
    Payer, ProcessStatus, Recall, RemainingAllowances, ReturnRequest,
};
use domain::error::StoreError;
use domain::ids::ProcessId;
use sea_orm::QueryResult;

use super::counters::{counter_of, subject};
use super::draw::RECALL;
use super::limits::AccountLimits;
use super::statements::{column, read};
use super::{draw, fold, processes, returns};
use crate::change_feed;
use crate::convert::{millis, moment};
use crate::database::Database;
use crate::errors::store_error;

/// Stores allowances in the database.
#[derive(Clone)]
pub struct SeaOrmBudgetStore {
    database: Database,
}

impl SeaOrmBudgetStore {
    /// Creates the store over an open database.
    pub fn new(database: Database) -> Self {
        Self { database }
    }
}

#[async_trait]
impl BudgetStore for SeaOrmBudgetStore {
    async fn register(&self, process: ProcessId) -> Result<(), StoreError> {
        let transaction = self.database.begin().await?;
        processes::register(&transaction, process, false, millis(self.database.now())).await?;
        transaction.commit().await.map_err(store_error)
    }

    async fn process(&self, process: ProcessId) -> Result<Option<ProcessStatus>, StoreError> {
        let row = processes::find(self.database.readers()?, process).await?;
        row.map(|row| processes::status(&row)).transpose()
    }

    async fn draw(&self, request: &DrawRequest) -> Result<DrawReply, BudgetStoreError> {
        draw::draw(&self.database, request).await
    }

    async fn return_allowances(&self, request: &ReturnRequest) -> Result<(), BudgetStoreError> {
        returns::return_allowances(&self.database, request).await
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
        transaction.commit().await.map_err(store_error)
    }

    async fn end(&self, process: ProcessId, remaining: RemainingAllowances) -> Result<(), StoreError> {
        returns::end(&self.database, process, remaining).await
    }

    async fn live_processes(&self) -> Result<Vec<LiveProcess>, StoreError> {
        processes::live(self.database.readers()?, self.database.now()).await
    }

    async fn limits(&self, payer: &Payer) -> Result<(Vec<CounterLimits>, u64), StoreError> {
        let snapshot = self.database.snapshot().await?;
        let feed = change_feed::counters(&snapshot).await?.limits;
        let limits = AccountLimits::read(&snapshot, payer.accounts(), [payer]).await?;
        limits.check(payer)?;
        Ok((limits.of_payer(payer), feed))
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
