//! The supervisor of checkpoints: runs the task of this process, and re-enables SQLite's own checkpoints while it is
//! down.

use std::panic::AssertUnwindSafe;
use std::sync::Arc;
use std::time::Duration;

use domain::error::StoreError;
use futures_util::FutureExt;
use sea_orm::{DbErr, RuntimeErr, SqlxError};
use tokio::sync::oneshot;
use tokio::time::sleep;
use tokio_util::sync::CancellationToken;

use super::Checkpoints;
use super::status::count;
use crate::database::Database;
use crate::errors::store_error;

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
        let mut writer = self.database.acquire_writer().await.map_err(unavailable)?;
        self.checkpoints.commits.follow(&mut writer).await.map_err(unavailable)
    }

    async fn return_to_sqlite(&self, panicked: bool) {
        let checkpoints = &self.checkpoints;
        count(&checkpoints.counts.ended);
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

fn unavailable(error: SqlxError) -> StoreError {
    store_error(DbErr::Conn(RuntimeErr::SqlxError(Arc::new(error))))
}

#[cfg(test)]
mod tests;
