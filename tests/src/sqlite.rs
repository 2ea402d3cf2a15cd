//! A second database connection, which acts as another process.

use std::path::Path;

use anyhow::Result;
use sea_orm::{ConnectOptions, ConnectionTrait, Database, DatabaseConnection, Statement};

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

    /// Runs statements.
    pub async fn execute(&self, sql: &str) -> Result<()> {
        self.0.execute_unprepared(sql).await?;
        Ok(())
    }

    /// Returns the single number of a query's result.
    pub async fn number(&self, sql: &str) -> Result<i64> {
        let statement = Statement::from_string(self.0.get_database_backend(), sql);
        let row = self.0.query_one_raw(statement).await?;
        let row = row.ok_or_else(|| anyhow::anyhow!("{sql} returned nothing"))?;
        Ok(row.try_get_by_index(0)?)
    }

    /// Closes the connection, which releases every lock.
    pub async fn close(self) -> Result<()> {
        Ok(self.0.close().await?)
    }
}
