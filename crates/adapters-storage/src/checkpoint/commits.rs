//! Word of commits, from the connection that writes to the task.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use sea_orm::sqlx::{self, SqliteConnection};
use tokio::sync::Notify;

/// As SQLite does it where nobody says anything.
const AUTOMATICALLY: &str = "PRAGMA wal_autocheckpoint = 1000";

/// Tells that something was committed. Any number of commits before the task listens are one word.
#[derive(Default)]
pub(crate) struct Commits {
    followed: AtomicBool,
    committed: Notify,
}

impl Commits {
    /// Takes the copying of the log out of the commits of this connection, and of those that are opened later, and hears
    /// of them. Where that fails it stays SQLite's.
    pub(super) async fn follow(self: &Arc<Self>, connection: &mut SqliteConnection) -> Result<(), sqlx::Error> {
        self.hear_of(connection).await?;
        self.followed.store(true, Ordering::SeqCst);
        Ok(())
    }

    /// Nobody follows them any more: connections that are opened later copy the log by themselves.
    pub(super) fn forget(&self) {
        self.followed.store(false, Ordering::SeqCst);
    }

    /// Leaves the copying to a connection's commits again.
    pub(super) async fn leave(&self, connection: &mut SqliteConnection) -> Result<(), sqlx::Error> {
        connection.lock_handle().await?.remove_commit_hook();
        sqlx::query(AUTOMATICALLY).execute(&mut *connection).await.map(drop)
    }

    /// Likewise for a connection that is new, where somebody follows them.
    pub(crate) async fn attach(self: &Arc<Self>, connection: &mut SqliteConnection) -> Result<(), sqlx::Error> {
        if self.are_followed() { self.hear_of(connection).await } else { Ok(()) }
    }

    pub(super) fn are_followed(&self) -> bool {
        self.followed.load(Ordering::SeqCst)
    }

    /// The word comes before the other is given up.
    async fn hear_of(self: &Arc<Self>, connection: &mut SqliteConnection) -> Result<(), sqlx::Error> {
        let commits = Arc::clone(self);
        connection.lock_handle().await?.set_commit_hook(move || {
            commits.committed.notify_one();
            // The commit goes on.
            true
        });
        sqlx::query("PRAGMA wal_autocheckpoint = 0").execute(&mut *connection).await.map(drop)
    }

    /// Returns when something was committed since it last did.
    pub(super) async fn committed(&self) {
        self.committed.notified().await;
    }
}
