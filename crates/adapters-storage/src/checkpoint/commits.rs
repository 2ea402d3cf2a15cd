//! Notifications of commits from the writing connection to the task.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use sea_orm::sqlx::{self, SqliteConnection};
use tokio::sync::Notify;

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
