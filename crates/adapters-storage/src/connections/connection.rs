//! Single statements.

use std::sync::Arc;

use sea_orm::sqlx::{Error, SqlitePool};
use sea_orm::{ConnectionTrait, DbBackend, DbErr, ExecResult, QueryResult, Statement};

use super::postgres_pool::{PooledConnection, PostgresPool, is_closed};
use super::statements::{Call, CallLimits, Execution, Query, WriteHealth, until};
use crate::errors::{pool_error, query_error};

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
    Sqlite(SqlitePool),
    Postgres(Arc<PostgresPool>),
}

impl Connection {
    pub(crate) fn sqlite(pool: SqlitePool, limits: CallLimits) -> Self {
        Self { kind: Kind::Sqlite(pool), limits, health: None }
    }

    pub(crate) fn postgres(pool: Arc<PostgresPool>, limits: CallLimits) -> Self {
        Self { kind: Kind::Postgres(pool), limits, health: None }
    }

    /// Records the outcomes of its statements as those of writes.
    pub(crate) fn with_health(self, health: &Arc<WriteHealth>) -> Self {
        Self { health: Some(Arc::clone(health)), ..self }
    }

    async fn run<C: Call>(&self, call: C) -> Result<C::Reply, DbErr> {
        let reply = match &self.kind {
            Kind::Sqlite(pool) => {
                let reply = async {
                    let mut connection = pool.acquire().await.map_err(pool_error)?;
                    call.run_on_sqlite(&mut connection).await.map_err(C::sqlite_error)
                };
                until(self.limits.statement_end(), reply).await
            }
            Kind::Postgres(pool) => self.run_on_server(pool, call).await,
        };
        if let Some(health) = &self.health {
            health.record(&reply);
        }
        reply
    }

    /// Runs a statement on a connection to a server. A read is repeated if the server had closed its connection. A write
    /// may have taken effect then, so that its connection is tested before.
    async fn run_on_server<C: Call>(&self, pool: &Arc<PostgresPool>, call: C) -> Result<C::Reply, DbErr> {
        if self.health.is_none() {
            match self.run_on(pool.acquire(false).await?, call.clone()).await {
                Err(error) if is_closed(&error) => {}
                reply => return reply.map_err(query_error),
            }
        }
        self.run_on(pool.acquire(true).await?, call).await.map_err(query_error)
    }

    async fn run_on<C: Call>(&self, mut connection: PooledConnection, call: C) -> Result<C::Reply, Error> {
        let reply = connection.call(self.limits.statement_end(), |own| call.run_on_postgres(own)).await;
        connection.release();
        reply
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
