//! The rows of processes.

use std::fmt::Display;

use chrono::{DateTime, Utc};
use domain::budget::{BudgetStoreError, LiveProcess, ProcessState, ProcessStatus};
use domain::error::StoreError;
use domain::ids::ProcessId;
use sea_orm::ActiveValue::Set;
use sea_orm::sea_query::{Expr, ExprTrait, OnConflict, SimpleExpr};
use sea_orm::{ColumnTrait, ConnectionTrait, EntityTrait, IntoActiveModel, QueryFilter, QueryOrder};

use crate::change_feed;
use crate::convert::{millis, moment, parse, signed, unsigned};
use crate::entities::budget_processes::{ActiveModel, Column, Entity, Model};
use crate::errors::{corrupt, store_error};
use crate::statements::{column, read};

/// The relation of a call number to the previous ones.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum CallNumber {
    /// The next number.
    Next,
    /// The number of the last call, with its reply if it was a draw.
    Repeated(Option<String>),
}

/// Finds the row of a process.
pub(crate) async fn find(connection: &impl ConnectionTrait, process: ProcessId) -> Result<Option<Model>, StoreError> {
    Entity::find_by_id(process.to_string()).one(connection).await.map_err(store_error)
}

/// Converts a row to a status.
pub(crate) fn status(row: &Model) -> Result<ProcessStatus, StoreError> {
    Ok(ProcessStatus {
        state: parse_state(&row.state, &row.id)?,
        number: unsigned(row.number, "budget_processes.number", &row.id)?,
        folded_sequence: unsigned(row.folded_sequence, "budget_processes.folded_sequence", &row.id)?,
    })
}

fn parse_state(name: &str, process: impl Display) -> Result<ProcessState, StoreError> {
    ProcessState::from_name(name).ok_or_else(|| corrupt("budget_processes.state", process))
}

/// Counts the processes whose journals may have charges that are not folded.
pub(crate) async fn count_unended(connection: &impl ConnectionTrait) -> Result<u64, StoreError> {
    Ok(unended(connection).await?.len() as u64)
}

/// Returns the rows of live and adopted processes.
pub(crate) async fn unended(connection: &impl ConnectionTrait) -> Result<Vec<Model>, StoreError> {
    let mut rows = Vec::new();
    for state in [ProcessState::Live, ProcessState::Adopted] {
        rows.extend(Entity::find().filter(has_state(state)).all(connection).await.map_err(store_error)?);
    }
    Ok(rows)
}

/// Returns the condition of the index of processes with this state. The state is a literal: SQLite would prepare a
/// statement with a parameter there again for each call, to see whether the index applies.
fn has_state(state: ProcessState) -> SimpleExpr {
    Expr::col(Column::State).eq(Expr::cust(format!("'{}'", state.as_str())))
}

/// Adds an unknown process.
pub(crate) async fn register(
    connection: &impl ConnectionTrait,
    process: ProcessId,
    has_store_journal: bool,
    now: i64,
) -> Result<(), StoreError> {
    let row = Model {
        id: process.to_string(),
        number: 0,
        folded_sequence: 0,
        state: ProcessState::Live.as_str().to_owned(),
        last_reply: None,
        registered_at: now,
        seen_at: now,
        has_store_journal,
    };
    let insert =
        Entity::insert(row.into_active_model()).on_conflict(OnConflict::column(Column::Id).do_nothing().to_owned());
    insert.exec_without_returning(connection).await.map(drop).map_err(store_error)
}

/// Compares the number of a draw or return with the last one.
///
/// # Errors
/// The process is not live, or the number is neither the next nor the last.
pub(super) async fn check_number(
    connection: &impl ConnectionTrait,
    process: ProcessId,
    number: u64,
) -> Result<CallNumber, BudgetStoreError> {
    let row = find(connection, process).await?.ok_or(BudgetStoreError::NotLive(None))?;
    compare_number(process, &row.state, row.number, row.last_reply, number)
}

/// The state of the store that decides a draw.
pub(super) struct StoreState {
    pub(super) call: CallNumber,
    pub(super) feed: change_feed::Counters,
    pub(super) live_processes: u64,
}

