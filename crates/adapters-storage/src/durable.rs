//! Transactions that survive a power failure in every synchronous mode.

use std::ops::Deref;

use domain::error::StoreError;
use sea_orm::sqlx::SqlitePool;

use crate::connections::Transaction;
use crate::errors::store_error;
use crate::location::{Access, Location};
use crate::settings::{StorageSettings, Synchronous};
use crate::sqlite;

/// The failures that the commit of a transaction survives.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Durability {
    /// As the settings say.
    Configured,
    /// A power failure, whatever the settings say.
    Synced,
}

/// A connection with synced commits; `None` if the commits of the writing connection are synced, too, or the database
/// is read-only.
pub(crate) struct DurableConnection(Option<SqlitePool>);

impl DurableConnection {
    /// Creates the connection, which is opened on first use.
    pub(crate) fn new(settings: &StorageSettings, location: &Location) -> Self {
        let is_needed = settings.synchronous != Synchronous::Full && location.access != Access::ReadOnly;
        Self(is_needed.then(|| sqlite::durable_writer(settings, location)))
    }

    pub(crate) fn get(&self) -> Option<&SqlitePool> {
        self.0.as_ref()
    }
}

/// A transaction whose commit syncs itself and all earlier commits to disk.
pub(crate) struct DurableTransaction(Transaction);

impl DurableTransaction {
    /// Wraps a transaction with [`Durability::Synced`].
    pub(crate) fn new(transaction: Transaction) -> Self {
        Self(transaction)
    }

    pub(crate) async fn commit(self) -> Result<(), StoreError> {
        self.0.commit().await.map_err(store_error)
    }
}

impl Deref for DurableTransaction {
    type Target = Transaction;

    fn deref(&self) -> &Transaction {
        &self.0
    }
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use domain::testing::FixedClock;
    use sea_orm::{ConnectionTrait, DbBackend, Statement};
    use tempfile::TempDir;

    use super::*;
    use crate::database::Database;

    async fn open(synchronous: Synchronous) -> (TempDir, Database) {
        let folder = TempDir::new().unwrap();
        let url = format!("sqlite://{}", folder.path().join("a.db").display());
        let settings = StorageSettings { synchronous, ..StorageSettings::new(url) };
        let clock = Arc::new(FixedClock::at(chrono::DateTime::UNIX_EPOCH));
        (folder, Database::open(&settings, clock).await.unwrap())
    }

    async fn synchronous(connection: &impl ConnectionTrait) -> i64 {
        let pragma = Statement::from_string(DbBackend::Sqlite, "PRAGMA synchronous");
        connection.query_one_raw(pragma).await.unwrap().unwrap().try_get_by_index(0).unwrap()
    }

    const NORMAL: i64 = 1;
    const FULL: i64 = 2;

    #[tokio::test]
    async fn durable_transaction_is_synced_in_every_mode() {
        for (mode, other) in [(Synchronous::Normal, NORMAL), (Synchronous::Full, FULL)] {
            let (_folder, database) = open(mode).await;
            let transaction = database.begin().await.unwrap();
            assert_eq!(synchronous(&transaction).await, other);
            transaction.commit().await.unwrap();
            let transaction = database.begin_durable().await.unwrap();
            assert_eq!(synchronous(&*transaction).await, FULL, "{mode:?}");
            transaction.commit().await.unwrap();
        }
    }

    #[tokio::test]
    async fn durable_and_other_transactions_are_serialised() {
        let (_folder, database) = open(Synchronous::Normal).await;
        database.writer().unwrap().execute_unprepared("CREATE TABLE t (n INTEGER PRIMARY KEY)").await.unwrap();
        let add = |number: i64| {
            let database = &database;
            async move {
                let insert = format!("INSERT INTO t VALUES ({number})");
                if number % 2 == 0 {
                    let transaction = database.begin_durable().await.unwrap();
                    transaction.execute_unprepared(&insert).await.unwrap();
                    transaction.commit().await.unwrap();
                } else {
                    let transaction = database.begin().await.unwrap();
                    transaction.execute_unprepared(&insert).await.unwrap();
                    transaction.commit().await.unwrap();
                }
            }
        };
        futures_util::future::join_all((0..40).map(add)).await;
        let dropped = database.begin_durable().await.unwrap();
        dropped.execute_unprepared("INSERT INTO t VALUES (100)").await.unwrap();
        drop(dropped);
        let transaction = database.begin().await.unwrap();
        let count = Statement::from_string(DbBackend::Sqlite, "SELECT COUNT(*) FROM t");
        let count: i64 = transaction.query_one_raw(count).await.unwrap().unwrap().try_get_by_index(0).unwrap();
        assert_eq!(count, 40, "a dropped transaction is undone");
    }
}
