//! Removal of records by retention.

use std::collections::BTreeMap;

use chrono::{DateTime, Utc};
use domain::budget::allowances::{CounterId, CounterPeriod};
use domain::budget::{PruneReport, ResetInterval};
use domain::error::StoreError;
use sea_orm::{ConnectionTrait, QueryResult, Value};

use super::alerts;
use super::charged_record::{CHARGE_COLUMNS, ChargedRecord};
use super::counters::{Change, add_to_counters, archive, counter_of, counters_at};
use super::statements::{column, list, pieces, read, run};
use crate::convert::millis;
use crate::database::Database;
use crate::errors::store_error;

/// Rows per transaction: few, so that other writes do not wait long.
const STEP: u64 = 64;

/// The position after the examined rows: their time and id.
type Cursor = (i64, Vec<u8>);

/// Implements the port. Moves the cost of a record from the counters of its past periods to the archived amount of its
/// accounts, so that every counter always equals the sum of the records and the archived amount.
pub(super) async fn prune(database: &Database, before: DateTime<Utc>, limit: u64) -> Result<PruneReport, StoreError> {
    let mut report = PruneReport::default();
    let mut cursor: Option<Cursor> = None;
    while report.removed < limit {
        let wanted = STEP.min(limit - report.removed);
        // Read before taking the write lock: usually there is nothing to remove.
        let snapshot = database.snapshot().await?;
        let is_last = oldest(&snapshot, before, cursor.as_ref(), wanted).await?.is_empty();
        drop(snapshot);
        if is_last {
            break;
        }
        let transaction = database.begin().await?;
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
        transaction.commit().await.map_err(store_error)?;
        report.removed += gone.len() as u64;
        match end {
            Some(end) => cursor = Some(end),
            None => break,
        }
    }
    remove_past(database, before).await?;
    Ok(report)
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

/// Removes the adjustments and the empty counters of past periods, and processes without any remaining data.
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
    let empty = format!("DELETE FROM spend_counters WHERE spent_pico = 0 AND allotted_pico = 0 AND {past}");
    run(&transaction, &empty, values().collect()).await?;
    let processes = "DELETE FROM budget_processes WHERE state <> 'live' AND registered_at < ? \
                     AND NOT EXISTS (SELECT 1 FROM adjustments WHERE process_id = budget_processes.id)";
    run(&transaction, processes, vec![millis(before).into()]).await?;
    transaction.commit().await.map_err(store_error)
}
