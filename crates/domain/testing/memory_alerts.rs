//! Budget alerts in memory.

use async_trait::async_trait;
use chrono::{DateTime, Utc};

use super::memory_state::{LedgerState, State, StoredAlert};
use super::memory_store::MemoryAlerts;
use crate::budget::allowances::CounterPeriod;
use crate::budget::{Account, BudgetAlert, BudgetAlertStore, CounterLimit, crossed_thresholds};
use crate::error::StoreError;
use crate::ids::WorkspaceId;
use crate::money::Usd;
use crate::usage::OutboxMessage;

impl State {
    /// Adds an alert for each threshold that spend crossed since an earlier state of the ledger.
    pub(super) fn add_alerts(&mut self, before: &LedgerState, now: DateTime<Utc>) {
        let mut crossed = Vec::new();
        for (key, counter) in &self.ledger.counters {
            let (account, interval, start) = *key;
            let earlier = before.counters.get(key).copied().unwrap_or_default().spent;
            let period = interval.map_or(CounterPeriod::Lifetime, |interval| CounterPeriod::Calendar(interval, start));
            let Some(workspace_id) = self.workspace_of(account) else { continue };
            for limit in self.limits_of(account).into_iter().filter(|limit| limit.limit.reset == interval) {
                let amounts = (earlier, before.credit_base(account), counter.spent);
                crossed.extend(alerts(workspace_id, account, period, limit, amounts, now));
            }
        }
        for alert in crossed {
            if !self.alerts.iter().any(|stored| stored.alert.is_same(&alert)) {
                self.alerts.push(StoredAlert { alert, is_published: false });
            }
        }
    }

    fn workspace_of(&self, account: Account) -> Option<WorkspaceId> {
        match account {
            Account::Workspace(id) => Some(id),
            Account::Key(key) | Account::Guardrail(_, key) => {
                self.keys.get(&key).and_then(|stored| stored.key.scope.workspace_id())
            }
        }
    }
}

/// Returns the alerts of one limit; the amounts are the earlier spend, the earlier base of the credit, and the spend.
fn alerts(
    workspace_id: WorkspaceId,
    account: Account,
    period: CounterPeriod,
    limit: CounterLimit,
    (earlier, earlier_base, spent): (Usd, Usd, Usd),
    now: DateTime<Utc>,
) -> impl Iterator<Item = BudgetAlert> {
    let earlier_base = if limit.is_credit { earlier_base } else { Usd::ZERO };
    let before = i128::from(earlier.pico()) - i128::from(earlier_base.pico());
    let after = spent.pico() - limit.base.pico();
    crossed_thresholds(limit.limit.amount, before, after.into()).map(move |threshold| BudgetAlert {
        workspace_id,
        account,
        is_credit: limit.is_credit,
        base: limit.base,
        limit: limit.limit.amount,
        period,
        threshold,
        spent: Usd::from_pico(after),
        at: now,
    })
}

#[async_trait]
impl BudgetAlertStore for MemoryAlerts {
    async fn unpublished(&self, limit: u64) -> Result<Vec<BudgetAlert>, StoreError> {
        let state = self.0.state();
        let mut alerts: Vec<BudgetAlert> =
            state.alerts.iter().filter(|stored| !stored.is_published).map(|stored| stored.alert.clone()).collect();
        alerts.sort_by_key(|alert| alert.at);
        alerts.truncate(usize::try_from(limit).unwrap_or(usize::MAX));
        Ok(alerts)
    }

    async fn publish(&self, alert: &BudgetAlert, messages: &[OutboxMessage]) -> Result<bool, StoreError> {
        let now = self.0.now();
        let mut state = self.0.state();
        let found = state.alerts.iter_mut().find(|stored| stored.alert.is_same(alert) && !stored.is_published);
        let Some(stored) = found else { return Ok(false) };
        stored.is_published = true;
        state.enqueue(messages.to_vec(), now);
        Ok(true)
    }
}
