//! Transactions.

use std::sync::Arc;

use futures_util::future::BoxFuture;
use sea_orm::sqlx::{AssertSqlSafe, Error, PgConnection, SqlSafeStr};
use sea_orm::{ConnectionTrait, DatabaseTransaction, DbBackend, DbErr, ExecResult, QueryResult, Statement};
use sqlx_core::transaction::TransactionManager;
use tokio::sync::Mutex;
use tokio::time::Instant;

use super::connection::{copy_in, execute, execute_text, fetch_all, fetch_optional, query_error};
use super::limits::{CallLimits, unavailable, until};
use super::postgres_pool::{Manager, PooledConnection, PostgresPool};

/// A transaction whose statements and whose duration are limited. Dropping it rolls back.
///
/// After a statement or a commit without a response nothing is known about its effect. The connection is then closed,
/// and later statements fail.
pub(crate) struct Transaction {
    kind: Kind,
    limits: CallLimits,
    end: Instant,
}

enum Kind {
    Sqlite(DatabaseTransaction),
    Postgres(Session),
}

impl Transaction {
    pub(crate) fn sqlite(transaction: DatabaseTransaction, limits: CallLimits) -> Self {
        Self { kind: Kind::Sqlite(transaction), limits, end: limits.transaction_end() }
    }

    /// Begins a transaction by the given statement.
    pub(crate) async fn begin(
        pool: &Arc<PostgresPool>,
        statement: &'static str,
        limits: CallLimits,
    ) -> Result<Self, DbErr> {
        let connection = pool.acquire().await?;
        let session = Session(Mutex::new(Some(connection)));
        let transaction = Self { kind: Kind::Postgres(session), limits, end: limits.transaction_end() };
        let begin = AssertSqlSafe(statement).into_sql_str();
        transaction.on_server(|connection| Box::pin(Manager::begin(connection, Some(begin)))).await?;
        Ok(transaction)
    }

    /// Commits. After an error the transaction may have taken effect or not.
    pub(crate) async fn commit(self) -> Result<(), DbErr> {
        let end = self.statement_end();
        match self.kind {
            Kind::Sqlite(transaction) => until(end, transaction.commit()).await,
            Kind::Postgres(session) => {
                let mut slot = session.0.lock().await;
                let Some(mut connection) = slot.take() else { return Err(unavailable("the transaction has ended")) };
                drop(slot);
                connection.call(end, |connection| Box::pin(Manager::commit(connection))).await.map_err(query_error)?;
                connection.release();
                Ok(())
            }
        }
    }

    /// Sends rows to PostgreSQL by a `COPY … FROM STDIN`.
    pub(crate) async fn copy_in(&self, statement: String, rows: Vec<u8>) -> Result<(), DbErr> {
        self.on_server(|connection| Box::pin(copy_in(connection, statement, rows))).await
    }

    fn statement_end(&self) -> Instant {
        self.limits.statement_end().min(self.end)
    }

    async fn on_server<T>(
        &self,
        call: impl for<'c> FnOnce(&'c mut PgConnection) -> BoxFuture<'c, Result<T, Error>>,
    ) -> Result<T, DbErr> {
        let Kind::Postgres(session) = &self.kind else { return Err(unavailable("the database is a file")) };
        let mut slot = session.0.lock().await;
        let Some(connection) = slot.as_mut() else { return Err(unavailable("the transaction has ended")) };
        connection.call(self.statement_end(), call).await.map_err(query_error)
    }
}

/// The connection of a transaction on a server; `None` once it has ended.
struct Session(Mutex<Option<PooledConnection>>);

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
        if let Kind::Sqlite(transaction) = &self.kind {
            return until(self.statement_end(), transaction.execute_raw(statement)).await;
        }
        self.on_server(|connection| Box::pin(execute(connection, statement))).await.map(Into::into)
    }

    async fn execute_unprepared(&self, text: &str) -> Result<ExecResult, DbErr> {
        if let Kind::Sqlite(transaction) = &self.kind {
            return until(self.statement_end(), transaction.execute_unprepared(text)).await;
        }
        let text = text.to_owned();
        self.on_server(|connection| Box::pin(execute_text(connection, text))).await.map(Into::into)
    }

    async fn query_one_raw(&self, statement: Statement) -> Result<Option<QueryResult>, DbErr> {
        if let Kind::Sqlite(transaction) = &self.kind {
            return until(self.statement_end(), transaction.query_one_raw(statement)).await;
        }
        let row = self.on_server(|connection| Box::pin(fetch_optional(connection, statement))).await?;
        Ok(row.map(Into::into))
    }

    async fn query_all_raw(&self, statement: Statement) -> Result<Vec<QueryResult>, DbErr> {
        if let Kind::Sqlite(transaction) = &self.kind {
            return until(self.statement_end(), transaction.query_all_raw(statement)).await;
        }
        let rows = self.on_server(|connection| Box::pin(fetch_all(connection, statement))).await?;
        Ok(rows.into_iter().map(Into::into).collect())
    }
}
