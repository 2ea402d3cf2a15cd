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
mod status;
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
use status::CheckpointCounters;
pub use status::{CheckpointLimits, WalStatus};
use supervisor::Supervisor;
use task::CheckpointTask;

/// The time that an ending process waits for the last checkpoint.
const SHUTDOWN_TIMEOUT: Duration = Duration::from_secs(5);

/// The state of the checkpoint task, and its dependencies.
pub(crate) struct Checkpoints {
    settings: StorageSettings,
    location: Location,
    /// The commits of the writing connection.
    pub(crate) commits: Arc<Commits>,
    counts: Arc<CheckpointCounters>,
    /// True since the first request for the task, unless it failed to start.
    is_requested: AtomicBool,
    running: Mutex<Option<RunningTask>>,
}

struct RunningTask {
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
            is_requested: AtomicBool::new(false),
            running: Mutex::default(),
        }
    }

    /// Ends the task after a last checkpoint. Call it after the last write.
    pub(crate) async fn end(&self) {
        let running = self.running.lock().unwrap_or_else(PoisonError::into_inner).take();
        let Some(RunningTask { stop, mut task }) = running else { return };
        stop.cancel();
        if tokio::time::timeout(SHUTDOWN_TIMEOUT, &mut task).await.is_err() {
            // The next process that opens the database copies the rest.
            task.abort();
            tracing::warn!("wal not checkpointed in time; the next start does it");
        }
    }
}

impl Database {
    /// Starts background checkpoints until [`Database::close`]. Repeated calls have no effect, nor does a call on a
    /// read-only database or on PostgreSQL. If this fails, and while an ended task is restarted, SQLite checkpoints within commits as by
    /// default.
    ///
    /// # Errors
    /// [`StoreError::Unavailable`] if the writing connection is unavailable. The call may be repeated.
    pub async fn start_checkpoint_task(&self, bounds: CheckpointLimits) -> Result<(), StoreError> {
        let Some(sqlite) = self.sqlite() else { return Ok(()) };
        let checkpoints = Arc::clone(&sqlite.checkpoints);
        if checkpoints.location.access == Access::ReadOnly || checkpoints.is_requested.swap(true, Ordering::SeqCst) {
            return Ok(());
        }
        let stop = CancellationToken::new();
        let supervisor = Supervisor {
            database: self.clone(),
            checkpoints: Arc::clone(&checkpoints),
            stop: stop.clone(),
            pause: bounds.retry,
        };
        let (started, has_started) = oneshot::channel();
        let copying = {
            let (database, checkpoints, stop) = (self.clone(), Arc::clone(&checkpoints), stop.clone());
            move || CheckpointTask::new(database.clone(), Arc::clone(&checkpoints), bounds, stop.clone()).run()
        };
        // Detached from request tasks, which may still write; closing the database ends it.
        let task = TaskTracker::new().spawn(supervisor.run(started, copying));
        *checkpoints.running.lock().unwrap_or_else(PoisonError::into_inner) = Some(RunningTask { stop, task });
        let started = has_started.await.map_err(StoreError::unavailable).flatten();
        if started.is_err() {
            checkpoints.is_requested.store(false, Ordering::SeqCst);
        }
        started
    }

    /// Returns the last status of the log and the checkpoint counters, without waiting; zeros on PostgreSQL.
    pub fn wal_status(&self) -> WalStatus {
        self.sqlite().map(|sqlite| sqlite.checkpoints.counts.status()).unwrap_or_default()
    }
}
