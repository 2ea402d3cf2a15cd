//! What is SQLite's alone: how its connections are opened and kept.

use sea_orm::sqlx::sqlite::{SqliteConnectOptions, SqliteJournalMode, SqlitePoolOptions, SqliteSynchronous};
use sea_orm::sqlx::{self, ConnectOptions, Connection, SqlitePool};

use crate::location::{Access, Location};
use crate::settings::{StorageSettings, Synchronous};

/// The write-ahead log is cut to this many bytes after a checkpoint.
const LOG_BYTES: &str = "67108864";
/// The writer keeps up to this much of the file in memory, in KiB (negative, as the pragma wants it): a transaction
/// over 100,000 scattered keys would otherwise write its pages out again and again before it ends.
const WRITER_CACHE: &str = "-65536";

/// The pool of the one connection that writes, open.
pub(crate) async fn writer(settings: &StorageSettings, location: &Location) -> Result<SqlitePool, sqlx::Error> {
    let mut options = options(settings, location).pragma("cache_size", WRITER_CACHE);
    if location.access != Access::ReadOnly {
        options = options.journal_mode(SqliteJournalMode::Wal).pragma("journal_size_limit", LOG_BYTES);
    }
    if let Some(pages) = settings.max_page_count {
        options = options.pragma("max_page_count", pages.to_string());
    }
    pool(settings, 1)
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

/// The pool of connections that read; each is opened when it is first needed.
pub(crate) fn readers(settings: &StorageSettings, location: &Location) -> SqlitePool {
    pool(settings, settings.max_readers.max(1))
        .connect_lazy_with(options(settings, location).pragma("query_only", "ON"))
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
        .disable_statement_logging()
}
