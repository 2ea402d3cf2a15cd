//! Status of the credit and the budgets of a workspace.

use chrono::{DateTime, Utc};
use domain::budget::{BudgetScope, LimitStatus, SpendLimit, WorkspaceBudgets};
use domain::error::StoreError;
use domain::money::Usd;
use sea_orm::{ConnectionTrait, EntityTrait};

use super::rows::credit_base;
use crate::convert::millis;
use crate::entities::{spend_counters, workspaces};
use crate::errors::{corrupt, store_error};

/// Returns the credit, then the budgets from the shortest period to the longest.
pub(super) async fn workspace_limit_statuses(
    connection: &impl ConnectionTrait,
    row: workspaces::Model,
    at: DateTime<Utc>,
) -> Result<Vec<LimitStatus>, StoreError> {
    let usd = |pico: Option<i64>| pico.map(Usd::from_pico);
    let budgets = WorkspaceBudgets {
        daily: usd(row.budget_daily_pico),
        weekly: usd(row.budget_weekly_pico),
        monthly: usd(row.budget_monthly_pico),
        lifetime: usd(row.budget_lifetime_pico),
    };
    let mut limits = Vec::new();
    if let Some(amount) = usd(row.credit_pico) {
        let whole = limit_status(connection, &row.id, SpendLimit { amount, reset: None }, at).await?;
        let base = credit_base(row.credit_base_pico, row.credit_late_pico);
        let spent = base.and_then(|base| whole.spent.pico().checked_sub(base)).map(Usd::from_pico);
        let spent = spent.ok_or_else(|| corrupt("workspaces.credit_base_pico", &row.id))?;
        limits.push(LimitStatus { is_credit: true, spent, ..whole });
    }
    for limit in budgets.limits() {
        limits.push(limit_status(connection, &row.id, limit, at).await?);
    }
    Ok(limits)
}

async fn limit_status(
    connection: &impl ConnectionTrait,
    workspace_id: &str,
    limit: SpendLimit,
    at: DateTime<Utc>,
) -> Result<LimitStatus, StoreError> {
    let interval = limit.reset.map_or("total", domain::budget::ResetInterval::as_str);
    let start = limit.reset.map_or(0, |reset| millis(reset.start_of(at)));
    let scope = BudgetScope::Workspace;
    let key = (scope.as_str().to_owned(), workspace_id.to_owned(), interval.to_owned(), start);
    let counter = spend_counters::Entity::find_by_id(key).one(connection).await.map_err(store_error)?;
    let (spent, reserved) = counter.map_or((0, 0), |counter| (counter.spent_pico, counter.allotted_pico));
    Ok(LimitStatus {
        scope,
        guardrail_id: None,
        is_credit: false,
        limit: limit.amount,
        reset: limit.reset,
        spent: Usd::from_pico(spent),
        reserved: Usd::from_pico(reserved),
        resets_at: limit.reset.map(|reset| reset.end_of(at)),
    })
}
