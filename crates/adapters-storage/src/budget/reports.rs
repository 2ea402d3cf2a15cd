//! The ports that read the ledger and remove old records.

use std::time::Duration;

use async_trait::async_trait;
use domain::budget::allowances::{CounterId, CounterPeriod};
use domain::budget::{
    Account, CounterLimit, LedgerAudit, LedgerMaintenance, LedgerReader, LimitStatus, Payer, PruneReport,
    ResetInterval, prunable_before,
};
use domain::error::StoreError;
use domain::ids::ApiKeyId;
use domain::money::Usd;

use super::audit::Audit;
use super::counters::{CounterRow, out_of_range, read_counters};
use super::limits::AccountLimits;
use super::pruning;
use crate::database::Database;

/// Reads the ledger for operators, and removes its old records.
#[derive(Clone)]
pub struct SeaOrmLedgerReports {
    database: Database,
}

impl SeaOrmLedgerReports {
    /// Creates the reports over an open database.
    pub fn new(database: Database) -> Self {
        Self { database }
    }

    /// Returns the spend of keys in their order: of the current period of the interval, or of all time without one.
    ///
    /// # Errors
    /// The store failed.
    pub async fn key_spend(&self, keys: &[(ApiKeyId, Option<ResetInterval>)]) -> Result<Vec<Usd>, StoreError> {
        let now = self.database.now();
        let counter = |(id, reset): &(ApiKeyId, Option<ResetInterval>)| CounterId {
            account: Account::Key(*id),
            period: CounterPeriod::containing(*reset, now),
        };
        let counters: Vec<CounterId> = keys.iter().map(counter).collect();
        let rows = read_counters(self.database.readers()?, counters.iter().copied()).await?;
        Ok(counters.iter().map(|counter| Usd::from_pico(rows.get(counter).map_or(0, |row| row.spent))).collect())
    }
}

#[async_trait]
impl LedgerReader for SeaOrmLedgerReports {
    async fn limit_statuses(&self, payer: &Payer) -> Result<Vec<LimitStatus>, StoreError> {
        let snapshot = self.database.snapshot().await?;
        let now = self.database.now();
        let limits = AccountLimits::read(&snapshot, payer.accounts(), [payer]).await?;
        limits.check(payer)?;
        let limits = limits.of_payer(payer);
        let counters = read_counters(&snapshot, limits.iter().flat_map(|limits| limits.counters(now))).await?;
        let mut statuses = Vec::new();
        for of_account in &limits {
            for limit in &of_account.limits {
                let period = CounterPeriod::containing(limit.limit.reset, now);
                let counter = CounterId { account: of_account.account, period };
                let row = counters.get(&counter).copied().unwrap_or_default();
                statuses.push(status(counter, limit, row)?);
            }
        }
        Ok(statuses)
    }
}

#[async_trait]
impl LedgerMaintenance for SeaOrmLedgerReports {
    async fn audit(&self) -> Result<LedgerAudit, StoreError> {
        Audit::new(&self.database).run().await
    }

    async fn prune(&self, older_than: Duration, limit: u64) -> Result<PruneReport, StoreError> {
        pruning::prune(&self.database, prunable_before(self.database.now(), older_than), limit).await
    }
}

fn status(counter: CounterId, limit: &CounterLimit, row: CounterRow) -> Result<LimitStatus, StoreError> {
    let spent = row.spent.checked_sub(limit.base.pico()).ok_or_else(out_of_range)?;
    Ok(LimitStatus {
        scope: counter.account.scope(),
        guardrail_id: match counter.account {
            Account::Guardrail(id, _) => Some(id),
            Account::Workspace(_) | Account::Key(_) => None,
        },
        is_credit: limit.is_credit,
        limit: limit.limit.amount,
        reset: limit.limit.reset,
        spent: Usd::from_pico(spent),
        reserved: Usd::from_pico(row.allotted),
        resets_at: match counter.period {
            CounterPeriod::Lifetime => None,
            CounterPeriod::Calendar(interval, start) => Some(interval.end_of(start)),
        },
    })
}
