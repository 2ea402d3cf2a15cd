//! SQLite-specific opening and copying of databases.

mod parts;

use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

use domain::error::StoreError;
use sea_orm::sqlx::sqlite::{SqliteConnectOptions, SqliteJournalMode, SqlitePoolOptions, SqliteSynchronous};
use sea_orm::sqlx::{self, ConnectOptions, Connection, SqliteConnection, SqlitePool};

use crate::checkpoint::Commits;
use crate::errors::driver_error;
pub(crate) use parts::{DataVersion, DataVersionReader, DatabaseFile, Durability, DurableConnection, SqliteParts};

use crate::settings::{Access, Location, READ_CONNECTIONS, StorageSettings, Synchronous, private_file};

/// The size to which the write-ahead log is truncated at a restart, in bytes. Twice the restart length of a serving
/// process: a file that is neither truncated nor grown is overwritten in place, which is cheapest.
const LOG_BYTES: &str = "134217728";
/// The lock timeout of the checkpoint connection. It may block writers for this long while it waits for a reader, in
/// addition to the duration of the rest of the copy.
const CHECKPOINT_LOCK_TIMEOUT: Duration = Duration::from_millis(50);
/// The page cache of the writer, in KiB (negative, as the pragma requires): otherwise a transaction over 100,000
/// scattered keys would write its pages repeatedly before it ends.
const WRITER_CACHE: &str = "-16384";
/// The page size of SQLite; no database here has another.
const PAGE_BYTES: u64 = 4_096;
/// Prepared statements of the writer: those over lists have a few lengths each.
const WRITER_STATEMENTS: usize = 128;

/// Opens the pool of the writing connection.
pub(crate) async fn writer(
    settings: &StorageSettings,
    location: &Location,
    commits: &Arc<Commits>,
) -> Result<SqlitePool, sqlx::Error> {
    let mut options =
        options(settings, location).pragma("cache_size", WRITER_CACHE).statement_cache_capacity(WRITER_STATEMENTS);
    if location.access != Access::ReadOnly {
        options = options.journal_mode(SqliteJournalMode::Wal).pragma("journal_size_limit", LOG_BYTES);
    }
    if let Some(bytes) = settings.max_bytes {
        options = options.pragma("max_page_count", page_count(bytes));
    }
    let commits = Arc::clone(commits);
    pool(settings, 1)
        .after_connect(move |connection, _| {
            let commits = Arc::clone(&commits);
            Box::pin(async move { commits.attach(connection).await })
        })
        .connect_with(options)
        .await
}

/// Returns the pool of the connection with synced commits, opened on first use. The commits of [`writer`] checkpoint
/// its few commits, too.
pub(crate) fn durable_writer(settings: &StorageSettings, location: &Location) -> SqlitePool {
    let options = options(settings, location)
        .synchronous(SqliteSynchronous::Full)
        .pragma("journal_size_limit", LOG_BYTES)
        .pragma("wal_autocheckpoint", "0");
    pool(settings, 1).connect_lazy_with(match settings.max_bytes {
        Some(bytes) => options.pragma("max_page_count", page_count(bytes)),
        None => options,
    })
}

/// The whole pages within a number of bytes, at least one.
fn page_count(bytes: u64) -> String {
    (bytes / PAGE_BYTES).max(1).to_string()
}

/// Returns the pool of reading connections; each is opened on first use.
pub(crate) fn readers(settings: &StorageSettings, location: &Location) -> SqlitePool {
    pool(settings, READ_CONNECTIONS).connect_lazy_with(options(settings, location).pragma("query_only", "ON"))
}

/// Opens a connection outside of any pool that sees the commits of all others.
pub(crate) async fn data_version_reader(
    settings: &StorageSettings,
    location: &Location,
) -> Result<SqliteConnection, sqlx::Error> {
    options(settings, location).pragma("query_only", "ON").connect().await
}

/// Opens a checkpoint connection outside of any pool.
pub(crate) async fn checkpointer(
    settings: &StorageSettings,
    location: &Location,
) -> Result<SqliteConnection, sqlx::Error> {
    let patience = settings.busy_timeout.min(CHECKPOINT_LOCK_TIMEOUT);
    options(settings, location).busy_timeout(patience).connect().await
}

fn pool(settings: &StorageSettings, connections: u32) -> SqlitePoolOptions {
    SqlitePoolOptions::new()
        .max_connections(connections)
        .acquire_timeout(settings.busy_timeout)
        // A local file cannot disconnect, so the pool's network checks would only cost time.
        .test_before_acquire(false)
        .idle_timeout(None)
        .max_lifetime(None)
        // On a full disk SQLite may end a transaction by itself, which the driver does not notice. A connection with a
        // transaction that the driver considers open is not reused, whether it wrote or read.
        .after_release(|connection, _| {
            Box::pin(async move {
                if !connection.is_in_transaction() {
                    return Ok(true);
                }
                // A rollback may still be pending.
                connection.ping().await?;
                Ok(!connection.is_in_transaction())
            })
        })
}

