//! The limits of accounts.

use std::collections::{BTreeSet, HashMap};

use chrono::{DateTime, Utc};
use domain::budget::allowances::{CounterId, CounterPeriod};
use domain::budget::{Account, CounterLimit, CounterLimits, LimitStatus, Payer, SpendLimit};
use domain::error::StoreError;
use domain::ids::{ApiKeyId, GuardrailId, WorkspaceId};
use domain::money::Usd;
use sea_orm::{ConnectionTrait, FromQueryResult, Value};

use super::counters::{read_counters, subject};
use crate::convert::{key_column, key_id, parse, spend_limit, to_budgets};
use crate::errors::{corrupt, store_error};
use crate::repositories::credit_base;
use crate::statements::{self, pieces, places};

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
        let mut workspaces = workspaces.iter().map(ToString::to_string);
        let mut keys = keys.into_iter().map(key_column);
        let mut guardrails = guardrails.iter().map(ToString::to_string);
        let lists = std::iter::from_fn(|| match (workspaces.next(), keys.next(), guardrails.next()) {
            (None, None, None) => None,
            (workspace, key, guardrail) => Some([workspace.into(), key.into(), guardrail.into()]),
        });
        let (lists, mut limits): (Vec<[Value; 3]>, _) = (lists.collect(), Self::default());
        for piece in pieces(&lists) {
            let text = LIMITS.replace("{}", &places(piece.len(), 3));
            for row in statements::read(connection, &text, piece.iter().flatten().cloned().collect()).await? {
                limits.add(&LimitRow::from_query_result(&row, "").map_err(store_error)?)?;
            }
        }
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

    /// Returns the limits of accounts, account by account.
    pub(super) fn of_accounts(&self, accounts: impl IntoIterator<Item = Account>) -> Vec<CounterLimits> {
        let accounts = accounts.into_iter().map(|account| CounterLimits { account, limits: self.of(account) });
        accounts.filter(|found| !found.limits.is_empty()).collect()
    }

    /// Returns the limits of accounts with their counters.
    pub(super) async fn read_statuses(
        &self,
        connection: &impl ConnectionTrait,
        accounts: impl IntoIterator<Item = Account>,
        now: DateTime<Utc>,
    ) -> Result<Vec<LimitStatus>, StoreError> {
        let limits = self.of_accounts(accounts);
        let counters = read_counters(connection, limits.iter().flat_map(|limits| limits.counters(now))).await?;
        let mut statuses = Vec::new();
        for CounterLimits { account, limits } in limits {
            for CounterLimit { limit, base, is_credit } in limits {
                let counter = CounterId { account, period: CounterPeriod::containing(limit.reset, now) };
                let row = counters.get(&counter).copied().unwrap_or_default();
                let spent = row.spent.checked_sub(base.pico());
                let spent = spent.ok_or_else(|| corrupt("workspaces.credit_base_pico", subject(&account)))?;
                statuses.push(LimitStatus {
                    scope: account.scope(),
                    guardrail_id: match account {
                        Account::Guardrail(id, _) => Some(id),
                        Account::Workspace(_) | Account::Key(_) => None,
                    },
                    is_credit,
                    limit: limit.amount,
                    reset: limit.reset,
                    spent: Usd::from_pico(spent),
                    reserved: Usd::from_pico(row.allotted),
                    resets_at: limit.reset.map(|reset| reset.end_of(now)),
                });
            }
        }
        Ok(statuses)
    }

    fn add(&mut self, row: &LimitRow) -> Result<(), StoreError> {
        if let Some(id) = &row.workspace_id {
            self.workspaces.insert(parse(id, "workspaces.id", id)?, workspace_limits(row, id)?);
        }
        if let Some(id) = &row.key_id {
            let key = key_id(id, "api_keys.id", "a key")?;
            let workspace_id = row.key_workspace_id.as_ref();
            let workspace_id = workspace_id.map(|id| parse(id, "api_keys.workspace_id", key)).transpose()?;
            let limit = spend_limit(row.key_limit_pico, row.key_limit_reset.as_deref(), "api_keys.limit_reset", key)?;
            self.keys.insert(key, KeyLimit { workspace_id, limit });
        }
        if let Some(id) = &row.guardrail_id {
            let reset = row.guardrail_limit_reset.as_deref();
            let limit = spend_limit(row.guardrail_limit_pico, reset, "guardrails.limit_reset", id)?;
            let id = parse(id, "guardrails.id", id)?;
            self.guardrails.extend(limit.map(|limit| (id, limit)));
        }
        Ok(())
    }
}

/// Finds the limits of lists of workspaces, keys and guardrails by one statement: each row holds one of each list.
const LIMITS: &str = "\
    SELECT w.id AS workspace_id, w.credit_pico, w.credit_base_pico, w.credit_late_pico, w.budget_daily_pico, \
    w.budget_weekly_pico, w.budget_monthly_pico, w.budget_lifetime_pico, k.id AS key_id, \
    k.workspace_id AS key_workspace_id, k.limit_pico AS key_limit_pico, k.limit_reset AS key_limit_reset, \
    g.id AS guardrail_id, g.limit_pico AS guardrail_limit_pico, g.limit_reset AS guardrail_limit_reset \
    FROM (VALUES {}) AS a LEFT JOIN workspaces AS w ON w.id = a.column1 \
    LEFT JOIN api_keys AS k ON k.id = a.column2 LEFT JOIN guardrails AS g ON g.id = a.column3";

/// The columns of a workspace, of a key and of a guardrail; each group is empty without its row.
#[derive(FromQueryResult)]
struct LimitRow {
    workspace_id: Option<String>,
    credit_pico: Option<i64>,
    credit_base_pico: Option<i64>,
    credit_late_pico: Option<i64>,
    budget_daily_pico: Option<i64>,
    budget_weekly_pico: Option<i64>,
    budget_monthly_pico: Option<i64>,
    budget_lifetime_pico: Option<i64>,
    key_id: Option<Vec<u8>>,
    key_workspace_id: Option<String>,
    key_limit_pico: Option<i64>,
    key_limit_reset: Option<String>,
    guardrail_id: Option<String>,
    guardrail_limit_pico: Option<i64>,
    guardrail_limit_reset: Option<String>,
}

/// Returns the credit, then the budgets.
fn workspace_limits(row: &LimitRow, id: &str) -> Result<Vec<CounterLimit>, StoreError> {
    let budgets =
        to_budgets([row.budget_daily_pico, row.budget_weekly_pico, row.budget_monthly_pico, row.budget_lifetime_pico]);
    let mut limits = Vec::new();
    if let Some(amount) = row.credit_pico.map(Usd::from_pico) {
        let base = credit_base(row.credit_base_pico, row.credit_late_pico.unwrap_or(0));
        let base = base.ok_or_else(|| corrupt("workspaces.credit_base_pico", id))?;
        let limit = SpendLimit { amount, reset: None };
        limits.push(CounterLimit { limit, base: Usd::from_pico(base), is_credit: true });
    }
    limits.extend(budgets.limits().map(|limit| CounterLimit { limit, base: Usd::ZERO, is_credit: false }));
    Ok(limits)
}
