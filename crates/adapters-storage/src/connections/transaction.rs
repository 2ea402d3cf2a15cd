//! Transactions.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use domain::error::StoreError;
use futures_util::future::{BoxFuture, TryFutureExt as _};
use sea_orm::sqlx::pool::PoolConnection;
use sea_orm::sqlx::postgres::PgRow;
use sea_orm::sqlx::sqlite::SqliteArguments;
use sea_orm::sqlx::{Arguments as _, AssertSqlSafe, Error, Executor, PgConnection, Sqlite, SqlitePool, query_with};
use sea_orm::{ConnectionTrait, DbBackend, DbErr, ExecResult, QueryResult, Statement};
use tokio::sync::Mutex;
use tokio::time::Instant;

use super::postgres_pool::{PooledConnection, PostgresPool, is_closed};
use super::rows::{CopyRows, RowWriter};
use super::sqlite_session::{SqliteSession, WriteLockWatch};
use super::statements::{Call, CallLimits, Execution, Query, WriteHealth, copy_in, unavailable};
use crate::errors::{query_error, store_error};
use crate::statements::{pieces, places};

/// A transaction whose statements and whose duration are limited. Dropping it rolls back. After a failed statement it
/// cannot be committed: PostgreSQL would report a commit that was a rollback, and SQLite may have rolled back by itself.
///
/// After a statement or a commit without a response nothing is known about its effect. The connection is then closed,
/// and later statements fail.
pub(crate) struct Transaction {
    kind: Kind,
    limits: CallLimits,
    end: Instant,
    has_failed: AtomicBool,
    /// Records the outcome; `None` for a transaction that only reads.
    health: Option<Arc<WriteHealth>>,
}

enum Kind {
    Sqlite(SqliteSession),
    Postgres(Session),
}

impl Transaction {
    fn new(kind: Kind, limits: CallLimits, end: Instant) -> Self {
        Self { kind, limits, end, has_failed: AtomicBool::new(false), health: None }
    }

    /// Records its outcome as that of a write.
    pub(crate) fn with_health(self, health: &Arc<WriteHealth>) -> Self {
        Self { health: Some(Arc::clone(health)), ..self }
    }

    /// Begins a transaction that reads a SQLite file.
    pub(crate) async fn read_sqlite(pool: &SqlitePool, limits: CallLimits) -> Result<Self, DbErr> {
        let session = SqliteSession::begin(pool, "BEGIN", None).await?;
        Ok(Self::new(Kind::Sqlite(session), limits, limits.transaction_end()))
    }

    /// Begins a transaction that holds the write lock of a SQLite file from its start, and `turn` to its end.
    pub(crate) async fn write_sqlite(
        pool: &SqlitePool,
        turn: Option<PoolConnection<Sqlite>>,
        watch: &WriteLockWatch,
    ) -> Result<Self, DbErr> {
        let session = SqliteSession::begin(pool, "BEGIN IMMEDIATE", turn).await?;
        let end = CallLimits::SQLITE.transaction_end();
        watch.acquired(session.slot(), end);
        Ok(Self::new(Kind::Sqlite(session), CallLimits::SQLITE, end))
    }

    /// Begins a transaction on PostgreSQL by several statements in one message. Returns the first row that they return.
    /// If the server had closed the connection, nothing has happened, and another one is used.
    pub(crate) async fn begin_postgres(
        pool: &Arc<PostgresPool>,
        statements: &str,
        limits: CallLimits,
    ) -> Result<(Self, Option<PgRow>), DbErr> {
        let begun = Self::begin_on(pool.acquire(false).await?, statements, limits).await;
        let begun = match begun {
            Err(error) if is_closed(&error) => Self::begin_on(pool.acquire(true).await?, statements, limits).await,
            begun => begun,
        };
        begun.map_err(query_error)
    }

    async fn begin_on(
        connection: PooledConnection,
        statements: &str,
        limits: CallLimits,
    ) -> Result<(Self, Option<PgRow>), Error> {
        let session = Session(Mutex::new(Some(connection)));
        let transaction = Self::new(Kind::Postgres(session), limits, limits.transaction_end());
        let statements = AssertSqlSafe(statements.to_owned());
        let end = transaction.statement_end();
        let Kind::Postgres(session) = &transaction.kind else { return Err(Error::WorkerCrashed) };
        let row = session.call(end, |connection| connection.fetch_optional(statements)).await?;
        Ok((transaction, row))
    }

    /// Commits. After an error the transaction may have taken effect or not.
    pub(crate) async fn commit(self) -> Result<(), StoreError> {
        let (end, has_failed) = (self.statement_end(), self.has_failed.load(Ordering::Relaxed));
        let committed = match self.kind {
            _ if has_failed => Err(unavailable("a statement of the transaction failed")),
            Kind::Sqlite(session) => session.commit(end).await,
            Kind::Postgres(session) => session.commit(end).await,
        };
        if let Some(health) = &self.health {
            health.record(&committed);
        }
        committed.map_err(store_error)
    }

