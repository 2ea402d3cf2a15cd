//! Removal of records by retention.

use std::collections::BTreeMap;
use std::ops::RangeInclusive;
use std::time::Duration;

use chrono::{DateTime, Utc};
use domain::budget::allowances::{CounterId, CounterPeriod};
use domain::budget::{PruneReport, ResetInterval};
use domain::error::StoreError;
use sea_orm::{ConnectionTrait, QueryResult, Value};

use super::alerts;
use super::counters::{Change, NAMES, add_to_counters, any_of, archive, counter_of, counters_at};
use super::records::{CHARGE_COLUMNS, ChargedRecord};
use crate::convert::millis;
use crate::database::Database;
use crate::statements::{column, list, pieces, read, run};

/// Rows of the first transaction: few, so that other writes do not wait long.
const FIRST_ROWS: u64 = 16;
/// Most and fewest rows of a transaction.
const ROWS: RangeInclusive<u64> = 2..=64;
/// The duration above which the next transaction has half as many rows. Below half of it, it has twice as many.
const LONG: Duration = Duration::from_millis(10);

/// The position after the examined rows: their time and id.
type Cursor = (i64, Vec<u8>);

/// Implements the port. Moves the cost of a record from the counters of its past periods to the archived amount of its
/// accounts, so that every counter always equals the sum of the records and the archived amount.
pub(super) async fn prune(database: &Database, before: DateTime<Utc>, limit: u64) -> Result<PruneReport, StoreError> {
    let mut report = PruneReport::default();
    let mut cursor: Option<Cursor> = None;
    let mut rows_wanted = FIRST_ROWS;
    while report.removed < limit {
        let wanted = rows_wanted.min(limit - report.removed);
        // Read before taking the write lock: usually there is nothing to remove.
        let snapshot = database.snapshot().await?;
        let is_last = oldest(&snapshot, before, cursor.as_ref(), 1).await?.is_empty();
        drop(snapshot);
        if is_last {
            remove_past(database, before).await?;
            break;
        }
        let transaction = database.begin().await?;
        let began = database.monotonic();
        let rows = oldest(&transaction, before, cursor.as_ref(), wanted).await?;
        let Some(last) = rows.last() else { break };
        // The cursor cannot move past a row whose time or id has a wrong type.
        let end = (column(last, 5).ok()).zip(column(last, 0).ok());
        let mut gone = Vec::with_capacity(rows.len());
        for row in &rows {
            match ChargedRecord::read(row) {
                Ok(record) if record.pico.checked_neg().is_some() => gone.push(record),
                _ => report.cannot_read(ChargedRecord::id_of(row)),
            }
        }
        remove(&transaction, &gone).await?;
        transaction.commit().await?;
        rows_wanted = next_rows(rows_wanted, database.monotonic().saturating_sub(began));
        report.removed += gone.len() as u64;
        match end {
            Some(end) => cursor = Some(end),
            None => break,
        }
    }
    Ok(report)
}

/// Returns the rows of the next transaction, by the duration of the last.
fn next_rows(rows: u64, took: Duration) -> u64 {
    let next = if took > LONG {
        rows / 2
    } else if took < LONG / 2 {
        rows * 2
    } else {
        rows
    };
    next.clamp(*ROWS.start(), *ROWS.end())
}

/// Reads the oldest records after a cursor as raw columns, so that each is decoded separately.
async fn oldest(
    connection: &impl ConnectionTrait,
    before: DateTime<Utc>,
    cursor: Option<&Cursor>,
    limit: u64,
) -> Result<Vec<QueryResult>, StoreError> {
    let limit = i64::try_from(limit).unwrap_or(i64::MAX);
    let select = format!("SELECT {CHARGE_COLUMNS} FROM usage_records WHERE charged_at < ?");
    let order = "ORDER BY charged_at, id LIMIT ?";
    match cursor {
        None => read(connection, &format!("{select} {order}"), vec![millis(before).into(), limit.into()]).await,
        Some((at, id)) => {
            let text = format!("{select} AND charged_at >= ? AND (charged_at > ? OR id > ?) {order}");
            let values = vec![millis(before).into(), (*at).into(), (*at).into(), id.as_slice().into(), limit.into()];
            read(connection, &text, values).await
        }
    }
}

