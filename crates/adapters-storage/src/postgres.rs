//! PostgreSQL-specific opening of connections, and its transactions.
//!
//! Settings are local to a transaction, and writers wait for each other at a lock that ends with the transaction. Only
//! prepared statements belong to a connection.

use std::ops::RangeInclusive;
use std::str::FromStr;
use std::sync::Arc;
use std::sync::atomic::{AtomicI64, Ordering};
use std::time::Duration;

use chrono::{DateTime, TimeDelta, Utc};
use domain::error::StoreError;
use domain::system::Clock;
use sea_orm::sqlx::postgres::{PgConnectOptions, PgPoolOptions};
use sea_orm::sqlx::{ConnectOptions, Row};
use sea_orm::{
    ConnectionTrait, DatabaseConnection, DatabaseTransaction, DbBackend, DbErr, RuntimeErr, SqlxPostgresConnector,
    Statement, TransactionTrait, Value,
};

use crate::connections::{CallLimits, PostgresPool, Reachability, Transaction};
use crate::errors::store_error;
use crate::postgres_tls;
use crate::settings::{READ_CONNECTIONS, StorageSettings};

/// The number of the lock that writers of one database take in turn. Any constant will do.
const WRITE_LOCK: i64 = 0x746f_6c6c_6761_7465;

/// The idle time after which the connection for migrations is closed: it is used at the start only.
const SCHEMA_IDLE_TIMEOUT: Duration = Duration::from_secs(10);
/// The number of prepared statements per connection.
const STATEMENTS: usize = 256;

/// The pools of a PostgreSQL database.
pub(crate) struct PostgresPools {
    /// One connection: writers of a process queue for it, so that waiting ones do not take the connections of readers.
    pub(crate) writer: Arc<PostgresPool>,
    pub(crate) readers: Arc<PostgresPool>,
    /// One connection for migrations and for the state of the schema, which need that of the library.
    pub(crate) schema: DatabaseConnection,
    /// For the connection that receives notifications.
    pub(crate) options: PgConnectOptions,
}

/// Prepares the pools; connections are opened on first use.
///
/// # Errors
/// [`StoreError::Unavailable`] if the URL cannot be parsed or its encryption is not supported. The message does not
/// contain the URL, which may hold a password.
pub(crate) fn pools(settings: &StorageSettings) -> Result<PostgresPools, StoreError> {
    let options = PgConnectOptions::from_str(&settings.url)
        .map_err(|_| StoreError::unavailable("the storage URL is no PostgreSQL URL (postgres://user@host/database)"))?;
    let options = postgres_tls::with_tls(options, &settings.url)?
        .application_name("tollgate")
        .statement_cache_capacity(STATEMENTS)
        // A pooler rejects parameters that it does not know.
        .extra_float_digits(None)
        .disable_statement_logging();
    let server = Arc::new(Reachability::default());
    let pool =
        |connections| PostgresPool::new(options.clone(), connections, settings.busy_timeout, Arc::clone(&server));
    let schema = PgPoolOptions::new()
        .max_connections(1)
        .acquire_timeout(settings.busy_timeout)
        .idle_timeout(SCHEMA_IDLE_TIMEOUT)
        .connect_lazy_with(options.clone());
    Ok(PostgresPools {
        writer: pool(1),
        readers: pool(READ_CONNECTIONS),
        schema: SqlxPostgresConnector::from_sqlx_postgres_pool(schema),
        options,
    })
}

/// The shortest and the longest time limit that the server accepts.
const TIMEOUTS: RangeInclusive<u128> = 1..=2_147_483_647;
/// The wait of a migration for its turn: another process may be migrating.
const MIGRATION_TURN_MS: &str = "600000";
/// The longest pause between two statements of a writer, and the longest wait for the acknowledgement of a reply. After
/// that the server ends the transaction of a process that gave up, paused or vanished, so that others get the lock.
const WRITER_PAUSE: Duration = Duration::from_secs(1);
/// The value of a time limit that never ends anything.
const UNLIMITED: &str = "0";
/// Settings of the transaction of a migration: the wait for the lock, the longest statement, the longest pause between
/// two statements, and commits that survive a loss of power whatever the server's default is.
const SETTINGS: &str = "SELECT set_config('lock_timeout', $1, true), set_config('statement_timeout', $2, true), \
                        set_config('idle_in_transaction_session_timeout', $3, true), \
                        set_config('synchronous_commit', 'on', true)";
