//! The database: its connections, transactions and schema.

use std::sync::Arc;
use std::time::Duration;

use async_trait::async_trait;
use chrono::{DateTime, Utc};
use domain::error::StoreError;
use domain::system::{Clock, HealthProbe};
use migrations::{Migrator, MigratorTrait};
use sea_orm::sea_query::Expr;
use sea_orm::sqlx::Sqlite;
use sea_orm::sqlx::pool::PoolConnection;
use sea_orm::sqlx::postgres::PgConnectOptions;
use sea_orm::{
    DatabaseConnection, DatabaseTransaction, EntityTrait, SqliteTransactionMode, SqlxError, SqlxSqliteConnector,
    TransactionOptions, TransactionTrait,
};
use uuid::Uuid;

use crate::budget::UnreadableRows;
use crate::change_feed;
use crate::checkpoint::Checkpoints;
use crate::connections::{
    CallLimits, Connection, PostgresPool, Transaction, WriteHealth, WriteLockWatch, connection_error,
};
use crate::data_version::DataVersionReader;
use crate::database_file::DatabaseFile;
use crate::durable::{Durability, DurableConnection};
use crate::encryption::ColumnCipher;
use crate::entities::store_identity;
use crate::errors::{is_busy, store_error};
use crate::location::{Access, Location, is_postgres};
use crate::postgres::{self, PostgresPools, PostgresTransactions};
use crate::schema;
use crate::settings::StorageSettings;
use crate::sqlite;
use crate::sqlite_parts::SqliteParts;

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
enum Backend {
    Sqlite(Box<SqliteParts>),
    Postgres(Box<PostgresParts>),
}

/// The parts of a PostgreSQL database.
struct PostgresParts {
    pools: PostgresPools,
    transactions: PostgresTransactions,
}

/// A schema migration.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct MigrationState {
    /// The name, which begins with its date.
    pub name: String,
    /// True if the database has it.
    pub applied: bool,
    /// False if this program does not know it: a newer release applied it.
    pub known: bool,
}

impl MigrationState {
    /// Returns the state of a migration that this program knows.
    pub(crate) fn known(name: &str, applied: bool) -> Self {
        Self { name: name.to_owned(), applied, known: true }
    }
}

/// The longest duration of a probe; readiness promises an answer within two seconds.
const PROBE_TIMEOUT: Duration = Duration::from_millis(1500);
/// The pause between attempts to open a busy database.
const OPEN_RETRY: Duration = Duration::from_millis(20);

impl Database {
    /// Opens the database. Creates the folder and the file of a SQLite database if the URL allows that. Applies no
    /// migrations: see [`Database::migrate`].
    ///
    /// # Errors
    /// [`StoreError::Unavailable`] if the URL names no database, or the file cannot be opened or created;
    /// [`StoreError::Corrupt`] if the file is no database.
    pub async fn open(settings: &StorageSettings, clock: Arc<dyn Clock>) -> Result<Self, StoreError> {
        if is_postgres(&settings.url) {
            return Self::open_postgres(settings, clock);
        }
        let location = Location::parse(&settings.url).map_err(StoreError::unavailable)?;
        location.prepare().map_err(StoreError::unavailable)?;
        let checkpoints = Checkpoints::new(settings, &location);
        let writer = open_writer(settings, &location, &checkpoints).await?;
        let readers = SqlxSqliteConnector::from_sqlx_sqlite_pool(sqlite::readers(settings, &location));
        let backend = Backend::Sqlite(Box::new(SqliteParts {
            writer,
            readers,
            checkpoints: Arc::new(checkpoints),
            durable: DurableConnection::new(settings, &location),
            write_lock: WriteLockWatch::default(),
            data_version: DataVersionReader::new(settings, &location),
            file: DatabaseFile::new(&location),
        }));
        Ok(Self::new(backend, settings, clock))
    }

    /// Connects on first use, so that a server that is away does not keep the process from starting.
    fn open_postgres(settings: &StorageSettings, clock: Arc<dyn Clock>) -> Result<Self, StoreError> {
        let transactions = PostgresTransactions::new(settings, Arc::clone(&clock));
        let backend = Backend::Postgres(Box::new(PostgresParts { pools: postgres::pools(settings)?, transactions }));
        Ok(Self::new(backend, settings, clock))
    }

