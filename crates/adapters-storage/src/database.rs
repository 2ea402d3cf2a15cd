//! The database: its connections and transactions.

use std::sync::Arc;
use std::time::Duration;

use chrono::{DateTime, Utc};
use domain::error::StoreError;
use domain::system::Clock;
use sea_orm::sea_query::Expr;
use sea_orm::sqlx::Sqlite;
use sea_orm::sqlx::pool::PoolConnection;
use sea_orm::sqlx::postgres::PgConnectOptions;
use sea_orm::{DatabaseConnection, EntityTrait, QuerySelect, SqlxError};
use uuid::Uuid;

use crate::connections::{CallLimits, Connection, PostgresPool, Transaction, WriteHealth};
use crate::encryption::ColumnCipher;
use crate::entities::store_identity::{self, Column, Entity};
use crate::errors::{UnreadableRows, store_error};
use crate::postgres::{PostgresPools, PostgresTransactions};
use crate::settings::StorageSettings;
use crate::sqlite::{Durability, SqliteParts};

/// An open database. Clones share its connections.
#[derive(Clone)]
pub struct Database {
    shared: Arc<Shared>,
}

struct Shared {
    /// The only writing connection of this process, for single statements. Queueing for it is fair and needs no polling.
    writer: Connection,
    /// Connections for reading.
    readers: Connection,
    /// The same connections, for statements that may take long.
    report_readers: Connection,
    backend: Backend,
    /// The time limits of requests and of background work.
    limits: CallLimits,
    /// The outcome of the last write.
    write_health: Arc<WriteHealth>,
    /// The cipher of secrets.
    cipher: ColumnCipher,
    /// The rows that budget alerts skipped.
    unreadable_rows: UnreadableRows,
    /// The clock of the machine.
    clock: Arc<dyn Clock>,
}

/// The kind of the database, with the parts that only this kind has.
pub(crate) enum Backend {
    Sqlite(Box<SqliteParts>),
    Postgres(Box<PostgresParts>),
}

/// The parts of a PostgreSQL database.
pub(crate) struct PostgresParts {
    pub(crate) pools: PostgresPools,
    pub(crate) transactions: PostgresTransactions,
}

impl Database {
    /// Creates the database over its connections.
    pub(crate) fn new(backend: Backend, settings: &StorageSettings, clock: Arc<dyn Clock>) -> Self {
        let cipher = ColumnCipher::new(settings.encryption_key.clone());
        let limits = backend.limits(settings);
        let write_health = Arc::new(WriteHealth::default());
        Self {
            shared: Arc::new(Shared {
                writer: backend.writer(limits).with_health(&write_health),
                readers: backend.readers(limits),
                report_readers: backend.readers(CallLimits::LONG),
                backend,
                limits,
                write_health,
                cipher,
                unreadable_rows: UnreadableRows::default(),
                clock,
            }),
        }
    }

    /// Returns the identity of the database, which copies of it share.
    ///
    /// # Errors
    /// [`StoreError::Corrupt`] if it is missing.
    pub async fn id(&self) -> Result<Uuid, StoreError> {
        let row = store_identity::Entity::find().one(self.readers()?).await.map_err(store_error)?;
        let id = row.as_ref().and_then(|row| Uuid::parse_str(&row.store_id).ok());
        id.ok_or_else(|| StoreError::Corrupt("the identity of the database is missing".to_owned()))
    }

    /// Returns the connections for read-only statements.
    ///
    /// # Errors
    /// The database's file was removed or replaced.
    pub(crate) fn readers(&self) -> Result<&Connection, StoreError> {
        self.check_file().map(|()| &self.shared.readers)
    }

    /// Returns the connections for read-only statements that may take long: lists, sums and audits.
    ///
    /// # Errors
    /// The database's file was removed or replaced.
    pub(crate) fn report_readers(&self) -> Result<&Connection, StoreError> {
        self.check_file().map(|()| &self.shared.report_readers)
    }

