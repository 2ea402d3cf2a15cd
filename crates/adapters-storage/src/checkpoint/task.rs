//! The checkpoint task, and the connection that runs its steps.

use std::sync::Arc;

use sea_orm::sqlx::{self, Connection, SqliteConnection};
use tokio::time::sleep;
use tokio_util::sync::CancellationToken;

use super::state::{CheckpointLimits, Checkpoints, SharedStatus};
use crate::database::Database;
use crate::settings::{Location, StorageSettings};
use crate::sqlite;

/// Sleeps until a commit, so that an idle process stays idle.
pub(super) struct CheckpointTask {
    database: Database,
    checkpoints: Arc<Checkpoints>,
    bounds: CheckpointLimits,
    stop: CancellationToken,
    status: Arc<SharedStatus>,
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
        let status = Arc::clone(&checkpoints.status);
        Self { database, checkpoints, bounds, stop, status, connection: None, fails: false, is_long: false }
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
        self.status.update(|status| status.checks += 1);
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
            self.status.update(|status| status.bytes = log.bytes);
        }
        Ok(log)
    }

    async fn copy(&self, connection: &mut CheckpointConnection) -> Result<Option<LogState>, sqlx::Error> {
        let log = self.step(connection, Step::Copy).await?;
        match log {
            Some(log) if log.waiting == 0 => self.status.update(|status| status.copied += 1),
            Some(_) => self.status.update(|status| status.partial += 1),
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
            self.status.update(|status| status.restarted += 1);
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
            self.status.update(|status| status.failed += 1);
        }
        match (update_state(&mut self.fails, failed), checked) {
            (true, Err(error)) => tracing::warn!(
                error = &error as &dyn std::error::Error,
                "wal checkpoint failed, retrying; requests continue"
            ),
            (true, Ok(())) => tracing::info!("wal checkpoints recovered"),
            (false, _) => {}
        }
        let bytes = self.status.get().bytes;
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

/// The size of the frame header before each page in the log, in bytes.
const FRAME_HEADER_BYTES: u64 = 24;

/// A checkpoint step.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Step {
    /// Reads only the status.
    Inspect,
    /// Copies the pages that no reader needs. Waits for no other connection and blocks none.
    Copy,
    /// Copies all pages while no connection writes, so that the next commit restarts the log.
    Restart,
    /// Like `Restart`, and truncates the file.
    Truncate,
}

impl Step {
    const fn sql(self) -> &'static str {
        match self {
            Self::Inspect => "PRAGMA wal_checkpoint(NOOP)",
            Self::Copy => "PRAGMA wal_checkpoint(PASSIVE)",
            Self::Restart => "PRAGMA wal_checkpoint(RESTART)",
            Self::Truncate => "PRAGMA wal_checkpoint(TRUNCATE)",
        }
    }
}

/// The status of the log after a step.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct LogState {
    /// The length in bytes.
    pub(super) bytes: u64,
    /// The bytes that are not in the database yet.
    pub(super) waiting: u64,
    /// True if other connections prevented the complete step.
    pub(super) is_blocked: bool,
}

pub(super) struct CheckpointConnection {
    connection: SqliteConnection,
    frame_bytes: u64,
}

impl CheckpointConnection {
    pub(super) async fn open(settings: &StorageSettings, location: &Location) -> Result<Self, sqlx::Error> {
        let mut connection = sqlite::checkpointer(settings, location).await?;
        let page: i64 = sqlx::query_scalar("PRAGMA page_size").fetch_one(&mut connection).await?;
        Ok(Self { connection, frame_bytes: number(page) + FRAME_HEADER_BYTES })
    }

    /// Runs a step; `None` if another process is checkpointing, or there is no log.
    pub(super) async fn run(&mut self, step: Step) -> Result<Option<LogState>, sqlx::Error> {
        let row: (i64, i64, i64) = sqlx::query_as(step.sql()).fetch_one(&mut self.connection).await?;
        Ok(parse_row(row, self.frame_bytes))
    }

    pub(super) async fn close(self) -> Result<(), sqlx::Error> {
        self.connection.close().await
    }
}

/// Parses SQLite's result: blocked, the frames of the log and the copied frames; -1 means neither.
fn parse_row((is_blocked, frames, copied): (i64, i64, i64), frame_bytes: u64) -> Option<LogState> {
    let bytes = |frames: i64| number(frames).saturating_mul(frame_bytes);
    (frames >= 0 && copied >= 0).then(|| LogState {
        bytes: bytes(frames),
        waiting: bytes(frames.saturating_sub(copied)),
        is_blocked: is_blocked != 0,
    })
}

fn number(value: i64) -> u64 {
    u64::try_from(value).unwrap_or(0)
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

    #[test]
    fn parse_row_reads_sqlite_result() {
        assert_eq!(parse_row((0, 10, 4), 4120), Some(LogState { bytes: 41_200, waiting: 24_720, is_blocked: false }));
        assert_eq!(parse_row((1, 10, 10), 4120), Some(LogState { bytes: 41_200, waiting: 0, is_blocked: true }));
        assert_eq!(parse_row((0, 0, 0), 4120), Some(LogState { bytes: 0, waiting: 0, is_blocked: false }));
        // Another process is checkpointing; the file has no log.
        assert_eq!(parse_row((1, -1, -1), 4120), None);
        assert_eq!(parse_row((0, -1, -1), 4120), None);
    }
}
