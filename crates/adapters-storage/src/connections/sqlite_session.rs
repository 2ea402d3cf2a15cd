//! The connection of a transaction on a SQLite file.
//!
//! SQLite may end a transaction by itself, as on a full disk, and the driver counts the transactions that it began. If
//! the two disagree, the driver would begin a savepoint in place of a transaction, and no commit of it would last. So a
//! connection whose transaction did not begin or end as expected is closed.

use std::sync::{Arc, Mutex, MutexGuard, PoisonError, Weak};
use std::time::Duration;

use futures_util::future::BoxFuture;
use sea_orm::DbErr;
use sea_orm::sqlx::pool::PoolConnection;
use sea_orm::sqlx::{Error, SqlSafeStr, Sqlite, SqliteConnection, SqlitePool};
use sqlx_core::transaction::TransactionManager;
use tokio::time::{Instant, timeout_at};

use super::statements::{CallLimits, unavailable};
use crate::errors::{connection_error, is_busy, query_error};

/// The transactions of the driver.
type Manager = <Sqlite as sea_orm::sqlx::Database>::TransactionManager;

/// The connections that a transaction holds.
pub(super) struct HeldConnections {
    connection: PoolConnection<Sqlite>,
    /// The turn of the writers of this process. Released last.
    _turn: Option<PoolConnection<Sqlite>>,
}

impl HeldConnections {
    /// Closes the connection, which ends its transaction.
    pub(super) fn close(mut self) {
        self.connection.close_on_drop();
    }
}

/// The connections of a transaction; `None` during a statement and after the end.
pub(super) type Slot = tokio::sync::Mutex<Option<HeldConnections>>;

pub(super) struct SqliteSession(Arc<Slot>);

impl SqliteSession {
    /// Begins a transaction by the given statement.
    pub(super) async fn begin(
        pool: &SqlitePool,
        statement: &'static str,
        turn: Option<PoolConnection<Sqlite>>,
    ) -> Result<Self, DbErr> {
        let mut connection = pool.acquire().await.map_err(connection_error)?;
        let mut begun = begin(&mut connection, statement).await;
        if begun.as_ref().is_err_and(|error| !is_busy(error)) {
            // Another connection may be sound. Closing this one ends whatever it had begun.
            drop(connection.close().await);
            connection = pool.acquire().await.map_err(connection_error)?;
            begun = begin(&mut connection, statement).await;
        }
        if let Err(error) = begun {
            connection.close_on_drop();
            return Err(error);
        }
        Ok(Self(Arc::new(Slot::new(Some(HeldConnections { connection, _turn: turn })))))
    }

    pub(super) fn slot(&self) -> &Arc<Slot> {
        &self.0
    }

    /// Runs a call of the driver until `end`. A connection whose call times out or is dropped is closed.
    pub(super) async fn call<T>(
        &self,
        end: Instant,
        call: impl for<'c> FnOnce(&'c mut SqliteConnection) -> BoxFuture<'c, Result<T, Error>>,
    ) -> Result<T, DbErr> {
        let mut slot = self.0.lock().await;
        let mut held = slot.take().ok_or_else(ended)?;
        let Ok(result) = timeout_at(end, call(&mut held.connection)).await else {
            held.close();
            return Err(unavailable("the database did not respond in time"));
        };
        *slot = Some(held);
        result.map_err(query_error)
    }

    /// Commits. A commit that was not that of the outermost transaction would not last: it is an error.
    pub(super) async fn commit(self, end: Instant) -> Result<(), DbErr> {
        let mut held = self.0.lock().await.take().ok_or_else(ended)?;
        let is_outermost = depth(&held) == 1;
        let committed = timeout_at(end, Manager::commit(&mut held.connection)).await;
        match committed {
            Ok(Ok(())) if is_outermost && depth(&held) == 0 => Ok(()),
            Ok(Err(error)) => {
                held.close();
                Err(query_error(error))
            }
            Ok(Ok(())) => {
                held.close();
                Err(unavailable("the transaction had ended before its commit"))
            }
            Err(_) => {
                held.close();
                Err(unavailable("the database did not respond in time"))
            }
        }
    }
}

impl Drop for SqliteSession {
    /// Rolls back. The pool closes a connection on which that fails.
    fn drop(&mut self) {
        // A locked slot is that of a watch, which closes the connection.
        if let Ok(mut slot) = self.0.try_lock()
            && let Some(mut held) = slot.take()
        {
            Manager::start_rollback(&mut held.connection);
        }
    }
}

async fn begin(connection: &mut SqliteConnection, statement: &'static str) -> Result<(), DbErr> {
    Manager::begin(connection, Some(statement.into_sql_str())).await.map_err(query_error)
}

/// Returns the number of transactions that the driver counts as open.
fn depth(held: &HeldConnections) -> usize {
    Manager::get_transaction_depth(&held.connection)
}

fn ended() -> DbErr {
    unavailable("the transaction has ended")
}

/// Notices a write lock that this process holds for longer than any transaction may. It looks whenever a writer fails to
/// get the lock.
#[derive(Default)]
pub(crate) struct WriteLockWatch(Mutex<State>);

#[derive(Default)]
struct State {
    /// The last transaction of this process that got the lock, and its end.
    holder: Option<(Weak<Slot>, Instant)>,
    /// The time since which no writer of this process has got the lock.
    denied_since: Option<Instant>,
}

impl WriteLockWatch {
    /// Records a transaction that got the lock.
    pub(super) fn acquired(&self, slot: &Arc<Slot>, end: Instant) {
        *self.lock() = State { holder: Some((Arc::downgrade(slot), end)), denied_since: None };
    }

    /// Records that a writer did not get the lock. Ends an own transaction that is older than any may be. Returns true
    /// once this has lasted for that long without one: then an idle connection of this process may hold the lock, and
    /// all of them are to be closed.
    pub(crate) fn denied(&self) -> bool {
        let longest = CallLimits::SQLITE.transaction;
        let now = Instant::now();
        let mut state = self.lock();
        if let Some((slot, end)) = &state.holder
            && *end < now
            && let Some(slot) = slot.upgrade()
            // A locked slot is that of a running statement, which has a time limit.
            && let Ok(mut slot) = slot.try_lock()
            && let Some(held) = slot.take()
        {
            held.close();
            log(now.duration_since(*end).saturating_add(longest));
            *state = State::default();
            return false;
        }
        let denied_since = *state.denied_since.get_or_insert(now);
        let denied_for = now.duration_since(denied_since);
        if denied_for < longest {
            return false;
        }
        log(denied_for);
        state.denied_since = Some(now);
        true
    }

    fn lock(&self) -> MutexGuard<'_, State> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

fn log(denied_for: Duration) {
    tracing::warn!(
        denied_for_ms = u64::try_from(denied_for.as_millis()).unwrap_or(u64::MAX),
        "write lock not available for longer than any transaction; writing connections of this process replaced"
    );
}
