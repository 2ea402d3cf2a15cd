//! SQLite-specific opening of connections.

use std::sync::Arc;
use std::time::Duration;

use sea_orm::sqlx::sqlite::{SqliteConnectOptions, SqliteJournalMode, SqlitePoolOptions, SqliteSynchronous};
use sea_orm::sqlx::{self, ConnectOptions, Connection, SqliteConnection, SqlitePool};

use crate::checkpoint::Commits;
use crate::location::{Access, Location};
use crate::settings::{StorageSettings, Synchronous};

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
    pool(settings, settings.read_connections.max(1))
        .connect_lazy_with(options(settings, location).pragma("query_only", "ON"))
}

/// Opens a connection outside of any pool that sees the commits of all others.
pub(crate) async fn data_version_reader(
    settings: &StorageSettings,
    location: &Location,
) -> Result<SqliteConnection, sqlx::Error> {
    options(settings, location).pragma("query_only", "ON").connect().await
}

/// Opens a connection that copies the database into another file, outside of any pool.
pub(crate) async fn copier(settings: &StorageSettings, location: &Location) -> Result<SqliteConnection, sqlx::Error> {
    options(settings, location).connect().await
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
