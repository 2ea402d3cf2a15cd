//! Detection of pauses of the whole process: SIGSTOP, a suspended machine, a CPU assigned to other work.

use std::sync::atomic::{AtomicI64, AtomicU64, Ordering};
use std::time::Duration;

use chrono::{DateTime, Utc};

/// Detects pauses by late heartbeats. During a pause the clock advances while no task runs, so deadlines pass
/// regardless of the providers.
///
/// Without heartbeats, it detects no pauses.
#[derive(Debug)]
pub struct PauseDetector {
    /// The time after a heartbeat from which the next one is late.
    late_after: Duration,
    /// The last heartbeat, in nanoseconds; `NEVER` before the first.
    last_beat: AtomicU64,
    /// The last heartbeat by the wall clock, in milliseconds: a suspended machine stops the monotonic clock.
    last_wall: AtomicI64,
    /// The end of the last pause, in nanoseconds; 0 before the first.
    pause_ended: AtomicU64,
}

const NEVER: u64 = u64::MAX;

impl PauseDetector {
    /// Creates a detector of heartbeats every `interval`, each late by `tolerance` at most.
    pub fn new(interval: Duration, tolerance: Duration) -> Self {
        Self {
            late_after: interval.saturating_add(tolerance),
            last_beat: AtomicU64::new(NEVER),
            last_wall: AtomicI64::new(0),
            pause_ended: AtomicU64::new(0),
        }
    }

    /// Records a heartbeat. Returns the length of a pause that has just ended.
    pub fn beat(&self, now: Duration, wall: DateTime<Utc>) -> Option<Duration> {
        let beat = nanos(now);
        let last = self.last_beat.load(Ordering::Acquire);
        let last_wall = self.last_wall.swap(wall.timestamp_millis(), Ordering::AcqRel);
        let mut pause = None;
        if last != NEVER {
            let elapsed = Duration::from_nanos(beat.saturating_sub(last));
            let by_wall = wall.timestamp_millis().saturating_sub(last_wall);
            let elapsed = elapsed.max(Duration::from_millis(u64::try_from(by_wall).unwrap_or(0)));
            if elapsed > self.late_after {
                self.pause_ended.fetch_max(beat, Ordering::AcqRel);
                pause = Some(elapsed);
            }
        }
        // Stored after `pause_ended`, so that the pause is visible at every instant.
        self.last_beat.store(beat.min(NEVER - 1), Ordering::Release);
        pause
    }

    /// Returns true if the process was paused since `began`: a pause ended since then, or the heartbeat is late now.
    pub fn was_paused_since(&self, began: Duration, now: Duration) -> bool {
        let last = self.last_beat.load(Ordering::Acquire);
        let late = nanos(self.late_after);
        let is_late = last != NEVER && nanos(now).saturating_sub(last) > late;
        is_late || nanos(began) < self.pause_ended.load(Ordering::Acquire)
    }
}

fn nanos(time: Duration) -> u64 {
    u64::try_from(time.as_nanos()).unwrap_or(u64::MAX)
}
