//! Statements that go to the database together.

use domain::error::StoreError;
use sea_orm::{ConnectionTrait, DatabaseTransaction, QueryResult, Statement, Value};

use super::statements::{Kind, Texts};
use crate::errors::store_error;
use crate::session::{Leaves, Session};

/// Statements in their order, with the values of all of them.
#[derive(Default)]
pub(super) struct Script {
    parts: Vec<(Kind, usize)>,
    values: Vec<Value>,
}

/// What the statements of a script returned.
pub(super) struct Rows(Vec<Vec<QueryResult>>);

/// The column before those that a statement returns: its place in the script.
pub(super) const FIRST_COLUMN: usize = 1;

impl Script {
    /// Adds a statement over rows of values, which are made as many as a text is kept for, with values behind them that
    /// are not a row's. Returns its place.
    pub(super) fn add<const N: usize>(
        &mut self,
        kind: Kind,
        rows: impl IntoIterator<Item = [Value; N]>,
        last: impl IntoIterator<Item = Value>,
    ) -> usize {
        let before = self.values.len();
        self.values.extend(rows.into_iter().flatten());
        let rows = (self.values.len() - before).checked_div(N).unwrap_or_default();
        let padded = padded(rows);
        self.values.extend(std::iter::repeat_n(Value::BigInt(None), (padded - rows) * N));
        self.values.extend(last);
        self.parts.push((kind, padded));
        self.parts.len() - 1
    }

    /// Adds a statement without values.
    pub(super) fn then(&mut self, kind: Kind) {
        self.parts.push((kind, 0));
    }

    pub(super) fn is_empty(&self) -> bool {
        self.parts.is_empty()
    }
}

impl Rows {
    /// Of the statement at that place.
    pub(super) fn take(&mut self, part: usize) -> Vec<QueryResult> {
        self.0.get_mut(part).map(std::mem::take).unwrap_or_default()
    }
}

/// The next number of rows that texts are kept for, so that batches of all sizes need few texts: powers of two, and those
/// half as large again. A row that is only there for the number is nothing but nulls, and no statement minds it.
fn padded(rows: usize) -> usize {
    let power = rows.next_power_of_two();
    let between = power / 4 * 3;
    if rows <= between { between } else { power }
}

/// Runs scripts within a transaction.
pub(super) trait Run: Send {
    /// Runs every statement and returns what they returned. At the first error it stops.
    fn run(&mut self, texts: &mut Texts, script: Script) -> impl Future<Output = Result<Rows, StoreError>> + Send;
}

/// All in one go.
impl Run for Session {
    async fn run(&mut self, texts: &mut Texts, mut script: Script) -> Result<Rows, StoreError> {
        let commits = script.parts.last().is_some_and(|(kind, _)| *kind == Kind::Commit);
        let leaves = if commits { Leaves::Committed } else { Leaves::Open };
        script.then(Kind::Ring);
        let text = texts.whole(&script.parts);
        let mut parts: Vec<Vec<QueryResult>> = std::iter::repeat_with(Vec::new).take(script.parts.len()).collect();
        for row in self.send(text, parts.len(), script.values, leaves).await? {
            let place = usize::try_from(row.try_get_by_index::<i64>(0).map_err(store_error)?);
            let part = place.ok().and_then(|place| parts.get_mut(place));
            part.ok_or_else(|| StoreError::Corrupt("a row of no statement".to_owned()))?.push(row);
        }
        Ok(Rows(parts))
    }
}

/// One after the other, as any database does it.
impl Run for &DatabaseTransaction {
    async fn run(&mut self, texts: &mut Texts, script: Script) -> Result<Rows, StoreError> {
        let mut values = script.values.into_iter();
        let mut parts = Vec::with_capacity(script.parts.len());
        for (place, part) in script.parts.iter().enumerate() {
            let text = texts.single(place, *part);
            let values: Vec<Value> = values.by_ref().take(part.0.values(part.1)).collect();
            let statement = Statement::from_sql_and_values(self.get_database_backend(), &*text, values);
            parts.push(self.query_all_raw(statement).await.map_err(store_error)?);
        }
        Ok(Rows(parts))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn few_numbers_of_rows_do_for_all() {
        let numbers: std::collections::BTreeSet<usize> = (1..=64).map(padded).collect();
        assert_eq!(numbers.into_iter().collect::<Vec<_>>(), [1, 2, 3, 4, 6, 8, 12, 16, 24, 32, 48, 64]);
        assert!((1..=1000).all(|rows| padded(rows) >= rows && padded(rows) * 2 <= rows * 3));
    }
}
