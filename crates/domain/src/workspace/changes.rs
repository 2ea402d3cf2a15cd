//! The changes of a workspace's settings and budgets.

use serde_json::Value;

use super::{Workspace, WorkspaceError, WorkspaceName, WorkspaceSlug};
use crate::budget::{ResetInterval, WorkspaceBudgets};
use crate::edit::Edit;
use crate::ids::GuardrailId;
use crate::json::Json;
use crate::money::Usd;
use crate::rate::RateLimits;

/// The changes of a workspace's settings, or the settings of a new workspace.
#[derive(Debug, Clone, Default)]
pub struct WorkspaceChange {
    /// 1 to 100 characters; required for a new workspace.
    pub name: Option<String>,
    /// A new workspace without one gets one from its name.
    pub slug: Option<String>,
    /// 1 to 1,000 characters.
    pub description: Edit<String>,
    /// 1 to 512 characters.
    pub owner_id: Edit<String>,
    /// True rejects all calls of the workspace's keys.
    pub suspended: Option<bool>,
    /// The rates of all keys together.
    pub rates: RatesChange,
    /// A guardrail of the workspace.
    pub default_guardrail_id: Edit<GuardrailId>,
}

impl WorkspaceChange {
    /// Returns the settings of a new workspace with this name.
    pub fn named(name: &str) -> Self {
        Self { name: Some(name.to_owned()), ..Self::default() }
    }

    /// Returns true if every setting is kept.
    pub fn is_empty(&self) -> bool {
        let Self { name, slug, description, owner_id, suspended, rates, default_guardrail_id } = self;
        (name.is_none() && slug.is_none() && suspended.is_none())
            && (description.is_keep() && owner_id.is_keep() && default_guardrail_id.is_keep())
            && (rates.requests_per_minute.is_keep() && rates.tokens_per_minute.is_keep())
    }

    pub(super) fn of(&self, before: &Workspace) -> Result<Workspace, WorkspaceError> {
        let name = self.name.as_deref().map(WorkspaceName::try_new).transpose()?;
        let slug = self.slug.as_deref().map(WorkspaceSlug::try_new).transpose()?;
        Ok(Workspace {
            name: name.unwrap_or_else(|| before.name.clone()),
            slug: slug.unwrap_or_else(|| before.slug.clone()),
            description: label("description", 1_000, &self.description)?.of(before.description.clone()),
            owner_id: label("owner_id", 512, &self.owner_id)?.of(before.owner_id.clone()),
            suspended: self.suspended.unwrap_or(before.suspended),
            rates: self.rates.of(before.rates)?,
            default_guardrail_id: self.default_guardrail_id.of(before.default_guardrail_id),
            ..before.clone()
        })
    }
}

fn label(member: &'static str, max_chars: usize, edit: &Edit<String>) -> Result<Edit<String>, WorkspaceError> {
    match edit {
        Edit::Set(text) if !(1..=max_chars).contains(&text.chars().count()) || text.chars().any(char::is_control) => {
            Err(WorkspaceError::InvalidLabel { member, max_chars })
        }
        edit => Ok(edit.clone()),
    }
}

/// Returns the settings and budgets that differ, for the audit log: those before the change and those after it.
pub(super) fn differences(before: Option<&Workspace>, after: &Workspace) -> (Option<Json>, Json) {
    let (was, is) = (before.map(settings), settings(after));
    let differs = |place: usize| was.as_ref().is_none_or(|was| was[place] != is[place]);
    let only = |all: &[(&'static str, String)]| {
        let members = all.iter().enumerate().filter(|(place, _)| differs(*place)).map(|(_, member)| member);
        Json::object(members.map(|(name, value)| (*name, value.as_str())))
    };
    (was.as_deref().map(only), only(&is))
}

/// Returns the settings and budgets as JSON.
fn settings(workspace: &Workspace) -> Vec<(&'static str, String)> {
    let json = |value: Value| value.to_string();
    let WorkspaceBudgets { daily, weekly, monthly, lifetime } = workspace.budgets;
    vec![
        ("name", json(workspace.name.as_str().into())),
        ("slug", json(workspace.slug.as_str().into())),
        ("description", json(workspace.description.clone().into())),
        ("owner_id", json(workspace.owner_id.clone().into())),
        ("suspended", json(workspace.suspended.into())),
        ("requests_per_minute", json(workspace.rates.requests_per_minute.into())),
        ("tokens_per_minute", json(workspace.rates.tokens_per_minute.into())),
        ("default_guardrail_id", json(workspace.default_guardrail_id.map(|id| id.to_string()).into())),
        ("daily_usd", usd(daily)),
        ("weekly_usd", usd(weekly)),
        ("monthly_usd", usd(monthly)),
        ("lifetime_usd", usd(lifetime)),
    ]
}

/// Returns an amount as JSON.
pub(super) fn usd(amount: Option<Usd>) -> String {
    amount.map_or_else(|| "null".to_owned(), |amount| amount.to_string())
}

/// The changes of rates. A cleared rate follows the configuration.
#[derive(Debug, Clone, Copy, Default)]
pub struct RatesChange {
    /// At least 1.
    pub requests_per_minute: Edit<u32>,
    /// At least 1.
    pub tokens_per_minute: Edit<u32>,
}

impl RatesChange {
    pub(super) fn of(self, before: RateLimits) -> Result<RateLimits, WorkspaceError> {
        let after = RateLimits {
            requests_per_minute: self.requests_per_minute.of(before.requests_per_minute),
            tokens_per_minute: self.tokens_per_minute.of(before.tokens_per_minute),
        };
        let none = [after.requests_per_minute, after.tokens_per_minute].contains(&Some(0));
        if none { Err(WorkspaceError::NoRate) } else { Ok(after) }
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
    /// Returns the change of the budget of a period; `None` is all time.
    pub(super) fn one(period: Option<ResetInterval>, edit: Edit<Usd>) -> Self {
        let none = Self::default();
        match period {
            Some(ResetInterval::Daily) => Self { daily: edit, ..none },
            Some(ResetInterval::Weekly) => Self { weekly: edit, ..none },
            Some(ResetInterval::Monthly) => Self { monthly: edit, ..none },
            None => Self { lifetime: edit, ..none },
        }
    }

    /// Returns the budgets after the change.
    ///
    /// # Errors
    /// A budget that is not above zero, or not above that of a shorter period.
    pub fn of(self, before: &WorkspaceBudgets) -> Result<WorkspaceBudgets, WorkspaceError> {
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
fn check(budgets: &WorkspaceBudgets) -> Result<(), WorkspaceError> {
    let mut narrower: Option<(&'static str, Usd)> = None;
    for (name, amount) in [
        ("daily", budgets.daily),
        ("weekly", budgets.weekly),
        ("monthly", budgets.monthly),
        ("lifetime", budgets.lifetime),
    ] {
        let Some(amount) = amount else { continue };
        if amount <= Usd::ZERO {
            return Err(WorkspaceError::BudgetNotPositive(name));
        }
        if let Some((shorter, least)) = narrower.replace((name, amount))
            && amount <= least
        {
            return Err(WorkspaceError::BudgetsDoNotFall { longer: name, amount, shorter, least });
        }
    }
    Ok(())
}
