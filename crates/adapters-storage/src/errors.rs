//! Conversion of database errors, and the rows that are skipped because they cannot be read.

use std::collections::BTreeSet;
use std::error::Error;
use std::fmt::Display;
use std::sync::{Arc, Mutex, PoisonError};

use domain::error::StoreError;
use sea_orm::sqlx::error::DatabaseError as _;
use sea_orm::sqlx::postgres::PgDatabaseError;
use sea_orm::sqlx::sqlite::SqliteError;
use sea_orm::{ConnAcquireErr, DbErr, RuntimeErr, SqlxError};

use crate::postgres_tls;

/// An error of the database in its own words. It has no source: those of the libraries repeat the words.
#[derive(Debug, thiserror::Error)]
#[error("{message}")]
struct DatabaseError {
    message: String,
    is_temporary: bool,
}

/// Converts an error: unreadable data is corrupt; all other errors mean that the database is unavailable.
#[expect(clippy::needless_pass_by_value, reason = "for `map_err`")]
pub(crate) fn store_error(error: DbErr) -> StoreError {
    let message = message(&error);
    if is_corrupt(&error) {
        return StoreError::Corrupt(message);
    }
    match sqlx_error(&error).and_then(advice) {
        Some(advice) => StoreError::unavailable(format!("{message}; {advice}")),
        None => StoreError::unavailable(DatabaseError { message, is_temporary: is_temporary_database_error(&error) }),
    }
}

/// Returns the words of the database, the system or this program, without those of the libraries.
pub(crate) fn message(error: &DbErr) -> String {
    match error {
        DbErr::Conn(RuntimeErr::Internal(message)) => message.clone(),
        error => sqlx_error(error).map_or_else(|| error.to_string(), driver_message),
    }
}

/// Returns the words of an error of the driver. Its own text ends with a line number of PostgreSQL's source code.
pub(crate) fn driver_message(error: &SqlxError) -> String {
    match error {
        SqlxError::Database(error) => match error.try_downcast_ref::<PgDatabaseError>() {
            Some(error) => error.message().to_owned(),
            None => error.to_string(),
        },
        SqlxError::Io(error) => error.to_string(),
        error => error.to_string(),
    }
}

/// Returns the remedy of an error that the configuration causes.
fn advice(error: &SqlxError) -> Option<String> {
    match postgres_code(error) {
        Some("3D000") => {
            let message = driver_message(error);
            let name = message.split('"').nth(1).unwrap_or("NAME");
            Some(format!("create it: createdb --template=template0 --encoding=UTF8 --locale=C {name}"))
        }
        Some("42501") => Some("the role of storage.url lacks this right".to_owned()),
        _ => postgres_tls::advice(error).map(str::to_owned),
    }
}

/// Returns the error of an unreadable value. It names the column and row, never the value.
pub(crate) fn corrupt(column: &str, row: impl Display) -> StoreError {
    StoreError::Corrupt(format!("{column} of {row}"))
}

/// Returns true if another connection held the lock for longer than the busy timeout.
pub(crate) fn is_busy(error: &DbErr) -> bool {
    matches!(sqlx_error(error).and_then(sqlite_code), Some(SQLITE_BUSY | SQLITE_LOCKED))
}

/// Returns true if a writer did not get its turn in this process, or the lock.
pub(crate) fn is_lock_denied(error: &DbErr) -> bool {
    is_busy(error) || matches!(sqlx_error(error), Some(SqlxError::PoolTimedOut))
}

