//! The connection that runs checkpoints.

use sea_orm::sqlx::{self, Connection, SqliteConnection};

use crate::location::Location;
use crate::settings::StorageSettings;
use crate::sqlite;

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
    fn parse_row_reads_sqlite_result() {
        assert_eq!(parse_row((0, 10, 4), 4120), Some(LogState { bytes: 41_200, waiting: 24_720, is_blocked: false }));
        assert_eq!(parse_row((1, 10, 10), 4120), Some(LogState { bytes: 41_200, waiting: 0, is_blocked: true }));
        assert_eq!(parse_row((0, 0, 0), 4120), Some(LogState { bytes: 0, waiting: 0, is_blocked: false }));
        // Another process is checkpointing; the file has no log.
        assert_eq!(parse_row((1, -1, -1), 4120), None);
        assert_eq!(parse_row((0, -1, -1), 4120), None);
    }
}
