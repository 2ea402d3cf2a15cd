//! Rows of counters, and of amounts per counter.

use std::collections::{BTreeMap, BTreeSet};

use chrono::{DateTime, Utc};
use domain::budget::allowances::{CounterId, CounterPeriod};
use domain::budget::{Account, ResetInterval};
use domain::error::StoreError;
use domain::ids::ProcessId;
use domain::money::Usd;
use sea_orm::{ConnectionTrait, QueryResult, Value};

use crate::convert::{millis, moment, parse};
use crate::errors::corrupt;
use crate::statements::{chunks_of, column, pieces, places, read, run};

/// The interval of the all-time counters.
const TOTAL: &str = "total";

/// The interval of the amounts of removed records.
pub(super) const ARCHIVED: &str = "archived";

/// A stored counter.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(super) struct CounterRow {
    pub(super) spent: i64,
    pub(super) allotted: i64,
    pub(super) recalled_at: Option<i64>,
    pub(super) recall_began_at: Option<i64>,
}

/// An amount to add to a counter. Sums of 64-bit amounts do not overflow it.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(super) struct Change {
    pub(super) spent: i128,
    pub(super) allotted: i128,
}

/// Joins the columns of `c` with a list of counters `a`. `CROSS JOIN` makes SQLite look up each counter instead of
/// scanning the table.
const NAMED: &str = "c.scope = a.column1 AND c.subject = a.column2 AND c.\"interval\" = a.column3 \
                     AND c.period_start = a.column4";

/// Most counters of [`any_of`]; a power of two.
pub(super) const NAMES: usize = 64;

/// Returns a condition for the rows of a number of counters, for statements that change them.
pub(super) fn any_of(counters: usize) -> String {
    vec!["(scope = ? AND subject = ? AND \"interval\" = ? AND period_start = ?)"; counters].join(" OR ")
}

/// Rows of processes and counters: allowances or adjustments.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Amounts {
    Allowances,
    Adjustments,
}

impl Amounts {
    fn table(self) -> &'static str {
        match self {
            Self::Allowances => "allowances",
            Self::Adjustments => "adjustments",
        }
    }
}

/// Returns the columns of a counter: scope, subject, interval, start of the period.
pub(super) fn columns_of(counter: &CounterId) -> [Value; 4] {
    let (interval, start) = span_of(counter);
    [counter.account.scope().as_str().into(), subject(&counter.account).into(), interval.into(), start.into()]
}

/// Returns the interval and the start of the period of a counter.
pub(super) fn span_of(counter: &CounterId) -> (&'static str, i64) {
    match counter.period {
        CounterPeriod::Lifetime => (TOTAL, 0),
        CounterPeriod::Calendar(interval, start) => (interval.as_str(), millis(start)),
    }
}

/// Returns the column of an account.
pub(super) fn subject(account: &Account) -> String {
    match account {
        Account::Workspace(id) => id.to_string(),
        Account::Key(key) => key.to_string(),
        Account::Guardrail(id, key) => format!("{id}:{key}"),
    }
}

/// Reads the counter in the first four columns of a row.
pub(super) fn counter_of(row: &QueryResult) -> Result<CounterId, StoreError> {
    let scope: String = column(row, 0)?;
    let subject: String = column(row, 1)?;
    let interval: String = column(row, 2)?;
    counter_named(&scope, &subject, &interval, column(row, 3)?)
}

