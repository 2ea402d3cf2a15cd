//! Statements on a connection of the driver, their time limits, and the outcome of writes.

use std::sync::{Mutex, PoisonError};
use std::time::Duration;

use sea_orm::sqlx::query::Query;
use sea_orm::sqlx::{AssertSqlSafe, Database, Error, Executor, IntoArguments, PgConnection, query_with};
use sea_orm::{DbErr, ExecResult, QueryResult, RuntimeErr, Statement};
use sea_query_sqlx::SqlxValues;
use tokio::time::{Instant, timeout_at};

use crate::errors::is_corrupt;
use crate::settings::StorageSettings;

/// A statement, and the kind of its result.
#[derive(Clone)]
pub(super) enum Call {
    Execute(Statement),
    ExecuteText(String),
    FetchOptional(Statement),
    FetchAll(Statement),
}

/// The result of a [`Call`].
pub(super) enum Reply {
    Done(ExecResult),
    Rows(Vec<QueryResult>),
}

impl Reply {
    pub(super) fn done(self) -> Result<ExecResult, DbErr> {
        match self {
            Self::Done(done) => Ok(done),
            Self::Rows(_) => Err(unavailable("a statement returned rows")),
        }
    }

    pub(super) fn rows(self) -> Vec<QueryResult> {
        match self {
            Self::Done(_) => Vec::new(),
            Self::Rows(rows) => rows,
        }
    }
}

/// Runs a statement on a connection of the driver.
pub(super) async fn run<D: Database>(connection: &mut D::Connection, call: Call) -> Result<Reply, Error>
where
    SqlxValues: IntoArguments<D>,
    ExecResult: From<D::QueryResult>,
    QueryResult: From<D::Row>,
    for<'c> &'c mut D::Connection: Executor<'c, Database = D>,
{
    Ok(match call {
        Call::Execute(statement) => Reply::Done(query(statement).execute(connection).await?.into()),
        Call::ExecuteText(text) => Reply::Done(connection.execute(AssertSqlSafe(text)).await?.into()),
        Call::FetchOptional(statement) => {
            let row = query(statement).fetch_optional(connection).await?;
            Reply::Rows(row.into_iter().map(Into::into).collect())
        }
        Call::FetchAll(statement) => {
            let rows = query(statement).fetch_all(connection).await?;
            Reply::Rows(rows.into_iter().map(Into::into).collect())
        }
    })
}

pub(super) async fn copy_in(connection: &mut PgConnection, statement: String, rows: Vec<u8>) -> Result<(), Error> {
    let mut copy = connection.copy_in_raw(&statement).await?;
    copy.send(rows).await?;
    copy.finish().await.map(drop)
}

fn query<D: Database>(statement: Statement) -> Query<'static, D, SqlxValues>
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
            *self.lock() = Some(error.to_string());
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
