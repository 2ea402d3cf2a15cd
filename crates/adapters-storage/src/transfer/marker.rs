//! The row that marks a store as an unfinished copy, and the errors of a copy.

use chrono::{DateTime, Utc};
use domain::error::StoreError;
use sea_orm::sea_query::Expr;
use sea_orm::{ColumnTrait, ConnectionTrait, EntityTrait, IntoActiveModel, QueryFilter};
use serde::{Deserialize, Serialize};
use uuid::Uuid;

use crate::convert::{millis, moment};
use crate::database::Database;
use crate::entities::store_copies::{Column, Entity, Model};
use crate::errors::{corrupt, store_error};
use crate::schema;

/// The id of the only row.
const ROW_ID: i32 = 1;

/// A copy of another store that was not finished.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct UnfinishedCopy {
    /// The identity of the source.
    pub source: Uuid,
    /// The start of the copy.
    pub started_at: DateTime<Utc>,
}

/// The position of a copy: all rows of earlier tables are copied, and those of this one up to a key.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub(super) struct Position {
    /// The current table; `None` if all are copied.
    pub(super) table: Option<String>,
    /// The number of its copied rows.
    pub(super) rows: u64,
    /// The key of the last one.
    pub(super) after: Option<Vec<String>>,
}

/// The marker of an unfinished copy.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Marker {
    pub(super) copy: UnfinishedCopy,
    pub(super) fingerprint: String,
    pub(super) position: Position,
}

impl Database {
    /// Returns the unfinished copy that this database is, if it is one. Such a database must not be used.
    ///
    /// # Errors
    /// The database cannot be read.
    pub async fn unfinished_copy(&self) -> Result<Option<UnfinishedCopy>, StoreError> {
        let readers = self.readers()?;
        if !schema::has_table(self.schema().await?, "store_copies").await? {
            return Ok(None);
        }
        Ok(load(readers).await?.map(|marker| marker.copy))
    }
}

/// Loads the marker.
pub(super) async fn load(connection: &impl ConnectionTrait) -> Result<Option<Marker>, StoreError> {
    let row = Entity::find_by_id(ROW_ID).one(connection).await.map_err(store_error)?;
    row.map(to_marker).transpose()
}

fn to_marker(row: Model) -> Result<Marker, StoreError> {
    let source = Uuid::parse_str(&row.source_id).map_err(|_| corrupt("store_copies.source_id", ROW_ID))?;
    let position = serde_json::from_str(&row.position).map_err(|_| corrupt("store_copies.position", ROW_ID))?;
    let copy = UnfinishedCopy { source, started_at: moment(row.started_at, "store_copies.started_at", ROW_ID)? };
    Ok(Marker { copy, fingerprint: row.fingerprint, position })
}

/// Inserts the marker.
pub(super) async fn insert(connection: &impl ConnectionTrait, marker: &Marker) -> Result<(), StoreError> {
    let row = Model {
        id: ROW_ID,
        source_id: marker.copy.source.to_string(),
        fingerprint: marker.fingerprint.clone(),
        position: encode(&marker.position)?,
        started_at: millis(marker.copy.started_at),
    };
    Entity::insert(row.into_active_model()).exec_without_returning(connection).await.map(drop).map_err(store_error)
}

/// Moves the position of the copy.
///
/// # Errors
/// [`CopyError::Concurrent`] if the position is another one.
pub(super) async fn advance(
    connection: &impl ConnectionTrait,
    from: &Position,
    to: &Position,
) -> Result<(), CopyError> {
    let update = Entity::update_many()
        .col_expr(Column::Position, Expr::value(encode(to)?))
        .filter(Column::Id.eq(ROW_ID))
        .filter(Column::Position.eq(encode(from)?));
    let moved = update.exec(connection).await.map_err(store_error)?;
    if moved.rows_affected == 1 { Ok(()) } else { Err(CopyError::Concurrent) }
}

/// Removes the marker.
///
/// # Errors
/// [`CopyError::Concurrent`] if it does not exist.
pub(super) async fn remove(connection: &impl ConnectionTrait) -> Result<(), CopyError> {
    let removed = Entity::delete_by_id(ROW_ID).exec(connection).await.map_err(store_error)?;
    if removed.rows_affected == 1 { Ok(()) } else { Err(CopyError::Concurrent) }
}

fn encode(position: &Position) -> Result<String, StoreError> {
    serde_json::to_string(position).map_err(StoreError::unavailable)
}

/// An error of a copy.
#[derive(Debug, thiserror::Error)]
pub enum CopyError {
    /// The stores have different migrations.
    #[error("the {side} lacks the migration {name}, which the other store has: `tollgate migrate up` applies it")]
    Schema {
        /// `source` or `target`.
        side: &'static str,
        /// The first missing migration.
        name: String,
    },
    /// A store has a migration that this program does not know, and maybe tables that it would not copy.
    #[error("the stores have the migration {0} of a newer release: copy with that release")]
    NewerSchema(String),
    /// The source is itself an unfinished copy.
    #[error("the source is an unfinished copy of another store")]
    UnfinishedSource,
    /// Processes hold allowances of the source.
    #[error(
        "the source has {0} live processes: stop every server; `tollgate journal list` shows processes, and `tollgate \
         journal forget` ends those whose journals are lost"
    )]
    LiveProcesses(u64),
    /// Both URLs lead to one store, or the target is a finished copy.
    #[error("the target already holds the instance of the source: it is a finished copy, or the same database")]
    SameStore,
    /// The target holds an instance.
    #[error("the target holds an instance already (rows in {0}): name an empty database")]
    Occupied(&'static str),
    /// The target is an unfinished copy of another source.
    #[error("the target is an unfinished copy of another store ({0}): continue that copy, or name an empty database")]
    OtherSource(Uuid),
    /// The source is not as it was at the start of the copy.
    #[error(
        "the source was changed after the copy began: empty the target (drop and create the database, or remove the \
         file with its -wal and -shm), make sure that nothing serves the source, and copy again"
    )]
    SourceChanged,
    /// Another process copies into the target.
    #[error("another process copies into the target")]
    Concurrent,
    /// A row that the source cannot read or the target does not accept.
    #[error("{table}, row {row}: {problem}")]
    Row {
        /// The table.
        table: &'static str,
        /// The values of the primary key.
        row: String,
        /// The problem; it does not contain values of other columns.
        problem: String,
    },
    /// Rows differ after the copy.
    #[error("{table} differs after the copy: {found} of {expected} rows, {rows}")]
    Differs {
        /// The table.
        table: &'static str,
        /// The number of rows in the source.
        expected: u64,
        /// The number of rows in the target.
        found: u64,
        /// The first differing rows.
        rows: String,
    },
    /// A store failed.
    #[error(transparent)]
    Store(#[from] StoreError),
}