    /// Returns a connection for the state of the schema, without time limits.
    ///
    /// # Errors
    /// The database's file was removed or replaced, or the server cannot be reached. The pool of the library would not
    /// name the cause.
    pub(crate) async fn schema(&self) -> Result<&DatabaseConnection, StoreError> {
        self.check_file()?;
        Ok(match &self.shared.backend {
            Backend::Sqlite(sqlite) => &sqlite.readers,
            Backend::Postgres(postgres) => {
                postgres.pools.readers.check().await.map_err(store_error)?;
                &postgres.pools.schema
            }
        })
    }

    /// Begins a transaction that reads one state of the database.
    pub(crate) async fn snapshot(&self) -> Result<Transaction, StoreError> {
        self.snapshot_within(self.shared.limits).await
    }

    /// Begins a transaction that reads one state of the database and may take long.
    pub(crate) async fn report_snapshot(&self) -> Result<Transaction, StoreError> {
        self.snapshot_within(CallLimits::LONG).await
    }

    async fn snapshot_within(&self, limits: CallLimits) -> Result<Transaction, StoreError> {
        self.check_file()?;
        match &self.shared.backend {
            Backend::Sqlite(sqlite) => {
                Transaction::read_sqlite(sqlite.readers.get_sqlite_connection_pool(), limits).await.map_err(store_error)
            }
            Backend::Postgres(postgres) => {
                let begun = postgres.transactions.snapshot(&postgres.pools.readers, limits).await;
                begun.map_err(store_error)
            }
        }
    }

    /// Returns the parts of its kind.
    pub(crate) fn backend(&self) -> &Backend {
        &self.shared.backend
    }

    /// Returns the pools of a PostgreSQL database for reading and for writing.
    pub(crate) fn postgres_pools(&self) -> Option<[&PostgresPool; 2]> {
        match &self.shared.backend {
            Backend::Sqlite(_) => None,
            Backend::Postgres(postgres) => Some([&postgres.pools.readers, &postgres.pools.writer]),
        }
    }

    /// Describes a failure, on PostgreSQL with the server's address and the error of the last attempt to connect.
    pub(crate) fn describe_failure(&self, failure: &str) -> String {
        self.postgres_pools().map_or_else(|| failure.to_owned(), |[readers, _]| readers.describe(failure))
    }

    /// Returns the address of a PostgreSQL database.
    pub(crate) fn postgres_options(&self) -> Option<&PgConnectOptions> {
        match &self.shared.backend {
            Backend::Sqlite(_) => None,
            Backend::Postgres(postgres) => Some(&postgres.pools.options),
        }
    }

    /// Returns the connection for a single writing statement; several related statements need [`Database::begin`].
    ///
    /// # Errors
    /// The database's file was removed or replaced.
    pub(crate) fn writer(&self) -> Result<&Connection, StoreError> {
        self.check_file().map(|()| &self.shared.writer)
    }

    /// Fails while the path leads to another file than the opened one.
    pub(crate) fn check_file(&self) -> Result<(), StoreError> {
        self.sqlite().map_or(Ok(()), |sqlite| sqlite.file.check())
    }

    /// Returns the parts that only a SQLite database has.
    pub(crate) fn sqlite(&self) -> Option<&SqliteParts> {
        match &self.shared.backend {
            Backend::Sqlite(sqlite) => Some(sqlite),
            Backend::Postgres(_) => None,
        }
    }

    /// Returns the cipher of secrets.
    pub(crate) fn cipher(&self) -> &ColumnCipher {
        &self.shared.cipher
    }

    /// Returns the rows that budget alerts skipped.
    pub(crate) fn unreadable_rows(&self) -> &UnreadableRows {
        &self.shared.unreadable_rows
    }

    /// Returns the number of rows of limits and budget alerts that this process could not read and skipped.
    pub fn unreadable_alert_rows(&self) -> u64 {
        self.shared.unreadable_rows.count()
    }

    /// Returns the current time of the store.
    pub(crate) fn now(&self) -> DateTime<Utc> {
        match &self.shared.backend {
            Backend::Sqlite(_) => self.shared.clock.now(),
            Backend::Postgres(postgres) => postgres.transactions.now(),
        }
    }

