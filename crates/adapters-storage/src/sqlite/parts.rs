//! The connections of a SQLite database, and its file.

use std::path::PathBuf;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use domain::error::StoreError;
use sea_orm::sqlx::{self, Connection, SqliteConnection, SqlitePool};
use sea_orm::{DatabaseConnection, DbErr};
use tokio::sync::Mutex;

use crate::checkpoint::Checkpoints;
use crate::connections::{Transaction, WriteLockWatch};
use crate::errors::{connection_error, driver_error, is_lock_denied};
use crate::settings::{Access, Location, StorageSettings, Synchronous};
use crate::sqlite;

/// The parts of a SQLite database. All processes with the same file run on this machine.
pub(crate) struct SqliteParts {
    pub(crate) writer: DatabaseConnection,
    pub(crate) readers: DatabaseConnection,
    pub(crate) checkpoints: Arc<Checkpoints>,
    pub(crate) durable: DurableConnection,
    pub(crate) write_lock: WriteLockWatch,
    pub(crate) data_version: DataVersionReader,
    pub(crate) file: DatabaseFile,
}

impl SqliteParts {
    /// Returns the connections for reading and for writing.
    pub(crate) fn connections(&self) -> [&DatabaseConnection; 2] {
        [&self.readers, &self.writer]
    }

    pub(crate) fn writer_pool(&self) -> &SqlitePool {
        self.writer.get_sqlite_connection_pool()
    }

    /// Begins a writing transaction. Replaces the connections that may hold the lock in its place.
    pub(crate) async fn begin(&self, durability: Durability) -> Result<Transaction, DbErr> {
        let begun = self.begin_in_turn(durability).await;
        if begun.as_ref().is_err_and(is_lock_denied) && self.write_lock.denied() {
            let pools = [Some(self.writer_pool()), self.durable.get()];
            for pool in pools.into_iter().flatten() {
                while let Some(idle) = pool.try_acquire() {
                    drop(idle.close().await);
                }
            }
        }
        begun
    }

    /// Writers of this process queue for the writing connection, also those on the connection with synced commits.
    async fn begin_in_turn(&self, durability: Durability) -> Result<Transaction, DbErr> {
        let writer = self.writer_pool();
        let durable = self.durable.get().filter(|_| durability == Durability::Synced);
        let Some(durable) = durable else { return Transaction::write_sqlite(writer, None, &self.write_lock).await };
        let turn = writer.acquire().await.map_err(connection_error)?;
        Transaction::write_sqlite(durable, Some(turn), &self.write_lock).await
    }
}

/// Compares the opened file with the file at its path. SQLite continues to write to a removed or replaced file, and
/// those writes are lost when the process ends.
pub(crate) struct DatabaseFile {
    path: PathBuf,
    opened: Option<Identity>,
    was_missing: AtomicBool,
}

/// Device and inode.
type Identity = (u64, u64);

impl DatabaseFile {
    /// Remembers the file that was just opened.
    pub(crate) fn new(location: &Location) -> Self {
        // Later changes of the working directory must not matter.
        let path = std::path::absolute(&location.path).unwrap_or_else(|_| location.path.clone());
        Self { opened: identity(&path), path, was_missing: AtomicBool::new(false) }
    }

    /// Fails while the path leads to another file or to none. Logs each change.
    pub(crate) fn check(&self) -> Result<(), StoreError> {
        let is_missing = identity(&self.path) != self.opened;
        if self.was_missing.swap(is_missing, Ordering::Relaxed) != is_missing {
            let file = self.path.display();
            if is_missing {
                tracing::error!(%file, "database file was removed or replaced; every operation is rejected until it is back");
            } else {
                tracing::info!(%file, "database file is back");
            }
        }
        if is_missing {
            return Err(StoreError::unavailable(format!(
                "the database file {} was removed or replaced; move the same file back, or restart to use the new one",
                self.path.display()
            )));
        }
        Ok(())
    }
}

#[cfg(unix)]
fn identity(path: &std::path::Path) -> Option<Identity> {
    use std::os::unix::fs::MetadataExt;
    std::fs::metadata(path).ok().map(|metadata| (metadata.dev(), metadata.ino()))
}