/// Reads the state of the store by one statement, and compares the number of a draw with the last one.
///
/// # Errors
/// Like [`check_number`].
pub(super) async fn read_state(
    connection: &impl ConnectionTrait,
    process: ProcessId,
    number: u64,
) -> Result<StoreState, BudgetStoreError> {
    let text = format!(
        "SELECT p.state, p.number, p.last_reply, f.limits, f.catalogue, f.declared_older_at, \
         (SELECT COUNT(*) FROM budget_processes WHERE state = '{}') \
         FROM change_feed AS f LEFT JOIN budget_processes AS p ON p.id = ? WHERE f.id = {}",
        ProcessState::Live.as_str(),
        change_feed::ROW_ID
    );
    let rows = read(connection, &text, vec![process.to_string().into()]).await?;
    let row = rows.first().ok_or_else(change_feed::missing)?;
    let state: String = column::<Option<_>>(row, 0)?.ok_or(BudgetStoreError::NotLive(None))?;
    let call = compare_number(process, &state, column(row, 1)?, column(row, 2)?, number)?;
    let feed = change_feed::Counters::from_columns(column(row, 3)?, column(row, 4)?, column(row, 5)?)?;
    Ok(StoreState { call, feed, live_processes: unsigned(column(row, 6)?, "budget_processes", "COUNT(*)")? })
}

fn compare_number(
    process: ProcessId,
    state: &str,
    last: i64,
    last_reply: Option<String>,
    number: u64,
) -> Result<CallNumber, BudgetStoreError> {
    let state = parse_state(state, process)?;
    let last = unsigned(last, "budget_processes.number", process)?;
    if state != ProcessState::Live {
        return Err(BudgetStoreError::NotLive(Some(state)));
    }
    match number.checked_sub(last) {
        Some(0) if number > 0 => Ok(CallNumber::Repeated(last_reply)),
        Some(1) => Ok(CallNumber::Next),
        _ => Err(BudgetStoreError::Number { expected: last.saturating_add(1), found: number }),
    }
}

/// Stores the number of a draw or return, and the reply to a draw.
pub(super) async fn advance(
    transaction: &impl ConnectionTrait,
    process: ProcessId,
    number: u64,
    reply: Option<String>,
) -> Result<(), StoreError> {
    let number = signed(number, "budget_processes.number", process)?;
    let changed = ActiveModel { number: Set(number), last_reply: Set(reply), ..ActiveModel::default() };
    update(transaction, process, changed).await
}

/// Records that a process answered all recalls up to a time.
pub(super) async fn set_seen(
    transaction: &impl ConnectionTrait,
    process: ProcessId,
    at: DateTime<Utc>,
) -> Result<(), StoreError> {
    update(transaction, process, ActiveModel { seen_at: Set(millis(at)), ..ActiveModel::default() }).await
}

/// Returns the processes that are live at a time.
pub(super) async fn live(
    connection: &impl ConnectionTrait,
    now: DateTime<Utc>,
) -> Result<Vec<LiveProcess>, StoreError> {
    let live = Entity::find().filter(has_state(ProcessState::Live)).order_by_asc(Column::Id);
    let rows = live.all(connection).await.map_err(store_error)?;
    let live = rows.into_iter().map(|row| {
        let seen_at = moment(row.seen_at, "budget_processes.seen_at", &row.id)?;
        let silent_for = (now - seen_at).to_std().unwrap_or_default();
        Ok(LiveProcess { process: parse(&row.id, "budget_processes.id", &row.id)?, seen_at, silent_for })
    });
    live.collect()
}

/// Stores the number of the last folded entry.
pub(super) async fn set_folded(
    transaction: &impl ConnectionTrait,
    process: ProcessId,
    sequence: u64,
) -> Result<(), StoreError> {
    let sequence = signed(sequence, "budget_processes.folded_sequence", process)?;
    update(transaction, process, ActiveModel { folded_sequence: Set(sequence), ..ActiveModel::default() }).await
}

/// Ends a live process, or a lost one in order. Returns false if there is no change.
pub(super) async fn end(
    transaction: &impl ConnectionTrait,
    process: ProcessId,
    state: ProcessState,
) -> Result<bool, StoreError> {
    let before = match state {
        ProcessState::Ended => vec![ProcessState::Live, ProcessState::Adopted, ProcessState::Lost],
        ProcessState::Live | ProcessState::Adopted | ProcessState::Lost => {
            vec![ProcessState::Live, ProcessState::Adopted]
        }
    };
    let ended = Entity::update_many()
        .col_expr(Column::State, Expr::value(state.as_str()))
        .filter(Column::Id.eq(process.to_string()))
        .filter(Column::State.is_in(before.into_iter().map(ProcessState::as_str)))
        .exec(transaction)
        .await
        .map_err(store_error)?;
    Ok(ended.rows_affected > 0)
}

async fn update(
    transaction: &impl ConnectionTrait,
    process: ProcessId,
    changed: ActiveModel,
) -> Result<(), StoreError> {
    let update = Entity::update_many().set(changed).filter(Column::Id.eq(process.to_string()));
    update.exec(transaction).await.map(drop).map_err(store_error)
}
