//! The checkpoint task.

use std::sync::Arc;
use std::sync::atomic::Ordering;

use sea_orm::sqlx;
use tokio::time::sleep;
use tokio_util::sync::CancellationToken;

use super::connection::{CheckpointConnection, LogState, Step};
use super::state::Checkpoints;
use super::status::{CheckpointCounters, CheckpointLimits, count};
use crate::database::Database;

/// Sleeps until a commit, so that an idle process stays idle.
pub(super) struct CheckpointTask {
    database: Database,
    checkpoints: Arc<Checkpoints>,
    bounds: CheckpointLimits,
    stop: CancellationToken,
    counts: Arc<CheckpointCounters>,
    /// Opened on first use, and again after an error.
    connection: Option<CheckpointConnection>,
    fails: bool,
    is_long: bool,
}

impl CheckpointTask {
    pub(super) fn new(
        database: Database,
        checkpoints: Arc<Checkpoints>,
        bounds: CheckpointLimits,
        stop: CancellationToken,
    ) -> Self {
        let counts = Arc::clone(&checkpoints.counts);
        Self { database, checkpoints, bounds, stop, counts, connection: None, fails: false, is_long: false }
    }

    /// Runs until stopped; a running step is finished first.
    pub(super) async fn run(mut self) {
        let stop = self.stop.clone();
        let commits = Arc::clone(&self.checkpoints.commits);
        loop {
            tokio::select! {
                () = stop.cancelled() => break,
                // A failed step is retried even without further commits.
                () = sleep(self.bounds.retry), if self.fails => {}
                () = commits.committed(), if !self.fails => {}
            }
            tokio::select! {
                () = stop.cancelled() => break,
                () = sleep(self.bounds.pause) => {}
            }
            let checked = self.check().await;
            self.log_transitions(checked);
        }
        if let Err(error) = self.finish().await {
            tracing::debug!(error = &error as &dyn std::error::Error, "final wal checkpoint failed");
        }
    }

    /// Runs the steps that the length of the log requires.
    async fn check(&mut self) -> Result<(), sqlx::Error> {
        count(&self.counts.checks);
        // After an error the connection is gone, and the next check opens another one.
        let mut connection = if let Some(connection) = self.connection.take() {
            connection
        } else {
            CheckpointConnection::open(&self.checkpoints.settings, &self.checkpoints.location).await?
        };
        self.checkpoint_if_needed(&mut connection).await?;
        self.connection = Some(connection);
        Ok(())
    }

    async fn checkpoint_if_needed(&self, connection: &mut CheckpointConnection) -> Result<(), sqlx::Error> {
        let checked = self.step(connection, Step::Inspect).await?;
        if checked.is_none_or(|log| log.waiting < self.bounds.copy_after) {
            return Ok(());
        }
        if !self.is_ready_to_restart(self.copy(connection).await?) {
            return Ok(());
        }
        // Under a steady load commits arrive during every checkpoint. Copy them too, so that the restart blocks writers
        // as briefly as possible.
        if !self.is_ready_to_restart(self.copy(connection).await?) {
            return Ok(());
        }
        self.restart(connection).await
    }

    async fn step(&self, connection: &mut CheckpointConnection, step: Step) -> Result<Option<LogState>, sqlx::Error> {
        let log = connection.run(step).await?;
        if let Some(log) = log {
            self.counts.bytes.store(log.bytes, Ordering::Relaxed);
        }
        Ok(log)
    }

    async fn copy(&self, connection: &mut CheckpointConnection) -> Result<Option<LogState>, sqlx::Error> {
        let log = self.step(connection, Step::Copy).await?;
        match log {
            Some(log) if log.waiting == 0 => count(&self.counts.copied),
            Some(_) => count(&self.counts.partial),
            // Another process is checkpointing, which is sufficient.
            None => {}
        }
        Ok(log)
    }

    /// Returns true if a restart is useful. While readers use the log, waiting for them would only block writers.
    fn is_ready_to_restart(&self, log: Option<LogState>) -> bool {
        log.is_some_and(|log| log.bytes >= self.bounds.restart_after && log.waiting == 0)
    }

    /// Restarts the log. Other tasks of this process queue fairly in the meantime; only other processes poll.
    async fn restart(&self, connection: &mut CheckpointConnection) -> Result<(), sqlx::Error> {
        let Ok(turn) = self.database.acquire_writer().await else {
            // A writer holds the lock for very long, or the database is being closed.
            return Ok(());
        };
        let began = self.database.monotonic();
        let log = self.step(connection, Step::Restart).await?;
        drop(turn);
        if log.is_some_and(|log| !log.is_blocked) {
            count(&self.counts.restarted);
            let held_up = self.database.monotonic().saturating_sub(began);
            let held_up_us = u64::try_from(held_up.as_micros()).unwrap_or(u64::MAX);
            tracing::debug!(held_up_us, "wal restarted");
        }
        Ok(())
    }

    /// Logs changes of the state, once each.
    fn log_transitions(&mut self, checked: Result<(), sqlx::Error>) {
        let failed = checked.is_err();
        if failed {
            count(&self.counts.failed);
        }
        match (update_state(&mut self.fails, failed), checked) {
            (true, Err(error)) => tracing::warn!(
                error = &error as &dyn std::error::Error,
                "wal checkpoint failed, retrying; requests continue"
            ),
            (true, Ok(())) => tracing::info!("wal checkpoints recovered"),
            (false, _) => {}
        }
        let bytes = self.counts.bytes.load(Ordering::Relaxed);
        if update_state(&mut self.is_long, bytes >= self.bounds.warn_after) {
            if self.is_long {
                tracing::warn!(bytes, "wal grows: a reader holds the database for very long");
            } else {
                tracing::info!(bytes, "wal size back to normal");
            }
        }
    }

    /// Runs a last checkpoint, as SQLite does when the last connection closes, so that the file is complete.
    async fn finish(&mut self) -> Result<(), sqlx::Error> {
        // Without a connection there was no write, or the copy failed.
        let Some(mut connection) = self.connection.take() else { return Ok(()) };
        if self.copy(&mut connection).await?.is_some_and(|log| log.waiting == 0) {
            self.step(&mut connection, Step::Truncate).await?;
        }
        connection.close().await
    }
}

/// Updates the state and returns whether it changed.
fn update_state(state: &mut bool, now: bool) -> bool {
    std::mem::replace(state, now) != now
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn update_state_reports_changes() {
        let mut state = false;
        let changes: Vec<bool> = [false, true, true, true, false, false, true]
            .into_iter()
            .map(|now| update_state(&mut state, now))
            .collect();
        assert_eq!(changes, [false, true, false, false, true, false, true]);
    }
}
