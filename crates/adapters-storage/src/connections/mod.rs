//! Connections and transactions whose calls end within a bounded time.
//!
//! A silent server ends no call by itself: the driver waits for a reply without limit. So every statement has a time
//! limit on this side, too. A connection whose call timed out or was dropped is closed, because its next reply would
//! belong to that call.

mod connection;
mod postgres_pool;
mod rows;
mod sqlite_session;
mod statements;
mod transaction;

#[cfg(test)]
mod tests;

pub(crate) use connection::Connection;
pub(crate) use postgres_pool::{PostgresPool, Reachability};
pub(crate) use rows::RowWriter;
pub(crate) use sqlite_session::WriteLockWatch;
pub(crate) use statements::{CallLimits, WriteHealth};
pub(crate) use transaction::Transaction;