    fn new(backend: Backend, settings: &StorageSettings, clock: Arc<dyn Clock>) -> Self {
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

    /// Applies all missing migrations in one transaction. Concurrent processes wait for each other. Writes only if a
    /// migration is missing, so that an up-to-date read-only database works.
    ///
    /// # Errors
    /// [`StoreError::Corrupt`] if the database has a migration of a newer release that is marked incompatible.
    pub async fn migrate(&self) -> Result<(), StoreError> {
        let steps = self.migration_status().await?;
        if steps.iter().all(|step| step.applied) {
            return Ok(());
        }
        let transaction = self.begin_migration().await?;
        // Another process may have been faster: then none is missing now.
        Migrator::up(&transaction, None).await.map_err(store_error)?;
        transaction.commit().await.map_err(store_error)
    }

    /// Returns every known migration, oldest first, then the unknown ones of the database. Read-only.
    ///
    /// # Errors
    /// [`StoreError::Corrupt`] if the database has a migration of a newer release that is marked incompatible.
    pub async fn migration_status(&self) -> Result<Vec<MigrationState>, StoreError> {
        schema::status(self.schema()?).await
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

    /// Reads the time of the store. Otherwise the first transaction does, and until then the time is that of the machine.
    ///
    /// # Errors
    /// [`StoreError::Unavailable`] if the database cannot be read.
    pub async fn read_clock(&self) -> Result<(), StoreError> {
        match &self.shared.backend {
            Backend::Sqlite(_) => Ok(()),
            Backend::Postgres(_) => self.snapshot().await.map(drop),
        }
    }

    /// Commits a write that changes nothing, so that a full disk shows.
    ///
    /// # Errors
    /// [`StoreError::Unavailable`] if the disk is full, the database is read-only, or another process holds the write
    /// lock for longer than the busy timeout.
    pub async fn probe_write(&self) -> Result<(), StoreError> {
        let transaction = self.begin().await?;
        // SQLite writes the page of an updated row although its value stays the same.
        let unchanged = Expr::col(store_identity::Column::StoreId);
        let update = store_identity::Entity::update_many().col_expr(store_identity::Column::StoreId, unchanged);
        update.exec(&transaction).await.map_err(store_error)?;
        transaction.commit().await.map_err(store_error)
    }

    /// Waits for pending writes and closes every connection; later operations are unavailable.
    pub async fn close(&self) {
        if let Some(sqlite) = self.sqlite()
            && let Err(error) = sqlite.data_version.close().await
        {
            tracing::warn!(error = &error as &dyn std::error::Error, "database connection not closed");
        }
        match &self.shared.backend {
            Backend::Sqlite(sqlite) => {
                close(&sqlite.readers).await;
                if let Some(durable) = sqlite.durable.get() {
                    durable.close().await;
                }
                close(&sqlite.writer).await;
                sqlite.checkpoints.end().await;
            }
            Backend::Postgres(postgres) => {
                let PostgresPools { writer, readers, schema, .. } = &postgres.pools;
                readers.close().await;
                writer.close().await;
                // The library waits without limit for a connection in use.
                drop(tokio::time::timeout(PROBE_TIMEOUT, close(schema)).await);
            }
        }
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
    /// The database's file was removed or replaced.
    pub(crate) fn schema(&self) -> Result<&DatabaseConnection, StoreError> {
        self.check_file()?;
        Ok(match &self.shared.backend {
            Backend::Sqlite(sqlite) => &sqlite.readers,
            Backend::Postgres(postgres) => &postgres.pools.schema,
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

    /// Returns the pools of a PostgreSQL database for reading and for writing.
    pub(crate) fn postgres_pools(&self) -> Option<[&PostgresPool; 2]> {
        match &self.shared.backend {
            Backend::Sqlite(_) => None,
            Backend::Postgres(postgres) => Some([&postgres.pools.readers, &postgres.pools.writer]),
        }
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

    /// Returns the error of the last write of this process; `None` if it succeeded.
    pub fn write_failure(&self) -> Option<String> {
        self.shared.write_health.failure()
    }

    /// Begins the transaction of a migration, which has no time limit.
    async fn begin_migration(&self) -> Result<DatabaseTransaction, StoreError> {
        self.check_file()?;
        match &self.shared.backend {
            Backend::Sqlite(sqlite) => begin_immediate(&sqlite.writer).await,
            Backend::Postgres(postgres) => postgres.transactions.begin_migration(&postgres.pools.schema).await,
        }
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
            Self::Sqlite(sqlite) => Connection::sqlite(sqlite.writer.clone(), limits),
            Self::Postgres(postgres) => Connection::postgres(Arc::clone(&postgres.pools.writer), limits),
        }
    }

    fn readers(&self, limits: CallLimits) -> Connection {
        match self {
            Self::Sqlite(sqlite) => Connection::sqlite(sqlite.readers.clone(), limits),
            Self::Postgres(postgres) => Connection::postgres(Arc::clone(&postgres.pools.readers), limits),
        }
    }
}

async fn close(connection: &DatabaseConnection) {
    if let Err(error) = connection.close_by_ref().await {
        tracing::warn!(error = &error as &dyn std::error::Error, "database connection not closed");
    }
}

async fn begin_immediate(connection: &DatabaseConnection) -> Result<DatabaseTransaction, StoreError> {
    let options = TransactionOptions {
        sqlite_transaction_mode: Some(SqliteTransactionMode::Immediate),
        ..TransactionOptions::default()
    };
    connection.begin_with_options(options).await.map_err(store_error)
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

#[async_trait]
impl HealthProbe for Database {
    fn name(&self) -> &'static str {
        "database"
    }

    /// Reads a row of a table that every schema version has.
    async fn probe(&self) -> Result<(), StoreError> {
        let read = async { change_feed::newest(self.readers()?).await.map(drop) };
        tokio::time::timeout(PROBE_TIMEOUT, read).await.map_err(StoreError::unavailable)?
    }
}

/// Opens the writer. Switching a new file to write-ahead logging needs an exclusive lock and does not always respect
/// the busy timeout, so concurrent opens are retried.
async fn open_writer(
    settings: &StorageSettings,
    location: &Location,
    checkpoints: &Checkpoints,
) -> Result<DatabaseConnection, StoreError> {
    let attempts = settings.busy_timeout.as_millis() / OPEN_RETRY.as_millis();
    let mut attempt = 0;
    loop {
        let opened = sqlite::writer(settings, location, &checkpoints.commits).await;
        match opened.map_err(connection_error) {
            Ok(pool) => return Ok(SqlxSqliteConnector::from_sqlx_sqlite_pool(pool)),
            Err(error) if is_busy(&error) && location.access != Access::ReadOnly && attempt < attempts => {
                attempt += 1;
                tokio::time::sleep(OPEN_RETRY).await;
            }
            Err(error) => return Err(store_error(error)),
        }
    }
}
