//! What was spent and is reserved, by account and period.

use std::collections::BTreeMap;

use chrono::{DateTime, Utc};
use domain::budget::{Account, Payer, ResetInterval};
use domain::error::StoreError;
use domain::money::Usd;
use sea_orm::Value;

use super::script::Script;
use super::statements::Kind;
use crate::convert::millis;

/// What a counter counts in.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub(super) enum Span {
    /// For ever.
    Total,
    /// What records that retention removed had come to.
    Archived,
    /// One day, week or month.
    Period(ResetInterval),
}

impl Span {
    pub(super) fn as_str(self) -> &'static str {
        match self {
            Self::Total => "total",
            Self::Archived => "archived",
            Self::Period(interval) => interval.as_str(),
        }
    }

    pub(super) fn from_name(name: &str) -> Option<Self> {
        match name {
            "total" => Some(Self::Total),
            "archived" => Some(Self::Archived),
            name => ResetInterval::from_name(name).map(Self::Period),
        }
    }
}

/// The primary key of a counter.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub(super) struct CounterKey {
    pub(super) account: Account,
    pub(super) span: Span,
    /// Unix milliseconds; 0 where there is no period.
    pub(super) start: i64,
}

impl CounterKey {
    pub(super) fn new(account: Account, span: Span, at: DateTime<Utc>) -> Self {
        let start = match span {
            Span::Total | Span::Archived => 0,
            Span::Period(interval) => millis(interval.start_of(at)),
        };
        Self { account, span, start }
    }

    /// The counter that a limit with this reset is kept by.
    pub(super) fn of(account: Account, reset: Option<ResetInterval>, at: DateTime<Utc>) -> Self {
        Self::new(account, reset.map_or(Span::Total, Span::Period), at)
    }

    fn columns(&self) -> [Value; 4] {
        let [scope, subject] = account_columns(&self.account);
        [scope, subject, self.span.as_str().into(), self.start.into()]
    }
}

pub(super) fn account_columns(account: &Account) -> [Value; 2] {
    [account.scope().as_str().into(), subject(account).into()]
}

/// An account's name in its column.
pub(super) fn subject(account: &Account) -> String {
    match account {
        Account::Workspace(id) => id.to_string(),
        Account::Key(hash) => hash.to_string(),
        Account::Guardrail(id, hash) => format!("{id}:{hash}"),
    }
}

/// Where the day, the week and the month of a moment begin, in Unix milliseconds.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub(super) struct Periods([i64; 3]);

/// The counters that everything is added to: those of [`Periods`] and the one of all times, in this order.
const SPANS: [Span; 4] = [
    Span::Period(ResetInterval::Daily),
    Span::Period(ResetInterval::Weekly),
    Span::Period(ResetInterval::Monthly),
    Span::Total,
];

impl Periods {
    pub(super) fn of(at: DateTime<Utc>) -> Self {
        Self(ResetInterval::ALL.map(|interval| millis(interval.start_of(at))))
    }

    /// The counters of an account.
    pub(super) fn counters(self, account: Account) -> impl Iterator<Item = CounterKey> {
        SPANS.into_iter().zip(self.starts()).map(move |(span, start)| CounterKey { account, span, start })
    }

    /// The counter of an account at that place among them.
    pub(super) fn counter(self, account: Account, place: usize) -> Option<CounterKey> {
        let span = SPANS.get(place)?;
        Some(CounterKey { account, span: *span, start: *self.starts().get(place)? })
    }

    /// True where what is counted in these is counted in a counter of that span and beginning.
    fn hold(self, key: &CounterKey) -> bool {
        SPANS.into_iter().zip(self.starts()).any(|(span, start)| (span, start) == (key.span, key.start))
    }

    fn starts(self) -> [i64; 4] {
        let [day, week, month] = self.0;
        [day, week, month, 0]
    }

    pub(super) fn values(self) -> [Value; 3] {
        self.0.map(Value::from)
    }
}

/// What a counter says, or what is added to it.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(super) struct Sums {
    pub(super) spent: Usd,
    pub(super) reserved: Usd,
}

impl Sums {
    pub(super) fn spent(amount: Usd) -> Self {
        Self { spent: amount, reserved: Usd::ZERO }
    }

    pub(super) fn reserved(amount: Usd) -> Self {
        Self { spent: Usd::ZERO, reserved: amount }
    }