/// Settings of a writer in addition to its time limits. Commits survive a loss of power whatever the server's default is.
/// Folds and draws find rows by their keys: without statistics, as of a new month's partition, PostgreSQL would read
/// tables whole, and one plan for all values saves planning long lists of them. A table without a fitting index is still
/// read whole, at a cost for which PostgreSQL would compile the statement: `jit` off.
const WRITER_SETTINGS: &str = "SET LOCAL synchronous_commit = on; SET LOCAL enable_seqscan = off; SET LOCAL jit = off; \
                               SET LOCAL plan_cache_mode = force_generic_plan";
/// A read-only standby rejects `READ WRITE`. As a statement of its own it fails in a transaction, which is then rolled
/// back: without one, each rollback would be a warning in the log.
const BEGIN_WRITE: &str = "BEGIN ISOLATION LEVEL READ COMMITTED; SET TRANSACTION READ WRITE";
/// The store's time in milliseconds.
const SERVER_TIME: &str = "(extract(epoch FROM clock_timestamp()) * 1000)::bigint AS now";
/// The isolation level of a migration, whatever the default of the role is.
const SET_READ_COMMITTED: &str = "SET TRANSACTION ISOLATION LEVEL READ COMMITTED READ WRITE";
const BEGIN_SNAPSHOT: &str = "BEGIN ISOLATION LEVEL REPEATABLE READ READ ONLY";

/// The transactions of a PostgreSQL database. Each begins with one message: a writer that waits for the network between
/// its statements makes all others wait.
pub(crate) struct PostgresTransactions {
    lock_timeout_ms: String,
    limits: CallLimits,
    clock: StoreClock,
}

impl PostgresTransactions {
    pub(crate) fn new(settings: &StorageSettings, clock: Arc<dyn Clock>) -> Self {
        let clock = StoreClock { clock, is_of_server: settings.use_server_clock, ahead_ms: AtomicI64::new(UNKNOWN) };
        Self { lock_timeout_ms: millis_text(settings.busy_timeout), limits: CallLimits::short(settings), clock }
    }

    /// Begins a writing transaction after all earlier ones of every process, so that the rows it reads cannot change
    /// before it writes. It waits for the lock for at most the busy timeout.
    pub(crate) async fn begin(&self, writer: &Arc<PostgresPool>) -> Result<Transaction, DbErr> {
        // Each statement sees what was committed before it, so what is read after the lock is current.
        let (lock_ms, statement_ms, pause_ms) =
            (&self.lock_timeout_ms, millis_text(self.limits.statement), millis_text(WRITER_PAUSE));
        let statements = format!(
            "{BEGIN_WRITE}; SET LOCAL lock_timeout = {lock_ms}; SET LOCAL statement_timeout = {statement_ms}; \
             SET LOCAL idle_in_transaction_session_timeout = {pause_ms}; SET LOCAL tcp_user_timeout = {pause_ms}; \
             {WRITER_SETTINGS}; SELECT pg_advisory_xact_lock({WRITE_LOCK})::text, {SERVER_TIME}"
        );
        self.begin_with(writer, &statements, self.limits).await
    }

    /// Begins by statements of which the last one returns the time.
    async fn begin_with(
        &self,
        pool: &Arc<PostgresPool>,
        statements: &str,
        limits: CallLimits,
    ) -> Result<Transaction, DbErr> {
        let asked = self.clock.clock.monotonic();
        let (transaction, row) = Transaction::begin_postgres(pool, statements, limits).await?;
        let took = self.clock.clock.monotonic().saturating_sub(asked);
        if let Some(row) = row {
            let now = row.try_get("now").map_err(|error| DbErr::Query(RuntimeErr::SqlxError(Arc::new(error))))?;
            self.clock.set(now, took);
        }
        Ok(transaction)
    }

