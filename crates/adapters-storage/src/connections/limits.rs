//! The time limits of calls.

use std::time::Duration;

use sea_orm::{DbErr, RuntimeErr};
use tokio::time::{Instant, timeout_at};

use crate::settings::StorageSettings;

/// The time beyond the busy timeout within which a server reports that the busy timeout passed.
const REPLY_MARGIN: Duration = Duration::from_secs(1);
/// The longest transaction of a request or of background work, and the longest statement on SQLite.
const SHORT_TRANSACTION: Duration = Duration::from_mins(1);
/// The longest report, audit or copy.
const LONG_TRANSACTION: Duration = Duration::from_hours(1);

/// The time limits of a kind of calls.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct CallLimits {
    /// The longest wait for the end of a statement.
    pub(crate) statement: Duration,
    /// The longest transaction.
    pub(crate) transaction: Duration,
}

impl CallLimits {
    /// Returns the limits of SQLite. Its statements wait for a disk, and not for a server that may have vanished.
    pub(crate) const SQLITE: Self = Self { statement: SHORT_TRANSACTION, transaction: SHORT_TRANSACTION };
    /// Returns the limits of reports, audits and copies.
    pub(crate) const LONG: Self = Self { statement: LONG_TRANSACTION, transaction: LONG_TRANSACTION };

    /// Returns the limits of PostgreSQL for requests and background work.
    pub(crate) fn short(settings: &StorageSettings) -> Self {
        let statement = settings.busy_timeout.saturating_add(REPLY_MARGIN);
        Self { statement, transaction: SHORT_TRANSACTION.max(statement) }
    }

    /// Returns the end of a transaction that begins now.
    pub(crate) fn transaction_end(&self) -> Instant {
        Instant::now() + self.transaction
    }

    /// Returns the end of a statement that begins now.
    pub(crate) fn statement_end(&self) -> Instant {
        Instant::now() + self.statement
    }
}

/// Runs a call of the ORM until `end`.
pub(crate) async fn until<T>(end: Instant, call: impl Future<Output = Result<T, DbErr>>) -> Result<T, DbErr> {
    timeout_at(end, call).await.unwrap_or_else(|_| Err(unavailable("the database did not respond in time")))
}

/// Returns the error of an unavailable database.
pub(crate) fn unavailable(text: impl Into<String>) -> DbErr {
    DbErr::Conn(RuntimeErr::Internal(text.into()))
}
