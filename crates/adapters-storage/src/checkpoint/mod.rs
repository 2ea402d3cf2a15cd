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
mod supervisor;
mod task;

use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use domain::error::StoreError;
use tokio::sync::oneshot;
use tokio::task::JoinHandle;
use tokio_util::sync::CancellationToken;
use tokio_util::task::TaskTracker;

use crate::database::Database;
use crate::location::{Access, Location};
use crate::settings::StorageSettings;

pub(crate) use commits::Commits;
use standing::Counts;
pub use standing::{LogBounds, LogStanding};
use supervisor::Supervisor;
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
    /// True from the first who asks for it on, unless it could not begin.
    is_asked_for: AtomicBool,
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
            is_asked_for: AtomicBool::new(false),
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
    /// neither does one on a database that is open for reading alone. Where this fails, and whenever the task ends by
    /// itself until it runs again, SQLite copies the log within commits as it does by default.
    ///
    /// # Errors
    /// [`StoreError::Unavailable`] where the connection that writes cannot be had. It may be asked for again.
    pub async fn checkpoint_beside_requests(&self, bounds: LogBounds) -> Result<(), StoreError> {
        let checkpoints = self.checkpoints();
        if checkpoints.location.access == Access::ReadOnly || checkpoints.is_asked_for.swap(true, Ordering::SeqCst) {
            return Ok(());
        }
        let stop = CancellationToken::new();
        let supervisor = Supervisor { database: self.clone(), stop: stop.clone(), pause: bounds.retry };
        let (begun, has_begun) = oneshot::channel();
        let copying = {
            let (database, stop) = (self.clone(), stop.clone());
            move || Task::new(database.clone(), bounds, stop.clone()).run()
        };
        // It outlives the tasks of requests, for those still write: closing the database ends it.
        let task = TaskTracker::new().spawn(supervisor.run(begun, copying));
        *checkpoints.running.lock().unwrap_or_else(PoisonError::into_inner) = Some(Running { stop, task });
        let begun = has_begun.await.map_err(StoreError::unavailable).flatten();
        if begun.is_err() {
            checkpoints.is_asked_for.store(false, Ordering::SeqCst);
        }
        begun
    }

    /// How the log stood when it was last looked at, and what was done about it. Waits for nothing.
    pub fn log(&self) -> LogStanding {
        self.checkpoints().counts.standing()
    }
}