/// Parses a counter.
pub(super) fn counter_named(scope: &str, subject: &str, interval: &str, start: i64) -> Result<CounterId, StoreError> {
    let unreadable = || corrupt("spend_counters.scope", subject);
    let account = match (scope, subject.split_once(':')) {
        ("workspace", None) => Account::Workspace(parse(subject, "spend_counters.subject", subject)?),
        ("key", None) => Account::Key(parse(subject, "spend_counters.subject", subject)?),
        ("guardrail", Some((id, key))) => Account::Guardrail(
            parse(id, "spend_counters.subject", subject)?,
            parse(key, "spend_counters.subject", subject)?,
        ),
        _ => return Err(unreadable()),
    };
    let period = match ResetInterval::from_name(interval) {
        Some(interval) => CounterPeriod::Calendar(interval, moment(start, "spend_counters.period_start", subject)?),
        None if interval == TOTAL => CounterPeriod::Lifetime,
        None => return Err(corrupt("spend_counters.interval", subject)),
    };
    Ok(CounterId { account, period })
}

/// Returns the counters of a charge at a time: for each account, all time and the day, week and month.
pub(super) fn counters_at(account: Account, at: DateTime<Utc>) -> impl Iterator<Item = CounterId> {
    let intervals = [None, Some(ResetInterval::Daily), Some(ResetInterval::Weekly), Some(ResetInterval::Monthly)];
    intervals.into_iter().map(move |interval| CounterId { account, period: CounterPeriod::containing(interval, at) })
}

/// Returns each counter once, and its columns.
fn deduplicate_counters(counters: impl IntoIterator<Item = CounterId>) -> (Vec<CounterId>, Vec<[Value; 4]>) {
    let counters: BTreeSet<CounterId> = counters.into_iter().collect();
    counters.into_iter().map(|counter| (counter, columns_of(&counter))).unzip()
}

/// Reads counters. Those without a row are omitted.
pub(super) async fn read_counters(
    connection: &impl ConnectionTrait,
    counters: impl IntoIterator<Item = CounterId>,
) -> Result<BTreeMap<CounterId, CounterRow>, StoreError> {
    let (counters, names) = deduplicate_counters(counters);
    let rows = read_rows(connection, &names).await?;
    Ok(counters.into_iter().zip(rows).filter_map(|(counter, row)| Some((counter, row?))).collect())
}

/// Reads counters, and the allowances of a process in them. Those without a row are omitted.
pub(super) async fn read_balances(
    connection: &impl ConnectionTrait,
    process: ProcessId,
    counters: impl IntoIterator<Item = CounterId>,
) -> Result<(BTreeMap<CounterId, CounterRow>, BTreeMap<CounterId, i64>), StoreError> {
    let (counters, names) = deduplicate_counters(counters);
    let (mut found, mut own) = (BTreeMap::new(), BTreeMap::new());
    for (piece, counters) in pieces(&names).zip(pieces(&counters)) {
        let text = format!(
            "SELECT a.column5, c.spent_pico, c.allotted_pico, c.recalled_at, c.recall_began_at, o.amount_pico \
             FROM (VALUES {}) AS a LEFT JOIN spend_counters AS c ON {NAMED} LEFT JOIN allowances AS o \
             ON o.process_id = ? AND o.scope = a.column1 AND o.subject = a.column2 \
             AND o.\"interval\" = a.column3 AND o.period_start = a.column4",
            places(piece.len(), 5)
        );
        let values = numbered(piece).into_iter().chain([process.to_string().into()]).collect();
        for row in read(connection, &text, values).await? {
            let counter = counters[place(&row)?];
            if column::<Option<i64>>(&row, 1)?.is_some() {
                found.insert(counter, counter_row(&row)?);
            }
            own.extend(column::<Option<i64>>(&row, 5)?.map(|amount| (counter, amount)));
        }
    }
    Ok((found, own))
}

/// Returns the counter in the second to the fifth column of a row.
fn counter_row(row: &QueryResult) -> Result<CounterRow, StoreError> {
    Ok(CounterRow {
        spent: column(row, 1)?,
        allotted: column(row, 2)?,
        recalled_at: column(row, 3)?,
        recall_began_at: column(row, 4)?,
    })
}