    pub(super) fn plus(self, other: Self) -> Option<Self> {
        Some(Self { spent: self.spent.checked_add(other.spent)?, reserved: self.reserved.checked_add(other.reserved)? })
    }

    pub(super) fn negated(self) -> Option<Self> {
        let negated = |amount: Usd| amount.pico().checked_neg().map(Usd::from_pico);
        Some(Self { spent: negated(self.spent)?, reserved: negated(self.reserved)? })
    }
}

pub(super) fn out_of_range() -> StoreError {
    StoreError::Corrupt("a sum leaves the range of money".to_owned())
}

/// Most accounts or counters of one statement.
pub(super) const PIECE: usize = 128;

/// What a transaction adds to counters.
#[derive(Debug, Default)]
pub(super) struct Postings {
    /// What is added to all counters of an account, by the periods that it is added in: nearly always one day's.
    accounts: BTreeMap<Periods, BTreeMap<Account, Sums>>,
    /// What is added to single counters.
    counters: BTreeMap<CounterKey, Sums>,
}

impl Postings {
    /// Adds to every account of a payer, in total and in the periods that `at` lies in; all or nothing.
    pub(super) fn post(&mut self, payer: &Payer, at: DateTime<Utc>, sums: Sums) -> Result<(), StoreError> {
        let accounts = self.accounts.entry(Periods::of(at)).or_default();
        let mut changed = Vec::with_capacity(2 + payer.guardrails.len());
        for account in payer.accounts() {
            let before = accounts.get(&account).copied().unwrap_or_default();
            changed.push((account, before.plus(sums).ok_or_else(out_of_range)?));
        }
        accounts.extend(changed);
        Ok(())
    }

    /// Adds to single counters, each of which is named once; all or nothing.
    pub(super) fn add_all(&mut self, keys: impl IntoIterator<Item = CounterKey>, sums: Sums) -> Result<(), StoreError> {
        let mut changed = Vec::new();
        for key in keys {
            let before = self.counters.get(&key).copied().unwrap_or_default();
            changed.push((key, before.plus(sums).ok_or_else(out_of_range)?));
        }
        self.counters.extend(changed);
        Ok(())
    }

    /// What is added to one counter.
    pub(super) fn of(&self, key: &CounterKey) -> Result<Sums, StoreError> {
        let of_accounts = self.accounts.iter().filter(|(periods, _)| periods.hold(key));
        let of_accounts = of_accounts.filter_map(|(_, accounts)| accounts.get(&key.account));
        let mut sum = self.counters.get(key).copied().unwrap_or_default();
        for sums in of_accounts {
            sum = sum.plus(*sums).ok_or_else(out_of_range)?;
        }
        Ok(sum)
    }

    /// Every counter with what is added to it.
    pub(super) fn into_counters(self) -> Result<BTreeMap<CounterKey, Sums>, StoreError> {
        let mut counters = self.counters;
        for (periods, accounts) in self.accounts {
            for (account, sums) in accounts {
                for key in periods.counters(account) {
                    let sum = counters.entry(key).or_default();
                    *sum = sum.plus(sums).ok_or_else(out_of_range)?;
                }
            }
        }
        Ok(counters)
    }

    /// Adds what writes it down.
    pub(super) fn write(mut self, script: &mut Script) -> Result<(), StoreError> {
        if self.accounts.len() == 1 && self.counters.is_empty() {
            for (periods, accounts) in std::mem::take(&mut self.accounts) {
                write_accounts(script, periods, &accounts);
            }
        }
        let counters: Vec<_> = self.into_counters()?.into_iter().filter(|(_, sums)| *sums != Sums::default()).collect();
        for piece in counters.chunks(PIECE) {
            let rows = piece.iter().map(|(key, sums)| {
                let [scope, subject, span, start] = key.columns();
                [scope, subject, span, start, sums.spent.pico().into(), sums.reserved.pico().into()]
            });
            script.add(Kind::AddToCounters, rows, []);
        }
        Ok(())
    }
}

fn write_accounts(script: &mut Script, periods: Periods, accounts: &BTreeMap<Account, Sums>) {
    let changed: Vec<_> = accounts.iter().filter(|(_, sums)| **sums != Sums::default()).collect();
    for piece in changed.chunks(PIECE) {
        let rows = piece.iter().map(|(account, sums)| {
            let [scope, subject] = account_columns(account);
            [scope, subject, sums.spent.pico().into(), sums.reserved.pico().into()]
        });
        script.add(Kind::AddToAccounts, rows, periods.values());
    }
}
