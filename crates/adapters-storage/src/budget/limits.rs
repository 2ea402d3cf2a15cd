//! The limits of accounts.

use std::collections::{BTreeSet, HashMap};

use domain::budget::allowances::{CounterId, CounterPeriod};
use domain::budget::{Account, CounterLimit, CounterLimits, Payer, ResetInterval, SpendLimit, WorkspaceBudgets};
use domain::error::StoreError;
use domain::ids::{ApiKeyId, GuardrailId, WorkspaceId};
use domain::money::Usd;
use sea_orm::{ColumnTrait, ConnectionTrait, EntityTrait, QueryFilter, QuerySelect};

use super::statements::pieces;
use crate::convert::{key_column, key_id, parse};
use crate::entities::{api_keys, guardrails, workspaces};
use crate::errors::{corrupt, store_error};
use crate::repositories::credit_base;

/// The limits of several accounts, read in one transaction.
#[derive(Default)]
pub(super) struct AccountLimits {
    workspaces: HashMap<WorkspaceId, Vec<CounterLimit>>,
    keys: HashMap<ApiKeyId, KeyLimit>,
    guardrails: HashMap<GuardrailId, SpendLimit>,
}

struct KeyLimit {
    workspace_id: Option<WorkspaceId>,
    limit: Option<SpendLimit>,
}

impl AccountLimits {
    /// Reads the limits of accounts, and the rows that validate payers.
    pub(super) async fn read(
        connection: &impl ConnectionTrait,
        accounts: impl IntoIterator<Item = Account>,
        payers: impl IntoIterator<Item = &Payer>,
    ) -> Result<Self, StoreError> {
        let (mut workspaces, mut keys, mut guardrails) = (BTreeSet::new(), BTreeSet::new(), BTreeSet::new());
        for account in accounts {
            match account {
                Account::Workspace(id) => drop(workspaces.insert(id)),
                Account::Key(key) => drop(keys.insert(key)),
                Account::Guardrail(id, _) => drop(guardrails.insert(id)),
            }
        }
        for payer in payers {
            workspaces.insert(payer.workspace_id);
            keys.insert(payer.api_key);
        }
        let mut limits = Self::default();
        limits.read_workspaces(connection, &workspaces.into_iter().collect::<Vec<_>>()).await?;
        limits.read_keys(connection, &keys.into_iter().collect::<Vec<_>>()).await?;
        limits.read_guardrails(connection, &guardrails.into_iter().collect::<Vec<_>>()).await?;
        Ok(limits)
    }

    /// Reads the limits of accounts as far as possible. Returns them with the accounts whose rows cannot be read.
    pub(super) async fn read_readable(
        connection: &impl ConnectionTrait,
        accounts: Vec<Account>,
    ) -> Result<(Self, Vec<(Account, StoreError)>), StoreError> {
        let (mut limits, mut unreadable) = (Self::default(), Vec::new());
        // A list with an unreadable row is halved, so that a damaged row costs few statements.
        let mut lists = vec![accounts];
        while let Some(mut list) = lists.pop() {
            match (Self::read(connection, list.iter().copied(), []).await, list.as_slice()) {
                (Ok(found), _) => limits.extend(found),
                (Err(error @ StoreError::Corrupt(_)), [account]) => unreadable.push((*account, error)),
                (Err(StoreError::Corrupt(_)), [_, ..]) => {
                    let half = list.split_off(list.len() / 2);
                    lists.extend([list, half]);
                }
                (Err(error), _) => return Err(error),
            }
        }
        Ok((limits, unreadable))
    }

    fn extend(&mut self, other: Self) {
        self.workspaces.extend(other.workspaces);
        self.keys.extend(other.keys);
        self.guardrails.extend(other.guardrails);
    }

    /// Fails if the key or the workspace of a payer never existed, or they do not belong together: the limits are
    /// unknown.
    pub(super) fn check(&self, payer: &Payer) -> Result<(), StoreError> {
        let key = self.keys.get(&payer.api_key).and_then(|key| key.workspace_id);
        if key == Some(payer.workspace_id) && self.workspaces.contains_key(&payer.workspace_id) {
            return Ok(());
        }
        Err(StoreError::Corrupt(format!("the limits of the unknown key {}", payer.api_key)))
    }

    /// Returns the limits of an account.
    pub(super) fn of(&self, account: Account) -> Vec<CounterLimit> {
        let plain = |limit: &SpendLimit| CounterLimit { limit: *limit, base: Usd::ZERO, is_credit: false };
        match account {
            Account::Workspace(id) => self.workspaces.get(&id).cloned().unwrap_or_default(),
            Account::Key(key) => {
                self.keys.get(&key).and_then(|key| key.limit.as_ref()).map(plain).into_iter().collect()
            }
            Account::Guardrail(id, _) => self.guardrails.get(&id).map(plain).into_iter().collect(),
        }
    }

