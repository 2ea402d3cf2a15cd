//! The changes of a workspace's rates and budgets.

use super::ChangeWorkspaceError;
use crate::budget::WorkspaceBudgets;
use crate::edit::Edit;
use crate::money::Usd;
use crate::rate::RateLimits;

/// The changes of rates. A cleared rate follows the configuration.
#[derive(Debug, Clone, Copy, Default)]
pub struct RatesChange {
    /// At least 1.
    pub requests_per_minute: Edit<u32>,
    /// At least 1.
    pub tokens_per_minute: Edit<u32>,
}

impl RatesChange {
    pub(super) fn of(self, before: RateLimits) -> Result<RateLimits, ChangeWorkspaceError> {
        let after = RateLimits {
            requests_per_minute: self.requests_per_minute.of(before.requests_per_minute),
            tokens_per_minute: self.tokens_per_minute.of(before.tokens_per_minute),
        };
        let none = [after.requests_per_minute, after.tokens_per_minute].contains(&Some(0));
        if none { Err(ChangeWorkspaceError::NoRate) } else { Ok(after) }
    }
}

/// The changes of budgets.
#[derive(Debug, Clone, Copy, Default)]
pub struct BudgetsChange {
    /// Above zero.
    pub daily: Edit<Usd>,
    /// Above zero and above the daily budget.
    pub weekly: Edit<Usd>,
    /// Above zero and above the budgets of shorter periods.
    pub monthly: Edit<Usd>,
    /// Above zero and above the budgets of all periods.
    pub lifetime: Edit<Usd>,
}

impl BudgetsChange {
    pub(super) fn of(self, before: &WorkspaceBudgets) -> Result<WorkspaceBudgets, ChangeWorkspaceError> {
        let after = WorkspaceBudgets {
            daily: self.daily.of(before.daily),
            weekly: self.weekly.of(before.weekly),
            monthly: self.monthly.of(before.monthly),
            lifetime: self.lifetime.of(before.lifetime),
        };
        check(&after)?;
        Ok(after)
    }
}

/// Checks that longer periods have higher budgets: a budget up to that of a shorter period would have no effect.
fn check(budgets: &WorkspaceBudgets) -> Result<(), ChangeWorkspaceError> {
    let mut narrower: Option<(&'static str, Usd)> = None;
    for (name, amount) in [
        ("daily", budgets.daily),
        ("weekly", budgets.weekly),
        ("monthly", budgets.monthly),
        ("lifetime", budgets.lifetime),
    ] {
        let Some(amount) = amount else { continue };
        if amount <= Usd::ZERO {
            return Err(ChangeWorkspaceError::BudgetNotPositive(name));
        }
        if let Some((shorter, least)) = narrower.replace((name, amount))
            && amount <= least
        {
            return Err(ChangeWorkspaceError::BudgetsDoNotFall { longer: name, amount, shorter, least });
        }
    }
    Ok(())
}