async fn remove(transaction: &impl ConnectionTrait, records: &[ChargedRecord]) -> Result<(), StoreError> {
    for piece in pieces(records) {
        let text = format!("DELETE FROM usage_records WHERE id IN ({})", list(piece.len()));
        run(transaction, &text, piece.iter().map(|record| record.id.as_slice().into()).collect()).await?;
    }
    let mut archived = BTreeMap::new();
    let mut changes: BTreeMap<CounterId, Change> = BTreeMap::new();
    for ChargedRecord { payer, at, pico, .. } in records {
        for account in payer.accounts() {
            *archived.entry(account).or_default() += i128::from(*pico);
            let periods = counters_at(account, *at).filter(|counter| counter.period != CounterPeriod::Lifetime);
            periods.for_each(|counter| changes.entry(counter).or_default().spent -= i128::from(*pico));
        }
    }
    archive(transaction, archived).await?;
    add_to_counters(transaction, changes).await.map(drop)
}

/// Removes the adjustments, alerts and empty counters of past periods, and processes without any remaining data.
async fn remove_past(database: &Database, before: DateTime<Utc>) -> Result<(), StoreError> {
    let ended = ResetInterval::ALL.map(|interval| (interval.as_str(), millis(interval.start_of(before))));
    let past = "((\"interval\" = ? AND period_start < ?) OR (\"interval\" = ? AND period_start < ?) \
                OR (\"interval\" = ? AND period_start < ?))";
    let values = || ended.iter().flat_map(|(interval, start)| [Value::from(*interval), Value::from(*start)]);
    let transaction = database.begin().await?;
    let adjustments =
        format!("SELECT scope, subject, \"interval\", period_start, amount_pico FROM adjustments WHERE {past}");
    let mut changes: BTreeMap<CounterId, Change> = BTreeMap::new();
    for row in read(&transaction, &adjustments, values().collect()).await? {
        changes.entry(counter_of(&row)?).or_default().spent -= i128::from(column::<i64>(&row, 4)?);
    }
    if !changes.is_empty() {
        run(&transaction, &format!("DELETE FROM adjustments WHERE {past}"), values().collect()).await?;
        add_to_counters(&transaction, changes).await?;
    }
    alerts::remove_past(&transaction, past, values().collect()).await?;
    let processes = "DELETE FROM budget_processes WHERE state <> 'live' AND registered_at < ? \
                     AND NOT EXISTS (SELECT 1 FROM adjustments WHERE process_id = budget_processes.id)";
    run(&transaction, processes, vec![millis(before).into()]).await?;
    transaction.commit().await?;
    remove_empty_counters(database, past, values().collect()).await
}

/// Removes the empty counters of past periods, a number at a time. They are found without the lock of writers, because
/// there may be very many counters.
async fn remove_empty_counters(database: &Database, past: &str, values: Vec<Value>) -> Result<(), StoreError> {
    const EMPTY: &str = "spent_pico = 0 AND allotted_pico = 0";
    // Counters of all time, which are many, begin at zero and end never.
    let text = format!(
        "SELECT scope, subject, \"interval\", period_start FROM spend_counters \
         WHERE period_start > 0 AND {EMPTY} AND {past} LIMIT {NAMES}"
    );
    loop {
        let found = read(database.report_readers()?, &text, values.clone()).await?;
        if found.is_empty() {
            return Ok(());
        }
        let mut names: Vec<Value> = Vec::with_capacity(found.len() * 4);
        for row in &found {
            let (scope, subject, interval): (String, String, String) =
                (column(row, 0)?, column(row, 1)?, column(row, 2)?);
            names.extend([scope.into(), subject.into(), interval.into(), column::<i64>(row, 3)?.into()]);
        }
        let transaction = database.begin().await?;
        let delete = format!("DELETE FROM spend_counters WHERE {EMPTY} AND ({})", any_of(found.len()));
        run(&transaction, &delete, names).await?;
        transaction.commit().await?;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn transactions_shrink_while_they_are_long_and_grow_while_they_are_short() {
        let [short, medium, long] = [1, 7, 11].map(Duration::from_millis);
        assert_eq!([short, medium, long].map(|took| next_rows(16, took)), [32, 16, 8]);
        assert_eq!((next_rows(64, short), next_rows(2, long)), (64, 2));
    }
}