#[cfg(not(unix))]
fn identity(path: &std::path::Path) -> Option<Identity> {
    path.exists().then_some((0, 0))
}

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
            sqlite::data_version_reader(&self.settings, &self.location).await.map_err(driver_error)?
        };
        let value = sqlx::query_scalar("PRAGMA data_version").fetch_one(&mut connection).await.map_err(driver_error)?;
        state.connection = Some(connection);
        Ok(DataVersion { connection: state.opened, value })
    }

    /// Closes the connection permanently.
    pub(crate) async fn close(&self) -> Result<(), StoreError> {
        let mut state = self.state.lock().await;
        state.is_closed = true;
        match state.connection.take() {
            Some(connection) => connection.close().await.map_err(driver_error),
            None => Ok(()),
        }
    }
}

/// The failures that the commit of a transaction survives.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Durability {
    /// As the settings say.
    Configured,
    /// A power failure, whatever the settings say.
    Synced,
}

/// A connection with synced commits; `None` if the commits of the writing connection are synced, too, or the database
/// is read-only.
pub(crate) struct DurableConnection(Option<SqlitePool>);

impl DurableConnection {
    /// Creates the connection, which is opened on first use.
    pub(crate) fn new(settings: &StorageSettings, location: &Location) -> Self {
        let is_needed = settings.synchronous != Synchronous::Full && location.access != Access::ReadOnly;
        Self(is_needed.then(|| sqlite::durable_writer(settings, location)))
    }

    pub(crate) fn get(&self) -> Option<&SqlitePool> {
        self.0.as_ref()
    }
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use domain::testing::FixedClock;
    use sea_orm::{ConnectionTrait, DbBackend, Statement};
    use tempfile::TempDir;

    use super::*;
    use crate::StorageSettings;
    use crate::database::Database;

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

    async fn open(synchronous: Synchronous) -> (TempDir, Database) {
        let folder = TempDir::new().unwrap();
        let url = format!("sqlite://{}", folder.path().join("a.db").display());
        let settings = StorageSettings { synchronous, ..StorageSettings::new(url) };
        let clock = Arc::new(FixedClock::at(chrono::DateTime::UNIX_EPOCH));
        (folder, Database::open(&settings, clock).await.unwrap())
    }

    async fn synchronous(connection: &impl ConnectionTrait) -> i64 {
        let pragma = Statement::from_string(DbBackend::Sqlite, "PRAGMA synchronous");
        connection.query_one_raw(pragma).await.unwrap().unwrap().try_get_by_index(0).unwrap()
    }

    const NORMAL: i64 = 1;
    const FULL: i64 = 2;

    #[tokio::test]
    async fn durable_transaction_is_synced_in_every_mode() {
        for (mode, other) in [(Synchronous::Normal, NORMAL), (Synchronous::Full, FULL)] {
            let (_folder, database) = open(mode).await;
            let transaction = database.begin().await.unwrap();
            assert_eq!(synchronous(&transaction).await, other);
            transaction.commit().await.unwrap();
            let transaction = database.begin_durable().await.unwrap();
            assert_eq!(synchronous(&transaction).await, FULL, "{mode:?}");
            transaction.commit().await.unwrap();
        }
    }

    #[tokio::test]
    async fn durable_and_other_transactions_are_serialised() {
        let (_folder, database) = open(Synchronous::Normal).await;
        database.writer().unwrap().execute_unprepared("CREATE TABLE t (n INTEGER PRIMARY KEY)").await.unwrap();
        let add = |number: i64| {
            let database = &database;
            async move {
                let insert = format!("INSERT INTO t VALUES ({number})");
                if number % 2 == 0 {
                    let transaction = database.begin_durable().await.unwrap();
                    transaction.execute_unprepared(&insert).await.unwrap();
                    transaction.commit().await.unwrap();
                } else {
                    let transaction = database.begin().await.unwrap();
                    transaction.execute_unprepared(&insert).await.unwrap();
                    transaction.commit().await.unwrap();
                }
            }
        };
        futures_util::future::join_all((0..40).map(add)).await;
        let dropped = database.begin_durable().await.unwrap();
        dropped.execute_unprepared("INSERT INTO t VALUES (100)").await.unwrap();
        drop(dropped);
        let transaction = database.begin().await.unwrap();
        let count = Statement::from_string(DbBackend::Sqlite, "SELECT COUNT(*) FROM t");
        let count: i64 = transaction.query_one_raw(count).await.unwrap().unwrap().try_get_by_index(0).unwrap();
        assert_eq!(count, 40, "a dropped transaction is undone");
    }
}
