//! Failed transactions on a SQLite file: whatever failed, and on whichever connection, the next transaction begins, its
//! commit lasts, and no lock is left.

use std::sync::Arc;
use std::time::Duration;

use domain::error::StoreError;
use domain::testing::FixedClock;
use sea_orm::sqlx::sqlite::SqliteConnectOptions;
use sea_orm::sqlx::{ConnectOptions, Connection as _, Executor, SqliteConnection, query_scalar};
use sea_orm::{ConnAcquireErr, ConnectionTrait, DbBackend, DbErr, Statement};
use tempfile::TempDir;

use crate::database::Database;
use crate::errors::is_temporary;
use crate::settings::{StorageSettings, Synchronous};
use crate::sqlite::Durability;

/// Room for a few rows.
const MAX_BYTES: u64 = 20 * 4_096;
/// A row above that.
const LARGE_ROW: &str = "INSERT INTO t (filler) VALUES (zeroblob(500000))";
const ROW: &str = "INSERT INTO t (filler) VALUES (x'00')";
const DURABILITIES: [Durability; 2] = [Durability::Configured, Durability::Synced];

struct Fixture {
    database: Database,
    /// A connection that is not one of the database.
    outside: SqliteConnection,
    rows: i64,
    _folder: TempDir,
}

impl Fixture {
    async fn open(synchronous: Synchronous) -> Self {
        let folder = TempDir::new().unwrap();
        let path = folder.path().join("a.db");
        let settings = StorageSettings {
            synchronous,
            busy_timeout: Duration::from_millis(500),
            max_bytes: Some(MAX_BYTES),
            ..StorageSettings::new(format!("sqlite://{}", path.display()))
        };
        let clock = Arc::new(FixedClock::at(chrono::DateTime::UNIX_EPOCH));
        let database = Database::open(&settings, clock).await.unwrap();
        let create = "CREATE TABLE t (n INTEGER PRIMARY KEY AUTOINCREMENT, filler BLOB)";
        database.writer().unwrap().execute_unprepared(create).await.unwrap();
        let options = SqliteConnectOptions::new().filename(&path).busy_timeout(Duration::from_secs(10));
        Self { database, outside: options.connect().await.unwrap(), rows: 0, _folder: folder }
    }

    async fn write(&self, durability: Durability, statement: &str) -> Result<(), StoreError> {
        let transaction = self.database.begin_write(durability).await?;
        transaction.execute_unprepared(statement).await.map_err(crate::errors::store_error)?;
        transaction.commit().await
    }

    /// Asserts that every kind of write lasts, that readers see it, and that no lock is left.
    async fn assert_usable(&mut self, case: &str) {
        for durability in DURABILITIES {
            let written = self.write(durability, ROW).await;
            assert!(written.is_ok(), "{case}, {durability:?}: {written:?}");
            self.rows += 1;
        }
        let single = self.database.writer().unwrap().execute_unprepared(ROW).await;
        assert!(single.is_ok(), "{case}: {single:?}");
        self.rows += 1;
        let count = "SELECT COUNT(*) FROM t";
        let found: i64 = query_scalar(count).fetch_one(&mut self.outside).await.unwrap();
        assert_eq!(found, self.rows, "{case}: a commit did not last");
        let snapshot = self.database.snapshot().await.unwrap();
        let statement = Statement::from_string(DbBackend::Sqlite, count);
        let seen: i64 = snapshot.query_one_raw(statement).await.unwrap().unwrap().try_get_by_index(0).unwrap();
        assert_eq!(seen, self.rows, "{case}: a reader does not see a commit");
        self.outside.execute("BEGIN IMMEDIATE").await.unwrap_or_else(|error| panic!("{case}: a lock is left: {error}"));
        self.outside.execute("ROLLBACK").await.unwrap();
        assert_eq!(self.database.write_failure(), None, "{case}");
    }

    /// Lets the time of the longest transaction pass.
    async fn outlast_transactions(&self) {
        tokio::time::pause();
        tokio::time::advance(Duration::from_secs(61)).await;
        tokio::time::resume();
    }
}

/// A statement that fails in a transaction.
const FAILURES: [(&str, &str); 3] = [
    ("the database is full", LARGE_ROW),
    ("a violated constraint", "INSERT INTO t (n) VALUES (1), (1)"),
    ("a missing table", "INSERT INTO absent VALUES (1)"),
];

#[tokio::test]
async fn failed_transaction_leaves_every_connection_usable() {
    for mode in [Synchronous::Normal, Synchronous::Full] {
        let mut fixture = Fixture::open(mode).await;
        for durability in DURABILITIES {
            for (name, statement) in FAILURES {
                let case = format!("{name}, {mode:?}, {durability:?}");
                // Twice: the second one meets what the first one left.
                for _ in 0..2 {
                    assert!(fixture.write(durability, statement).await.is_err(), "{case}");
                }
                fixture.assert_usable(&case).await;
                let transaction = fixture.database.begin_write(durability).await.unwrap();
                transaction.execute_unprepared(ROW).await.unwrap();
                transaction.execute_unprepared(statement).await.unwrap_err();
                transaction.commit().await.unwrap_err();
                fixture.assert_usable(&format!("{case}, committed nevertheless")).await;
            }
            fixture.database.writer().unwrap().execute_unprepared(LARGE_ROW).await.unwrap_err();
            assert!(fixture.database.write_failure().is_some_and(|reason| reason.contains("full")));
            fixture.assert_usable("a single statement").await;
        }
    }
}

