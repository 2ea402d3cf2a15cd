//! What is read of limits and counters to decide by.

use std::collections::{BTreeMap, BTreeSet, HashMap, HashSet};

use chrono::{DateTime, Utc};
use domain::api_key::ApiKeyHash;
use domain::budget::{Account, Payer};
use domain::error::StoreError;
use domain::ids::GuardrailId;
use domain::money::Usd;
use sea_orm::QueryResult;

use super::counters::{CounterKey, PIECE, Periods, Sums, account_columns};
use super::limits::{CountedLimit, Limits};
use super::script::{FIRST_COLUMN, Rows, Script};
use super::statements::Kind;
use crate::convert::hash_column;
use crate::errors::store_error;

/// Limits of payers, and the counters that they may be kept by. Which of an account's counters matter is known only when
/// its limits are, so all are read at once.
#[derive(Default)]
pub(super) struct Books {
    limits: Limits,
    counters: HashMap<CounterKey, Sums>,
    keys: HashSet<ApiKeyHash>,
    guardrails: HashSet<GuardrailId>,
    accounts: HashSet<(Periods, Account)>,
    awaited: Vec<(usize, Awaited)>,
}

/// What a statement of the script reads.
enum Awaited {
    Payers,
    Budgets,
    Accounts(Periods, Vec<Account>),
}

impl Books {
    /// Adds what reads the books of payers in the periods that the moments lie in, but for what was read.
    pub(super) fn ask<'a>(
        &mut self,
        script: &mut Script,
        payers: impl IntoIterator<Item = (&'a Payer, DateTime<Utc>)>,
    ) {
        let (mut hashes, mut ids) = (BTreeSet::new(), BTreeSet::new());
        let mut accounts: BTreeMap<Periods, Vec<Account>> = BTreeMap::new();
        for (payer, at) in payers {
            if self.keys.insert(payer.api_key) {
                hashes.insert(payer.api_key);
            }
            ids.extend(payer.guardrails.iter().copied().filter(|id| self.guardrails.insert(*id)));
            let periods = Periods::of(at);
            let fresh = payer.accounts().filter(|account| self.accounts.insert((periods, *account)));
            accounts.entry(periods).or_default().extend(fresh);
        }
        let hashes: Vec<ApiKeyHash> = hashes.into_iter().collect();
        for piece in hashes.chunks(PIECE) {
            let rows = piece.iter().map(|hash| [hash_column(hash).into()]);
            self.awaited.push((script.add(Kind::ReadPayers, rows, []), Awaited::Payers));
        }
        let ids: Vec<GuardrailId> = ids.into_iter().collect();
        for piece in ids.chunks(PIECE) {
            let rows = piece.iter().map(|id| [id.to_string().into()]);
            self.awaited.push((script.add(Kind::ReadBudgets, rows, []), Awaited::Budgets));
        }
        for (periods, accounts) in accounts {
            for piece in accounts.chunks(PIECE) {
                let rows = (0_i64..).zip(piece).map(|(place, account)| {
                    let [scope, subject] = account_columns(account);
                    [place.into(), scope, subject]
                });
                let part = script.add(Kind::ReadAccounts, rows, periods.values());
                self.awaited.push((part, Awaited::Accounts(periods, piece.to_vec())));
            }
        }
    }

    /// Takes in what was asked for.
    pub(super) fn take(&mut self, rows: &mut Rows) -> Result<(), StoreError> {
        for (part, awaited) in std::mem::take(&mut self.awaited) {
            for row in rows.take(part) {
                match &awaited {
                    Awaited::Payers => self.limits.add_payer(&row)?,
                    Awaited::Budgets => self.limits.add_budget(&row)?,
                    Awaited::Accounts(periods, accounts) => self.counters.extend(counter(*periods, accounts, &row)?),
                }
            }
        }
        Ok(())
    }

    /// Every limit of a payer at a moment.
    ///
    /// # Errors
    /// The key or the workspace was never there, or they do not belong together: then nobody knows.
    pub(super) fn limits(&self, payer: &Payer, at: DateTime<Utc>) -> Result<Vec<CountedLimit>, StoreError> {
        self.limits.of(payer, at)
    }

    /// What a counter said when it was read. One that is not there says nothing.
    pub(super) fn counter(&self, key: &CounterKey) -> Sums {
        self.counters.get(key).copied().unwrap_or_default()
    }
}

fn counter(
    periods: Periods,
    accounts: &[Account],
    row: &QueryResult,
) -> Result<Option<(CounterKey, Sums)>, StoreError> {
    let number = |column: usize| row.try_get_by_index::<i64>(FIRST_COLUMN + column).map_err(store_error);
    let place = |column: usize| number(column).map(|number| usize::try_from(number).ok());
    let (account, span) = (place(0)?, place(1)?);
    let sums = Sums { spent: Usd::from_pico(number(2)?), reserved: Usd::from_pico(number(3)?) };
    let account = account.and_then(|place| accounts.get(place));
    let key = account.zip(span).and_then(|(account, span)| periods.counter(*account, span));
    Ok(key.map(|key| (key, sums)))
}
