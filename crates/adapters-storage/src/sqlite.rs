//! What is SQLite's alone: how its connections are opened and kept.

use std::sync::Arc;
use std::time::Duration;

use sea_orm::sqlx::sqlite::{SqliteConnectOptions, SqliteJournalMode, SqlitePoolOptions, SqliteSynchronous};
use sea_orm::sqlx::{self, ConnectOptions, Connection, SqliteConnection, SqlitePool};

use crate::checkpoint::Commits;
use crate::location::{Access, Location};
use crate::settings::{StorageSettings, Synchronous};

/// The file of the write-ahead log is cut to this many bytes when it is begun anew. Twice what it is begun anew at in a
/// process that serves: a file that is neither cut nor grown is overwritten in place, which is cheapest.
const LOG_BYTES: &str = "134217728";
/// How long the connection that copies the log waits for a lock: so long it may itself hold writers up where somebody
/// began to read at a bad moment, beside the time that the rest of the copy takes.
const CHECKPOINT_PATIENCE: Duration = Duration::from_millis(50);
/// The writer keeps up to this much of the file in memory, in KiB (negative, as the pragma wants it): a transaction
/// over 100,000 scattered keys would otherwise write its pages out again and again before it ends.
const WRITER_CACHE: &str = "-16384";
/// The page size of SQLite; no database here has another.
const PAGE_BYTES: u64 = 4_096;
/// Statements that the writer keeps prepared: those over lists have a few lengths each.
const WRITER_STATEMENTS: usize = 128;

/// The pool of the one connection that writes, open.
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
        // A full disk can make SQLite end a transaction by itself, which the driver does not notice. A connection
        // that comes back with a transaction that the driver thinks is open is not used again.
        .after_release(|connection, _| {
            Box::pin(async move {
                if !connection.is_in_transaction() {
                    return Ok(true);
                }
                // An undo may still be on its way.
                connection.ping().await?;
                Ok(!connection.is_in_transaction())
            })
        })
        .connect_with(options)
        .await
}

/// The pool of the one connection whose commits are synced, opened when it is first needed. Its few commits leave the
/// copying of the log to those of [`writer`].
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

/// The pool of connections that read; each is opened when it is first needed.
pub(crate) fn readers(settings: &StorageSettings, location: &Location) -> SqlitePool {
    pool(settings, settings.read_connections.max(1))
        .connect_lazy_with(options(settings, location).pragma("query_only", "ON"))
}

/// A connection that sees commits of all others, outside of any pool.
pub(crate) async fn data_version_reader(
    settings: &StorageSettings,
    location: &Location,
) -> Result<SqliteConnection, sqlx::Error> {
    options(settings, location).pragma("query_only", "ON").connect().await
}

/// A connection that copies the log into the database, outside of any pool.
pub(crate) async fn checkpointer(
    settings: &StorageSettings,
    location: &Location,
) -> Result<SqliteConnection, sqlx::Error> {
    let patience = settings.busy_timeout.min(CHECKPOINT_PATIENCE);
    options(settings, location).busy_timeout(patience).connect().await
}

fn pool(settings: &StorageSettings, connections: u32) -> SqlitePoolOptions {
    SqlitePoolOptions::new()
        .max_connections(connections)
        .acquire_timeout(settings.busy_timeout)
        // A file does not hang up: what the pool does for connections over a network would only cost.
        .test_before_acquire(false)
        .idle_timeout(None)
        .max_lifetime(None)
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
        // The undo journal of a statement over many rows would be a file that is made and removed each time.
        .pragma("temp_store", "MEMORY")
        .disable_statement_logging()
}
