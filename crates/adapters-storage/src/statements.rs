//! Statements over lists of rows.

use domain::error::StoreError;
use sea_orm::{ConnectionTrait, DbBackend, QueryResult, Statement, Value};

use crate::errors::store_error;

/// Most rows of a statement; a power of two. SQLite inserts so many records in about a millisecond, in which the
/// statement holds a core. Records have the most columns, 26, which stays far below its limit of 32,766 parameters.
const ROWS: usize = 128;

/// Splits rows for [`run`] and [`read`] into few different lengths, so that few statements are prepared.
pub(crate) fn pieces<T>(rows: &[T]) -> impl Iterator<Item = &[T]> {
    chunks_of(rows, ROWS)
}

/// Returns `(?,?),(?,?)` for a number of rows and columns.
pub(crate) fn places(rows: usize, columns: usize) -> String {
    let row = format!("({})", vec!["?"; columns].join(","));
    vec![row.as_str(); rows].join(",")
}

/// Returns `?,?` for a number of values.
pub(crate) fn list(values: usize) -> String {
    vec!["?"; values].join(",")
}

/// Runs a statement with `?` placeholders. Returns the number of changed rows.
pub(crate) async fn run(connection: &impl ConnectionTrait, text: &str, values: Vec<Value>) -> Result<u64, StoreError> {
    let statement = statement(connection.get_database_backend(), text, values);
    connection.execute_raw(statement).await.map(|done| done.rows_affected()).map_err(store_error)
}

/// Runs a query with `?` placeholders.
pub(crate) async fn read(
    connection: &impl ConnectionTrait,
    text: &str,
    values: Vec<Value>,
) -> Result<Vec<QueryResult>, StoreError> {
    let statement = statement(connection.get_database_backend(), text, values);
    connection.query_all_raw(statement).await.map_err(store_error)
}

/// Reads a column of a row by its index.
pub(crate) fn column<T: sea_orm::TryGetable>(row: &QueryResult, place: usize) -> Result<T, StoreError> {
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

/// The longest chunk: far below the limits of SQLite (32,766 parameters) and PostgreSQL (65,535).
const LONGEST: usize = 4096;
/// The longest chunk of any length: the counters of a payer are one statement.
const SHORT: usize = 8;

/// Splits `items` into chunks whose lengths are powers of two, longest first, and a last one of up to [`SHORT`] items. A
/// connection caches prepared statements by text, so few lengths mean few preparations.
pub(crate) fn chunks<T>(items: &[T]) -> impl Iterator<Item = &[T]> {
    chunks_of(items, LONGEST)
}

/// Like [`chunks`], with chunks of at most `longest`, which must be a power of two.
pub(crate) fn chunks_of<T>(mut items: &[T], longest: usize) -> impl Iterator<Item = &[T]> {
    std::iter::from_fn(move || {
        let power = 1 << items.len().checked_ilog2()?;
        let length = if items.len() <= SHORT { items.len() } else { power };
        let (piece, rest) = items.split_at(longest.min(length));
        items = rest;
        Some(piece)
    })
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

    #[test]
    fn chunks_have_few_lengths_and_cover_all_items() {
        let items: Vec<usize> = (0..10_007).collect();
        let lengths: Vec<usize> = chunks(&items).map(<[usize]>::len).collect();
        assert_eq!(lengths, [4096, 4096, 1024, 512, 256, 16, 7]);
        assert_eq!(chunks(&items).flatten().copied().collect::<Vec<_>>(), items);
        assert_eq!(chunks::<u8>(&[]).count(), 0);
        assert_eq!(chunks_of(&items, 8).map(<[usize]>::len).max(), Some(8));
    }
}