    /// Inserts rows whose columns `write` encodes in the order of `columns`: by `COPY` on PostgreSQL.
    pub(crate) async fn insert_rows<R>(
        &self,
        table: &str,
        columns: &[&str],
        rows: &[R],
        write: impl Fn(&R, &mut dyn RowWriter) -> Result<(), StoreError>,
    ) -> Result<(), StoreError> {
        let (width, columns) = (columns.len(), columns.join(", "));
        match &self.kind {
            Kind::Postgres(_) if rows.is_empty() => Ok(()),
            Kind::Postgres(session) => {
                let mut data = CopyRows::new();
                for row in rows {
                    data.begin_row(width);
                    write(row, &mut data)?;
                }
                let (text, data) = (format!("COPY {table} ({columns}) FROM STDIN (FORMAT binary)"), data.finish());
                let copied = session.call(self.statement_end(), |own| Box::pin(copy_in(own, text, data)));
                self.checked(copied.map_err(query_error)).await.map_err(store_error)
            }
            Kind::Sqlite(session) => {
                for piece in pieces(rows) {
                    let mut arguments = SqliteArguments::default();
                    arguments.reserve(piece.len() * width, 0);
                    for row in piece {
                        write(row, &mut arguments)?;
                    }
                    // A failure ends the transaction. Without `OR FAIL`, SQLite would keep a copy of each changed page
                    // to undo this statement alone.
                    let places = places(piece.len(), width);
                    let text = format!("INSERT OR FAIL INTO {table} ({columns}) VALUES {places}");
                    let insert = query_with::<Sqlite, _>(AssertSqlSafe(text), arguments);
                    let inserted = session.call(self.statement_end(), |own| Box::pin(insert.execute(own)));
                    self.checked(inserted).await.map_err(store_error)?;
                }
                Ok(())
            }
        }
    }

    async fn run<C: Call>(&self, call: C) -> Result<C::Reply, DbErr> {
        let end = self.statement_end();
        let reply = async {
            match &self.kind {
                Kind::Sqlite(session) => session.call(end, |own| call.run_on_sqlite(own)).await,
                Kind::Postgres(session) => {
                    let reply = session.call(end, |own| call.run_on_postgres(own)).await;
                    reply.map_err(query_error)
                }
            }
        };
        self.checked(reply).await
    }

    fn statement_end(&self) -> Instant {
        self.limits.statement_end().min(self.end)
    }

    /// Remembers a failure.
    async fn checked<T>(&self, statement: impl Future<Output = Result<T, DbErr>>) -> Result<T, DbErr> {
        let result = statement.await;
        if let Err(error) = &result {
            self.has_failed.store(true, Ordering::Relaxed);
            if let Some(health) = &self.health {
                health.failed(error);
            }
        }
        result
    }
}

/// The connection of a transaction on a server; `None` once it has ended.
struct Session(Mutex<Option<PooledConnection>>);

impl Session {
    async fn call<T>(
        &self,
        end: Instant,
        call: impl for<'c> FnOnce(&'c mut PgConnection) -> BoxFuture<'c, Result<T, Error>>,
    ) -> Result<T, Error> {
        let mut slot = self.0.lock().await;
        let connection = slot.as_mut().ok_or(Error::PoolClosed)?;
        connection.call(end, call).await
    }

    async fn commit(self, end: Instant) -> Result<(), DbErr> {
        let taken = self.0.lock().await.take();
        let Some(mut connection) = taken else { return Err(unavailable("the transaction has ended")) };
        connection.call(end, |connection| connection.execute("COMMIT")).await.map_err(query_error)?;
        connection.release();
        Ok(())
    }
}

impl Drop for Session {
    fn drop(&mut self) {
        if let Some(connection) = self.0.get_mut().take() {
            connection.roll_back();
        }
    }
}

#[async_trait::async_trait]
impl ConnectionTrait for Transaction {
    fn get_database_backend(&self) -> DbBackend {
        match &self.kind {
            Kind::Sqlite(_) => DbBackend::Sqlite,
            Kind::Postgres(_) => DbBackend::Postgres,
        }
    }

    async fn execute_raw(&self, statement: Statement) -> Result<ExecResult, DbErr> {
        self.run(Execution::Prepared(statement)).await
    }

    async fn execute_unprepared(&self, text: &str) -> Result<ExecResult, DbErr> {
        self.run(Execution::Text(text.to_owned())).await
    }

    async fn query_one_raw(&self, statement: Statement) -> Result<Option<QueryResult>, DbErr> {
        Ok(self.query_all_raw(statement).await?.into_iter().next())
    }

    async fn query_all_raw(&self, statement: Statement) -> Result<Vec<QueryResult>, DbErr> {
        self.run(Query(statement)).await
    }
}
