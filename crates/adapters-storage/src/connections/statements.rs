//! Statements on a connection of the driver, their time limits, and the outcome of writes.

use std::sync::{Mutex, PoisonError};
use std::time::Duration;

use futures_util::future::BoxFuture;
use sea_orm::sqlx::query::Query as BoundQuery;
use sea_orm::sqlx::{
    AssertSqlSafe, Database, Error, Executor, IntoArguments, PgConnection, Postgres, Sqlite, SqliteConnection,
    query_with,
};
use sea_orm::{DbErr, ExecResult, QueryResult, RuntimeErr, Statement};
use sea_query_sqlx::SqlxValues;
use tokio::time::{Instant, timeout_at};

use crate::errors::{execution_error, is_corrupt, message, query_error};
use crate::settings::StorageSettings;

/// A statement with the type of its result.
pub(super) trait Call: Clone + Send + 'static {
    type Reply: Send;

    /// Runs the statement on a connection to a SQLite file.
    fn run_on_sqlite(self, connection: &mut SqliteConnection) -> BoxFuture<'_, Result<Self::Reply, Error>>;

    /// Runs the statement on a connection to PostgreSQL.
    fn run_on_postgres(self, connection: &mut PgConnection) -> BoxFuture<'_, Result<Self::Reply, Error>>;

    /// Returns the error of a single statement on a SQLite file, which is that of the ORM.
    fn sqlite_error(error: Error) -> DbErr;
}

/// A statement without rows.
#[derive(Clone)]
pub(super) enum Execution {
    Prepared(Statement),
    Text(String),
}

/// A statement with rows.
#[derive(Clone)]
pub(super) struct Query(pub(super) Statement);

impl Call for Execution {
    type Reply = ExecResult;

    fn run_on_sqlite(self, connection: &mut SqliteConnection) -> BoxFuture<'_, Result<ExecResult, Error>> {
        Box::pin(execute::<Sqlite>(connection, self))
    }

    fn run_on_postgres(self, connection: &mut PgConnection) -> BoxFuture<'_, Result<ExecResult, Error>> {
        Box::pin(execute::<Postgres>(connection, self))
    }

    fn sqlite_error(error: Error) -> DbErr {
        execution_error(error)
    }
}

impl Call for Query {
    type Reply = Vec<QueryResult>;

    fn run_on_sqlite(self, connection: &mut SqliteConnection) -> BoxFuture<'_, Result<Vec<QueryResult>, Error>> {
        Box::pin(fetch::<Sqlite>(connection, self.with_limit_in_text()))
    }

    fn run_on_postgres(self, connection: &mut PgConnection) -> BoxFuture<'_, Result<Vec<QueryResult>, Error>> {
        Box::pin(fetch::<Postgres>(connection, self))
    }

    fn sqlite_error(error: Error) -> DbErr {
        query_error(error)
    }
}

impl Query {
    /// Writes the limit of the query into its text. SQLite plans by the limit, so it prepares a query with a limit as a
    /// parameter again for each call.
    fn with_limit_in_text(mut self) -> Self {
        let Self(statement) = &mut self;
        if let Some(text) = statement.sql.strip_suffix("LIMIT ?")
            && let Some(limit) = statement.values.as_mut().and_then(|values| values.0.pop())
        {
            statement.sql = format!("{text}LIMIT {limit}");
        }
        self
    }
}

async fn execute<D: Database>(connection: &mut D::Connection, execution: Execution) -> Result<ExecResult, Error>
where
    SqlxValues: IntoArguments<D>,
    ExecResult: From<D::QueryResult>,
    for<'c> &'c mut D::Connection: Executor<'c, Database = D>,
{
    let done = match execution {
        Execution::Prepared(statement) => bind_values(statement).execute(connection).await?,
        Execution::Text(text) => connection.execute(AssertSqlSafe(text)).await?,
    };
    Ok(done.into())
}

async fn fetch<D: Database>(connection: &mut D::Connection, query: Query) -> Result<Vec<QueryResult>, Error>
where
    SqlxValues: IntoArguments<D>,
    QueryResult: From<D::Row>,
    for<'c> &'c mut D::Connection: Executor<'c, Database = D>,
{
    let rows = bind_values(query.0).fetch_all(connection).await?;
    Ok(rows.into_iter().map(Into::into).collect())
}

