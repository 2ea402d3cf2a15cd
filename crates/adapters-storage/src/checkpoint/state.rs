//! The state of the checkpoint task: commits, limits and counters.

use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use sea_orm::sqlx::{self, SqliteConnection};
use tokio::sync::Notify;
use tokio::task::JoinHandle;
use tokio_util::sync::CancellationToken;

use crate::settings::{Location, StorageSettings};

/// The time that an ending process waits for the last checkpoint.
const SHUTDOWN_TIMEOUT: Duration = Duration::from_secs(5);

/// The state of the checkpoint task, and its dependencies.
pub(crate) struct Checkpoints {
    pub(super) settings: StorageSettings,
    pub(super) location: Location,
    /// The commits of the writing connection.
    pub(crate) commits: Arc<Commits>,
    pub(super) status: Arc<SharedStatus>,
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
            status: Arc::default(),
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

/// Limits that trigger checkpoints and restarts of the log, in bytes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct CheckpointLimits {
    /// The uncopied bytes that trigger a checkpoint.
    ///
    /// There is intentionally no time limit: the first commit after a complete checkpoint restarts the log with an
    /// fsync, so that under a light load every request would pay for one.
    pub copy_after: u64,
    /// The length that triggers a restart; writers wait for it briefly.
    pub restart_after: u64,
    /// The length that triggers a warning.
    pub warn_after: u64,
    /// The time for which commits are collected before a step: the shortest interval between steps.
    pub pause: Duration,
    /// The pause after an error.
    pub retry: Duration,
}

impl Default for CheckpointLimits {
    /// 4 MiB (about SQLite's own 1,000 pages), 64 MiB, 1 GiB, 100 ms and 5 s.
    fn default() -> Self {
        Self {
            copy_after: 4 << 20,
            restart_after: 64 << 20,
            warn_after: 1 << 30,
            pause: Duration::from_millis(100),
            retry: Duration::from_secs(5),
        }
    }
}

/// The status of the log, and counters since the start of the process.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct WalStatus {
    /// The last known length in bytes.
    pub bytes: u64,
    /// The number of checks.
    pub checks: u64,
    /// The number of complete checkpoints.
    pub copied: u64,
    /// The number of partial checkpoints, limited by active readers.
    pub partial: u64,
    /// The number of restarts of the log.
    pub restarted: u64,
    /// The number of failures.
    pub failed: u64,
    /// The number of unexpected ends of the task, such as panics, after which it was restarted.
    pub ended: u64,
}

/// The status, shared with the task.
#[derive(Default)]
pub(super) struct SharedStatus(Mutex<WalStatus>);

impl SharedStatus {
    pub(super) fn get(&self) -> WalStatus {
        *self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    pub(super) fn update(&self, change: impl FnOnce(&mut WalStatus)) {
        change(&mut self.0.lock().unwrap_or_else(PoisonError::into_inner));
    }
}

/// SQLite's default checkpoint setting.
const DEFAULT_AUTOCHECKPOINT: &str = "PRAGMA wal_autocheckpoint = 1000";

/// Notifies of commits. Several commits before the task waits count as one notification.
#[derive(Default)]
pub(crate) struct Commits {
    followed: AtomicBool,
    committed: Notify,
}

impl Commits {
    /// Disables automatic checkpoints on this connection and on later ones, and subscribes to their commits. On failure
    /// SQLite keeps checkpointing.
    pub(super) async fn follow(self: &Arc<Self>, connection: &mut SqliteConnection) -> Result<(), sqlx::Error> {
        self.subscribe(connection).await?;
        self.followed.store(true, Ordering::SeqCst);
        Ok(())
    }

    /// Unsubscribes: later connections checkpoint automatically.
    pub(super) fn forget(&self) {
        self.followed.store(false, Ordering::SeqCst);
    }

    /// Re-enables automatic checkpoints on a connection.
    pub(super) async fn leave(&self, connection: &mut SqliteConnection) -> Result<(), sqlx::Error> {
        connection.lock_handle().await?.remove_commit_hook();
        sqlx::query(DEFAULT_AUTOCHECKPOINT).execute(&mut *connection).await.map(drop)
    }

    /// Does the same for a new connection while a task is subscribed.
    pub(crate) async fn attach(self: &Arc<Self>, connection: &mut SqliteConnection) -> Result<(), sqlx::Error> {
        if self.are_followed() { self.subscribe(connection).await } else { Ok(()) }
    }

    pub(super) fn are_followed(&self) -> bool {
        self.followed.load(Ordering::SeqCst)
    }

    /// Subscribes to commits first, and then disables automatic checkpoints, so that no commit is missed.
    async fn subscribe(self: &Arc<Self>, connection: &mut SqliteConnection) -> Result<(), sqlx::Error> {
        let commits = Arc::clone(self);
        connection.lock_handle().await?.set_commit_hook(move || {
            commits.committed.notify_one();
            // The commit continues.
            true
        });
        sqlx::query("PRAGMA wal_autocheckpoint = 0").execute(&mut *connection).await.map(drop)
    }

    /// Waits for a commit since the last call.
    pub(super) async fn committed(&self) {
        self.committed.notified().await;
    }
}
