//! How the database's connections stand, for the operator.

use sea_orm::sqlx::SqlitePool;

use crate::Database;

/// How a pool of connections stands.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct PoolStanding {
    /// Which one: `reader` or `writer`.
    pub pool: &'static str,
    /// Connections that are at work.
    pub busy: u64,
    /// Connections that are open and wait for work.
    pub idle: u64,
    /// The most that it opens.
    pub most: u64,
}

impl Database {
    /// How its pools stand at this moment. Waits for nothing.
    pub fn pools(&self) -> [PoolStanding; 2] {
        [standing("reader", self.reading_pool()), standing("writer", self.writing_pool())]
    }
}

fn standing(name: &'static str, pool: &SqlitePool) -> PoolStanding {
    let idle = u64::try_from(pool.num_idle()).unwrap_or(u64::MAX);
    // The two are counted one after the other, so that for a moment more may be idle than open.
    let busy = u64::from(pool.size()).saturating_sub(idle);
    PoolStanding { pool: name, busy, idle, most: u64::from(pool.options().get_max_connections()) }
}