    /// Returns the monotonic time.
    pub(crate) fn monotonic(&self) -> Duration {
        self.shared.clock.monotonic()
    }

    /// Blocks other writers of this process while the connection is held. A SQLite database only.
    pub(crate) async fn acquire_writer(&self) -> Result<PoolConnection<Sqlite>, SqlxError> {
        let sqlite = self.sqlite().ok_or(SqlxError::PoolClosed)?;
        sqlite.writer_pool().acquire().await
    }

    /// Begins a writing transaction. It holds the write lock from the start, so that the rows it reads cannot change
    /// before it writes. Dropping it rolls back.
    pub(crate) async fn begin(&self) -> Result<Transaction, StoreError> {
        self.begin_write(Durability::Configured).await
    }

    /// Like [`Database::begin`]. PostgreSQL syncs every commit.
    pub(crate) async fn begin_write(&self, durability: Durability) -> Result<Transaction, StoreError> {
        self.check_file()?;
        let begun = match &self.shared.backend {
            Backend::Sqlite(sqlite) => sqlite.begin(durability).await,
            Backend::Postgres(postgres) => postgres.transactions.begin(&postgres.pools.writer).await,
        };
        let health = &self.shared.write_health;
        match begun {
            Ok(transaction) => Ok(transaction.with_health(health)),
            Err(error) => {
                health.failed(&error);
                Err(store_error(error))
            }
        }
    }

    /// Begins a transaction like [`Database::begin`] whose commit survives a power failure in every mode.
    pub(crate) async fn begin_durable(&self) -> Result<Transaction, StoreError> {
        self.begin_write(Durability::Synced).await
    }

    /// Returns the error of the last write of this process; `None` if it succeeded.
    pub fn write_failure(&self) -> Option<String> {
        self.shared.write_health.failure()
    }
}

impl Backend {
    /// Returns the time limits of requests and of background work.
    fn limits(&self, settings: &StorageSettings) -> CallLimits {
        match self {
            Self::Sqlite(_) => CallLimits::SQLITE,
            Self::Postgres(_) => CallLimits::short(settings),
        }
    }

    fn writer(&self, limits: CallLimits) -> Connection {
        match self {
            Self::Sqlite(sqlite) => Connection::sqlite(sqlite.writer_pool().clone(), limits),
            Self::Postgres(postgres) => Connection::postgres(Arc::clone(&postgres.pools.writer), limits),
        }
    }

    fn readers(&self, limits: CallLimits) -> Connection {
        match self {
            Self::Sqlite(sqlite) => Connection::sqlite(sqlite.readers.get_sqlite_connection_pool().clone(), limits),
            Self::Postgres(postgres) => Connection::postgres(Arc::clone(&postgres.pools.readers), limits),
        }
    }
}

/// The time of the store: that of the machine for a file, that of the server on PostgreSQL.
impl Clock for Database {
    fn now(&self) -> DateTime<Utc> {
        Self::now(self)
    }

    fn monotonic(&self) -> Duration {
        Self::monotonic(self)
    }
}

impl Database {
    /// Returns the number that the last server recorded; `None` before the first one.
    ///
    /// # Errors
    /// [`StoreError::Unavailable`] if the database cannot be read.
    pub async fn configured_endpoints(&self) -> Result<Option<u64>, StoreError> {
        let query = Entity::find().select_only().column(Column::ConfiguredEndpoints);
        let found: Option<Option<i64>> = query.into_tuple().one(self.readers()?).await.map_err(store_error)?;
        Ok(found.flatten().and_then(|count| count.try_into().ok()))
    }

    /// Records the number; writes only if it differs.
    ///
    /// # Errors
    /// [`StoreError::Unavailable`] if the database cannot be written.
    pub async fn record_configured_endpoints(&self, count: u64) -> Result<(), StoreError> {
        if self.configured_endpoints().await? == Some(count) {
            return Ok(());
        }
        let count = i64::try_from(count).unwrap_or(i64::MAX);
        let update = Entity::update_many().col_expr(Column::ConfiguredEndpoints, Expr::value(count));
        update.exec(self.writer()?).await.map_err(store_error)?;
        Ok(())
    }
}
