//! Single statements.

use std::sync::Arc;

use futures_util::future::BoxFuture;
use sea_orm::sqlx::{Error, PgConnection, Postgres};
use sea_orm::{ConnectionTrait, DatabaseConnection, DbBackend, DbErr, ExecResult, QueryResult, Statement};

use super::limits::{CallLimits, until};
use super::postgres_pool::{PostgresPool, is_closed};
use super::statements::{execute, execute_text, fetch_all, fetch_optional, query_error};
use super::write_health::WriteHealth;

/// Connections for single statements, with time limits.
#[derive(Clone)]
pub(crate) struct Connection {
    kind: Kind,
    limits: CallLimits,
    /// Records the outcome of writes; `None` for connections that only read.
    health: Option<Arc<WriteHealth>>,
}

#[derive(Clone)]
enum Kind {
    Sqlite(DatabaseConnection),
    Postgres(Arc<PostgresPool>),
}

impl Connection {
    pub(crate) fn sqlite(connection: DatabaseConnection, limits: CallLimits) -> Self {
        Self { kind: Kind::Sqlite(connection), limits, health: None }
    }

    pub(crate) fn postgres(pool: Arc<PostgresPool>, limits: CallLimits) -> Self {
        Self { kind: Kind::Postgres(pool), limits, health: None }
    }

    /// Records the outcomes of its statements as those of writes.
    pub(crate) fn with_health(self, health: &Arc<WriteHealth>) -> Self {
        Self { health: Some(Arc::clone(health)), ..self }
    }

    /// Runs a statement on a connection to a server. A read is repeated if the server had closed its connection. A write
    /// may have taken effect then, so that its connection is tested before.
    async fn on_server<T>(
        &self,
        pool: &Arc<PostgresPool>,
        call: impl for<'c> Fn(&'c mut PgConnection) -> BoxFuture<'c, Result<T, Error>>,
    ) -> Result<T, DbErr> {
        if self.health.is_none() {
            let mut connection = pool.acquire().await?;
            let result = connection.call(self.limits.statement_end(), &call).await;
            connection.release();
            match result {
                Err(error) if is_closed(&error) => {}
                result => return result.map_err(query_error),
            }
        }
        let mut connection = pool.acquire_tested().await?;
        let result = connection.call(self.limits.statement_end(), call).await;
        connection.release();
        result.map_err(query_error)
    }

    fn record<T>(&self, result: Result<T, DbErr>) -> Result<T, DbErr> {
        if let Some(health) = &self.health {
            health.record(&result);
        }
        result
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
        self.record(match &self.kind {
            Kind::Sqlite(connection) => until(self.limits.statement_end(), connection.execute_raw(statement)).await,
            Kind::Postgres(pool) => {
                let run = self.on_server(pool, |own| Box::pin(execute::<Postgres>(own, statement.clone())));
                run.await.map(Into::into)
            }
        })
    }

    async fn execute_unprepared(&self, text: &str) -> Result<ExecResult, DbErr> {
        self.record(match &self.kind {
            Kind::Sqlite(connection) => until(self.limits.statement_end(), connection.execute_unprepared(text)).await,
            Kind::Postgres(pool) => {
                let run = self.on_server(pool, |own| Box::pin(execute_text::<Postgres>(own, text.to_owned())));
                run.await.map(Into::into)
            }
        })
    }

    async fn query_one_raw(&self, statement: Statement) -> Result<Option<QueryResult>, DbErr> {
        self.record(match &self.kind {
            Kind::Sqlite(connection) => until(self.limits.statement_end(), connection.query_one_raw(statement)).await,
            Kind::Postgres(pool) => {
                let run = self.on_server(pool, |own| Box::pin(fetch_optional::<Postgres>(own, statement.clone())));
                run.await.map(|row| row.map(Into::into))
            }
        })
    }

    async fn query_all_raw(&self, statement: Statement) -> Result<Vec<QueryResult>, DbErr> {
        self.record(match &self.kind {
            Kind::Sqlite(connection) => until(self.limits.statement_end(), connection.query_all_raw(statement)).await,
            Kind::Postgres(pool) => {
                let run = self.on_server(pool, |own| Box::pin(fetch_all::<Postgres>(own, statement.clone())));
                run.await.map(|rows| rows.into_iter().map(Into::into).collect())
            }
        })
    }
}
