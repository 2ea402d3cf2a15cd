//! The interval in which the store sees a process, and the silence after which others act for it.

use std::time::Duration;

use crate::config::{Config, JournalSync};

/// The interval of an idle server on one machine, with its journal on the disk: it need not write more often.
const LOCAL_HEARTBEAT: Duration = Duration::from_secs(30);
/// The minimum number of heartbeats before another process recovers a journal in the database, or a promotion.
pub const ADOPTION_HEARTBEATS: u32 = 3;
/// The silence after which another process recovers the journal of a process in the database.
pub const ADOPT_AFTER: Duration = Duration::from_secs(15);
/// The silence after which a process without a journal on this machine counts as lost, at least.
const LOST_AFTER: Duration = Duration::from_hours(1);

/// Returns the silence after which a process without a journal on this machine counts as lost. A replica that is cut off
/// from the database serves on for a time; another one must not give its allowances back meanwhile.
pub fn lost_after(config: &Config) -> Duration {
    let serves_for = config.max_stale_keys.saturating_add(config.limits.request_timeout);
    LOST_AFTER.max(serves_for.saturating_mul(2))
}

/// Returns the maximum interval in which the store sees this process.
pub fn heartbeat(config: &Config) -> Duration {
    let is_local = config.storage.is_file() && config.journal.sync != JournalSync::Store;
    if is_local { LOCAL_HEARTBEAT } else { ADOPT_AFTER / ADOPTION_HEARTBEATS }
}