/// Reads the rows of these counters, each at the index of its name.
async fn read_rows(
    connection: &impl ConnectionTrait,
    names: &[[Value; 4]],
) -> Result<Vec<Option<CounterRow>>, StoreError> {
    let mut found = Vec::with_capacity(names.len());
    for piece in pieces(names) {
        let text = format!(
            "SELECT a.column5, c.spent_pico, c.allotted_pico, c.recalled_at, c.recall_began_at \
             FROM (VALUES {}) AS a CROSS JOIN spend_counters AS c WHERE {NAMED}",
            places(piece.len(), 5)
        );
        let mut rows = vec![None; piece.len()];
        for row in read(connection, &text, numbered(piece)).await? {
            rows[place(&row)?] = Some(counter_row(&row)?);
        }
        found.append(&mut rows);
    }
    Ok(found)
}

/// Appends an index to each name: a found row returns its index, which is smaller than the name.
fn numbered(names: &[[Value; 4]]) -> Vec<Value> {
    let number = |(name, place): (&[Value; 4], i64)| name.clone().into_iter().chain([place.into()]);
    names.iter().zip(0_i64..).flat_map(number).collect()
}

/// Returns the index of a found row.
fn place(row: &QueryResult) -> Result<usize, StoreError> {
    let place: i64 = column(row, 0)?;
    usize::try_from(place).map_err(|_| corrupt("spend_counters", place))
}

/// The change of the spent amount of a counter, in picodollars.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct SpentChange {
    pub(super) counter: CounterId,
    pub(super) before: i64,
    pub(super) after: i64,
}

/// Adds amounts to counters; part of a transaction with the write lock. Returns the spent amounts before and after.
///
/// # Errors
/// [`StoreError::Corrupt`] if a sum overflows.
pub(super) async fn add_to_counters(
    transaction: &impl ConnectionTrait,
    changes: BTreeMap<CounterId, Change>,
) -> Result<Vec<SpentChange>, StoreError> {
    let changes: Vec<(CounterId, Change)> =
        changes.into_iter().filter(|(_, change)| *change != Change::default()).collect();
    let rows = changes.iter().map(|(counter, change)| (columns_of(counter), *change)).collect();
    let spent = add_to_rows(transaction, rows).await?;
    let spent = changes.into_iter().zip(spent);
    Ok(spent.map(|((counter, _), (before, after))| SpentChange { counter, before, after }).collect())
}

/// Returns the spent amounts before and after, in the order of the changes.
async fn add_to_rows(
    transaction: &impl ConnectionTrait,
    changes: Vec<([Value; 4], Change)>,
) -> Result<Vec<(i64, i64)>, StoreError> {
    let (names, changes): (Vec<_>, Vec<_>) = changes.into_iter().unzip();
    let found = read_rows(transaction, &names).await?;
    let mut rows: Vec<[Value; 6]> = Vec::with_capacity(changes.len());
    let mut amounts = Vec::with_capacity(changes.len());
    for ((name, change), before) in names.into_iter().zip(changes).zip(found) {
        let before = before.unwrap_or_default();
        let [scope, subject, interval, start] = name;
        let (spent, allotted) = (sum(before.spent, change.spent)?, sum(before.allotted, change.allotted)?);
        rows.push([scope, subject, interval, start, spent.into(), allotted.into()]);
        amounts.push((before.spent, spent));
    }
    write_rows(transaction, &rows).await?;
    Ok(amounts)
}

/// Writes the amounts of counters that were read in the same transaction with the write lock.
pub(super) async fn set_counters(
    transaction: &impl ConnectionTrait,
    counters: &BTreeMap<CounterId, CounterRow>,
) -> Result<(), StoreError> {
    let rows = counters.iter().map(|(counter, row)| {
        let [scope, subject, interval, start] = columns_of(counter);
        [scope, subject, interval, start, row.spent.into(), row.allotted.into()]
    });
    write_rows(transaction, &rows.collect::<Vec<_>>()).await
}

