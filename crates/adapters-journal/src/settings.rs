//! The settings of a journal.

use std::time::Duration;

/// The settings of a journal.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct JournalSettings {
    /// The size of a segment file, in bytes. Allocated ahead of its use.
    pub segment_bytes: u64,
    /// The largest payload of an entry, in bytes. At least four of them must fit into a segment.
    pub max_payload_bytes: usize,
    /// The longest time from a write to its sync. `None` leaves syncs to [`crate::Journal::sync`].
    pub sync_interval: Option<Duration>,
    /// The pause after a failed sync. Each retry writes the unsynced entries to a new segment.
    pub sync_retry: Duration,
    /// The limit of unfolded entries in memory, in bytes; older ones are read from the disk.
    pub max_memory_bytes: usize,
    /// The limit of unfolded entries on the disk, in bytes; beyond it no new reservation is granted.
    pub max_unfolded_bytes: u64,
}

impl Default for JournalSettings {
    /// Segments of 16 MiB, payloads of 128 KiB, a sync every 50 ms, a retry after 1 s, 8 MiB in memory, 1 GiB unfolded.
    fn default() -> Self {
        Self {
            segment_bytes: 16 << 20,
            max_payload_bytes: 128 << 10,
            sync_interval: Some(Duration::from_millis(50)),
            sync_retry: Duration::from_secs(1),
            max_memory_bytes: 8 << 20,
            max_unfolded_bytes: 1 << 30,
        }
    }
}
