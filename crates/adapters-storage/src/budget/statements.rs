//! Statements over lists of rows.

use domain::error::StoreError;
use sea_orm::{ConnectionTrait, DbBackend, QueryResult, Statement, Value};

use crate::chunks::chunks_of;
use crate::errors::store_error;

/// Most rows of a statement; a power of two. Records have the most columns, 26, which stays far below SQLite's limit of
/// 32,766 parameters.
const ROWS: usize = 256;

/// Splits rows for [`run`] and [`read`] into few different lengths, so that few statements are prepared.
pub(super) fn pieces<T>(rows: &[T]) -> impl Iterator<Item = &[T]> {
    chunks_of(rows, ROWS)
}

/// Like [`pieces`], with at most `longest` rows, which must be a power of two.
pub(super) fn pieces_of<T>(rows: &[T], longest: usize) -> impl Iterator<Item = &[T]> {
    chunks_of(rows, longest)
}

/// Returns `(?,?),(?,?)` for a number of rows and columns.
pub(super) fn places(rows: usize, columns: usize) -> String {
    let row = format!("({})", vec!["?"; columns].join(","));
    vec![row.as_str(); rows].join(",")
}

/// Returns `?,?` for a number of values.
pub(super) fn list(values: usize) -> String {
    vec!["?"; values].join(",")
}

/// Runs a statement with `?` placeholders. Returns the number of changed rows.
pub(super) async fn run(connection: &impl ConnectionTrait, text: &str, values: Vec<Value>) -> Result<u64, StoreError> {
    let statement = statement(connection.get_database_backend(), text, values);
    connection.execute_raw(statement).await.map(|done| done.rows_affected()).map_err(store_error)
}

/// Runs a query with `?` placeholders.
pub(super) async fn read(
    connection: &impl ConnectionTrait,
    text: &str,
    values: Vec<Value>,
) -> Result<Vec<QueryResult>, StoreError> {
    let statement = statement(connection.get_database_backend(), text, values);
    connection.query_all_raw(statement).await.map_err(store_error)
}

/// Reads a column of a row by its index.
pub(super) fn column<T: sea_orm::TryGetable>(row: &QueryResult, place: usize) -> Result<T, StoreError> {
    row.try_get_by_index(place).map_err(store_error)
}

fn statement(backend: DbBackend, text: &str, values: Vec<Value>) -> Statement {
    if backend == DbBackend::Postgres {
        return Statement::from_sql_and_values(backend, numbered(text), values);
    }
    Statement::from_sql_and_values(backend, text, values)
}

/// Numbers the placeholders, as PostgreSQL requires.
fn numbered(text: &str) -> String {
    let mut pieces = text.split('?');
    let first = pieces.next().unwrap_or_default().to_owned();
    pieces.zip(1_usize..).fold(first, |text, (piece, number)| format!("{text}${number}{piece}"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn places_has_placeholder_per_value() {
        assert_eq!(places(2, 3), "(?,?,?),(?,?,?)");
        assert_eq!(list(3), "?,?,?");
        assert_eq!(numbered("a ? b ?, c"), "a $1 b $2, c");
    }
}
