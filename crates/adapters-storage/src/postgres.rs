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
use sea_orm::sqlx::ConnectOptions;
use sea_orm::sqlx::postgres::{PgConnectOptions, PgPoolOptions};
use sea_orm::{
    AccessMode, ConnectionTrait, DatabaseConnection, DatabaseTransaction, DbBackend, IsolationLevel,
    SqlxPostgresConnector, Statement, TransactionOptions, TransactionTrait, Value,
};

use crate::errors::store_error;
use crate::postgres_tls;
use crate::settings::StorageSettings;

/// The number of the lock that writers of one database take in turn. Any constant will do.
const WRITE_LOCK: i64 = 0x746f_6c6c_6761_7465;

/// The longest idle time of a connection: firewalls drop idle ones silently.
const IDLE_TIMEOUT: Duration = Duration::from_mins(5);
/// The longest life of a connection, so that a moved server is found.
const MAX_LIFETIME: Duration = Duration::from_mins(30);
/// The number of prepared statements per connection.
const STATEMENTS: usize = 256;

/// The pools of a PostgreSQL database.
pub(crate) struct PostgresPools {
    /// One connection: writers of a process queue for it, so that waiting ones do not take the connections of readers.
    pub(crate) writer: DatabaseConnection,
    pub(crate) readers: DatabaseConnection,
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
    let pool = |connections| {
        let pool = PgPoolOptions::new()
            .max_connections(connections)
            .acquire_timeout(settings.busy_timeout)
            .idle_timeout(IDLE_TIMEOUT)
            .max_lifetime(MAX_LIFETIME)
            .connect_lazy_with(options.clone());
        SqlxPostgresConnector::from_sqlx_postgres_pool(pool)
    };
    Ok(PostgresPools { writer: pool(1), readers: pool(settings.read_connections.max(1)) })
}

/// The shortest and the longest time limit that the server accepts.
const TIMEOUTS: RangeInclusive<u128> = 1..=2_147_483_647;
/// The wait of a migration for its turn: another process may be migrating.
const MIGRATION_TURN_MS: &str = "600000";
/// The longest statement of a transaction that writes. Migrations and transactions that read have no limit.
const STATEMENT_TIMEOUT_MS: &str = "60000";
/// Settings of one transaction: the wait for the lock, the longest statement, and commits that survive a loss of power
/// whatever the server's default is.
const SETTINGS: &str = "SELECT set_config('lock_timeout', $1, true), set_config('statement_timeout', $2, true), \
                        set_config('synchronous_commit', 'on', true)";

/// The transactions of a PostgreSQL database.
pub(crate) struct PostgresTransactions {
    lock_timeout_ms: String,
    clock: StoreClock,
}

impl PostgresTransactions {
    pub(crate) fn new(settings: &StorageSettings, clock: Arc<dyn Clock>) -> Self {
        let clock = StoreClock { clock, is_of_server: settings.use_server_clock, ahead_ms: AtomicI64::new(UNKNOWN) };
        let lock_timeout = settings.busy_timeout.as_millis().clamp(*TIMEOUTS.start(), *TIMEOUTS.end());
        Self { lock_timeout_ms: lock_timeout.to_string(), clock }
    }

    /// Begins a writing transaction after all earlier ones of every process, so that the rows it reads cannot change
    /// before it writes. It waits for the lock for at most the busy timeout, and longer for a migration.
    pub(crate) async fn begin(
        &self,
        writer: &DatabaseConnection,
        length: Length,
    ) -> Result<DatabaseTransaction, StoreError> {
        // Each statement sees what was committed before it, so what is read after the lock is current.
        let options = TransactionOptions {
            isolation_level: Some(IsolationLevel::ReadCommitted),
            ..TransactionOptions::default()
        };
        let transaction = writer.begin_with_options(options).await.map_err(store_error)?;
        let turn_ms = match length {
            Length::Limited => self.lock_timeout_ms.as_str(),
            Length::Unlimited => MIGRATION_TURN_MS,
        };
        self.limit(&transaction, length, turn_ms).await?;
        self.read_clock(&transaction, "SELECT pg_advisory_xact_lock($1)::text,", &[WRITE_LOCK.into()]).await?;
        if length == Length::Unlimited {
            // A statement that waits for the lock of a table blocks later readers of the table, too.
            self.limit(&transaction, length, &self.lock_timeout_ms).await?;
        }
        Ok(transaction)
    }

    /// Begins a transaction that reads one state of the database.
    pub(crate) async fn snapshot(&self, readers: &DatabaseConnection) -> Result<DatabaseTransaction, StoreError> {
        let options = TransactionOptions {
            isolation_level: Some(IsolationLevel::RepeatableRead),
            access_mode: Some(AccessMode::ReadOnly),
            ..TransactionOptions::default()
        };
        let transaction = readers.begin_with_options(options).await.map_err(store_error)?;
        // An audit reads for long. Readers block nobody.
        self.limit(&transaction, Length::Unlimited, &self.lock_timeout_ms).await?;
        self.read_clock(&transaction, "SELECT", &[]).await?;
        Ok(transaction)
    }

    /// Returns the store's current time.
    pub(crate) fn now(&self) -> DateTime<Utc> {
        self.clock.now()
    }

    async fn limit(
        &self,
        transaction: &DatabaseTransaction,
        length: Length,
        lock_timeout_ms: &str,
    ) -> Result<(), StoreError> {
        let statement = match length {
            Length::Limited => STATEMENT_TIMEOUT_MS,
            Length::Unlimited => "0",
        };
        let values = [lock_timeout_ms.into(), statement.into()];
        let settings = Statement::from_sql_and_values(DbBackend::Postgres, SETTINGS, values);
        transaction.execute_raw(settings).await.map_err(store_error).map(drop)
    }

    async fn read_clock(
        &self,
        transaction: &DatabaseTransaction,
        select: &str,
        values: &[Value],
    ) -> Result<(), StoreError> {
        let text = format!("{select} (extract(epoch FROM clock_timestamp()) * 1000)::bigint AS now");
        let query = Statement::from_sql_and_values(DbBackend::Postgres, text, values.iter().cloned());
        let asked = self.clock.clock.monotonic();
        let row = transaction.query_one_raw(query).await.map_err(store_error)?;
        let took = self.clock.clock.monotonic().saturating_sub(asked);
        if let Some(now) = row.map(|row| row.try_get("", "now")).transpose().map_err(store_error)? {
            self.clock.set(now, took);
        }
        Ok(())
    }
}

/// The longest round trip of a query whose time counts.
const MAX_ROUND_TRIP: Duration = Duration::from_millis(100);
/// No query has told the store's time yet.
const UNKNOWN: i64 = i64::MIN;

/// Whether a transaction's statements have a time limit.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Length {
    Limited,
    Unlimited,
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
