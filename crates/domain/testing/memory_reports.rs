//! Reports of the ledger in memory.

use std::collections::BTreeSet;
use std::time::Duration;

use async_trait::async_trait;
use chrono::{DateTime, NaiveTime, Utc};

use super::memory_ledger::{Posting, negative, payer_of, plus};
use super::memory_state::{LedgerState, State, SumName};
use super::memory_store::{MemoryLedgerMaintenance, MemoryLimits};
use crate::budget::allowances::CounterPeriod;
use crate::budget::{
    Account, Discrepancy, KeySpend, LedgerAudit, LedgerMaintenance, LedgerReader, LimitStatus, Payer, PruneReport,
    ResetInterval, cost_of_record, prunable_before,
};
use crate::error::StoreError;
use crate::ids::{ApiKeyId, WorkspaceId};
use crate::money::Usd;

impl State {
    /// Audits the ledger; see [`LedgerMaintenance`].
    pub(super) fn audit(&self) -> Result<LedgerAudit, StoreError> {
        let mut expected = self.ledger.expected()?;
        let postings: Vec<Posting> = self.usage.iter().map(Posting::spent).collect();
        expected.post(&postings)?;
        for ((_, counter), amount) in &self.allotments.allowances {
            expected.add_to_counter(*counter, Usd::ZERO, *amount)?;
        }
        for ((_, counter), amount) in &self.allotments.adjustments {
            expected.add_to_counter(*counter, *amount, Usd::ZERO)?;
        }
        let mut report = LedgerAudit {
            records: self.usage.len() as u64,
            counters: self.ledger.counters.len() as u64,
            allowances: self.allotments.allowances.len() as u64,
            sums: self.usage_sums.len() as u64,
            discrepancies: Vec::new(),
        };
        for record in &self.usage {
            let (expected, found) = (cost_of_record(record).unwrap_or(record.cost), record.cost);
            if expected != found {
                report.discrepancies.push(Discrepancy { what: format!("record {}", record.id), expected, found });
            }
        }
        let keys = self.ledger.counters.keys().chain(expected.counters.keys()).collect::<BTreeSet<_>>();
        for key in keys {
            let of = |ledger: &LedgerState| ledger.counters.get(key).copied().unwrap_or_default();
            let (wanted, found) = (of(&expected), of(&self.ledger));
            for (what, expected, found) in [
                ("spent", wanted.spent, found.spent),
                ("reserved", wanted.reserved, found.reserved),
                ("allotted", wanted.allotted, found.allotted),
            ] {
                if expected != found {
                    report.discrepancies.push(Discrepancy { what: format!("{key:?} {what}"), expected, found });
                }
            }
        }
        Ok(report)
    }

    /// Removes records that were charged before a time.
    pub(super) fn prune(&mut self, before: DateTime<Utc>, limit: u64) -> Result<PruneReport, StoreError> {
        let mut report = PruneReport::default();
        while report.removed < limit {
            let Some(place) = self.usage.iter().position(|record| record.charged_at < before) else { break };
            let record = self.usage.remove(place);
            for account in payer_of(&record).accounts() {
                self.ledger.archive(account, record.cost)?;
                for interval in ResetInterval::ALL {
                    let key = (account, Some(interval), interval.start_of(record.charged_at));
                    plus(&mut self.ledger.counters.entry(key).or_default().spent, negative(record.cost))?;
                }
            }
            report.removed += 1;
        }
        let is_over = |period: CounterPeriod| period.is_over(before);
        self.alerts.retain(|stored| !stored.is_published || !is_over(stored.alert.period));
        let over: Vec<_> =
            self.allotments.adjustments.extract_if(.., |(_, counter), _| is_over(counter.period)).collect();
        for ((_, counter), amount) in over {
            self.ledger.add_to_counter(counter, negative(amount), Usd::ZERO)?;
        }
        self.ledger.drop_empty(before);
        Ok(report)
    }
}

#[async_trait]
impl LedgerReader for MemoryLimits {
    async fn limit_statuses(&self, payer: &Payer) -> Result<Vec<LimitStatus>, StoreError> {
        self.0.state().limit_statuses_at(payer, self.0.now())
    }

    async fn workspace_limit_statuses(&self, id: WorkspaceId) -> Result<Vec<LimitStatus>, StoreError> {
        let (state, now) = (self.0.state(), self.0.now());
        Ok(state.workspace(id).map(|workspace| state.limits_of_workspace(workspace, now)).unwrap_or_default())
    }

    async fn key_spend(&self, keys: &[(WorkspaceId, ApiKeyId)]) -> Result<Vec<KeySpend>, StoreError> {
        let (state, now) = (self.0.state(), self.0.now());
        let counter = |id: &ApiKeyId, reset| state.ledger.counter(Account::Key(*id), reset, now);
        let of_period = |id: &ApiKeyId, reset| counter(id, reset).spent;
        let periods = || std::iter::once(None).chain(ResetInterval::ALL.map(Some));
        let of_key = |(_, id): &(WorkspaceId, ApiKeyId)| KeySpend {
            reserved: periods().map(|reset| counter(id, reset).allotted).max().unwrap_or_default(),
            total: of_period(id, None),
            daily: of_period(id, Some(ResetInterval::Daily)),
            weekly: of_period(id, Some(ResetInterval::Weekly)),
            monthly: of_period(id, Some(ResetInterval::Monthly)),
        };
        Ok(keys.iter().map(of_key).collect())
    }

    /// The store has no pending records: those of processes are in their journals.
    async fn store_pending(&self) -> Result<(), StoreError> {
        Ok(())
    }
}

#[async_trait]
impl LedgerMaintenance for MemoryLedgerMaintenance {
    async fn audit(&self) -> Result<LedgerAudit, StoreError> {
        self.0.state().audit()
    }

    async fn prune(&self, older_than: Duration, limit: u64) -> Result<PruneReport, StoreError> {
        let before = prunable_before(self.0.now(), older_than);
        self.0.state().prune(before, limit)
    }

    async fn prune_sums(&self, before: DateTime<Utc>, limit: u64) -> Result<u64, StoreError> {
        let mut state = self.0.state();
        let is_old =
            |name: &SumName| name.0.succ_opt().is_some_and(|end| end.and_time(NaiveTime::MIN).and_utc() <= before);
        let old: Vec<SumName> = state.usage_sums.keys().filter(|name| is_old(name)).cloned().collect();
        let limit = usize::try_from(limit).unwrap_or(usize::MAX);
        let removed = old.iter().take(limit).filter(|name| state.usage_sums.remove(*name).is_some()).count();
        Ok(removed as u64)
    }
}
