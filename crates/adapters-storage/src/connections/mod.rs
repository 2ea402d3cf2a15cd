//! Connections and transactions whose calls end within a bounded time.
//!
//! A silent server ends no call by itself: the driver waits for a reply without limit. So every statement has a time
//! limit on this side, too. A connection whose call timed out or was dropped is closed, because its next reply would
//! belong to that call.

mod connection;
mod limits;
mod postgres_pool;
mod reachability;
mod sqlite_session;
mod statements;
mod transaction;
mod write_health;
mod write_lock;

pub(crate) use connection::Connection;
pub(crate) use limits::CallLimits;
pub(crate) use postgres_pool::PostgresPool;
pub(crate) use reachability::Reachability;
pub(crate) use statements::connection_error;
pub(crate) use transaction::Transaction;
pub(crate) use write_health::WriteHealth;
pub(crate) use write_lock::WriteLockWatch;