fn options(settings: &StorageSettings, location: &Location) -> SqliteConnectOptions {
    let synchronous = match settings.synchronous {
        Synchronous::Normal => SqliteSynchronous::Normal,
        Synchronous::Full => SqliteSynchronous::Full,
    };
    SqliteConnectOptions::new()
        .filename(&location.path)
        .create_if_missing(false)
        .read_only(location.access == Access::ReadOnly)
        .foreign_keys(true)
        .busy_timeout(settings.busy_timeout)
        .synchronous(synchronous)
        // Otherwise the statement journal of a statement over many rows would be a temporary file each time.
        .pragma("temp_store", "MEMORY")
        .disable_statement_logging()
}

/// Writes one consistent state of the database into a new file that only its owner may read.
///
/// `VACUUM INTO` reads in a single transaction, so it ends regardless of concurrent writes; SQLite's online backup
/// restarts after each write of another connection. The write-ahead log grows until the copy is complete.
///
/// # Errors
/// [`StoreError::Unavailable`] if the database cannot be read, or `target` exists or cannot be written.
pub async fn copy_database(settings: &StorageSettings, target: &Path) -> Result<(), StoreError> {
    let location = Location::parse(&settings.url).map_err(StoreError::unavailable)?;
    let name = target.to_str().ok_or_else(|| StoreError::unavailable("the path of the copy is not UTF-8"))?;
    private_file().open(target).map_err(StoreError::unavailable)?;
    let copied = async {
        let mut connection = options(settings, &location).connect().await?;
        sqlx::query("VACUUM INTO ?").bind(name).execute(&mut connection).await?;
        connection.close().await
    };
    copied.await.map_err(driver_error)
}

#[cfg(test)]
mod tests {
    use std::os::unix::fs::PermissionsExt as _;

    use domain::testing::FixedClock;
    use sea_orm::{ConnectionTrait, Statement};
    use tempfile::TempDir;

    use super::*;
    use crate::Database;

    async fn open(path: &Path) -> Database {
        Database::open(&settings(path), Arc::new(FixedClock::default())).await.unwrap()
    }

    fn settings(path: &Path) -> StorageSettings {
        StorageSettings::new(format!("sqlite://{}", path.display()))
    }

    async fn count(database: &Database) -> i64 {
        let query = Statement::from_string(sea_orm::DbBackend::Sqlite, "SELECT count(*) AS n FROM t");
        let row = database.readers().unwrap().query_one_raw(query).await.unwrap().unwrap();
        row.try_get("", "n").unwrap()
    }

    #[tokio::test]
    async fn copy_holds_one_committed_state_and_is_private() {
        let folder = TempDir::new().unwrap();
        let (source, target) = (folder.path().join("it's.db"), folder.path().join("it's a copy.db"));
        let database = open(&source).await;
        let write = async |sql: &str| {
            database.writer().unwrap().execute_unprepared(sql).await.unwrap();
        };
        write("CREATE TABLE t (n INTEGER)").await;
        write("INSERT INTO t VALUES (1), (2)").await;
        let open_transaction = database.begin().await.unwrap();
        open_transaction.execute_unprepared("INSERT INTO t VALUES (3)").await.unwrap();
        copy_database(&settings(&source), &target).await.unwrap();
        open_transaction.commit().await.unwrap();

        assert_eq!(std::fs::metadata(&target).unwrap().permissions().mode() & 0o777, 0o600);
        let copy = open(&target).await;
        assert_eq!((count(&copy).await, count(&database).await), (2, 3));
    }

    #[tokio::test]
    async fn copy_never_replaces_a_file() {
        let folder = TempDir::new().unwrap();
        let (source, target) = (folder.path().join("a.db"), folder.path().join("b.db"));
        open(&source).await;
        std::fs::write(&target, "precious").unwrap();
        assert!(matches!(copy_database(&settings(&source), &target).await, Err(StoreError::Unavailable(_))));
        assert_eq!(std::fs::read(&target).unwrap(), b"precious");
        let absent = folder.path().join("absent.db");
        assert!(copy_database(&settings(&absent), &folder.path().join("c.db")).await.is_err());
        assert!(!absent.exists(), "a copy creates no source");
    }

    #[tokio::test]
    async fn copy_ends_beside_a_steady_writer() {
        let folder = TempDir::new().unwrap();
        let (source, target) = (folder.path().join("a.db"), folder.path().join("b.db"));
        let database = open(&source).await;
        database.writer().unwrap().execute_unprepared("CREATE TABLE t (n INTEGER, filler BLOB)").await.unwrap();
        let fill = "WITH RECURSIVE c(n) AS (SELECT 1 UNION ALL SELECT n + 1 FROM c WHERE n < 5000) \
                    INSERT INTO t SELECT n, randomblob(1000) FROM c";
        database.writer().unwrap().execute_unprepared(fill).await.unwrap();
        let write = async {
            loop {
                database.writer().unwrap().execute_unprepared("INSERT INTO t VALUES (0, x'00')").await.unwrap();
            }
        };
        let settings = settings(&source);
        tokio::select! {
            copied = copy_database(&settings, &target) => copied.unwrap(),
            () = write => unreachable!("the writer never ends"),
        }
        let copied = count(&open(&target).await).await;
        assert!((5000..=count(&database).await).contains(&copied), "{copied}");
    }
}
