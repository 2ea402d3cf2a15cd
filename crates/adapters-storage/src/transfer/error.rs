//! Errors of a copy.

use domain::error::StoreError;
use uuid::Uuid;

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
