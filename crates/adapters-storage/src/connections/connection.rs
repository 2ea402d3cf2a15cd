//! Single statements.

use std::sync::Arc;

use sea_orm::sqlx::postgres::{PgConnection, PgQueryResult, PgRow};
use sea_orm::sqlx::{AssertSqlSafe, Error, Executor, Postgres, query::Query, query_with};
use sea_orm::{ConnectionTrait, DatabaseConnection, DbBackend, DbErr, ExecResult, QueryResult, RuntimeErr, Statement};
use sea_query_sqlx::SqlxValues;

use futures_util::future::BoxFuture;

use super::limits::{CallLimits, until};
use super::postgres_pool::PostgresPool;

/// Connections for single statements, with time limits.
#[derive(Clone)]
pub(crate) struct Connection {
    kind: Kind,
    limits: CallLimits,
}

#[derive(Clone)]
enum Kind {
    Sqlite(DatabaseConnection),
    Postgres(Arc<PostgresPool>),
}

impl Connection {
    pub(crate) fn sqlite(connection: DatabaseConnection, limits: CallLimits) -> Self {
        Self { kind: Kind::Sqlite(connection), limits }
    }

    pub(crate) fn postgres(pool: Arc<PostgresPool>, limits: CallLimits) -> Self {
        Self { kind: Kind::Postgres(pool), limits }
    }

    async fn on_server<T>(
        &self,
        pool: &Arc<PostgresPool>,
        call: impl for<'c> FnOnce(&'c mut PgConnection) -> BoxFuture<'c, Result<T, Error>>,
    ) -> Result<T, DbErr> {
        let mut connection = pool.acquire().await?;
        let result = connection.call(self.limits.statement_end(), call).await;
        connection.release();
        result.map_err(query_error)
    }
}

#[async_trait::async_trait]
impl ConnectionTrait for Connection {
    fn get_database_backend(&self) -> DbBackend {
        match &self.kind {
            Kind::Sqlite(_) => DbBackend::Sqlite,
            Kind::Postgres(_) => DbBackend::Postgres,
        }
    }

    async fn execute_raw(&self, statement: Statement) -> Result<ExecResult, DbErr> {
        match &self.kind {
            Kind::Sqlite(connection) => until(self.limits.statement_end(), connection.execute_raw(statement)).await,
            Kind::Postgres(pool) => {
                self.on_server(pool, |connection| Box::pin(execute(connection, statement))).await.map(Into::into)
            }
        }
    }

    async fn execute_unprepared(&self, text: &str) -> Result<ExecResult, DbErr> {
        match &self.kind {
            Kind::Sqlite(connection) => until(self.limits.statement_end(), connection.execute_unprepared(text)).await,
            Kind::Postgres(pool) => {
                let text = text.to_owned();
                self.on_server(pool, |connection| Box::pin(execute_text(connection, text))).await.map(Into::into)
            }
        }
    }

    async fn query_one_raw(&self, statement: Statement) -> Result<Option<QueryResult>, DbErr> {
        match &self.kind {
            Kind::Sqlite(connection) => until(self.limits.statement_end(), connection.query_one_raw(statement)).await,
            Kind::Postgres(pool) => {
                let row = self.on_server(pool, |connection| Box::pin(fetch_optional(connection, statement))).await?;
                Ok(row.map(Into::into))
            }
        }
    }

    async fn query_all_raw(&self, statement: Statement) -> Result<Vec<QueryResult>, DbErr> {
        match &self.kind {
            Kind::Sqlite(connection) => until(self.limits.statement_end(), connection.query_all_raw(statement)).await,
            Kind::Postgres(pool) => {
                let rows = self.on_server(pool, |connection| Box::pin(fetch_all(connection, statement))).await?;
                Ok(rows.into_iter().map(Into::into).collect())
            }
        }
    }
}

pub(super) async fn execute(connection: &mut PgConnection, statement: Statement) -> Result<PgQueryResult, Error> {
    query(statement).execute(connection).await
}

pub(super) async fn execute_text(connection: &mut PgConnection, text: String) -> Result<PgQueryResult, Error> {
    connection.execute(AssertSqlSafe(text)).await
}

pub(super) async fn fetch_optional(
    connection: &mut PgConnection,
    statement: Statement,
) -> Result<Option<PgRow>, Error> {
    query(statement).fetch_optional(connection).await
}

pub(super) async fn fetch_all(connection: &mut PgConnection, statement: Statement) -> Result<Vec<PgRow>, Error> {
    query(statement).fetch_all(connection).await
}

pub(super) async fn copy_in(connection: &mut PgConnection, statement: String, rows: Vec<u8>) -> Result<(), Error> {
    let mut copy = connection.copy_in_raw(&statement).await?;
    copy.send(rows).await?;
    copy.finish().await.map(drop)
}

fn query(statement: Statement) -> Query<'static, Postgres, SqlxValues> {
    let Statement { sql, values, .. } = statement;
    query_with(AssertSqlSafe(sql), SqlxValues(values.unwrap_or_else(|| sea_orm::Values(Vec::new()))))
}

pub(super) fn query_error(error: Error) -> DbErr {
    DbErr::Query(RuntimeErr::SqlxError(Arc::new(error)))
}
