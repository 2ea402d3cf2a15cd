//! A second database connection, which acts as another process.

use std::path::Path;

use anyhow::Result;
use sea_orm::{ConnectOptions, ConnectionTrait, Database, DatabaseConnection, DbBackend, Statement};

use crate::Instance;

/// A connection to an instance's database.
#[derive(Debug)]
pub struct SecondHand(DatabaseConnection);

impl SecondHand {
    /// Opens the file, which must exist.
    pub async fn open(database: &Path) -> Result<Self> {
        let mut options = ConnectOptions::new(format!("sqlite://{}?mode=rw", database.display()));
        options.max_connections(1).min_connections(1).sqlx_logging(false);
        Ok(Self(Database::connect(options).await?))
    }

    /// Opens the database of an instance, which must exist.
    pub async fn of(instance: &Instance) -> Result<Self> {
        let Some(url) = instance.postgres() else { return Self::open(&instance.database()).await };
        let mut options = ConnectOptions::new(url);
        // A pooler rejects parameters that it does not know.
        options.map_sqlx_postgres_opts(|options| options.extra_float_digits(None));
        options.max_connections(1).min_connections(1).sqlx_logging(false);
        Ok(Self(Database::connect(options).await?))
    }

    /// Runs statements.
    pub async fn execute(&self, sql: &str) -> Result<()> {
        self.0.execute_unprepared(sql).await?;
        Ok(())
    }

    /// Returns the single number of a query's result.
    pub async fn number(&self, sql: &str) -> Result<i64> {
        let backend = self.0.get_database_backend();
        // PostgreSQL sums 64-bit numbers to a decimal.
        let cast = format!("SELECT CAST(t.n AS bigint) FROM ({sql}) AS t (n)");
        let statement = Statement::from_string(backend, if backend == DbBackend::Postgres { &cast } else { sql });
        let row = self.0.query_one_raw(statement).await?;
        let row = row.ok_or_else(|| anyhow::anyhow!("{sql} returned nothing"))?;
        Ok(row.try_get_by_index(0)?)
    }

    /// Returns the first column of a query's rows.
    pub async fn texts(&self, sql: &str) -> Result<Vec<String>> {
        let statement = Statement::from_string(self.0.get_database_backend(), sql);
        let rows = self.0.query_all_raw(statement).await?;
        rows.iter().map(|row| Ok(row.try_get_by_index(0)?)).collect()
    }

    /// Closes the connection, which releases every lock.
    pub async fn close(self) -> Result<()> {
        Ok(self.0.close().await?)
    }
}
