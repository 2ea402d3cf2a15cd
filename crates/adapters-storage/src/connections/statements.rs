//! Statements on a connection of the driver.

use std::sync::Arc;

use sea_orm::sqlx::query::Query;
use sea_orm::sqlx::{AssertSqlSafe, Database, Error, Executor, IntoArguments, PgConnection, query_with};
use sea_orm::{DbErr, RuntimeErr, Statement};
use sea_query_sqlx::SqlxValues;

pub(super) async fn execute<D: Database>(
    connection: &mut D::Connection,
    statement: Statement,
) -> Result<D::QueryResult, Error>
where
    SqlxValues: IntoArguments<D>,
    for<'c> &'c mut D::Connection: Executor<'c, Database = D>,
{
    query(statement).execute(connection).await
}

pub(super) async fn execute_text<D: Database>(
    connection: &mut D::Connection,
    text: String,
) -> Result<D::QueryResult, Error>
where
    for<'c> &'c mut D::Connection: Executor<'c, Database = D>,
{
    connection.execute(AssertSqlSafe(text)).await
}

pub(super) async fn fetch_optional<D: Database>(
    connection: &mut D::Connection,
    statement: Statement,
) -> Result<Option<D::Row>, Error>
where
    SqlxValues: IntoArguments<D>,
    for<'c> &'c mut D::Connection: Executor<'c, Database = D>,
{
    query(statement).fetch_optional(connection).await
}

pub(super) async fn fetch_all<D: Database>(
    connection: &mut D::Connection,
    statement: Statement,
) -> Result<Vec<D::Row>, Error>
where
    SqlxValues: IntoArguments<D>,
    for<'c> &'c mut D::Connection: Executor<'c, Database = D>,
{
    query(statement).fetch_all(connection).await
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

pub(super) fn query_error(error: Error) -> DbErr {
    DbErr::Query(RuntimeErr::SqlxError(Arc::new(error)))
}

pub(crate) fn connection_error(error: Error) -> DbErr {
    DbErr::Conn(RuntimeErr::SqlxError(Arc::new(error)))
}
