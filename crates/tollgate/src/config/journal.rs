//! `[journal]`

use std::path::{Path, PathBuf};
use std::time::Duration;

use super::build::{choice, within};
use super::entries::Table;
use super::{ConfigError, JournalConfig, StorageConfig};

const MIB: u64 = 1 << 20;
/// A few segments of the journal.
const SMALLEST: u64 = 64 * MIB;
const LARGEST: u64 = 1024 * 1024 * MIB;
const DEFAULT: u64 = 1024 * MIB;
/// Ten minutes.
const KEEP: u64 = 600_000;
/// A week.
const LONGEST_KEEP: u64 = 604_800_000;

/// An hour.
const LOST_AFTER: u64 = 3_600_000;
/// A second to thirty days.
const LOST_RANGE: std::ops::RangeInclusive<u64> = 1_000..=2_592_000_000;

/// The point at which a response may be sent: after the write of its charge, or after its sync.
#[derive(Debug, Clone, Copy)]
enum Sync {
    ByStorage,
    Interval,
    Always,
}

/// Parses `[journal]`. By default the folder is beside the database, with the database's durability.
pub fn journal(table: &Table, storage: &StorageConfig) -> Result<JournalConfig, ConfigError> {
    let sync = match table.text("sync") {
        None => Sync::ByStorage,
        Some(_) => choice(table, "sync", &[("interval", Sync::Interval), ("always", Sync::Always)])?,
    };
    Ok(JournalConfig {
        path: table.path("path").unwrap_or_else(|| beside(&storage.file)),
        is_synced: match sync {
            Sync::ByStorage => storage.synchronous_full,
            Sync::Interval => false,
            Sync::Always => true,
        },
        max_bytes: within(table, "max_bytes", SMALLEST..=LARGEST)?.unwrap_or(DEFAULT),
        keep: Duration::from_millis(within(table, "retention_ms", 0..=LONGEST_KEEP)?.unwrap_or(KEEP)),
        lost_after: Duration::from_millis(within(table, "process_lost_after_ms", LOST_RANGE)?.unwrap_or(LOST_AFTER)),
    })
}

/// Returns the default folder: `tollgate.db` has its journal in `tollgate-journal`, so that databases of one folder
/// have separate journals.
fn beside(database: &Path) -> PathBuf {
    let stem = database.file_stem().unwrap_or_default().to_string_lossy().into_owned();
    database.with_file_name(format!("{stem}-journal"))
}
