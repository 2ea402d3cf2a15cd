//! The bound on the bytes that the records of a workspace take in a UTC day.

use std::collections::HashMap;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use chrono::{DateTime, Utc};

use crate::budget::{ResetInterval, UsageCharge};
use crate::decision::RecordQuotaExceeded;
use crate::error::StoreError;
use crate::ids::WorkspaceId;
use crate::system::TimeSource;
use crate::usage::UsageRepository;

/// The lifetime of a cached volume. It contains new records of this process at once, but not those of other processes.
const REFRESH: Duration = Duration::from_secs(1);
/// The longest wait for the store. A silent one would delay the request until the store's own time limit.
const READ_TIMEOUT: Duration = Duration::from_secs(1);
/// The pause after a read that timed out. The next one has no timeout: a slow store must respond to some.
const REFRESH_AFTER_TIMEOUT: Duration = Duration::from_secs(10);
/// The number of cached workspaces from which entries of previous days are removed.
const MANY: usize = 10_000;

/// Counts the bytes of records that workspaces wrote today, by what the store says and what this process has added
/// since.
pub(super) struct RecordQuota {
    records: Arc<dyn UsageRepository>,
    time: TimeSource,
    /// The bound, in bytes; `None` is no bound.
    limit: Option<u64>,
    known: Mutex<HashMap<WorkspaceId, CachedVolume>>,
    rejected: AtomicU64,
}

#[derive(Debug, Clone, Copy)]
struct CachedVolume {
    day: DateTime<Utc>,
    bytes: u64,
    read_at: Duration,
    /// True if the last read timed out.
    has_timed_out: bool,
}

/// The status of the bound on records.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct RecordQuotaStatus {
    /// Bytes of the workspace that wrote most today, as far as this process knows.
    pub largest_bytes: u64,
    /// Requests that were rejected.
    pub rejected: u64,
}

impl RecordQuota {
    pub(super) fn new(records: Arc<dyn UsageRepository>, time: TimeSource, limit: Option<u64>) -> Self {
        Self { records, time, limit, known: Mutex::default(), rejected: AtomicU64::default() }
    }

    /// Rejects a request of a workspace whose records reached today's limit. If the store does not answer, the cached
    /// volume counts: the record of the request must be stored before its answer anyway.
    /// `now` and `elapsed` are on the wall clock and on the monotonic one.
    pub(super) async fn check(
        &self,
        workspace: WorkspaceId,
        (now, elapsed): (DateTime<Utc>, Duration),
    ) -> Result<(), RecordQuotaExceeded> {
        let Some(limit) = self.limit else { return Ok(()) };
        let day = ResetInterval::Daily.start_of(now);
        if let Some(may_time_out) = self.begin_read(workspace, day, elapsed) {
            let read = self.records.recorded_bytes(workspace);
            let bytes =
                if may_time_out { self.time.run_with_timeout(READ_TIMEOUT, read).await } else { Some(read.await) };
            self.end_read(workspace, day, bytes.as_ref());
        }
        let used = self.lock().get(&workspace).map_or(0, |known| known.bytes);
        if used < limit {
            return Ok(());
        }
        self.rejected.fetch_add(1, Ordering::Relaxed);
        let resets_at = ResetInterval::Daily.end_of(now);
        let resets_in = (resets_at - now).to_std().unwrap_or_default();
        Err(RecordQuotaExceeded { limit, used, resets_at, resets_in })
    }

    /// Adds a charge that was written.
    pub(super) fn add(&self, charge: &UsageCharge) {
        if let Some(known) = self.lock().get_mut(&charge.record.workspace_id) {
            known.bytes = known.bytes.saturating_add(charge.stored_bytes());
        }
    }

    pub(super) fn status(&self) -> RecordQuotaStatus {
        let day = ResetInterval::Daily.start_of(self.time.now());
        let known = self.lock();
        let largest = known.values().filter(|known| known.day == day).map(|known| known.bytes).max();
        RecordQuotaStatus {
            largest_bytes: largest.unwrap_or_default(),
            rejected: self.rejected.load(Ordering::Relaxed),
        }
    }

    /// Returns whether a read may time out if the caller has to read the volume from the store. Other callers use the
    /// cached one meanwhile.
    fn begin_read(&self, workspace: WorkspaceId, day: DateTime<Utc>, elapsed: Duration) -> Option<bool> {
        let mut all = self.lock();
        if all.len() >= MANY && !all.contains_key(&workspace) {
            all.retain(|_, known| known.day == day);
        }
        let known = all.entry(workspace).or_insert(CachedVolume {
            day: DateTime::UNIX_EPOCH,
            bytes: 0,
            read_at: elapsed,
            has_timed_out: false,
        });
        let refresh = if known.has_timed_out { REFRESH_AFTER_TIMEOUT } else { REFRESH };
        if known.day == day && elapsed.saturating_sub(known.read_at) < refresh {
            return None;
        }
        if known.day != day {
            (known.day, known.bytes) = (day, 0);
        }
        known.read_at = elapsed;
        Some(!known.has_timed_out)
    }

    /// Keeps what a read returned; `None` if it timed out.
    fn end_read(&self, workspace: WorkspaceId, day: DateTime<Utc>, bytes: Option<&Result<u64, StoreError>>) {
        if let Some(known) = self.lock().get_mut(&workspace).filter(|known| known.day == day) {
            known.has_timed_out = bytes.is_none();
            if let Some(Ok(bytes)) = bytes {
                known.bytes = *bytes;
            }
        }
    }

    fn lock(&self) -> MutexGuard<'_, HashMap<WorkspaceId, CachedVolume>> {
        self.known.lock().unwrap_or_else(PoisonError::into_inner)
    }
}
