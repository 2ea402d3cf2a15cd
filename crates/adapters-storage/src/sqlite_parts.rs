//! The connections of a SQLite database.

use std::sync::Arc;

use sea_orm::sqlx::SqlitePool;
use sea_orm::{DatabaseConnection, DbErr};

use crate::checkpoint::Checkpoints;
use crate::connections::{Transaction, WriteLockWatch, connection_error};
use crate::data_version::DataVersionReader;
use crate::database_file::DatabaseFile;
use crate::durable::{Durability, DurableConnection};
use crate::errors::is_lock_denied;

/// The parts of a SQLite database. All processes with the same file run on this machine.
pub(crate) struct SqliteParts {
    pub(crate) writer: DatabaseConnection,
    pub(crate) readers: DatabaseConnection,
    pub(crate) checkpoints: Arc<Checkpoints>,
    pub(crate) durable: DurableConnection,
    pub(crate) write_lock: WriteLockWatch,
    pub(crate) data_version: DataVersionReader,
    pub(crate) file: DatabaseFile,
}

impl SqliteParts {
    /// Returns the connections for reading and for writing.
    pub(crate) fn connections(&self) -> [&DatabaseConnection; 2] {
        [&self.readers, &self.writer]
    }

    pub(crate) fn writer_pool(&self) -> &SqlitePool {
        self.writer.get_sqlite_connection_pool()
    }

    /// Begins a writing transaction. Replaces the connections that may hold the lock in its place.
    pub(crate) async fn begin(&self, durability: Durability) -> Result<Transaction, DbErr> {
        let begun = self.begin_in_turn(durability).await;
        if begun.as_ref().is_err_and(is_lock_denied) && self.write_lock.denied() {
            let pools = [Some(self.writer_pool()), self.durable.get()];
            for pool in pools.into_iter().flatten() {
                while let Some(idle) = pool.try_acquire() {
                    drop(idle.close().await);
                }
            }
        }
        begun
    }

    /// Writers of this process queue for the writing connection, also those on the connection with synced commits.
    async fn begin_in_turn(&self, durability: Durability) -> Result<Transaction, DbErr> {
        let writer = self.writer_pool();
        let durable = self.durable.get().filter(|_| durability == Durability::Synced);
        let Some(durable) = durable else { return Transaction::write_sqlite(writer, None, &self.write_lock).await };
        let turn = writer.acquire().await.map_err(connection_error)?;
        Transaction::write_sqlite(durable, Some(turn), &self.write_lock).await
    }
}
