//! Budget alerts: their rows are added by folds and ends of processes, and marked when they are published.

use std::collections::{BTreeMap, BTreeSet};

use async_trait::async_trait;
use chrono::{DateTime, Utc};
use domain::budget::allowances::CounterId;
use domain::budget::{Account, AlertThreshold, BudgetAlert, BudgetAlertStore, CounterLimit, crossed_thresholds};
use domain::error::StoreError;
use domain::ids::WorkspaceId;
use domain::money::Usd;
use domain::usage::OutboxMessage;
use sea_orm::{ConnectionTrait, QueryResult, Value};

use super::counters::{SpentChange, columns_of, counter_of, subject};
use super::limits::AccountLimits;
use super::records::insert_messages;
use crate::convert::{millis, moment, parse};
use crate::database::Database;
use crate::errors::corrupt;
use crate::statements::{column, pieces, places, read, run};

/// The number of written columns.
const COLUMNS: usize = 11;

repository! {
    /// Stores budget alerts in the database.
    SeaOrmBudgetAlerts
}

impl SeaOrmBudgetAlerts {
    /// Reads an alert; skips a row that cannot be read.
    fn readable(&self, row: &QueryResult) -> Option<BudgetAlert> {
        let alert = to_alert(row);
        if let Err(error) = &alert {
            let text = |place| column::<String>(row, place).unwrap_or_else(|_| "?".to_owned());
            let number = |place| column::<i64>(row, place).map_or_else(|_| "?".to_owned(), |number| number.to_string());
            let key = [text(0), text(1), text(2), number(3), number(4), number(5), number(6), number(7)];
            let name = format!("budget_alerts {}", key.join(" "));
            self.database.unreadable_rows().skip(name, error);
        }
        alert.ok()
    }
}

#[async_trait]
impl BudgetAlertStore for SeaOrmBudgetAlerts {
    async fn unpublished(&self, limit: u64) -> Result<Vec<BudgetAlert>, StoreError> {
        let (mut alerts, mut offset, limit) = (Vec::new(), 0_i64, i64::try_from(limit).unwrap_or(i64::MAX));
        let text = format!(
            "SELECT scope, subject, \"interval\", period_start, is_credit, base_pico, limit_pico, threshold, \
             workspace_id, spent_pico, created_at FROM budget_alerts WHERE published_at IS NULL \
             ORDER BY created_at, scope, subject, threshold LIMIT {limit} OFFSET ?"
        );
        // Unreadable rows stay, so that the rows after them are read as well.
        loop {
            let rows = read(self.database.readers()?, &text, vec![offset.into()]).await?;
            let count = i64::try_from(rows.len()).unwrap_or(i64::MAX);
            alerts.extend(rows.iter().filter_map(|row| self.readable(row)));
            offset = offset.saturating_add(count);
            if count < limit || !alerts.is_empty() {
                return Ok(alerts);
            }
        }
    }

    async fn publish(&self, alert: &BudgetAlert, messages: &[OutboxMessage]) -> Result<bool, StoreError> {
        let now = self.database.now();
        let text = "UPDATE budget_alerts SET published_at = ? WHERE scope = ? AND subject = ? AND \"interval\" = ? \
                    AND period_start = ? AND is_credit = ? AND base_pico = ? AND limit_pico = ? AND threshold = ? \
                    AND published_at IS NULL";
        let values = [Value::from(millis(now))].into_iter().chain(key_of(alert)).collect();
        let transaction = self.database.begin().await?;
        if run(&transaction, text, values).await? == 0 {
            return Ok(false);
        }
        insert_messages(&transaction, messages.iter(), now).await?;
        transaction.commit().await?;
        Ok(true)
    }
}

