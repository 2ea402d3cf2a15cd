//! The database: its connections, transactions and schema.

use std::sync::Arc;
use std::time::Duration;

use async_trait::async_trait;
use chrono::{DateTime, Utc};
use domain::error::StoreError;
use domain::system::{Clock, HealthProbe};
use migrations::{Migrator, MigratorTrait};
use sea_orm::sqlx::pool::PoolConnection;
use sea_orm::sqlx::{Sqlite, SqlitePool};
use sea_orm::{
    DatabaseConnection, DatabaseTransaction, DbErr, EntityTrait, RuntimeErr, SqliteTransactionMode, SqlxError,
    SqlxSqliteConnector, TransactionOptions, TransactionTrait,
};
use sea_orm_migration::MigrationStatus;
use uuid::Uuid;

use crate::audit_check;
use crate::audit_state;
use crate::change_feed;
use crate::checkpoint::Checkpoints;
use crate::data_version::DataVersionReader;
use crate::database_file::DatabaseFile;
use crate::durable::DurableConnection;
use crate::entities::store_identity;
use crate::errors::{is_busy, store_error};
use crate::location::{Access, Location};
use crate::settings::StorageSettings;
use crate::sqlite;

/// An open database. Clones share its connections.
#[derive(Clone)]
pub struct Database {
    shared: Arc<Shared>,
}

struct Shared {
    /// The one connection that writes. SQLite lets one write at a time anyway; waiting for it here is fair and costs
    /// no polling.
    writer: DatabaseConnection,
    /// Connections that cannot write.
    readers: DatabaseConnection,
    checkpoints: Checkpoints,
    durable: DurableConnection,
    data_version: DataVersionReader,
    file: DatabaseFile,
    /// The machine's, which is the database's as well: every process that opens a SQLite file runs beside it.
    clock: Arc<dyn Clock>,
}

/// A step of the schema.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct MigrationState {
    /// Its name, which begins with its date.
    pub name: String,
    /// True where the database has it.
    pub applied: bool,
}

/// The step that changes what the hash of a key's row covers.
const KEY_IDS_STEP: &str = "m20261123_000011_key_ids";
/// How long a probe may take; readiness promises an answer within two seconds.
const PROBE_TIMEOUT: Duration = Duration::from_millis(1500);
/// How long is waited before a busy database is tried again while it is being opened.
const OPEN_RETRY: Duration = Duration::from_millis(20);

impl Database {
    /// Opens the database and makes its folder and file where the URL allows that. Applies no schema: see
    /// [`Database::migrate`].
    ///
    /// # Errors
    /// [`StoreError::Unavailable`] where the URL names no database, or the file cannot be opened or made;
    /// [`StoreError::Corrupt`] where it is no database.
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
                clock,
            }),
        })
    }

    /// Applies what is missing of the schema, all or nothing. Processes that do so at once wait for each other. Where
    /// nothing is missing nothing is written, so that a database which can only be read will do.
    ///
    /// # Errors
    /// [`StoreError::Corrupt`] where the database has a step that this version does not know.
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

    /// Every step that this version knows, oldest first. Changes nothing.
    ///
    /// # Errors
    /// [`StoreError::Corrupt`] where the database has a step that this version does not know.
    pub async fn migration_status(&self) -> Result<Vec<MigrationState>, StoreError> {
        let steps = Migrator::get_migration_with_status_read_only(self.readers()?).await.map_err(store_error)?;
        let state = |step: &sea_orm_migration::Migration| MigrationState {
            name: step.name().to_owned(),
            applied: step.status() == MigrationStatus::Applied,
        };
        Ok(steps.iter().map(state).collect())
    }

    /// The identity of the database, which a copy of it shares.
    ///
    /// # Errors
    /// [`StoreError::Corrupt`] where it is missing.
    pub async fn id(&self) -> Result<Uuid, StoreError> {
        let row = store_identity::Entity::find().one(self.readers()?).await.map_err(store_error)?;
        let id = row.as_ref().and_then(|row| Uuid::parse_str(&row.store_id).ok());
        id.ok_or_else(|| StoreError::Corrupt("the database has lost its identity".to_owned()))
    }

    /// Waits for what is being written and closes every connection; what is begun afterwards is unavailable.
    pub async fn close(&self) {
        if let Err(error) = self.shared.data_version.close().await {
            tracing::warn!(error = &error as &dyn std::error::Error, "a database connection did not close");
        }
        for connection in [Some(&self.shared.readers), self.shared.durable.get(), Some(&self.shared.writer)] {
            let Some(connection) = connection else { continue };
            if let Err(error) = connection.close_by_ref().await {
                tracing::warn!(error = &error as &dyn std::error::Error, "a database connection did not close");
            }
        }
        self.shared.checkpoints.end().await;
    }

    /// For statements that only read.
    ///
    /// # Errors
    /// The database's file was removed or replaced.
    pub(crate) fn readers(&self) -> Result<&DatabaseConnection, StoreError> {
        self.check_file().map(|()| &self.shared.readers)
    }

    /// The pool of the connections that read.
    pub(crate) fn reading_pool(&self) -> &SqlitePool {
        self.shared.readers.get_sqlite_connection_pool()
    }

    /// For a single statement that writes; several that belong together need [`Database::begin`].
    ///
    /// # Errors
    /// The database's file was removed or replaced.
    pub(crate) fn writer(&self) -> Result<&DatabaseConnection, StoreError> {
        self.check_file().map(|()| &self.shared.writer)
    }

    /// Fails while the path of the database leads to another file than the one that was opened.
    pub(crate) fn check_file(&self) -> Result<(), StoreError> {
        self.shared.file.check()
    }

    /// The connection of [`Database::begin_durable`].
    pub(crate) fn durable(&self) -> &DurableConnection {
        &self.shared.durable
    }

    /// Reads whether anything was committed.
    pub(crate) fn data_version(&self) -> &DataVersionReader {
        &self.shared.data_version
    }

    /// The pool of the connection that writes.
    pub(crate) fn writing_pool(&self) -> &SqlitePool {
        self.shared.writer.get_sqlite_connection_pool()
    }

    /// The database's clock.
    pub(crate) fn now(&self) -> DateTime<Utc> {
        self.shared.clock.now()
    }

    /// What the clock measures spans of time by.
    pub(crate) fn monotonic(&self) -> Duration {
        self.shared.clock.monotonic()
    }

    /// Who copies its log.
    pub(crate) fn checkpoints(&self) -> &Checkpoints {
        &self.shared.checkpoints
    }

    /// Keeps others of this process from writing for as long as the connection is held.
    pub(crate) async fn take_turn(&self) -> Result<PoolConnection<Sqlite>, SqlxError> {
        self.shared.writer.get_sqlite_connection_pool().acquire().await
    }

    /// Begins a transaction that may write: it holds the write lock from its first moment, so that what it reads
    /// cannot change before it writes. Dropping it undoes it.
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

/// True where the database already has the record that managed rows are accounted for in.
async fn audit_is_accounting(transaction: &DatabaseTransaction) -> bool {
    audit_state::load(transaction).await.is_ok()
}

#[async_trait]
impl HealthProbe for Database {
    fn name(&self) -> &'static str {
        "database"
    }

    /// Reads a row that every schema has.
    async fn probe(&self) -> Result<(), StoreError> {
        let read = async { change_feed::newest(self.readers()?).await.map(drop) };
        tokio::time::timeout(PROBE_TIMEOUT, read).await.map_err(StoreError::unavailable)?
    }
}

/// Switching a new file to write-ahead logging asks for the whole file and does not always heed the busy timeout, so
/// processes that open it at once are tried again.
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
