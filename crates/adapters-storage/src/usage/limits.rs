//! The limits of payers, as the database has them.

use std::collections::HashMap;
use std::fmt::Display;

use chrono::{DateTime, Utc};
use domain::api_key::ApiKeyHash;
use domain::budget::{Account, Payer, ResetInterval, SpendLimit, StandingLimit, WorkspaceBudgets};
use domain::error::StoreError;
use domain::ids::{GuardrailId, WorkspaceId};
use domain::money::Usd;
use sea_orm::QueryResult;

use super::counters::{CounterKey, Sums};
use super::script::FIRST_COLUMN;
use crate::convert::{hash, parse};
use crate::errors::{corrupt, store_error};

/// What is known of the limits of several payers.
#[derive(Default)]
pub(super) struct Limits {
    keys: HashMap<ApiKeyHash, KeyLimits>,
    guardrails: HashMap<GuardrailId, SpendLimit>,
}

struct KeyLimits {
    workspace_id: WorkspaceId,
    own: Option<SpendLimit>,
    /// What was granted, and what had been spent in all when the credit began.
    credit: Option<(Usd, Usd)>,
    budgets: WorkspaceBudgets,
}

/// A limit and the counter that it is kept by.
pub(super) struct CountedLimit {
    pub(super) counter: CounterKey,
    /// What the counter counted before the limit began.
    base: Usd,
    /// Without what is spent and reserved.
    limit: StandingLimit,
}

impl CountedLimit {
    /// The limit, where its counter stands so.
    pub(super) fn standing(&self, sums: Sums) -> Result<StandingLimit, StoreError> {
        let spent = sums.spent.pico().checked_sub(self.base.pico()).map(Usd::from_pico);
        let spent = spent.ok_or_else(super::counters::out_of_range)?;
        Ok(StandingLimit { spent, reserved: sums.reserved, ..self.limit })
    }
}

impl Limits {
    /// Takes in what is known of a key and its workspace.
    pub(super) fn add_payer(&mut self, row: &QueryResult) -> Result<(), StoreError> {
        let (hash, found) = key_limits(row)?;
        self.keys.insert(hash, found);
        Ok(())
    }

    /// Takes in the budget of a guardrail.
    pub(super) fn add_budget(&mut self, row: &QueryResult) -> Result<(), StoreError> {
        let text = |column: usize| row.try_get_by_index::<Option<String>>(FIRST_COLUMN + column).map_err(store_error);
        let pico: Option<i64> = row.try_get_by_index(FIRST_COLUMN + 1).map_err(store_error)?;
        let id = text(0)?.unwrap_or_default();
        let limit = spend_limit(pico.map(Usd::from_pico), text(2)?.as_deref(), "guardrails.limit_reset", &id)?;
        let id = parse(&id, "guardrails.id", &id)?;
        self.guardrails.extend(limit.map(|limit| (id, limit)));
        Ok(())
    }

    /// Every limit of a payer at a moment.
    ///
    /// # Errors
    /// The key or the workspace was never there, or they do not belong together: then nobody knows.
    pub(super) fn of(&self, payer: &Payer, at: DateTime<Utc>) -> Result<Vec<CountedLimit>, StoreError> {
        let key = self.keys.get(&payer.api_key).filter(|key| key.workspace_id == payer.workspace_id);
        let key = key.ok_or_else(|| corrupt("the limits", format!("the key {}", payer.api_key)))?;
        let workspace = Account::Workspace(payer.workspace_id);
        let mut limits = Vec::new();
        if let Some((granted, base)) = key.credit {
            let mut credit = counted(workspace, SpendLimit { amount: granted, reset: None }, at);
            credit.base = base;
            credit.limit.is_credit = true;
            limits.push(credit);
        }
        limits.extend(key.budgets.limits().map(|limit| counted(workspace, limit, at)));
        limits.extend(key.own.map(|limit| counted(Account::Key(payer.api_key), limit, at)));
        for id in &payer.guardrails {
            let budget = self.guardrails.get(id);
            limits.extend(budget.map(|limit| counted(Account::Guardrail(*id, payer.api_key), *limit, at)));
        }
        Ok(limits)
    }
}

fn counted(account: Account, limit: SpendLimit, at: DateTime<Utc>) -> CountedLimit {
    CountedLimit {
        counter: CounterKey::of(account, limit.reset, at),
        base: Usd::ZERO,
        limit: StandingLimit {
            scope: account.scope(),
            guardrail_id: match account {
                Account::Guardrail(id, _) => Some(id),
                Account::Workspace(_) | Account::Key(_) => None,
            },
            is_credit: false,
            limit: limit.amount,
            reset: limit.reset,
            spent: Usd::ZERO,
            reserved: Usd::ZERO,
            resets_at: limit.reset.map(|reset| reset.end_of(at)),
        },
    }
}

fn key_limits(row: &QueryResult) -> Result<(ApiKeyHash, KeyLimits), StoreError> {
    let amount = |column: usize| {
        let pico = row.try_get_by_index::<Option<i64>>(FIRST_COLUMN + column).map_err(store_error)?;
        Ok::<_, StoreError>(pico.map(Usd::from_pico))
    };
    let text = |column: usize| row.try_get_by_index::<Option<String>>(FIRST_COLUMN + column).map_err(store_error);
    let bytes: Vec<u8> = row.try_get_by_index(FIRST_COLUMN).map_err(store_error)?;
    let hash = hash(&bytes, "api_keys.hash", "a key")?;
    let workspace_id = text(1)?.unwrap_or_default();
    let base = amount(5)?.unwrap_or_default();
    let found = KeyLimits {
        workspace_id: parse(&workspace_id, "api_keys.workspace_id", hash)?,
        own: spend_limit(amount(2)?, text(3)?.as_deref(), "api_keys.limit_reset", hash)?,
        credit: amount(4)?.map(|granted| (granted, base)),
        budgets: WorkspaceBudgets { daily: amount(6)?, weekly: amount(7)?, monthly: amount(8)?, lifetime: amount(9)? },
    };
    Ok((hash, found))
}

fn spend_limit(
    amount: Option<Usd>,
    reset: Option<&str>,
    column: &str,
    row: impl Display,
) -> Result<Option<SpendLimit>, StoreError> {
    let reset = match reset {
        Some(name) => Some(ResetInterval::from_name(name).ok_or_else(|| corrupt(column, row))?),
        None => None,
    };
    Ok(amount.map(|amount| SpendLimit { amount, reset }))
}
