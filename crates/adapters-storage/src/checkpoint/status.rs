//! Limits, status and counters of the write-ahead log.

use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

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

/// The counters behind [`WalStatus`].
#[derive(Default)]
pub(super) struct CheckpointCounters {
    pub(super) bytes: AtomicU64,
    pub(super) checks: AtomicU64,
    pub(super) copied: AtomicU64,
    pub(super) partial: AtomicU64,
    pub(super) restarted: AtomicU64,
    pub(super) failed: AtomicU64,
    pub(super) ended: AtomicU64,
}

impl CheckpointCounters {
    pub(super) fn status(&self) -> WalStatus {
        let read = |value: &AtomicU64| value.load(Ordering::Relaxed);
        WalStatus {
            bytes: read(&self.bytes),
            checks: read(&self.checks),
            copied: read(&self.copied),
            partial: read(&self.partial),
            restarted: read(&self.restarted),
            failed: read(&self.failed),
            ended: read(&self.ended),
        }
    }
}

/// Increments a counter.
pub(super) fn count(value: &AtomicU64) {
    value.fetch_add(1, Ordering::Relaxed);
}
