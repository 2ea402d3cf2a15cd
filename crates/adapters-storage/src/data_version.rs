//! Detection of commits since the last check.

use std::sync::Arc;

use domain::error::StoreError;
use sea_orm::sqlx::{self, Connection, SqliteConnection};
use sea_orm::{DbErr, RuntimeErr};
use tokio::sync::Mutex;

use crate::errors::store_error;
use crate::location::Location;
use crate::settings::StorageSettings;
use crate::sqlite;

/// A version of the database. It changes with every commit.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct DataVersion {
    /// The number of the connection: SQLite's versions are comparable only within a connection.
    connection: u64,
    value: i64,
}

/// Reads the version on a dedicated connection, opened on first use.
pub(crate) struct DataVersionReader {
    settings: StorageSettings,
    location: Location,
    state: Mutex<State>,
}

#[derive(Default)]
struct State {
    connection: Option<SqliteConnection>,
    opened: u64,
    is_closed: bool,
}

impl DataVersionReader {
    pub(crate) fn new(settings: &StorageSettings, location: &Location) -> Self {
        Self { settings: settings.clone(), location: location.clone(), state: Mutex::default() }
    }

    /// Returns the current version. Two equal versions mean that there was no commit in between.
    pub(crate) async fn read(&self) -> Result<DataVersion, StoreError> {
        let mut state = self.state.lock().await;
        if state.is_closed {
            return Err(StoreError::unavailable("the database is closed"));
        }
        // A connection with a failed or interrupted read is not reused.
        let mut connection = if let Some(connection) = state.connection.take() {
            connection
        } else {
            state.opened += 1;
            sqlite::data_version_reader(&self.settings, &self.location).await.map_err(failed)?
        };
        let value = sqlx::query_scalar("PRAGMA data_version").fetch_one(&mut connection).await.map_err(failed)?;
        state.connection = Some(connection);
        Ok(DataVersion { connection: state.opened, value })
    }

    /// Closes the connection permanently.
    pub(crate) async fn close(&self) -> Result<(), StoreError> {
        let mut state = self.state.lock().await;
        state.is_closed = true;
        match state.connection.take() {
            Some(connection) => connection.close().await.map_err(failed),
            None => Ok(()),
        }
    }
}

fn failed(error: sqlx::Error) -> StoreError {
    store_error(DbErr::Conn(RuntimeErr::SqlxError(Arc::new(error))))
}

#[cfg(test)]
mod tests {
    use domain::testing::FixedClock;
    use sea_orm::ConnectionTrait;
    use tempfile::TempDir;

    use crate::{Database, StorageSettings};

    #[tokio::test]
    async fn data_version_changes_with_commits_only() {
        let folder = TempDir::new().unwrap();
        let settings = StorageSettings::new(format!("sqlite://{}", folder.path().join("a.db").display()));
        let clock = || std::sync::Arc::new(FixedClock::default());
        let [one, two] =
            [Database::open(&settings, clock()).await.unwrap(), Database::open(&settings, clock()).await.unwrap()];
        let version = async || one.sqlite().unwrap().data_version.read().await.unwrap();
        one.writer().unwrap().execute_unprepared("CREATE TABLE t (n INTEGER)").await.unwrap();
        let mut before = version().await;
        assert_eq!(version().await, before);
        for database in [&one, &two, &one] {
            database.writer().unwrap().execute_unprepared("INSERT INTO t VALUES (1)").await.unwrap();
            let now = version().await;
            assert_ne!(now, before);
            before = now;
        }
        let undone = two.begin().await.unwrap();
        undone.execute_unprepared("INSERT INTO t VALUES (2)").await.unwrap();
        drop(undone);
        assert_eq!(version().await, before);
        one.close().await;
        assert!(one.sqlite().unwrap().data_version.read().await.is_err());
    }
}