    /// Returns the workspace of an account whose key was read.
    pub(super) fn workspace_of(&self, account: Account) -> Option<WorkspaceId> {
        match account {
            Account::Workspace(id) => Some(id),
            Account::Key(key) | Account::Guardrail(_, key) => self.keys.get(&key).and_then(|key| key.workspace_id),
        }
    }

    /// Returns the limits of a counter.
    pub(super) fn of_counter(&self, counter: &CounterId) -> Vec<CounterLimit> {
        let interval = match counter.period {
            CounterPeriod::Lifetime => None,
            CounterPeriod::Calendar(interval, _) => Some(interval),
        };
        self.of(counter.account).into_iter().filter(|limit| limit.limit.reset == interval).collect()
    }

    /// Returns the limits of a payer, account by account.
    pub(super) fn of_payer(&self, payer: &Payer) -> Vec<CounterLimits> {
        let accounts = payer.accounts().map(|account| CounterLimits { account, limits: self.of(account) });
        accounts.filter(|found| !found.limits.is_empty()).collect()
    }

    async fn read_workspaces(
        &mut self,
        connection: &impl ConnectionTrait,
        ids: &[WorkspaceId],
    ) -> Result<(), StoreError> {
        for piece in pieces(ids) {
            let of = workspaces::Column::Id.is_in(piece.iter().map(ToString::to_string));
            for row in workspaces::Entity::find().filter(of).all(connection).await.map_err(store_error)? {
                let id = parse(&row.id, "workspaces.id", &row.id)?;
                self.workspaces.insert(id, workspace_limits(&row)?);
            }
        }
        Ok(())
    }

    async fn read_keys(&mut self, connection: &impl ConnectionTrait, keys: &[ApiKeyId]) -> Result<(), StoreError> {
        use api_keys::Column;
        type Row = (Vec<u8>, Option<String>, Option<i64>, Option<String>);
        for piece in pieces(keys) {
            let rows: Vec<Row> = api_keys::Entity::find()
                .select_only()
                .columns([Column::Id, Column::WorkspaceId, Column::LimitPico, Column::LimitReset])
                .filter(Column::Id.is_in(piece.iter().copied().map(key_column)))
                .into_tuple()
                .all(connection)
                .await
                .map_err(store_error)?;
            for (key, workspace_id, pico, reset) in rows {
                let key = key_id(&key, "api_keys.id", "a key")?;
                let workspace_id = workspace_id.map(|id| parse(&id, "api_keys.workspace_id", key)).transpose()?;
                let limit = spend_limit(pico, reset.as_deref(), "api_keys.limit_reset", key)?;
                self.keys.insert(key, KeyLimit { workspace_id, limit });
            }
        }
        Ok(())
    }

    async fn read_guardrails(
        &mut self,
        connection: &impl ConnectionTrait,
        ids: &[GuardrailId],
    ) -> Result<(), StoreError> {
        use guardrails::Column;
        for piece in pieces(ids) {
            let rows: Vec<(String, Option<i64>, Option<String>)> = guardrails::Entity::find()
                .select_only()
                .columns([Column::Id, Column::LimitPico, Column::LimitReset])
                .filter(Column::Id.is_in(piece.iter().map(ToString::to_string)))
                .into_tuple()
                .all(connection)
                .await
                .map_err(store_error)?;
            for (id, pico, reset) in rows {
                let limit = spend_limit(pico, reset.as_deref(), "guardrails.limit_reset", &id)?;
                let id = parse(&id, "guardrails.id", &id)?;
                self.guardrails.extend(limit.map(|limit| (id, limit)));
            }
        }
        Ok(())
    }
}

/// Returns the credit, then the budgets.
fn workspace_limits(row: &workspaces::Model) -> Result<Vec<CounterLimit>, StoreError> {
    let usd = |pico: Option<i64>| pico.map(Usd::from_pico);
    let budgets = WorkspaceBudgets {
        daily: usd(row.budget_daily_pico),
        weekly: usd(row.budget_weekly_pico),
        monthly: usd(row.budget_monthly_pico),
        lifetime: usd(row.budget_lifetime_pico),
    };
    let mut limits = Vec::new();
    if let Some(amount) = usd(row.credit_pico) {
        let base = credit_base(row).ok_or_else(|| corrupt("workspaces.credit_base_pico", &row.id))?;
        let limit = SpendLimit { amount, reset: None };
        limits.push(CounterLimit { limit, base: Usd::from_pico(base), is_credit: true });
    }
    limits.extend(budgets.limits().map(|limit| CounterLimit { limit, base: Usd::ZERO, is_credit: false }));
    Ok(limits)
}

fn spend_limit(
    pico: Option<i64>,
    reset: Option<&str>,
    column: &str,
    row: impl std::fmt::Display,
) -> Result<Option<SpendLimit>, StoreError> {
    let reset = match reset {
        Some(name) => Some(ResetInterval::from_name(name).ok_or_else(|| corrupt(column, row))?),
        None => None,
    };
    Ok(pico.map(|pico| SpendLimit { amount: Usd::from_pico(pico), reset }))
}
