//! What was spent and is reserved, by account and period.

use std::collections::{BTreeMap, HashMap};

use chrono::{DateTime, Utc};
use domain::budget::{Account, Payer, ResetInterval};
use domain::error::StoreError;
use domain::money::Usd;
use sea_orm::{ConnectionTrait, DatabaseTransaction, Value};

use super::statements::{Kind, Texts};
use crate::convert::millis;
use crate::errors::store_error;

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
        [
            self.account.scope().as_str().into(),
            subject(&self.account).into(),
            self.span.as_str().into(),
            self.start.into(),
        ]
    }
}

/// An account's name in its column.
pub(super) fn subject(account: &Account) -> String {
    match account {
        Account::Workspace(id) => id.to_string(),
        Account::Key(hash) => hash.to_string(),
        Account::Guardrail(id, hash) => format!("{id}:{hash}"),
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

/// Most counters of one statement: 6 parameters each.
const PIECE: usize = 256;

/// What a transaction adds to counters.
#[derive(Debug, Default)]
pub(super) struct Postings(BTreeMap<CounterKey, Sums>);

impl Postings {
    /// Adds to every account of a payer, in total and in the periods that `at` lies in; all or nothing.
    pub(super) fn post(&mut self, payer: &Payer, at: DateTime<Utc>, sums: Sums) -> Result<(), StoreError> {
        let spans = || ResetInterval::ALL.map(Span::Period).into_iter().chain([Span::Total]);
        let keys = payer.accounts().flat_map(|account| spans().map(move |span| CounterKey::new(account, span, at)));
        self.add_all(keys, sums)
    }

    pub(super) fn add_all(&mut self, keys: impl IntoIterator<Item = CounterKey>, sums: Sums) -> Result<(), StoreError> {
        let mut changed = BTreeMap::new();
        for key in keys {
            let before = changed.get(&key).copied().unwrap_or_else(|| self.of(&key));
            changed.insert(key, before.plus(sums).ok_or_else(out_of_range)?);
        }
        self.0.extend(changed);
        Ok(())
    }

    /// What is added to one counter.
    pub(super) fn of(&self, key: &CounterKey) -> Sums {
        self.0.get(key).copied().unwrap_or_default()
    }

    /// Every counter with what is added to it.
    pub(super) fn into_iter(self) -> impl Iterator<Item = (CounterKey, Sums)> {
        self.0.into_iter()
    }

    /// Writes it down.
    pub(super) async fn write(&self, transaction: &DatabaseTransaction, texts: &mut Texts) -> Result<(), StoreError> {
        let changed: Vec<_> = self.0.iter().filter(|(_, sums)| **sums != Sums::default()).collect();
        for piece in changed.chunks(PIECE) {
            let values = piece.iter().flat_map(|(key, sums)| {
                let added = [sums.spent.pico().into(), sums.reserved.pico().into()];
                key.columns().into_iter().chain(added)
            });
            let statement = texts.statement(Kind::AddToCounters, piece.len(), values);
            let done = transaction.execute_raw(statement).await.map_err(store_error)?;
            if done.rows_affected() != piece.len() as u64 {
                return Err(out_of_range());
            }
        }
        Ok(())
    }
}

/// Counters as they stand; one that is not there stands at nothing.
pub(super) async fn read(
    connection: &impl ConnectionTrait,
    texts: &mut Texts,
    keys: &[CounterKey],
) -> Result<HashMap<CounterKey, Sums>, StoreError> {
    let mut found = HashMap::with_capacity(keys.len());
    for piece in keys.chunks(PIECE) {
        let values = (0_i64..).zip(piece).flat_map(|(place, key)| [place.into()].into_iter().chain(key.columns()));
        let statement = texts.statement(Kind::ReadCounters, piece.len(), values);
        for row in connection.query_all_raw(statement).await.map_err(store_error)? {
            let number = |column: usize| row.try_get_by_index::<i64>(column).map_err(store_error);
            let place = usize::try_from(number(0)?).ok().and_then(|place| piece.get(place));
            let sums = Sums { spent: Usd::from_pico(number(1)?), reserved: Usd::from_pico(number(2)?) };
            found.extend(place.map(|key| (*key, sums)));
        }
    }
    Ok(found)
}
