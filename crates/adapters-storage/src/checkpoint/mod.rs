//! The write-ahead log, copied into the database beside requests.
//!
//! Left alone, SQLite copies the log ("checkpoints") within whichever commit takes it past 1,000 pages, with three
//! fsyncs, and a request waits for that commit. A process that serves takes this over: its commits only append to the
//! log, and a task on a connection of its own copies it meanwhile, which holds up neither who writes nor who reads.
//! Processes that live for one command keep to SQLite's way.
//!
//! Nothing but the length of the log depends on when it is copied. A commit is in the log, with checksums, before it is
//! acknowledged; the log is begun anew only when all of it is in the database and the database is synced. So whoever
//! opens the file after a kill at any moment finds every commit, in the one or in the other.

mod commits;
mod connection;
mod standing;
mod task;

use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use domain::error::StoreError;
use sea_orm::{DbErr, RuntimeErr, SqlxError};
use tokio::task::JoinHandle;
use tokio_util::sync::CancellationToken;
use tokio_util::task::TaskTracker;

use crate::database::Database;
use crate::errors::store_error;
use crate::location::{Access, Location};
use crate::settings::StorageSettings;

pub(crate) use commits::Commits;
use standing::Counts;
pub use standing::{LogBounds, LogStanding};
use task::Task;

/// How long a process that ends waits for the last copy.
const LEAVE_WITHIN: Duration = Duration::from_secs(5);

/// What the task needs of the database, and the task while it runs.
pub(crate) struct Checkpoints {
    settings: StorageSettings,
    location: Location,
    /// Of the connection that writes.
    pub(crate) commits: Arc<Commits>,
    counts: Arc<Counts>,
    running: Mutex<Option<Running>>,
}

struct Running {
    stop: CancellationToken,
    task: JoinHandle<()>,
}

impl Checkpoints {
    pub(crate) fn new(settings: &StorageSettings, location: &Location) -> Self {
        Self {
            settings: settings.clone(),
            location: location.clone(),
            commits: Arc::default(),
            counts: Arc::default(),
            running: Mutex::default(),
        }
    }

    /// Ends the task after a last copy. To be called when nothing is written any more.
    pub(crate) async fn end(&self) {
        let running = self.running.lock().unwrap_or_else(PoisonError::into_inner).take();
        let Some(Running { stop, mut task }) = running else { return };
        stop.cancel();
        if tokio::time::timeout(LEAVE_WITHIN, &mut task).await.is_err() {
            // Whoever opens the database next copies what is left.
            task.abort();
            tracing::warn!("the write-ahead log was not copied in time; the next start does that");
        }
    }
}

impl Database {
    /// Copies the log beside requests from now on, until [`Database::close`]. A second call changes nothing, and
    /// neither does one on a database that is open for reading alone.
    ///
    /// # Errors
    /// [`StoreError::Unavailable`] where the connection that writes cannot be had.
    pub async fn checkpoint_beside_requests(&self, bounds: LogBounds) -> Result<(), StoreError> {
        let checkpoints = self.checkpoints();
        if checkpoints.location.access == Access::ReadOnly || !checkpoints.commits.follow() {
            return Ok(());
        }
        // Connections that are opened later come with it, see `sqlite::writer`.
        let mut writer = self.take_turn().await.map_err(unavailable)?;
        checkpoints.commits.attach(&mut writer).await.map_err(unavailable)?;
        drop(writer);
        let stop = CancellationToken::new();
        // It outlives the tasks of requests, for those still write: closing the database ends it.
        let task = TaskTracker::new().spawn(Task::new(self.clone(), bounds, stop.clone()).run());
        *checkpoints.running.lock().unwrap_or_else(PoisonError::into_inner) = Some(Running { stop, task });
        Ok(())
    }

    /// How the log stood when it was last looked at, and what was done about it. Waits for nothing.
    pub fn log(&self) -> LogStanding {
        self.checkpoints().counts.standing()
    }
}

fn unavailable(error: SqlxError) -> StoreError {
    store_error(DbErr::Conn(RuntimeErr::SqlxError(Arc::new(error))))
}