/// Adds an alert for each threshold that the changes of counters crossed upwards, in their transaction. `late` has the
/// costs that raised the base of a workspace's credit in it.
///
/// # Errors
/// The store failed. Limits that cannot be read have no alerts, because charges must not wait for them.
pub(super) async fn add(
    database: &Database,
    transaction: &impl ConnectionTrait,
    changes: &[SpentChange],
    late: &BTreeMap<WorkspaceId, i128>,
) -> Result<(), StoreError> {
    let raised: Vec<&SpentChange> = changes.iter().filter(|change| change.after > change.before).collect();
    if raised.is_empty() {
        return Ok(());
    }
    let accounts = raised.iter().flat_map(|change| with_key(change.counter.account));
    let accounts: BTreeSet<Account> = accounts.collect();
    let (limits, unreadable) = AccountLimits::read_readable(transaction, accounts.into_iter().collect()).await?;
    for (account, error) in unreadable {
        let row = format!("limits of {} {}", account.scope().as_str(), subject(&account));
        database.unreadable_rows().skip(row, &error);
    }
    let now = database.now();
    let alerts: Vec<BudgetAlert> =
        raised.into_iter().flat_map(|change| alerts_of(change, &limits, late, now)).collect();
    for piece in pieces(&alerts) {
        let text = format!(
            "INSERT INTO budget_alerts (scope, subject, \"interval\", period_start, is_credit, base_pico, limit_pico, \
             threshold, workspace_id, spent_pico, created_at) VALUES {} ON CONFLICT DO NOTHING",
            places(piece.len(), COLUMNS)
        );
        run(transaction, &text, piece.iter().flat_map(values_of).collect()).await?;
    }
    Ok(())
}

/// Returns the account, and that of its key, whose row names the workspace.
fn with_key(account: Account) -> impl Iterator<Item = Account> {
    let key = match account {
        Account::Guardrail(_, key) => Some(Account::Key(key)),
        Account::Workspace(_) | Account::Key(_) => None,
    };
    [account].into_iter().chain(key)
}

fn alerts_of(
    change: &SpentChange,
    limits: &AccountLimits,
    late: &BTreeMap<WorkspaceId, i128>,
    now: DateTime<Utc>,
) -> Vec<BudgetAlert> {
    let SpentChange { counter, before, after } = *change;
    let CounterId { account, period } = counter;
    let Some(workspace_id) = limits.workspace_of(account) else { return Vec::new() };
    let mut alerts = Vec::new();
    for CounterLimit { limit, base, is_credit } in limits.of_counter(&counter) {
        let late = if is_credit { late.get(&workspace_id).copied().unwrap_or_default() } else { 0 };
        let base_before = i128::from(base.pico()) - late;
        let Some(spent) = after.checked_sub(base.pico()) else { continue };
        let crossed = crossed_thresholds(limit.amount, i128::from(before) - base_before, spent.into());
        alerts.extend(crossed.map(|threshold| BudgetAlert {
            workspace_id,
            account,
            is_credit,
            base,
            limit: limit.amount,
            period,
            threshold,
            spent: Usd::from_pico(spent),
            at: now,
        }));
    }
    alerts
}

/// Returns the columns of the key.
fn key_of(alert: &BudgetAlert) -> [Value; 8] {
    let [scope, subject, interval, start] = columns_of(&CounterId { account: alert.account, period: alert.period });
    let threshold = i64::from(alert.threshold.percent());
    let is_credit = i64::from(alert.is_credit);
    [
        scope,
        subject,
        interval,
        start,
        is_credit.into(),
        alert.base.pico().into(),
        alert.limit.pico().into(),
        threshold.into(),
    ]
}

fn values_of(alert: &BudgetAlert) -> impl Iterator<Item = Value> {
    let rest = [alert.workspace_id.to_string().into(), alert.spent.pico().into(), millis(alert.at).into()];
    key_of(alert).into_iter().chain(rest)
}

fn to_alert(row: &QueryResult) -> Result<BudgetAlert, StoreError> {
    let CounterId { account, period } = counter_of(row)?;
    let name = subject(&account);
    let (is_credit, threshold): (i64, i64) = (column(row, 4)?, column(row, 7)?);
    let workspace_id: String = column(row, 8)?;
    let threshold = AlertThreshold::from_percent(threshold);
    Ok(BudgetAlert {
        workspace_id: parse(&workspace_id, "budget_alerts.workspace_id", &name)?,
        account,
        is_credit: is_credit != 0,
        base: Usd::from_pico(column(row, 5)?),
        limit: Usd::from_pico(column(row, 6)?),
        period,
        threshold: threshold.ok_or_else(|| corrupt("budget_alerts.threshold", &name))?,
        spent: Usd::from_pico(column(row, 9)?),
        at: moment(column(row, 10)?, "budget_alerts.created_at", &name)?,
    })
}

/// Removes published alerts of past periods.
pub(super) async fn remove_past(
    transaction: &impl ConnectionTrait,
    past: &str,
    values: Vec<Value>,
) -> Result<(), StoreError> {
    let text = format!("DELETE FROM budget_alerts WHERE published_at IS NOT NULL AND {past}");
    run(transaction, &text, values).await.map(drop)
}
