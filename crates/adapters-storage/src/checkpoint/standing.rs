//! How long the log may be, how long it is, and what was done about it.

use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

/// When the log is copied and begun anew. Sizes are in bytes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct LogBounds {
    /// It is copied when so much of it is not in the database yet.
    ///
    /// There is no bound in time on purpose: whoever commits after a log that was copied to its end begins it anew,
    /// with an fsync, so that under a light load every request would pay for one.
    pub copy_after: u64,
    /// It is begun anew when it is so long; writes of a moment wait for that.
    pub restart_after: u64,
    /// A warning is written when it is so long all the same.
    pub warn_after: u64,
    /// How long commits are gathered before the log is looked at: the most often that it is.
    pub pause: Duration,
    /// How long is waited after an error.
    pub retry: Duration,
}

impl Default for LogBounds {
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

/// How the log stands, and what was done about it since the process began.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct LogStanding {
    /// Its length in bytes when it was last looked at.
    pub bytes: u64,
    /// Times that it was looked at.
    pub looks: u64,
    /// Times that all of it was copied.
    pub copied: u64,
    /// Times that only a part of it could be copied, because somebody still read what was before.
    pub partly: u64,
    /// Times that it was made to begin anew.
    pub restarted: u64,
    /// Times that this failed.
    pub failed: u64,
    /// Times that the task which does it came to an end by itself, as by a panic, and had to be begun again.
    pub ended: u64,
}

/// [`LogStanding`] as it is counted.
#[derive(Default)]
pub(super) struct Counts {
    pub(super) bytes: AtomicU64,
    pub(super) looks: AtomicU64,
    pub(super) copied: AtomicU64,
    pub(super) partly: AtomicU64,
    pub(super) restarted: AtomicU64,
    pub(super) failed: AtomicU64,
    pub(super) ended: AtomicU64,
}

impl Counts {
    pub(super) fn standing(&self) -> LogStanding {
        let read = |value: &AtomicU64| value.load(Ordering::Relaxed);
        LogStanding {
            bytes: read(&self.bytes),
            looks: read(&self.looks),
            copied: read(&self.copied),
            partly: read(&self.partly),
            restarted: read(&self.restarted),
            failed: read(&self.failed),
            ended: read(&self.ended),
        }
    }
}

/// One more.
pub(super) fn count(value: &AtomicU64) {
    value.fetch_add(1, Ordering::Relaxed);
}
