//! Opening, migrating, probing and closing a database, and the status of its pools.

use std::sync::Arc;
use std::time::Duration;

use async_trait::async_trait;
use domain::error::StoreError;
use domain::system::{Clock, HealthProbe};
use migrations::{Migrator, MigratorTrait};
use sea_orm::sea_query::Expr;
use sea_orm::{
    DatabaseConnection, DatabaseTransaction, EntityTrait, SqliteTransactionMode, SqlxSqliteConnector,
    TransactionOptions, TransactionTrait,
};

use crate::change_feed;
use crate::checkpoint::Checkpoints;
use crate::connections::{PostgresPool, WriteLockWatch};
use crate::database::{Backend, Database, PostgresParts};
use crate::entities::store_identity;
use crate::errors::{connection_error, is_busy, store_error};
use crate::postgres::{self, PostgresPools, PostgresTransactions};
use crate::schema::{self, MigrationState};
use crate::settings::{Access, Location, StorageSettings, is_postgres};
use crate::sqlite::{self, DataVersionReader, DatabaseFile, DurableConnection, SqliteParts};

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
        schema::status(self.schema().await?).await
    }

    /// Reads the time of the store. Otherwise the first transaction does, and until then the time is that of the machine.
    ///
    /// # Errors
    /// [`StoreError::Unavailable`] if the database cannot be read.
    pub async fn read_clock(&self) -> Result<(), StoreError> {
        match self.backend() {
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
        transaction.commit().await
    }

    /// Waits for pending writes and closes every connection; later operations are unavailable.
    pub async fn close(&self) {
        if let Some(sqlite) = self.sqlite()
            && let Err(error) = sqlite.data_version.close().await
        {
            tracing::warn!(error = &error as &dyn std::error::Error, "database connection not closed");
        }
        match self.backend() {
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

    /// Begins the transaction of a migration, which has no time limit.
    async fn begin_migration(&self) -> Result<DatabaseTransaction, StoreError> {
        self.check_file()?;
        match self.backend() {
            Backend::Sqlite(sqlite) => begin_immediate(&sqlite.writer).await,
            Backend::Postgres(postgres) => postgres.transactions.begin_migration(&postgres.pools.schema).await,
        }
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
        let read = tokio::time::timeout(PROBE_TIMEOUT, read).await;
        read.map_err(|_| {
            let failure = format!("no response within {} ms", PROBE_TIMEOUT.as_millis());
            StoreError::unavailable(self.describe_failure(&failure))
        })?
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

/// The status of a connection pool.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct PoolStatus {
    /// The name: `reader` or `writer`.
    pub pool: &'static str,
    /// Connections in use.
    pub busy: u64,
    /// Open connections that are idle.
    pub idle: u64,
    /// The limit of connections.
    pub limit: u64,
}

impl Database {
    /// Returns the current status of the pools, without waiting.
    pub fn pools(&self) -> [PoolStatus; 2] {
        let counts = match (self.postgres_pools(), self.sqlite()) {
            (Some(pools), _) => pools.map(PostgresPool::counts),
            (None, Some(sqlite)) => sqlite.connections().map(counts),
            (None, None) => Default::default(),
        };
        let [reader, writer] = counts;
        [status("reader", reader), status("writer", writer)]
    }
}

fn status(pool: &'static str, (busy, idle, limit): (u64, u64, u64)) -> PoolStatus {
    PoolStatus { pool, busy, idle, limit }
}

/// Returns the connections in use, the idle ones, and their limit.
fn counts(connection: &DatabaseConnection) -> (u64, u64, u64) {
    let pool = connection.get_sqlite_connection_pool();
    let idle = u64::try_from(pool.num_idle()).unwrap_or(u64::MAX);
    // The two counts are not atomic, so that idle may briefly exceed open.
    (u64::from(pool.size()).saturating_sub(idle), idle, pool.options().get_max_connections().into())
}
