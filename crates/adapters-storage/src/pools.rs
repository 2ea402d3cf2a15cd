//! Status of the connection pools, for operators.

use sea_orm::sqlx::{self, Pool};
use sea_orm::{DatabaseConnection, DbBackend};

use crate::Database;

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
        let [reader, writer] = self.connections();
        [pool_status("reader", reader), pool_status("writer", writer)]
    }
}

fn pool_status(name: &'static str, connection: &DatabaseConnection) -> PoolStatus {
    let (size, idle, limit) = match connection.get_database_backend() {
        DbBackend::Postgres => counts(connection.get_postgres_connection_pool()),
        _ => counts(connection.get_sqlite_connection_pool()),
    };
    let idle = u64::try_from(idle).unwrap_or(u64::MAX);
    // The two counts are not atomic, so that idle may briefly exceed open.
    PoolStatus { pool: name, busy: u64::from(size).saturating_sub(idle), idle, limit: limit.into() }
}

/// Returns the open connections, the idle ones among them, and their limit.
fn counts<D: sqlx::Database>(pool: &Pool<D>) -> (u32, usize, u32) {
    (pool.size(), pool.num_idle(), pool.options().get_max_connections())
}
