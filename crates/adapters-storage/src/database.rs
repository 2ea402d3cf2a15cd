//! The database: its connections, transactions and schema.

use std::sync::Arc;
use std::time::Duration;

use async_trait::async_trait;
use chrono::{DateTime, Utc};
use domain::error::StoreError;
use domain::system::{Clock, HealthProbe};
use migrations::{Migrator, MigratorTrait};
use sea_orm::sea_query::Expr;
use sea_orm::sqlx::pool::PoolConnection;
use sea_orm::sqlx::{Sqlite, SqlitePool};
use sea_orm::{
    DatabaseConnection, DatabaseTransaction, DbErr, EntityTrait, RuntimeErr, SqliteTransactionMode, SqlxError,
    SqlxSqliteConnector, TransactionOptions, TransactionTrait,
};
use uuid::Uuid;

use crate::audit_check;
use crate::audit_state;
use crate::change_feed;
use crate::checkpoint::Checkpoints;
use crate::data_version::DataVersionReader;
use crate::database_file::DatabaseFile;
use crate::durable::DurableConnection;
use crate::encryption::ColumnCipher;
use crate::entities::store_identity;
use crate::errors::{is_busy, store_error};
use crate::location::{Access, Location};
use crate::schema;
use crate::settings::StorageSettings;
use crate::sqlite;

/// An open database. Clones share its connections.
#[derive(Clone)]
pub struct Database {
    shared: Arc<Shared>,
}

struct Shared {
    /// The only writing connection. SQLite serialises writes anyway; queueing for the connection is fair and needs no
    /// polling.
    writer: DatabaseConnection,
    /// Read-only connections.
    readers: DatabaseConnection,
    checkpoints: Checkpoints,
    durable: DurableConnection,
    data_version: DataVersionReader,
    file: DatabaseFile,
    /// The cipher of secrets.
    cipher: ColumnCipher,
    /// The clock of the machine. All processes with the same SQLite file run on this machine.
    clock: Arc<dyn Clock>,
}

/// A schema migration.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct MigrationState {
    /// The name, which begins with its date.
    pub name: String,
    /// True if the database has it.
    pub applied: bool,
}

/// The migration that changes the columns in the hash of a key's row.
const KEY_IDS_STEP: &str = "m20261123_000011_key_ids";
/// The longest duration of a probe; readiness promises an answer within two seconds.
const PROBE_TIMEOUT: Duration = Duration::from_millis(1500);
/// The pause between attempts to open a busy database.
const OPEN_RETRY: Duration = Duration::from_millis(20);

impl Database {
    /// Opens the database, and creates its folder and file if the URL allows that. Applies no migrations: see
    /// [`Database::migrate`].
    ///
    /// # Errors
    /// [`StoreError::Unavailable`] if the URL names no database, or the file cannot be opened or created;
    /// [`StoreError::Corrupt`] if the file is no database.
    pub async fn open(settings: &StorageSettings, clock: Arc<dyn Clock>) -> Result<Self, StoreError> {
        let location = Location::parse(&settings.url).map_err(StoreError::unavailable)?;
        location.prepare().map_err(StoreError::unavailable)?;
        let checkpoints = Checkpoints::new(settings, &location);
        let writer = open_writer(settings, &location, &checkpoints).await?;
        let readers = SqlxSqliteConnector::from_sqlx_sqlite_pool(sqlite::readers(settings, &location));
        Ok(Self {
            shared: Arc::new(Shared {
                writer,
                readers,
                checkpoints,
                durable: DurableConnection::new(settings, &location),
                data_version: DataVersionReader::new(settings, &location),
                file: DatabaseFile::new(&location),
                cipher: ColumnCipher::new(settings.encryption_key.clone()),
                clock,
            }),
        })
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
        let transaction = self.begin().await?;
        // Another process may have been faster.
        let is_accounted_for = audit_is_accounting(&transaction).await;
        let pending = Migrator::get_pending_migrations(&transaction).await.map_err(store_error)?;
        Migrator::up(&transaction, None).await.map_err(store_error)?;
        if !is_accounted_for {
            audit_check::adopt(&transaction, self.now()).await?;
        } else if pending.iter().any(|step| step.name() == KEY_IDS_STEP) {
            audit_check::adopt_key_ids(&transaction, self.now()).await?;
        }
        transaction.commit().await.map_err(store_error)
    }