pub(super) async fn copy_in(connection: &mut PgConnection, statement: String, rows: Vec<u8>) -> Result<(), Error> {
    let mut copy = connection.copy_in_raw(&statement).await?;
    copy.send(rows).await?;
    copy.finish().await.map(drop)
}

fn bind_values<D: Database>(statement: Statement) -> BoundQuery<'static, D, SqlxValues>
where
    SqlxValues: IntoArguments<D>,
{
    let Statement { sql, values, .. } = statement;
    query_with(AssertSqlSafe(sql), SqlxValues(values.unwrap_or_else(|| sea_orm::Values(Vec::new()))))
}

/// The time beyond the busy timeout within which a server reports that the busy timeout passed.
const REPLY_MARGIN: Duration = Duration::from_secs(1);
/// The longest transaction of a request or of background work, and the longest statement on SQLite.
const SHORT_TRANSACTION: Duration = Duration::from_mins(1);
/// The longest report, audit or copy.
const LONG_TRANSACTION: Duration = Duration::from_hours(1);

/// The time limits of a kind of calls.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct CallLimits {
    /// The longest wait for the end of a statement.
    pub(crate) statement: Duration,
    /// The longest transaction.
    pub(crate) transaction: Duration,
}

impl CallLimits {
    /// Returns the limits of SQLite. Its statements wait for a disk, and not for a server that may have vanished.
    pub(crate) const SQLITE: Self = Self { statement: SHORT_TRANSACTION, transaction: SHORT_TRANSACTION };
    /// Returns the limits of reports, audits and copies.
    pub(crate) const LONG: Self = Self { statement: LONG_TRANSACTION, transaction: LONG_TRANSACTION };

    /// Returns the limits of PostgreSQL for requests and background work.
    pub(crate) fn short(settings: &StorageSettings) -> Self {
        let statement = settings.busy_timeout.saturating_add(REPLY_MARGIN);
        Self { statement, transaction: SHORT_TRANSACTION.max(statement) }
    }

    /// Returns the end of a transaction that begins now.
    pub(crate) fn transaction_end(&self) -> Instant {
        Instant::now() + self.transaction
    }

    /// Returns the end of a statement that begins now.
    pub(crate) fn statement_end(&self) -> Instant {
        Instant::now() + self.statement
    }
}

/// Runs a call of the ORM until `end`.
pub(crate) async fn until<T>(end: Instant, call: impl Future<Output = Result<T, DbErr>>) -> Result<T, DbErr> {
    timeout_at(end, call).await.unwrap_or_else(|_| Err(unavailable("the database did not respond in time")))
}

/// Returns the error of an unavailable database.
pub(crate) fn unavailable(text: impl Into<String>) -> DbErr {
    DbErr::Conn(RuntimeErr::Internal(text.into()))
}

/// The outcome of the last write of this process.
#[derive(Debug, Default)]
pub(crate) struct WriteHealth(Mutex<Option<String>>);

impl WriteHealth {
    /// Records the outcome of a write.
    pub(crate) fn record<T>(&self, outcome: &Result<T, DbErr>) {
        match outcome {
            Ok(_) => *self.lock() = None,
            Err(error) => self.failed(error),
        }
    }

    /// Records a failed write. An error of the data is no failure of the database.
    pub(crate) fn failed(&self, error: &DbErr) {
        if !is_corrupt(error) {
            *self.lock() = Some(message(error));
        }
    }

    /// Returns the error of the last write; `None` if it succeeded.
    pub(crate) fn failure(&self) -> Option<String> {
        self.lock().clone()
    }

    fn lock(&self) -> std::sync::MutexGuard<'_, Option<String>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

#[cfg(test)]
mod tests {
    use sea_orm::{DbBackend, Value};

    use super::*;

    #[test]
    fn limit_is_part_of_the_text_of_a_query() {
        let written = |text: &str, limit: Value| {
            let statement = Statement::from_sql_and_values(DbBackend::Sqlite, text, [7.into(), limit]);
            let Query(written) = Query(statement).with_limit_in_text();
            (written.sql, written.values.unwrap().0.len())
        };
        for limit in [Value::BigUnsigned(Some(20)), Value::BigInt(Some(20))] {
            let found = written("SELECT a FROM t WHERE b = ? LIMIT ?", limit);
            assert_eq!(found, ("SELECT a FROM t WHERE b = ? LIMIT 20".to_owned(), 1));
        }
        let other = "SELECT a FROM t WHERE b = ? AND c = ?";
        assert_eq!(written(other, 20.into()), (other.to_owned(), 2));
    }
}