async fn write_rows(transaction: &impl ConnectionTrait, rows: &[[Value; 6]]) -> Result<(), StoreError> {
    for piece in pieces(rows) {
        let text = format!(
            "INSERT INTO spend_counters (scope, subject, \"interval\", period_start, spent_pico, allotted_pico) \
             VALUES {} ON CONFLICT (scope, subject, \"interval\", period_start) \
             DO UPDATE SET spent_pico = excluded.spent_pico, allotted_pico = excluded.allotted_pico",
            places(piece.len(), 6)
        );
        run(transaction, &text, piece.iter().flatten().cloned().collect()).await?;
    }
    Ok(())
}

/// Adds the cost of removed records to the archived amounts of their accounts; part of a transaction with the write
/// lock.
pub(super) async fn archive(
    transaction: &impl ConnectionTrait,
    costs: BTreeMap<Account, i128>,
) -> Result<(), StoreError> {
    let change = |(account, spent): (Account, i128)| {
        let name = [account.scope().as_str().into(), subject(&account).into(), ARCHIVED.into(), 0_i64.into()];
        (name, Change { spent, allotted: 0 })
    };
    add_to_rows(transaction, costs.into_iter().map(change).collect()).await.map(drop)
}

/// Reads the amounts of a process in counters. Those without a row are omitted.
pub(super) async fn read_amounts(
    connection: &impl ConnectionTrait,
    amounts: Amounts,
    process: ProcessId,
    counters: impl IntoIterator<Item = CounterId>,
) -> Result<BTreeMap<CounterId, i64>, StoreError> {
    let (counters, names) = deduplicate_counters(counters);
    let mut found = BTreeMap::new();
    for (piece, counters) in pieces(&names).zip(pieces(&counters)) {
        let text = format!(
            "SELECT a.column5, c.amount_pico FROM (VALUES {}) AS a CROSS JOIN {} AS c WHERE {NAMED} AND c.process_id = ?",
            places(piece.len(), 5),
            amounts.table()
        );
        let values = numbered(piece).into_iter().chain([process.to_string().into()]).collect();
        for row in read(connection, &text, values).await? {
            found.insert(counters[place(&row)?], column(&row, 1)?);
        }
    }
    Ok(found)
}

/// Returns for each counter with allowances of other processes the time at which the most silent of them was last seen.
pub(super) async fn read_holders(
    connection: &impl ConnectionTrait,
    process: ProcessId,
    counters: &[CounterId],
) -> Result<BTreeMap<CounterId, i64>, StoreError> {
    let mut found = BTreeMap::new();
    for piece in pieces(counters) {
        let text = format!(
            "SELECT c.scope, c.subject, c.\"interval\", c.period_start, MIN(p.seen_at) FROM (VALUES {}) AS a \
             CROSS JOIN allowances AS c CROSS JOIN budget_processes AS p \
             WHERE {NAMED} AND c.process_id <> ? AND p.id = c.process_id \
             GROUP BY c.scope, c.subject, c.\"interval\", c.period_start",
            places(piece.len(), 4)
        );
        let values = piece.iter().flat_map(columns_of).chain([process.to_string().into()]).collect();
        for row in read(connection, &text, values).await? {
            found.insert(counter_of(&row)?, column(&row, 4)?);
        }
    }
    Ok(found)
}

/// Returns all amounts of a process.
pub(super) async fn all_amounts(
    connection: &impl ConnectionTrait,
    amounts: Amounts,
    process: ProcessId,
) -> Result<BTreeMap<CounterId, i64>, StoreError> {
    let text = format!(
        "SELECT scope, subject, \"interval\", period_start, amount_pico FROM {} WHERE process_id = ?",
        amounts.table()
    );
    let rows = read(connection, &text, vec![process.to_string().into()]).await?;
    rows.iter().map(|row| Ok((counter_of(row)?, column(row, 4)?))).collect()
}

