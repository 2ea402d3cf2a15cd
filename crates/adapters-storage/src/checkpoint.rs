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

mod state;
mod task;

use std::panic::AssertUnwindSafe;
use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::Duration;

use domain::error::StoreError;
use futures_util::FutureExt;
use tokio::sync::oneshot;
use tokio::time::sleep;
use tokio_util::sync::CancellationToken;
use tokio_util::task::TaskTracker;

use self::task::CheckpointTask;
use crate::database::Database;
use crate::errors::driver_error;
use crate::settings::Access;

pub use self::state::{CheckpointLimits, WalStatus};
pub(crate) use self::state::{Checkpoints, Commits};

impl Database {
    /// Starts background checkpoints until [`Database::close`]. Repeated calls have no effect, nor does a call on a
    /// read-only database or on PostgreSQL. If this fails, and while an ended task is restarted, SQLite checkpoints within
    /// commits as by default.
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
        checkpoints.started(stop, task);
        let started = has_started.await.map_err(StoreError::unavailable).flatten();
        if started.is_err() {
            checkpoints.is_requested.store(false, Ordering::SeqCst);
        }
        started
    }

    /// Returns the last status of the log and the checkpoint counters, without waiting; zeros on PostgreSQL.
    pub fn wal_status(&self) -> WalStatus {
        self.sqlite().map(|sqlite| sqlite.checkpoints.status.get()).unwrap_or_default()
    }
}

/// Disables SQLite's automatic checkpoints, and re-enables them whenever the task ends unexpectedly.
pub(super) struct Supervisor {
    pub(super) database: Database,
    pub(super) checkpoints: Arc<Checkpoints>,
    pub(super) stop: CancellationToken,
    /// The time for which SQLite checkpoints before the task is restarted.
    pub(super) pause: Duration,
}

/// Receives once whether the checkpoints were taken over at the start.
pub(super) type StartSender = oneshot::Sender<Result<(), StoreError>>;

impl Supervisor {
    /// Runs until stopped. If the checkpoints cannot be taken over at the start, SQLite keeps them and this ends.
    pub(super) async fn run<F: Future<Output = ()>>(self, started: StartSender, mut copying: impl FnMut() -> F) {
        if let Err(error) = self.take_over().await {
            // The receiver may be gone.
            drop(started.send(Err(error)));
            return;
        }
        drop(started.send(Ok(())));
        loop {
            let ended = AssertUnwindSafe(copying()).catch_unwind().await;
            if ended.is_ok() && self.stop.is_cancelled() {
                return;
            }
            self.return_to_sqlite(ended.is_err()).await;
            if !self.retry_take_over().await {
                return;
            }
        }
    }

    /// From here on commits only append to the log, on this connection and on later ones.
    async fn take_over(&self) -> Result<(), StoreError> {
        let mut writer = self.database.acquire_writer().await.map_err(driver_error)?;
        self.checkpoints.commits.follow(&mut writer).await.map_err(driver_error)
    }

    async fn return_to_sqlite(&self, panicked: bool) {
        let checkpoints = &self.checkpoints;
        checkpoints.status.update(|status| status.ended += 1);
        tracing::error!(
            panicked,
            again_in_ms = u64::try_from(self.pause.as_millis()).unwrap_or(u64::MAX),
            "wal checkpoint task ended unexpectedly; SQLite checkpoints within commits until it restarts"
        );
        checkpoints.commits.forget();
        let given_back = async {
            let mut writer = self.database.acquire_writer().await?;
            checkpoints.commits.leave(&mut writer).await
        };
        if let Err(error) = given_back.await {
            let error: &dyn std::error::Error = &error;
            tracing::warn!(error, "wal autocheckpoint could not be restored");
        }
    }

    /// Takes over again after the pause; returns false if stopped before.
    async fn retry_take_over(&self) -> bool {
        let mut is_logged = false;
        loop {
            tokio::select! {
                () = self.stop.cancelled() => return false,
                () = sleep(self.pause) => {}
            }
            match self.take_over().await {
                Ok(()) => {
                    tracing::info!("wal checkpoint task restarted");
                    return true;
                }
                Err(error) if !is_logged => {
                    is_logged = true;
                    let error: &dyn std::error::Error = &error;
                    tracing::warn!(error, "wal checkpoint lock not acquired, retrying");
                }
                Err(_) => {}
            }
        }
    }
}

#[cfg(test)]
mod tests;