#[tokio::test]
async fn dropped_transaction_leaves_every_connection_usable() {
    let mut fixture = Fixture::open(Synchronous::Normal).await;
    for durability in DURABILITIES {
        for moment in ["its begin", "a statement", "its end", "its commit"] {
            let case = format!("dropped at {moment}, {durability:?}");
            match moment {
                "its begin" => drop(futures_util::poll!(Box::pin(fixture.database.begin_write(durability)))),
                "a statement" => {
                    let transaction = fixture.database.begin_write(durability).await.unwrap();
                    let has_ended = futures_util::poll!(transaction.execute_unprepared(ROW)).is_ready();
                    // A fast statement ends at once, and was not dropped then.
                    assert_eq!(transaction.commit().await.is_ok(), has_ended, "{case}");
                    fixture.rows += i64::from(has_ended);
                }
                "its end" => {
                    let transaction = fixture.database.begin_write(durability).await.unwrap();
                    transaction.execute_unprepared(ROW).await.unwrap();
                }
                _ => {
                    let transaction = fixture.database.begin_write(durability).await.unwrap();
                    transaction.execute_unprepared("SELECT 1").await.unwrap();
                    drop(futures_util::poll!(Box::pin(transaction.commit())));
                }
            }
            fixture.assert_usable(&case).await;
        }
    }
}

/// A connection that returned to its pool in a transaction, known to the driver or not.
#[tokio::test]
async fn connection_in_a_transaction_is_replaced() {
    let mut fixture = Fixture::open(Synchronous::Normal).await;
    for begin in ["BEGIN", "BEGIN IMMEDIATE"] {
        let mut writer = fixture.database.acquire_writer().await.unwrap();
        writer.execute(begin).await.unwrap();
        drop(writer);
        fixture.assert_usable(begin).await;
    }
    let mut writer = fixture.database.acquire_writer().await.unwrap();
    let begun = writer.begin_with("BEGIN IMMEDIATE").await.unwrap();
    std::mem::forget(begun);
    drop(writer);
    fixture.assert_usable("begun by the driver").await;
}

#[tokio::test]
async fn transaction_that_never_ends_loses_the_write_lock() {
    let mut fixture = Fixture::open(Synchronous::Normal).await;
    for durability in DURABILITIES {
        let hung = fixture.database.begin_write(durability).await.unwrap();
        hung.execute_unprepared(ROW).await.unwrap();
        assert!(fixture.write(Durability::Configured, ROW).await.is_err(), "it may still go on");
        fixture.outlast_transactions().await;
        // The writer that finds it fails, too.
        fixture.write(Durability::Configured, ROW).await.unwrap_err();
        fixture.assert_usable(&format!("{durability:?}")).await;
        hung.commit().await.unwrap_err();
        fixture.assert_usable("after its end").await;
    }
}

#[tokio::test]
async fn write_lock_of_an_idle_connection_is_found() {
    let mut fixture = Fixture::open(Synchronous::Normal).await;
    fixture.write(Durability::Synced, ROW).await.unwrap();
    fixture.rows += 1;
    let idle = fixture.database.sqlite().unwrap().durable.get().unwrap();
    let mut durable = idle.acquire().await.unwrap();
    durable.execute("BEGIN IMMEDIATE").await.unwrap();
    drop(durable);
    fixture.write(Durability::Configured, ROW).await.unwrap_err();
    fixture.outlast_transactions().await;
    fixture.write(Durability::Configured, ROW).await.unwrap_err();
    fixture.assert_usable("replaced").await;
}

#[tokio::test]
async fn errors_of_single_statements_are_those_of_the_orm() {
    let fixture = Fixture::open(Synchronous::Normal).await;
    let writer = fixture.database.writer().unwrap();
    let written = writer.execute_unprepared("INSERT INTO missing VALUES (1)").await;
    assert!(matches!(written, Err(DbErr::Exec(_))), "{written:?}");
    let query = Statement::from_string(DbBackend::Sqlite, "SELECT n FROM missing");
    let read = writer.query_one_raw(query).await;
    assert!(matches!(read, Err(DbErr::Query(_))), "{read:?}");
    let held = fixture.database.acquire_writer().await.unwrap();
    let timed_out = writer.execute_unprepared(ROW).await.unwrap_err();
    assert_eq!(timed_out, DbErr::ConnectionAcquire(ConnAcquireErr::Timeout));
    drop(held);
    fixture.database.close().await;
    let closed = writer.execute_unprepared(ROW).await.unwrap_err();
    assert_eq!(closed, DbErr::ConnectionAcquire(ConnAcquireErr::ConnectionClosed));
    assert!(is_temporary(&timed_out) && is_temporary(&closed));
}
