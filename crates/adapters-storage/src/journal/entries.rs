//! The rows of journal entries.

use domain::budget::JournalEntry;
use domain::error::StoreError;
use domain::ids::ProcessId;
use sea_orm::{ActiveValue::Set, ColumnTrait, ConnectionTrait, EntityTrait, QueryFilter, QueryOrder, QuerySelect};

use crate::convert::{signed, unsigned};
use crate::entities::journal_entries::{ActiveModel, Column, Entity};
use crate::errors::{corrupt, store_error};

/// The most rows of one statement.
const ROWS: usize = 256;
/// The most rows of one read.
const READ_ROWS: u64 = 4_096;

/// Inserts entries. Those that exist stay: a transaction without an answer is repeated.
pub(super) async fn insert(
    transaction: &impl ConnectionTrait,
    process: ProcessId,
    entries: &[JournalEntry],
) -> Result<(), StoreError> {
    for piece in entries.chunks(ROWS) {
        let rows = piece.iter().map(|entry| {
            Ok(ActiveModel {
                process_id: Set(process.to_string()),
                sequence: Set(signed(entry.sequence, "journal_entries.sequence", process)?),
                kind: Set(entry.kind.into()),
                payload: Set(entry.payload.to_vec()),
            })
        });
        let rows: Vec<ActiveModel> = rows.collect::<Result<_, StoreError>>()?;
        let insert = Entity::insert_many(rows).on_conflict_do_nothing_on([Column::ProcessId, Column::Sequence]);
        insert.exec_without_returning(transaction).await.map_err(store_error)?;
    }
    Ok(())
}

/// Removes the entries below a number, or all.
pub(super) async fn remove(
    transaction: &impl ConnectionTrait,
    process: ProcessId,
    below: Option<u64>,
) -> Result<(), StoreError> {
    let mut delete = Entity::delete_many().filter(Column::ProcessId.eq(process.to_string()));
    if let Some(below) = below {
        delete = delete.filter(Column::Sequence.lt(signed(below, "journal_entries.sequence", process)?));
    }
    delete.exec(transaction).await.map(drop).map_err(store_error)
}

/// Returns the next entries of a process after a number, in order; none after the last.
pub(super) async fn read_after(
    connection: &impl ConnectionTrait,
    process: ProcessId,
    after: u64,
) -> Result<Vec<JournalEntry>, StoreError> {
    let rows = Entity::find()
        .filter(Column::ProcessId.eq(process.to_string()))
        .filter(Column::Sequence.gt(signed(after, "journal_entries.sequence", process)?))
        .order_by_asc(Column::Sequence)
        .limit(READ_ROWS);
    let rows = rows.all(connection).await.map_err(store_error)?;
    let entry = |row: crate::entities::journal_entries::Model| {
        Ok(JournalEntry {
            sequence: unsigned(row.sequence, "journal_entries.sequence", process)?,
            kind: u8::try_from(row.kind).map_err(|_| corrupt("journal_entries.kind", process))?,
            payload: row.payload.into(),
        })
    };
    rows.into_iter().map(entry).collect()
}
