//! The interval in which the store sees a process, and the silence after which others act for it.

use std::time::Duration;

use crate::config::{Config, JournalSync};

/// The maximum interval of heartbeats, and their minimum number before a process counts as lost.
const LONGEST_HEARTBEAT: Duration = Duration::from_secs(30);
const HEARTBEATS: u32 = 8;
/// Their minimum number before another process recovers a journal in the database, or a promotion.
pub const ADOPTION_HEARTBEATS: u32 = 3;

/// Returns the maximum interval in which the store sees this process.
pub fn heartbeat(config: &Config) -> Duration {
    let longest = LONGEST_HEARTBEAT.min(config.journal.lost_after / HEARTBEATS);
    // An idle server on one machine, with its journal on the disk, need not write so often.
    let is_local = config.storage.is_file() && config.journal.sync != JournalSync::Store;
    if is_local { longest } else { longest.min(config.journal.adopt_after / ADOPTION_HEARTBEATS) }
}
