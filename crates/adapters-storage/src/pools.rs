//! Status of the connection pools, for operators.

use sea_orm::DatabaseConnection;

use crate::Database;
use crate::connections::PostgresPool;

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
