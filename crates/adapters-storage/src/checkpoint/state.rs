//! The state of the checkpoint task.

use std::sync::atomic::AtomicBool;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use tokio::task::JoinHandle;
use tokio_util::sync::CancellationToken;

use super::commits::Commits;
use super::status::CheckpointCounters;
use crate::location::Location;
use crate::settings::StorageSettings;

/// The time that an ending process waits for the last checkpoint.
const SHUTDOWN_TIMEOUT: Duration = Duration::from_secs(5);

/// The state of the checkpoint task, and its dependencies.
pub(crate) struct Checkpoints {
    pub(super) settings: StorageSettings,
    pub(super) location: Location,
    /// The commits of the writing connection.
    pub(crate) commits: Arc<Commits>,
    pub(super) counts: Arc<CheckpointCounters>,
    /// True since the first request for the task, unless it failed to start.
    pub(super) is_requested: AtomicBool,
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

    /// Keeps a task until [`Self::end`].
    pub(super) fn started(&self, stop: CancellationToken, task: JoinHandle<()>) {
        *self.running.lock().unwrap_or_else(PoisonError::into_inner) = Some(RunningTask { stop, task });
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
