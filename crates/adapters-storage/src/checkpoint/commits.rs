//! Word of commits, from the connection that writes to the task.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use sea_orm::sqlx::{self, SqliteConnection};
use tokio::sync::Notify;

/// Tells that something was committed. Any number of commits before the task listens are one word.
#[derive(Default)]
pub(crate) struct Commits {
    followed: AtomicBool,
    committed: Notify,
}

impl Commits {
    /// True for the first who follows them.
    pub(super) fn follow(&self) -> bool {
        !self.followed.swap(true, Ordering::SeqCst)
    }

    /// Takes the copying of the log out of a connection's commits and hears of them, where somebody follows them.
    pub(crate) async fn attach(self: &Arc<Self>, connection: &mut SqliteConnection) -> Result<(), sqlx::Error> {
        if !self.followed.load(Ordering::SeqCst) {
            return Ok(());
        }
        sqlx::query("PRAGMA wal_autocheckpoint = 0").execute(&mut *connection).await?;
        let commits = Arc::clone(self);
        connection.lock_handle().await?.set_commit_hook(move || {
            commits.committed.notify_one();
            // The commit goes on.
            true
        });
        Ok(())
    }

    /// Returns when something was committed since it last did.
    pub(super) async fn committed(&self) {
        self.committed.notified().await;
    }
}