    /// Returns every known migration, oldest first. Read-only.
    ///
    /// # Errors
    /// [`StoreError::Corrupt`] if the database has a migration of a newer release that is marked incompatible.
    pub async fn migration_status(&self) -> Result<Vec<MigrationState>, StoreError> {
        schema::status(self.readers()?).await
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
        if let Err(error) = self.shared.data_version.close().await {
            tracing::warn!(error = &error as &dyn std::error::Error, "database connection not closed");
        }
        for connection in [Some(&self.shared.readers), self.shared.durable.get(), Some(&self.shared.writer)] {
            let Some(connection) = connection else { continue };
            if let Err(error) = connection.close_by_ref().await {
                tracing::warn!(error = &error as &dyn std::error::Error, "database connection not closed");
            }
        }
        self.shared.checkpoints.end().await;
    }

    /// Returns the connections for read-only statements.
    ///
    /// # Errors
    /// The database's file was removed or replaced.
    pub(crate) fn readers(&self) -> Result<&DatabaseConnection, StoreError> {
        self.check_file().map(|()| &self.shared.readers)
    }

    /// Returns the pool of reading connections.
    pub(crate) fn reading_pool(&self) -> &SqlitePool {
        self.shared.readers.get_sqlite_connection_pool()
    }

    /// Returns the connection for a single writing statement; several related statements need [`Database::begin`].
    ///
    /// # Errors
    /// The database's file was removed or replaced.
    pub(crate) fn writer(&self) -> Result<&DatabaseConnection, StoreError> {
        self.check_file().map(|()| &self.shared.writer)
    }

    /// Fails while the path leads to another file than the opened one.
    pub(crate) fn check_file(&self) -> Result<(), StoreError> {
        self.shared.file.check()
    }

    /// Returns the connection of [`Database::begin_durable`].
    pub(crate) fn durable(&self) -> &DurableConnection {
        &self.shared.durable
    }

    /// Returns the reader of the data version.
    pub(crate) fn data_version(&self) -> &DataVersionReader {
        &self.shared.data_version
    }

    /// Returns the pool of the writing connection.
    pub(crate) fn writing_pool(&self) -> &SqlitePool {
        self.shared.writer.get_sqlite_connection_pool()
    }

    /// Returns the cipher of secrets.
    pub(crate) fn cipher(&self) -> &ColumnCipher {
        &self.shared.cipher
    }

    /// Returns the current time.
    pub(crate) fn now(&self) -> DateTime<Utc> {
        self.shared.clock.now()
    }

    /// Returns the monotonic time.
    pub(crate) fn monotonic(&self) -> Duration {
        self.shared.clock.monotonic()
    }

    /// Returns the checkpoint state.
    pub(crate) fn checkpoints(&self) -> &Checkpoints {
        &self.shared.checkpoints
    }

    /// Blocks other writers of this process while the connection is held.
    pub(crate) async fn acquire_writer(&self) -> Result<PoolConnection<Sqlite>, SqlxError> {
        self.shared.writer.get_sqlite_connection_pool().acquire().await
    }

    /// Begins a writing transaction. It holds the write lock from the start, so that the rows it reads cannot change
    /// before it writes. Dropping it rolls back.
    pub(crate) async fn begin(&self) -> Result<DatabaseTransaction, StoreError> {
        self.check_file()?;
        begin_immediate(&self.shared.writer).await
    }
}

pub(crate) async fn begin_immediate(connection: &DatabaseConnection) -> Result<DatabaseTransaction, StoreError> {
    let options = TransactionOptions {
        sqlite_transaction_mode: Some(SqliteTransactionMode::Immediate),
        ..TransactionOptions::default()
    };
    connection.begin_with_options(options).await.map_err(store_error)
}

/// Returns true if the database already has the accounting record of managed rows.
async fn audit_is_accounting(transaction: &DatabaseTransaction) -> bool {
    audit_state::load(transaction).await.is_ok()
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
        match opened.map_err(|error| DbErr::Conn(RuntimeErr::SqlxError(Arc::new(error)))) {
            Ok(pool) => return Ok(SqlxSqliteConnector::from_sqlx_sqlite_pool(pool)),
            Err(error) if is_busy(&error) && location.access != Access::ReadOnly && attempt < attempts => {
                attempt += 1;
                tokio::time::sleep(OPEN_RETRY).await;
            }
            Err(error) => return Err(store_error(error)),
        }
    }
}
