//! Status of the connection pools, for operators.

use sea_orm::sqlx::SqlitePool;

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
        [pool_status("reader", self.reading_pool()), pool_status("writer", self.writing_pool())]
    }
}

fn pool_status(name: &'static str, pool: &SqlitePool) -> PoolStatus {
    let idle = u64::try_from(pool.num_idle()).unwrap_or(u64::MAX);
    // The two counts are not atomic, so that idle may briefly exceed open.
    let busy = u64::from(pool.size()).saturating_sub(idle);
    PoolStatus { pool: name, busy, idle, limit: u64::from(pool.options().get_max_connections()) }
}