/// Returns true if a failure of the database ends without a change of the configuration: it is locked by another
/// process, starting, silent or not reachable.
pub fn is_temporary(error: &(dyn Error + 'static)) -> bool {
    let mut next = Some(error);
    while let Some(error) = next {
        let is_temporary = match error.downcast_ref::<DatabaseError>() {
            Some(error) => error.is_temporary,
            None => error.downcast_ref().is_some_and(is_temporary_database_error),
        };
        if is_temporary {
            return true;
        }
        next = error.source();
    }
    false
}

fn is_temporary_database_error(error: &DbErr) -> bool {
    match error {
        DbErr::ConnectionAcquire(_) | DbErr::Conn(RuntimeErr::Internal(_)) => true,
        error => is_lock_denied(error) || sqlx_error(error).is_some_and(is_temporary_sqlx),
    }
}

fn is_temporary_sqlx(error: &SqlxError) -> bool {
    match error {
        SqlxError::Io(_) => true,
        error => postgres_code(error).is_some_and(|code| TEMPORARY_CLASSES.iter().any(|class| code.starts_with(class))),
    }
}

/// Classes of SQLSTATE codes: connections, too many of them, a denied lock, a server that starts, stops or cancels.
const TEMPORARY_CLASSES: [&str; 5] = ["08", "53300", "55P03", "57P0", "57014"];

const SQLITE_ERROR: u32 = 1;
const SQLITE_BUSY: u32 = 5;
const SQLITE_LOCKED: u32 = 6;
const SQLITE_CORRUPT: u32 = 11;
const SQLITE_CONSTRAINT: u32 = 19;
const SQLITE_MISMATCH: u32 = 20;
const SQLITE_NOTADB: u32 = 26;

/// Returns true if data cannot be read or violates a constraint; the database itself responds.
pub(crate) fn is_corrupt(error: &DbErr) -> bool {
    match error {
        DbErr::Type(_) | DbErr::Json(_) | DbErr::TryIntoErr { .. } | DbErr::Custom(_) | DbErr::Migration(_) => true,
        error => sqlx_error(error).is_some_and(is_corrupt_sqlx),
    }
}

fn is_corrupt_sqlx(error: &SqlxError) -> bool {
    match error {
        SqlxError::ColumnDecode { .. }
        | SqlxError::Decode(_)
        | SqlxError::ColumnNotFound(_)
        | SqlxError::ColumnIndexOutOfBounds { .. }
        | SqlxError::TypeNotFound { .. } => true,
        error => match postgres_code(error) {
            Some(code) => CORRUPT_CLASSES.iter().any(|class| code.starts_with(class)),
            // Code 1 means a missing table or column: an unknown schema version.
            None => matches!(
                sqlite_code(error),
                Some(SQLITE_ERROR | SQLITE_CORRUPT | SQLITE_CONSTRAINT | SQLITE_MISMATCH | SQLITE_NOTADB)
            ),
        },
    }
}

/// Classes of SQLSTATE codes: invalid values, violated constraints, a missing table or column, damaged files.
const CORRUPT_CLASSES: [&str; 6] = ["22", "23", "42P01", "42703", "XX001", "XX002"];

/// Returns the SQLSTATE of an error of PostgreSQL.
fn postgres_code(error: &SqlxError) -> Option<&str> {
    error.as_database_error()?.try_downcast_ref::<PgDatabaseError>().map(PgDatabaseError::code)
}

fn sqlx_error(error: &DbErr) -> Option<&SqlxError> {
    match error {
        DbErr::Conn(RuntimeErr::SqlxError(error))
        | DbErr::Exec(RuntimeErr::SqlxError(error))
        | DbErr::Query(RuntimeErr::SqlxError(error)) => Some(error),
        _ => None,
    }
}

/// Returns the primary result code: the low byte of the extended one. `None` for PostgreSQL, whose codes may be numbers.
fn sqlite_code(error: &SqlxError) -> Option<u32> {
    let code: u32 = error.as_database_error()?.try_downcast_ref::<SqliteError>()?.code()?.parse().ok()?;
    Some(code & 0xff)
}

/// The most rows that are remembered. Further ones are neither logged nor counted.
const MAX_ROWS: usize = 1024;

/// The unreadable rows that this process skipped: limits and alerts. Each is logged once.
#[derive(Debug, Default)]
pub(crate) struct UnreadableRows(Mutex<BTreeSet<String>>);

impl UnreadableRows {
    /// Skips a row, named by its account or number.
    pub(crate) fn skip(&self, row: String, error: &StoreError) {
        let mut rows = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        if rows.len() >= MAX_ROWS || rows.contains(&row) {
            return;
        }
        tracing::error!(row, error = error as &dyn std::error::Error, "budget alert skipped: row not readable");
        rows.insert(row);
    }

    /// Returns the number of skipped rows.
    pub(crate) fn count(&self) -> u64 {
        let rows = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        u64::try_from(rows.len()).unwrap_or(u64::MAX)
    }
}

/// Returns the error of a statement without rows.
pub(crate) fn execution_error(error: SqlxError) -> DbErr {
    DbErr::Exec(RuntimeErr::SqlxError(Arc::new(error)))
}

/// Returns the error of a pool that has no connection for a single statement.
pub(crate) fn pool_error(error: SqlxError) -> DbErr {
    match error {
        SqlxError::PoolTimedOut => DbErr::ConnectionAcquire(ConnAcquireErr::Timeout),
        SqlxError::PoolClosed => DbErr::ConnectionAcquire(ConnAcquireErr::ConnectionClosed),
        error => connection_error(error),
    }
}

/// Returns the error of a statement of the driver.
pub(crate) fn query_error(error: SqlxError) -> DbErr {
    DbErr::Query(RuntimeErr::SqlxError(Arc::new(error)))
}

/// Returns the error of a connection of the driver.
pub(crate) fn connection_error(error: SqlxError) -> DbErr {
    DbErr::Conn(RuntimeErr::SqlxError(Arc::new(error)))
}

/// Converts an error of a connection of the driver.
pub(crate) fn driver_error(error: SqlxError) -> StoreError {
    store_error(connection_error(error))
}