/// Removes all amounts of a process.
pub(super) async fn clear_amounts(
    transaction: &impl ConnectionTrait,
    amounts: Amounts,
    process: ProcessId,
) -> Result<(), StoreError> {
    let text = format!("DELETE FROM {} WHERE process_id = ?", amounts.table());
    run(transaction, &text, vec![process.to_string().into()]).await.map(drop)
}

/// Sets amounts of a process; removes those that are zero.
pub(super) async fn set_amounts(
    transaction: &impl ConnectionTrait,
    amounts: Amounts,
    process: ProcessId,
    set: &BTreeMap<CounterId, i64>,
) -> Result<(), StoreError> {
    let (gone, kept): (Vec<_>, Vec<_>) = set.iter().partition(|(_, amount)| **amount == 0);
    for piece in pieces(&kept) {
        let text = format!(
            "INSERT INTO {} (process_id, scope, subject, \"interval\", period_start, amount_pico) VALUES {} \
             ON CONFLICT (process_id, scope, subject, \"interval\", period_start) \
             DO UPDATE SET amount_pico = excluded.amount_pico",
            amounts.table(),
            places(piece.len(), 6)
        );
        let rows = piece.iter().flat_map(|(counter, amount)| {
            let [scope, subject, interval, start] = columns_of(counter);
            [process.to_string().into(), scope, subject, interval, start, (**amount).into()]
        });
        run(transaction, &text, rows.collect()).await?;
    }
    for piece in chunks_of(&gone, NAMES) {
        let names = piece.iter().flat_map(|(counter, _)| {
            let [scope, subject, interval, start] = columns_of(counter);
            [process.to_string().into(), scope, subject, interval, start]
        });
        run(transaction, &removal(amounts, piece.len()), names.collect()).await?;
    }
    Ok(())
}

/// Returns a statement that removes a number of amounts. Each condition names the whole key: with the process outside
/// of the conditions, SQLite reads every amount of the process.
fn removal(amounts: Amounts, counters: usize) -> String {
    let row = "(process_id = ? AND scope = ? AND subject = ? AND \"interval\" = ? AND period_start = ?)";
    format!("DELETE FROM {} WHERE {}", amounts.table(), vec![row; counters].join(" OR "))
}

/// Adds a stored sum and an amount.
///
/// # Errors
/// The sum overflows.
pub(super) fn sum(before: i64, added: i128) -> Result<i64, StoreError> {
    let sum = i64::try_from(i128::from(before) + added);
    sum.map_err(|_| StoreError::Corrupt("a sum exceeds the range of amounts".to_owned()))
}

/// Converts an amount from a caller.
///
/// # Errors
/// It is negative.
pub(super) fn positive(amount: Usd) -> Result<i64, StoreError> {
    if amount < Usd::ZERO { Err(StoreError::Corrupt("a negative amount".to_owned())) } else { Ok(amount.pico()) }
}

#[cfg(test)]
mod tests {
    use migrations::{Migrator, MigratorTrait};
    use sea_orm::Database;

    use super::*;

    #[tokio::test]
    async fn removal_looks_up_each_amount_by_its_whole_key() {
        let database = Database::connect("sqlite::memory:").await.unwrap();
        Migrator::up(&database, None).await.unwrap();
        for amounts in [Amounts::Allowances, Amounts::Adjustments] {
            let text = format!("EXPLAIN QUERY PLAN {}", removal(amounts, NAMES));
            let plan = read(&database, &text, vec!["x".into(); NAMES * 5]).await.unwrap();
            let steps: Vec<String> = plan.iter().map(|row| column(row, 3).unwrap()).collect();
            let searches: Vec<&String> = steps.iter().filter(|step| step.starts_with("SEARCH")).collect();
            assert_eq!(searches.len(), NAMES, "{steps:?}");
            assert!(searches.iter().all(|step| step.contains("process_id=? AND scope=? AND subject=?")), "{steps:?}");
        }
    }
}