    /// Begins a transaction of a migration, which has no time limit. It waits long for the lock.
    pub(crate) async fn begin_migration(&self, schema: &DatabaseConnection) -> Result<DatabaseTransaction, StoreError> {
        let transaction = schema.begin().await.map_err(store_error)?;
        transaction.execute_unprepared(SET_READ_COMMITTED).await.map_err(store_error)?;
        limit(&transaction, [MIGRATION_TURN_MS, UNLIMITED, UNLIMITED]).await?;
        self.take_write_lock(&transaction).await?;
        // A statement that waits for the lock of a table blocks later readers of the table, too.
        limit(&transaction, [&self.lock_timeout_ms, UNLIMITED, UNLIMITED]).await?;
        Ok(transaction)
    }

    /// Begins a transaction that reads one state of the database.
    pub(crate) async fn snapshot(&self, readers: &Arc<PostgresPool>, limits: CallLimits) -> Result<Transaction, DbErr> {
        // Readers block nobody, and a copy pauses between its reads.
        let (lock_ms, statement_ms) = (&self.lock_timeout_ms, millis_text(limits.statement));
        let statements = format!(
            "{BEGIN_SNAPSHOT}; SET LOCAL lock_timeout = {lock_ms}; SET LOCAL statement_timeout = {statement_ms}; \
             SET LOCAL idle_in_transaction_session_timeout = {UNLIMITED}; SELECT {SERVER_TIME}"
        );
        self.begin_with(readers, &statements, limits).await
    }

    /// Takes the lock of writers for a migration.
    async fn take_write_lock(&self, transaction: &DatabaseTransaction) -> Result<(), StoreError> {
        let text = format!("SELECT pg_advisory_xact_lock({WRITE_LOCK})");
        transaction.execute_unprepared(&text).await.map_err(store_error).map(drop)
    }

    /// Returns the store's current time.
    pub(crate) fn now(&self) -> DateTime<Utc> {
        self.clock.now()
    }
}

/// The longest round trip of a query whose time counts.
const MAX_ROUND_TRIP: Duration = Duration::from_millis(100);
/// No query has told the store's time yet.
const UNKNOWN: i64 = i64::MIN;

/// Sets the time limits of a migration: the wait for a lock, a statement, and a pause between statements.
async fn limit(transaction: &DatabaseTransaction, limits_ms: [&str; 3]) -> Result<(), StoreError> {
    let settings = Statement::from_sql_and_values(DbBackend::Postgres, SETTINGS, limits_ms.map(Value::from));
    transaction.execute_raw(settings).await.map_err(store_error).map(drop)
}

fn millis_text(duration: Duration) -> String {
    duration.as_millis().clamp(*TIMEOUTS.start(), *TIMEOUTS.end()).to_string()
}

/// The store's clock, as seen by the last transaction: replicas on machines with different clocks agree on it.
struct StoreClock {
    clock: Arc<dyn Clock>,
    is_of_server: bool,
    /// Store time minus the time of this machine, in milliseconds.
    ahead_ms: AtomicI64,
}

impl StoreClock {
    /// Compares the store's time with that of the machine. The reply was on its way for some part of `took`, so a slow
    /// one tells little: it counts only as the first.
    fn set(&self, store_ms: i64, took: Duration) {
        let is_first = self.ahead_ms.load(Ordering::Relaxed) == UNKNOWN;
        if self.is_of_server && (is_first || took <= MAX_ROUND_TRIP) {
            let ahead = store_ms.saturating_sub(self.clock.now().timestamp_millis());
            self.ahead_ms.store(ahead, Ordering::Relaxed);
        }
    }

    fn now(&self) -> DateTime<Utc> {
        let now = self.clock.now();
        let ahead = self.ahead_ms.load(Ordering::Relaxed);
        if ahead == UNKNOWN {
            return now;
        }
        now.checked_add_signed(TimeDelta::milliseconds(ahead)).unwrap_or(now)
    }
}
