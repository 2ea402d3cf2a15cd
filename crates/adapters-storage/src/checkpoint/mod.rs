//! Checkpoints of the write-ahead log in the background.
//!
//! By default SQLite checkpoints within the commit that takes the log past 1,000 pages, with three fsyncs, and a
//! request waits for it. A serving process takes this over: its commits only append to the log, and a task with its own
//! connection copies it to the database, without blocking readers or writers. Processes that run one command keep
//! SQLite's default.
//!
//! Only the length of the log depends on the time of a checkpoint. A commit is in the log, with checksums, before it is
//! acknowledged. The log is restarted only after all of it is in the database and the database is synced. After a kill
//! at any time, every commit is therefore found in the log or in the database.

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

/// The time that an ending process waits for the last checkpoint.
const LEAVE_WITHIN: Duration = Duration::from_secs(5);

/// The state of the checkpoint task, and its dependencies.
pub(crate) struct Checkpoints {
    settings: StorageSettings,
    location: Location,
    /// The commits of the writing connection.
    pub(crate) commits: Arc<Commits>,
    counts: Arc<Counts>,
    /// True since the first request for the task, unless it failed to start.
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

    /// Ends the task after a last checkpoint. Call it after the last write.
    pub(crate) async fn end(&self) {
        let running = self.running.lock().unwrap_or_else(PoisonError::into_inner).take();
        let Some(Running { stop, mut task }) = running else { return };
        stop.cancel();
        if tokio::time::timeout(LEAVE_WITHIN, &mut task).await.is_err() {
            // The next process that opens the database copies the rest.
            task.abort();
            tracing::warn!("the write-ahead log was not copied in time; the next start does that");
        }
    }
}

impl Database {
    /// Starts background checkpoints until [`Database::close`]. Repeated calls have no effect, nor does a call on a
    /// read-only database. If this fails, and while an ended task is restarted, SQLite checkpoints within commits as by
    /// default.
    ///
    /// # Errors
    /// [`StoreError::Unavailable`] if the writing connection is unavailable. The call may be repeated.
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
        // Detached from request tasks, which may still write; closing the database ends it.
        let task = TaskTracker::new().spawn(supervisor.run(begun, copying));
        *checkpoints.running.lock().unwrap_or_else(PoisonError::into_inner) = Some(Running { stop, task });
        let begun = has_begun.await.map_err(StoreError::unavailable).flatten();
        if begun.is_err() {
            checkpoints.is_asked_for.store(false, Ordering::SeqCst);
        }
        begun
    }

    /// Returns the last status of the log and the checkpoint counters, without waiting.
    pub fn log(&self) -> LogStanding {
        self.checkpoints().counts.standing()
    }
}
